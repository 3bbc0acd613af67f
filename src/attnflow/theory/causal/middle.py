"""Lost in the middle: where the retrieval profile of the last token has its minimum, and when it has one.

The profile is p(s) = k(1, s) psi_c(Y(1, s)) over the place s of the source (`correlation`): early sources arrive
through many paths, late ones through the slope of ALiBi. With y = Y(1, s) and R = psi_c'/psi_c it is stationary where
y + log(R(y)/(1 - R(y))) = log(e^slope - 1), and its minimum is the root with the largest y (ours). `slope` is the slope
of ALiBi per token times the number of tokens, c = a_k t the scaled time. Conditions are those of `correlation`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.causal.continuum import (
    LARGEST_LOG,
    checked_amount,
    checked_place,
    checked_slope,
    checked_time,
    hop_ratios,
    log_correlation,
    log_hop_sum,
    log_rates,
    log_unit_growth,
    rates,
)
from attnflow.theory.checks import checked_beta, checked_integers
from attnflow.theory.uniform.spectrum import dominant_degree

CONVEX = 3 - np.sqrt(3)
"""The smaller root of c^2 - 6c + 6: up to this scaled time the profile is convex at every slope (arXiv:2605.09213)."""


@dataclass(frozen=True)
class Middle:
    """The minimum of a retrieval profile over the places of its source.

    `shape` is "middle" (an interior minimum), "falling" (sources are heard the less the later they are) or "rising"
    (the contrary, at the beginning; only with dilution). `place` is then that of the minimum, 1 or 0. `log_value` and
    `log_last` are logarithms of N times the correlation there and at the last place.
    """

    shape: Literal["middle", "falling", "rising"]
    place: float
    log_value: float
    log_last: float

    @property
    def exists(self) -> bool:
        """Whether there is an interior minimum."""
        return self.shape == "middle"

    @property
    def value(self) -> float:
        """N times the correlation at the minimum."""
        return float(np.exp(self.log_value))

    @property
    def last(self) -> float:
        """N times the correlation with a source just before the last token."""
        return float(np.exp(self.log_last))

    @property
    def contrast(self) -> float:
        """1 - value/last: how much less is heard from the minimum than from the last place (below 0: more)."""
        return float(-np.expm1(self.log_value - self.log_last))


def recency_threshold(slope: ArrayLike) -> np.ndarray:
    """2 (1 - e^{-slope}): below this scaled time c the profile rises towards the last place, above it falls there.

    Sharp for one degree (ours; arXiv:2605.09213 has it as a sufficient condition, with c <= 3 - sqrt(3)). 0 at slope 0,
    where there is no recency at any time.
    """
    return np.asarray(-2 * np.expm1(-checked_slope(slope)))


def last_middle_time(slope: ArrayLike, *, relative_dilution: float = 0.0) -> np.ndarray:
    """The scaled time c up to which the profile of one degree has an interior minimum.

    2 (1 - e^{-slope}) for slope <= log 4. Beyond, the minimum outlives the rise at the last place, after a maximum,
    up to the time at which the two merge (ours). With `relative_dilution` (softmax, see `correlation`) a
    short flow may have no minimum either; 0 where there is none at any time.
    """
    slopes, q = checked_slope(slope), _one("relative_dilution", relative_dilution)
    return np.array([_latest(float(one), q) for one in slopes.ravel()]).reshape(slopes.shape)


def find_middle(c: float, slope: float, *, relative_dilution: float = 0.0) -> Middle:
    """The interior minimum of the profile of one degree at c > 0 (arXiv:2605.09213; beyond its conditions ours).

    For c < 2 (1 - e^{-slope}) there is exactly one critical point: proved for c <= 3 - sqrt(3), beyond seen in scans.
    With softmax give `relative_dilution` = `softmax_dilution(beta, d)`/N; early sources are then heard less (ours).
    """
    c, slope, q = _one("c", c), _one("slope", slope), _one("relative_dilution", relative_dilution)
    if not c > 0:
        raise InvalidInput(f"c is {c!r}; at time 0 nothing has been heard, give c > 0.")
    slowed, level = c / (1 + slope * q), _level(slope, q)
    log_last = float(log_correlation(c, 1.0, 1.0, slope=slope, relative_dilution=q))
    y = _largest_root(slowed, level)
    if y is None:
        return Middle("falling", 1.0, log_last, log_last)
    place = float(np.logaddexp(0.0, level - y) - np.log1p(slope * q)) / slope
    if place < np.finfo(float).tiny:
        # at the first place u = 0, the diluted ratio of places is finite
        first = float(log_correlation(c, 1.0, np.finfo(float).tiny, slope=slope, relative_dilution=q))
        return Middle("rising", 0.0, first, log_last)
    return Middle("middle", place, float(log_correlation(c, 1.0, place, slope=slope, relative_dilution=q)), log_last)


def soft_profile(t: float, source: ArrayLike, beta: float, *, slope: float, vocabulary: int) -> np.ndarray:
    """S_t(s) = sum over n >= 1 of e^{-pi^2 n^2/(2 M^2)} g_n(t, 1; s), the profile of retrieval from M codewords, d = 2.

    g_n is the `correlation` at c = a_n t, a_n = n^2 I_n(beta) of the model "grad"; the codewords are
    equispaced on the circle, M = `vocabulary`, and compared by a wrapped Gaussian of width pi/M (arXiv:2605.09213).
    """
    log_weights, times = _modes(t, beta, vocabulary)
    place = checked_place("source", source)[..., None]
    logs = logsumexp(log_weights + log_correlation(times, 1.0, place, slope=_one("slope", slope)), axis=-1)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"t is {t!r}; the profile leaves float range there, use a smaller time or beta.")
    return np.asarray(np.exp(logs))


def soft_accuracy(
    t: float, source: ArrayLike, beta: float, *, slope: float, vocabulary: int, context: float
) -> np.ndarray:
    """sqrt(pi/2)/M + sqrt(2 pi)/(M N) S_t(s): accuracy of reading the codeword at `source` off the last of N tokens.

    The first term is chance, the second is first order in 1/N; the error is O(N^{-1-z} s^{-2}) with any z < 1 and
    constants that grow with M and t (arXiv:2605.09213). d = 2, model "grad".
    """
    size = _one("context", context)
    if not size >= 2:
        raise InvalidInput(f"context is {context!r}; give a number of tokens, at least 2.")
    signal = soft_profile(t, source, beta, slope=slope, vocabulary=vocabulary)
    return np.asarray(np.sqrt(np.pi / 2) / vocabulary + np.sqrt(2 * np.pi) / (vocabulary * size) * signal)


def soft_critical_time(beta: float, slope: float, vocabulary: int) -> float:
    """The time up to which S_t rises at the last place: 2 (1 - e^{-slope}) sum w_n a_n/sum w_n a_n^2 (ours, sharp).

    w_n = e^{-pi^2 n^2/(2 M^2)} and a_n = n^2 I_n(beta), model "grad", d = 2; beta > 0.
    """
    log_weights, rates = _modes(1.0, beta, vocabulary)
    with np.errstate(divide="ignore"):
        logs = np.log(rates)
    quotient = logsumexp(log_weights + logs) - logsumexp(log_weights + 2 * logs)
    return float(recency_threshold(_one("slope", slope)) * np.exp(quotient))


def theorem_time(beta: float, slope: float) -> float:
    """min(3 - sqrt(3), 2 (1 - e^{-slope}))/sup_n a_n: up to it S_t has one interior minimum (arXiv:2605.09213).

    a_n = n^2 I_n(beta), model "grad", d = 2, for every vocabulary; beta > 0.
    """
    beta = _positive_beta(beta)
    top = float(log_rates(int(dominant_degree(beta, 2)), beta, 2, model="grad"))
    if top >= LARGEST_LOG:
        raise InvalidInput(f"beta is {beta!r}; rates of the model 'grad' leave float range there, give beta below 700.")
    return float(np.minimum(CONVEX, recency_threshold(_one("slope", slope))) * np.exp(-top))


def find_soft_middle(t: float, beta: float, slope: float, *, vocabulary: int) -> Middle:
    """The interior minimum of `soft_profile` over the source (arXiv:2605.09213), t > 0 and beta > 0.

    The root with the largest y of the condition at the head of this file, R the mean of those of the degrees, weighted
    by their parts of S_t (ours). Unique up to `theorem_time`; later the search looks at 2,000 values of y.
    """
    slope = _one("slope", slope)
    log_weights, times = _modes(t, beta, vocabulary)
    if not _one("t", t) > 0:
        raise InvalidInput(f"t is {t!r}; at time 0 nothing has been heard, give t > 0.")

    def profile(place: float) -> float:
        return float(logsumexp(log_weights + log_correlation(times, 1.0, place, slope=slope)))

    def condition(y: ArrayLike) -> np.ndarray:
        column = np.asarray(y, dtype=np.float64)[..., None]
        parts = log_weights + log_hop_sum(times, column)
        parts = np.exp(parts - np.max(parts, axis=-1, keepdims=True))
        return _logit(np.sum(parts * hop_ratios(times, column, 2)[..., 1], -1) / np.sum(parts, -1)) + y

    level, last = _level(slope, 0.0), profile(1.0)
    if not np.isfinite(level):
        return Middle("falling", 1.0, last, last)
    high = _beyond(condition, level)
    grid = high * np.linspace(0.0, 1.0, 2001) ** 2
    below = np.flatnonzero(condition(grid) < level)
    if not len(below):
        return Middle("falling", 1.0, last, last)
    y = _root(lambda y: float(condition(y)) - level, grid[below[-1]], grid[below[-1] + 1])
    place = float(np.logaddexp(0.0, level - y)) / slope
    return Middle("middle", place, profile(place), last)


def _modes(t: float, beta: float, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the weights of degrees 1, 2, ... and their times a_n t, as far as they matter."""
    beta, t = _positive_beta(beta), _one("t", t)
    size = checked_integers("vocabulary", vocabulary, 1)
    if size.ndim or size > 10**6:
        raise InvalidInput(f"vocabulary is {vocabulary!r}; give one number of codewords, at most 10^6.")
    # weights fall to e^{-40} of the first, or I_n(beta) below e^{-40} of the largest
    n = np.arange(1, 3 + min(int(3 * size), 40 + int(12 * np.sqrt(beta))))
    return -(np.pi**2) * n**2 / (2.0 * int(size) ** 2), t * rates(n, beta, 2, model="grad")


def _level(slope: float, q: float) -> float:
    """log((1 + slope q) (e^slope - 1) + slope q), the level that the condition for the minimum must reach."""
    with np.errstate(divide="ignore"):
        return float(
            np.logaddexp(log_unit_growth(np.asarray(slope)) + np.log1p(slope * q), np.log(np.asarray(slope * q)))
        )


def _condition(c: float, y: float) -> float:
    """y + log(R/(1-R)), R = psi_c'(y)/psi_c(y); inf where R >= 1."""
    return y + float(_logit(hop_ratios(c, y, 2)[1]))


def _logit(ratio: Numbers) -> np.ndarray:
    inside = np.asarray(ratio) < 1
    safe = np.where(inside, ratio, 0.5)
    return np.where(inside, np.log(safe) - np.log1p(-safe), np.inf)


def _lowest(c: float) -> float:
    """The y >= 0 at which the condition at c is lowest: the root of 2 r_2 - r_3 = 1 (r of `hop_ratios`)."""

    def slope(y: float) -> float:
        ratios = hop_ratios(c, y, 3)
        return float(2 * ratios[1] - ratios[2] - 1)

    # r_2 decreases from c/2, so that the left side falls from 2c/3 - 1 at y = 0; it is near sqrt(c/y) - 1 for large y
    return 0.0 if c <= 1.5 else _root(slope, 0.0, 2 * c + 10)


def _latest(slope: float, q: float) -> float:
    level = _level(slope, q)
    if slope == 0:
        return 0.0
    # the scaled time at which the condition at y = 0 reaches the level: c/2 = e^level/(1 + e^level)
    c = float(2 * np.exp(-np.logaddexp(0.0, -level)))
    if c > 1.5:
        high = 4.0
        while _condition(high, _lowest(high)) < level:
            high *= 2
        c = _root(lambda c: _condition(c, _lowest(c)) - level, 1.5, high)
    place = np.logaddexp(0.0, level - _lowest(c)) - np.log1p(slope * q)
    return float(c * (1 + slope * q)) if place > 0 else 0.0


def _largest_root(c: float, level: float) -> float | None:
    lowest = _lowest(c)
    if not _condition(c, lowest) < level:
        return None
    high = _beyond(lambda y: _condition(c, float(y)), level)
    return _root(lambda y: _condition(c, y) - level, lowest, high)


def _beyond(condition: Callable[[float], float | np.ndarray], level: float) -> float:
    """A y from which the condition stays above its level."""
    high = max(level, 1.0) + 1
    while not condition(high) > level + 1:
        high *= 2
    return high


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    def finite(x: float) -> float:
        return min(f(x), 1e300)  # brentq takes no infinities

    return float(brentq(finite, low, high, xtol=1e-14, rtol=1e-15))


def _one(name: str, value: float) -> float:
    found = {"c": checked_time, "slope": checked_slope}.get(name, lambda v: checked_amount(name, v))(value)
    if found.ndim:
        raise InvalidInput(f"{name} is {value!r}; give one number.")
    return float(found)


def _positive_beta(beta: float) -> float:
    found = checked_beta(beta)
    if found.ndim or not found > 0:
        raise InvalidInput(
            f"beta is {beta!r}; give one positive number, for at beta = 0 nothing moves in the time of 'grad'."
        )
    return float(found)
