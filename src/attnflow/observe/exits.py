"""The distribution of exit times over many seeds: survival, quantiles and mean, with intervals that assume no shape."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from attnflow import sketches
from attnflow.checks import reals, shown
from attnflow.describe import html_table
from attnflow.errors import InvalidInput
from attnflow.special.formula import Other, Reals, formula


class Estimate(NamedTuple):
    """A number read off a sample, and the interval that holds the true one with the confidence of the distribution."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Kolmogorov(NamedTuple):
    """How far an empirical distribution is from a distribution function."""

    distance: float
    """sup |F_n - F| over the times that were observed."""
    critical: float
    """What the distance exceeds with probability 1 - confidence if F is the distribution."""

    @property
    def rejects(self) -> bool:
        """Whether the sample rejects F at the confidence of the distribution."""
        return self.distance > self.critical


@dataclasses.dataclass(frozen=True, repr=False)
class ExitDistribution:
    """The empirical distribution of log exit times; make it with `exit_distribution`."""

    log_times: Float[np.ndarray, " seed"]
    """Sorted; infinite for a seed that did not exit."""
    confidence: float
    """Probability with which an interval holds the true value."""
    until: float
    """Log of the time at which observation ended, infinite if every x is to count as observed."""

    def __repr__(self) -> str:
        return f"ExitDistribution({', '.join(f'{key}: {value}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        x = self.log_times[: self.exits]
        left = sketches.curve(x, 1 - np.arange(1, x.size + 1) / self.n, "share that is left, against log t")
        return html_table("ExitDistribution", self._facts(), left)

    def _facts(self) -> dict[str, str]:
        """What the distribution is, in a few words."""
        median = self.quantile(0.5)
        return {
            "seeds": f"{self.n}, of which {self.exits} exit",
            "median of log t": f"{float(median.value):.4g}, between {float(median.low):.4g} and "
            f"{float(median.high):.4g} at {100 * self.confidence:g} % confidence",
        }

    @property
    def n(self) -> int:
        """Number of seeds."""
        return len(self.log_times)

    @property
    def exits(self) -> int:
        """Number of seeds that were seen to exit."""
        return int(np.sum(self.log_times < np.inf))

    @property
    def mean(self) -> float:
        """Mean of the log times; NaN if a seed did not exit, as its time is not known (use `quantile`)."""
        return float(np.mean(self.log_times)) if np.isfinite(self.log_times).all() else np.nan

    @property
    def standard_error(self) -> float:
        """Standard error of `mean`, from the sample deviation with n - 1; NaN where there is none."""
        if self.n < 2 or not np.isfinite(self.log_times).all():
            return np.nan
        return float(np.std(self.log_times, ddof=1) / np.sqrt(self.n))

    @property
    def band(self) -> float:
        """Half the width of the band about the survival function, sqrt(log(2/(1 - confidence))/(2n)).

        The empirical distribution is within it at all x at once with probability `confidence`, whatever the
        distribution and for every n
        (Dvoretzky, Kiefer, Wolfowitz 1956, with the constant of Massart 1990).
        """
        return float(np.sqrt(np.log(2 / (1 - self.confidence)) / (2 * self.n)))

    def survival(self, x: ArrayLike) -> Estimate:
        """The share S(x) of seeds whose log exit time exceeds x, with its band; past `until`, 0 <= S(x) <= S(until)."""
        at = np.asarray(x, dtype=np.float64)
        if np.isnan(at).any():
            raise InvalidInput(f"`x` is {shown(x)}; give logarithms of times.")
        seen = at <= self.until
        value = 1 - np.searchsorted(self.log_times, np.minimum(at, self.until), side="right") / self.n
        low = np.where(seen, np.maximum(value - self.band, 0), 0.0)
        return Estimate(np.where(seen, value, np.nan), low, np.minimum(value + self.band, 1))

    def quantile(self, q: ArrayLike) -> Estimate:
        """The least log time before or at which a share q in (0, 1) has exited, between two order statistics.

        The number of seeds before the true quantile is binomial (n, q), so the l-th and the u-th smallest time hold it
        between them with the stated confidence for every distribution, where each of P(B < l) and P(B >= u) is at most
        (1 - confidence)/2. An end is infinite where the sample has no such order statistic or it did not exit; such
        values exceed `until` rather than being known.
        """
        from scipy.stats import binom

        share = np.asarray(q, dtype=np.float64)
        if not np.all((share > 0) & (share < 1)):
            raise InvalidInput(f"`q` is {shown(q)}; give shares strictly between 0 and 1.")
        tail = (1 - self.confidence) / 2
        padded = np.concatenate([[-np.inf], self.log_times, [np.inf]])
        # n q is rounded: a product within its rounding of an integer is that integer
        middle = np.ceil(self.n * share * (1 - 4 * np.finfo(float).eps)).astype(np.int64)
        low = binom.ppf(tail, self.n, share).astype(np.int64)
        high = binom.isf(tail, self.n, share).astype(np.int64) + 1
        return Estimate(padded[middle], padded[low], padded[high])

    def kolmogorov(self, cdf: Callable[[np.ndarray], Any]) -> Kolmogorov:
        """The distance to the distribution with the continuous distribution function `cdf` of log times.

        The critical value is exact for a distribution without atoms that was fixed beforehand; fitted to the same times
        it would be smaller. Seeds that did not exit count up to `until`, which makes the test more cautious.
        """
        from scipy.stats import kstwo

        times = self.log_times[: self.exits]
        if self.exits < self.n and np.isfinite(self.until):
            times = np.append(times, self.until)
        expected = np.asarray(cdf(times), dtype=np.float64)
        if expected.shape != times.shape or not np.all((expected >= 0) & (expected <= 1)):
            raise InvalidInput(f"`cdf` gave {expected!r}; it must give one number in [0, 1] for each time.")
        before = np.searchsorted(self.log_times, times, side="left") / self.n
        after = np.searchsorted(self.log_times, times, side="right") / self.n
        distance = float(np.max(np.maximum(after - expected, expected - before), initial=0.0))
        return Kolmogorov(distance, float(kstwo.ppf(self.confidence, self.n)))


@formula(
    log_times=Other("logarithms of times, NaN or infinity where none was seen"),
    confidence=Reals(0.0, 1.0, "none", scalar=True),
    until=Other("a logarithm of a time, or infinity"),
    relative=1e-13,
    absolute="1e-14 * np.max(np.abs(np.where(np.isfinite(log_times), log_times, 0.0)))",
)
def exit_distribution(log_times: ArrayLike, confidence: float = 0.95, *, until: float = np.inf) -> ExitDistribution:
    """The distribution of the logarithms of exit times, one for each of independent seeds.

    A seed that did not exit has NaN or infinity and counts as later than everything, which is right for times up to
    the end of observation: give its logarithm as `until` and nothing is said beyond it.
    """
    given = reals(log_times)
    if given is None:
        raise InvalidInput(f"`log_times` is {shown(log_times)}; give an array of real numbers, one for each seed.")
    if given.ndim != 1 or len(given) == 0:
        raise InvalidInput(f"`log_times` has shape {given.shape}; give one for each seed, shape (seeds,).")
    times = np.sort(given)  # NaN comes last
    end = reals(until)
    if end is None or end.ndim:
        raise InvalidInput(f"`until` is {shown(until)}; give the logarithm of a time.")
    times[np.isnan(times)] = np.inf
    exits = times[times < np.inf]
    if np.isnan(until) or (len(exits) and exits[-1] > until):
        last = exits[-1:]
        raise InvalidInput(f"`until` is {shown(until)} and the last exit is at {last}; no exit is seen after `until`.")
    return ExitDistribution(times, float(confidence), float(until))
