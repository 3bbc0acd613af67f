"""Times of which some were not seen, as observation ended before: survival function, quantiles and means."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from attnflow.checks import number, shown
from attnflow.errors import InvalidInput
from attnflow.observe.exits import Estimate
from attnflow.special.formula import Other, Reals, formula


class Mean(NamedTuple):
    """A mean with its standard error, and the interval that holds the true one with the confidence of the sample."""

    value: float
    standard_error: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Survival:
    """The Kaplan-Meier estimate of the distribution of a time; make it with `survival`.

    A time that was not seen is censored: it counts as later than the end of its own observation, and as nothing else.
    """

    times: Float[np.ndarray, " event"]
    """The different times that were seen, rising."""
    events: Float[np.ndarray, " event"]
    """How many there were at each."""
    at_risk: Float[np.ndarray, " event"]
    """How many were still watched just before each."""
    watched: Float[np.ndarray, " seed"]
    """How long each was watched: its time, or the end of its observation."""
    censored: int
    """How many times were not seen."""
    confidence: float
    """Probability with which an interval holds the true value."""

    @property
    def n(self) -> int:
        """Number of times, seen or not."""
        return len(self.watched)

    @property
    def end(self) -> float:
        """Up to where the distribution is known: infinite if every time was seen, else the last end of observation."""
        return float(self.watched.max()) if self.censored else np.inf

    def __call__(self, t: ArrayLike) -> Estimate:
        """The probability S(t) of a time beyond t, with the interval of Greenwood's variance of log(-log S).

        S(t) is the product of 1 - events/at_risk over the times up to t. The interval is for one t, not for all at
        once. Where S is 1 it is a point, where S is 0 it reaches up to its upper end before; beyond `end`, S is NaN and
        somewhere between 0 and the upper end at `end`.
        """
        at = np.asarray(t, dtype=np.float64)
        if np.isnan(at).any():
            raise InvalidInput(f"`t` is {shown(t)}; give times.")
        place = np.searchsorted(self.times, np.minimum(at, self.end), side="right")
        value, low, high = (np.concatenate([[1.0], column])[place] for column in self._curve())
        seen = at <= self.end
        return Estimate(np.where(seen, value, np.nan), np.where(seen, low, 0.0), high)

    def quantile(self, q: ArrayLike) -> Estimate:
        """The least time by which a share q in (0, 1) has passed; infinite if that is later than what was seen.

        The interval holds the times at which the interval of S holds 1 - q. An infinite end is not known.
        """
        share = np.asarray(q, dtype=np.float64)
        if not np.all((share > 0) & (share < 1)):
            raise InvalidInput(f"`q` is {shown(q)}; give shares strictly between 0 and 1.")
        times = np.append(self.times, np.inf)
        left = 1 - share.reshape(-1, 1) + 4 * np.finfo(float).eps  # rounding of products
        first = [np.argmax(np.append(column, -1.0)[None, :] <= left, axis=1) for column in self._curve()]
        value, low, high = (times[place].reshape(share.shape) for place in first)
        return Estimate(value, low, high)

    def mean(self, to: float | None = None) -> Mean:
        """The restricted mean E min(T, to), which censoring does not bias; the mean itself if every time was seen.

        The integral of S up to `to`: by default the last time that was seen, or the last end of observation. To compare
        samples give them one `to`. The standard error is that of Kaplan and Meier, with events/(events - 1): without
        censoring it is the deviation of the sample divided by sqrt(n). The interval is normal.
        """
        from scipy.stats import norm

        last = float(self.watched.max())
        to = last if to is None else number("to", to, low=-np.inf)
        if to > last and self.censored:
            raise InvalidInput(f"`to` is {to:g}, but nothing was watched beyond {last:g}; give `to` up to there.")
        if not np.isfinite(to):
            raise InvalidInput("a time was neither seen nor has it an end of observation; give `until`, or `to`.")
        times, value = self.times[self.times < to], self._curve()[0]
        left = np.diff(np.append(times, to)) * value[: len(times)]  # the integral of S after each time
        mean = (float(times[0]) if len(times) else to) + float(left.sum())
        rest = np.cumsum(left[::-1])[::-1]
        error = np.nan
        count = float(self.events.sum())
        if count > 1:
            variance = float(np.sum(rest**2 * self._greenwood()[: len(times)]))
            error = float(np.sqrt(variance * count / (count - 1)))
        off = float(norm.isf((1 - self.confidence) / 2)) * error
        return Mean(mean, error, mean - off, mean + off)

    def exponential_mean(self) -> Mean:
        """The mean of an exponential distribution, from 0 on: total time watched / times seen, the likeliest value.

        The interval is 2 total/chi^2 with 2 events + 2 degrees of freedom below and 2 events above. It is exact for
        a number of events that was fixed, and covers at least as often as stated for a Poisson number. Without an event
        the mean is infinite and the lower end is still a bound.
        """
        from scipy.stats import chi2

        if self.watched.min() < 0:
            raise InvalidInput(
                "a time is negative; an exponential distribution has times, not their logarithms: give np.exp(x)."
            )
        total, count, tail = float(self.watched.sum()), int(self.events.sum()), (1 - self.confidence) / 2
        low = 2 * total / float(chi2.isf(tail, 2 * count + 2))
        if count == 0:
            return Mean(np.inf, np.nan, low, np.inf)
        return Mean(total / count, total / count**1.5, low, 2 * total / float(chi2.ppf(tail, 2 * count)))

    def __repr__(self) -> str:
        median = self.quantile(0.5)
        return (
            f"Survival({self.n} times, {self.censored} censored; median {float(median.value):.4g}, "
            f"{100 * self.confidence:g} % in [{float(median.low):.4g}, {float(median.high):.4g}])"
        )

    def _greenwood(self) -> np.ndarray:
        """events/(at_risk (at_risk - events)) at each time; 0 where nobody is left, as nothing depends on it there."""
        left = self.at_risk - self.events
        return self.events / (self.at_risk * np.where(left > 0, left, np.inf))

    def _curve(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """S and its interval after each time."""
        from scipy.stats import norm

        value = np.cumprod(1 - self.events / self.at_risk)
        inside = value > 0
        log = np.log(np.where(inside, value, 0.5))
        width = float(norm.isf((1 - self.confidence) / 2)) * np.sqrt(np.cumsum(self._greenwood())) / -log
        low = np.where(inside, np.exp(log * np.exp(width)), 0.0)
        high = np.exp(log * np.exp(-width))
        before = np.append(1.0, high[:-1])
        return value, low, np.where(inside, high, before)


@formula(
    times=Other("times, NaN or infinity where none was seen"),
    until=Other("ends of observation"),
    confidence=Reals(0.0, 1.0, "none", scalar=True),
    relative=1e-12,
    absolute="1e-14 * np.max(np.abs(np.where(np.isfinite(times), times, 0.0)))",
)
def survival(times: ArrayLike, until: ArrayLike = np.inf, *, confidence: float = 0.95) -> Survival:
    """The distribution of times of which some were not seen, one time for each of independent seeds.

    A seed without an event has NaN or infinity, as in `flow.stopped_at` and `merges.log_time`. It was watched until
    `until`, one end for all or one for each, and counts as later than that. Times may be logarithms. Where all have one
    end, `exit_distribution` has a band and quantiles that are exact for every number of seeds.
    """
    found = np.array(times, dtype=np.float64)
    if found.ndim != 1 or len(found) == 0:
        raise InvalidInput(f"`times` has shape {found.shape}; give one for each seed, shape (seeds,).")
    ends = np.array(until, dtype=np.float64)
    if ends.shape not in ((), found.shape) or np.isnan(ends).any():
        raise InvalidInput(f"`until` is {shown(until)}; give one end of observation, or one for each of {len(found)}.")
    seen = found < np.inf
    late = seen & (found > ends)
    if late.any():
        k = int(np.argmax(late))
        raise InvalidInput(
            f"times[{k}] is {found[k]:g}, after its end of observation {np.broadcast_to(ends, found.shape)[k]:g}; "
            "nothing is seen after `until`."
        )
    watched = np.sort(np.where(seen, found, ends))
    at, events = np.unique(found[seen], return_counts=True)
    at_risk = len(found) - np.searchsorted(watched, at, side="left")
    return Survival(at, events.astype(float), at_risk.astype(float), watched, int(np.sum(~seen)), float(confidence))
