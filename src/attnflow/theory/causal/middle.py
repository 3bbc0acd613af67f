"""Lost in the middle: where the retrieval profile of the last token has its minimum, and when it has one.

The profile is p(s) = k(1, s) psi_c(Y(1, s)) over the place s of the source (`correlation`): early sources arrive
through many paths, late ones through the slope of ALiBi. With y = Y(1, s) and R = psi_c'/psi_c it is stationary where
y + log(R(y)/(1 - R(y))) = log(e^slope - 1), and its minimum is the root with the largest y (ours). `slope` is the slope
of ALiBi per token times the number of tokens, c = a_k t the scaled time. Conditions are those of `correlation`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, ive, logsumexp

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.causal.continuum import (
    LARGEST_SLOPE,
    LARGEST_TIME,
    PLACE,
    SLOPE,
    in_range,
    log_paths,
    log_profile,
    log_unit_growth,
    path_ratios,
)

CONVEX = 3 - math.sqrt(3)
"""The smaller root of c^2 - 6c + 6: up to this scaled time the profile is convex at every slope (arXiv:2605.09213)."""
SURE = 1e-10
"""Relative accuracy of the place of a minimum; where rounding decides about more it is refused."""
BETA = Reals(1e-290, 700.0, scalar=True)
CODEWORDS = Integers(1, 1_000_000, scalar=True)
FLOW_TIME = Reals(1e-290, 1e290, scalar=True)
SCALAR_SLOPE = Reals(0.0, LARGEST_SLOPE, scalar=True)


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


@formula(slope=SLOPE, relative=1e-15)
def recency_threshold(slope: ArrayLike) -> np.ndarray:
    """2 (1 - e^{-slope}): below this scaled time c the profile rises towards the last place, above it falls there.

    Sharp for one degree (ours; arXiv:2605.09213 has it as a sufficient condition, with c <= 3 - sqrt(3)). 0 at slope 0,
    where there is no recency at any time.
    """
    return np.asarray(-2 * np.expm1(-slope))


@formula(slope=SLOPE, relative_dilution=Reals(0.0, 1e300, scalar=True), relative=1e-14)
def last_middle_time(slope: ArrayLike, *, relative_dilution: float = 0.0) -> np.ndarray:
    """The scaled time c up to which the profile of one degree has an interior minimum.

    2 (1 - e^{-slope}) for slope <= log 4. Beyond, the minimum outlives the rise at the last place, after a maximum,
    up to the time at which the two merge (ours). With `relative_dilution` (softmax, see `correlation`) a
    short flow may have no minimum either; 0 where there is none at any time.

    Arguments:
        slope: slopes of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.

    Raises:
        NotAccurate: if the last minimum is so close to the first token that rounding decides whether it is inside.
    """
    q = relative_dilution
    return np.array([_latest(float(steep), q) for steep in slope.ravel()]).reshape(slope.shape)


@formula(
    c=Reals(1e-290, LARGEST_TIME, scalar=True),
    slope=SCALAR_SLOPE,
    relative_dilution=Reals(0.0, 1e300, scalar=True),
    relative=SURE,
    absolute="1e-14 * (1500 + slope + 1 / max(slope, 1 / max(relative_dilution, 1.0)))",
)
def find_middle(c: float, slope: float, *, relative_dilution: float = 0.0) -> Middle:
    """The interior minimum of the profile of one degree at c > 0 (arXiv:2605.09213; beyond its conditions ours).

    For c < 2 (1 - e^{-slope}) there is exactly one critical point: proved for c <= 3 - sqrt(3), beyond seen in scans.
    With softmax give `relative_dilution` = `softmax_dilution(beta, d)`/N; early sources are then heard less (ours).

    Arguments:
        c: scaled time.
        slope: slope of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.

    Raises:
        NotAccurate: if the minimum is so flat, just before it goes, that rounding decides about its place.
    """
    dilution = slope * relative_dilution

    def log_kept(place: float) -> float:
        return float(log_profile(*map(np.asarray, (c, 1.0, place, slope, relative_dilution))))

    slowed, level, log_last = c / (1 + dilution), _level(slope, relative_dilution), log_kept(1.0)
    if slope == 0:
        return Middle("falling", 1.0, log_last, log_last)
    if slowed < min(dilution, 1.0):  # R is at most slowed/2, so that a root would lie before the first token
        return Middle("rising", 0.0, log_kept(0.0), log_last)
    lowest = _lowest(slowed)
    margin = _condition(slowed, lowest) - level
    if lowest > 0 and abs(margin) <= 1e-14 * (1 + abs(level)):
        raise NotAccurate("rounding decides whether there is still a minimum; change `c` in its last digits.")
    if not margin < 0:
        return Middle("falling", 1.0, log_last, log_last)
    y = float(root(lambda y: min(_condition(slowed, y) - level, 1e300), lowest, lowest + 1, smallest=lowest))
    _, share, third = path_ratios(slowed, y, 3)
    _check_steepness((share - third) / (1 - share), level, y)
    # at the root e^{level - y} = R/(1 - R), which gives u = e^{slope place} - 1 without the rounding of a large y
    steps = share / (1 - share) - dilution
    if steps <= 0:
        return Middle("rising", 0.0, log_kept(0.0), log_last)
    place = min(float(np.log1p(steps / (1 + dilution))) / slope, 1.0)
    return Middle("middle", place, log_kept(place), log_last)


@formula(
    t=FLOW_TIME,
    source=PLACE,
    beta=BETA,
    slope=SCALAR_SLOPE,
    vocabulary=CODEWORDS,
    relative="1e-15 * (5000 + 2 * slope * (1 - source))",
)
def soft_profile(t: float, source: ArrayLike, beta: float, *, slope: float, vocabulary: int) -> np.ndarray:
    """S_t(s) = sum over n >= 1 of e^{-pi^2 n^2/(2 M^2)} g_n(t, 1; s), the profile of retrieval from M codewords, d = 2.

    g_n is the `correlation` at c = a_n t, a_n = n^2 I_n(beta) of the model "grad"; the codewords are
    equispaced on the circle, M = `vocabulary`, and compared by a wrapped Gaussian of width pi/M (arXiv:2605.09213).

    Arguments:
        t: time of the flow; times the fastest rate it may be at most 1e8.
        source: places s.
        beta: inverse temperature.
        slope: slope of ALiBi per token times the number of tokens.
        vocabulary: number of codewords M.
    """
    logs = _log_soft_profile(_modes(t, beta, vocabulary), source, slope)
    with np.errstate(over="ignore"):
        return in_range(np.exp(logs), "t", t, "a smaller time or beta")


@formula(
    t=FLOW_TIME,
    source=PLACE,
    beta=BETA,
    slope=SCALAR_SLOPE,
    vocabulary=CODEWORDS,
    context=Reals(2.0, 1e300, scalar=True),
    relative="1e-15 * (5000 + 2 * slope * (1 - source))",
)
def soft_accuracy(
    t: float, source: ArrayLike, beta: float, *, slope: float, vocabulary: int, context: float
) -> np.ndarray:
    """sqrt(pi/2)/M + sqrt(2 pi)/(M N) S_t(s): accuracy of reading the codeword at `source` off the last of N tokens.

    The first term is chance, the second, with the `soft_profile`, is first order in 1/N; the error is
    O(N^{-1-z} s^{-2}) with any z < 1 and constants that grow with M and t (arXiv:2605.09213). d = 2, model "grad".

    Arguments:
        t: time of the flow; times the fastest rate it may be at most 1e8.
        source: places s.
        beta: inverse temperature.
        slope: slope of ALiBi per token times the number of tokens.
        vocabulary: number of codewords M.
        context: number of tokens N.
    """
    logs = _log_soft_profile(_modes(t, beta, vocabulary), source, slope)
    with np.errstate(over="ignore"):
        signal = in_range(np.exp(logs - math.log(context)), "t", t, "a smaller time or beta")
    return np.asarray((math.sqrt(math.pi / 2) + math.sqrt(2 * math.pi) * signal) / vocabulary)


@formula(beta=BETA, slope=SCALAR_SLOPE, vocabulary=CODEWORDS, relative=1e-13)
def soft_critical_time(beta: float, slope: float, vocabulary: int) -> float:
    """The time up to which S_t rises at the last place: 2 (1 - e^{-slope}) sum w_n a_n/sum w_n a_n^2 (ours, sharp).

    w_n = e^{-pi^2 n^2/(2 M^2)} and a_n = n^2 I_n(beta), model "grad", d = 2.

    Arguments:
        beta: inverse temperature.
        slope: slope of ALiBi per token times the number of tokens.
        vocabulary: number of codewords M.
    """
    rates, log_weights = _soft_rates(beta, vocabulary)
    fastest = np.max(rates)
    weighted = np.exp(log_weights - log_weights[0]) * (rates / fastest)
    return float(-2 * np.expm1(-slope) * np.sum(weighted) / np.sum(weighted * (rates / fastest)) / fastest)


@formula(beta=BETA, slope=SCALAR_SLOPE, relative=1e-13)
def theorem_time(beta: float, slope: float) -> float:
    """min(3 - sqrt(3), 2 (1 - e^{-slope}))/sup_n a_n: up to it S_t has one interior minimum (arXiv:2605.09213).

    a_n = n^2 I_n(beta), model "grad", d = 2, for every vocabulary.

    Arguments:
        beta: inverse temperature.
        slope: slope of ALiBi per token times the number of tokens.
    """
    return float(min(CONVEX, -2 * np.expm1(-slope)) / np.max(_soft_rates(beta, 1)[0]))


@formula(
    t=FLOW_TIME,
    beta=BETA,
    slope=SCALAR_SLOPE,
    vocabulary=CODEWORDS,
    relative=SURE,
    absolute="1e-14 * (1500 + slope)",
)
def find_soft_middle(t: float, beta: float, slope: float, *, vocabulary: int) -> Middle:
    """The interior minimum of `soft_profile` over the source (arXiv:2605.09213).

    The root with the largest y of y + log(R/(1 - R)) = log(e^slope - 1), R the mean of psi'/psi over the degrees,
    weighted by their parts of S_t (ours). Unique up to `theorem_time`.

    Arguments:
        t: time of the flow; times the fastest rate it may be at most 1e8.
        beta: inverse temperature.
        slope: slope of ALiBi per token times the number of tokens.
        vocabulary: number of codewords M.

    Raises:
        NotAccurate: if rounding decides whether there is a minimum, or about its place.
    """
    log_weights, log_times = modes = _modes(t, beta, vocabulary)
    times, level = np.exp(log_times), _level(slope, 0.0)
    log_last = float(_log_soft_profile(modes, np.asarray(1.0), slope))

    def parts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parts of the degrees in S, their R, and their psi''/psi', for y of any shape."""
        logs = log_weights + log_times + log_paths(times, y[..., None])
        ratios = path_ratios(times, y[..., None], 3)
        return np.exp(logs - logsumexp(logs, axis=-1, keepdims=True)), ratios[..., 1], ratios[..., 2]

    def condition(y: float) -> float:
        shares, ratios, _ = parts(np.asarray(y))
        return min(float(y + _logit(np.sum(shares * ratios)) - level), 1e300)

    below, above = _last_crossing(parts, level, log_times, log_weights)
    if below is None:
        return Middle("falling", 1.0, log_last, log_last)
    y = float(root(condition, below, above, smallest=below, largest=above))
    shares, ratios, thirds = parts(np.asarray(y))
    share = np.sum(shares * ratios)
    fall = share - np.sum(shares * ratios * thirds) / share  # -R'/R
    _check_steepness(fall / (1 - share), level, y)
    place = min(float(-np.log1p(-share)) / slope, 1.0)
    return Middle("middle", place, float(_log_soft_profile(modes, np.asarray(place), slope)), log_last)


def _last_crossing(
    parts: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    level: float,
    log_times: np.ndarray,
    log_weights: np.ndarray,
) -> tuple[float | None, float]:
    """Two y around the largest root of R(y) = 1/(1 + e^{y - level}), or None where R is larger everywhere.

    As y grows, the parts of degrees with a longer time grow, and each R_n falls. So on [a, b] R is at least the mean of
    R_n(b) over the parts at a; where that is above the right side at a the interval has no root. The others are halved.
    """
    if level == -np.inf:
        return None, 0.0
    logs = log_weights + log_times
    # R is at least the mean of R_n over the parts at y = 0, and R_1 is at least c/(2 + c y/3)
    log_first, high = float(logs[0] - logsumexp(logs) + log_times[0]), 1.0
    while not high + log_first - math.log(2 + high * math.exp(log_times[0]) / 3) > level:
        high *= 2
    edges = np.concatenate([[0.0], high * np.geomspace(1e-6, 1.0, 120), np.clip(level + np.arange(-20.0, 21), 0, high)])
    edges = np.unique(edges)
    low, top, below = edges[:-1], edges[1:], -1.0
    for _ in range(HALVINGS):
        (shares, ratios, _), (top_shares, top_ratios, _) = parts(low), parts(top)
        for y, means in ((low, np.sum(shares * ratios, -1)), (top, np.sum(top_shares * top_ratios, -1))):
            below = max(below, float(np.max(y[means < expit(level - y)], initial=-1.0)))
        kept = (top > below) & (np.sum(shares * top_ratios, -1) <= expit(level - low))
        low, top = low[kept], top[kept]
        if not len(low):
            return None, 0.0
        if below >= 0 and top.max() - below <= 1e-3 * (1e-9 + min(below, 1.0)):
            return below, float(top.max())
        middle = (low + top) / 2
        low, top = np.concatenate([low, middle]), np.concatenate([middle, top])
    raise NotAccurate("rounding decides whether there is a minimum; change `t` in its last digits.")


HALVINGS = 45
"""Halvings of an interval of y; beyond, a root cannot be told from a near miss."""


def _check_steepness(fall: float, level: float, y: float) -> None:
    """Refuse a minimum that moves by more than `SURE` when its condition, of slope 1 - fall, is rounded."""
    rounding = 1e-15 * (1 + abs(level) + y)
    if not fall < 1 or abs(fall) * rounding > SURE / 4 * (1 - fall):
        raise NotAccurate("the minimum is so flat that rounding decides about its place; change the time a little.")


def _log_soft_profile(modes: tuple[np.ndarray, np.ndarray], source: np.ndarray, slope: float) -> np.ndarray:
    log_weights, log_times = modes
    none = np.zeros(())
    # log_profile has the logarithm of the time in it, which is more exact for times near the end of float range
    times = np.exp(log_times)
    logs = log_profile(times, np.asarray(1.0), source[..., None], np.asarray(slope), none)
    return np.asarray(logsumexp(log_weights + logs, axis=-1))


def _soft_rates(beta: float, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates n^2 I_n(beta) of degrees 1, 2, ... up to where I_n is below e^{-40} of the largest, and log weights."""
    n = np.arange(1, 43 + int(12 * np.sqrt(beta)))
    return n**2 * ive(n, beta) * np.exp(beta), -((np.pi * n / vocabulary) ** 2) / 2


def _modes(t: float, beta: float, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the weights of degrees 1, 2, ... and of their times a_n t, as far as they matter."""
    rates, log_weights = _soft_rates(beta, vocabulary)
    if not np.max(rates) <= LARGEST_TIME / t:
        raise InvalidInput(f"`t` is {t!r}; times the fastest rate {np.max(rates):.6g} it may be at most 1e8.")
    moving = rates > 0
    return log_weights[moving], np.log(t) + np.log(rates[moving])


def _level(slope: float, q: float) -> float:
    """log((1 + slope q) (e^slope - 1) + slope q), the level that the condition for the minimum must reach."""
    with np.errstate(divide="ignore"):
        return float(
            np.logaddexp(log_unit_growth(np.asarray(slope)) + np.log1p(slope * q), np.log(np.asarray(slope * q)))
        )


def _condition(c: float, y: float) -> float:
    """y + log(R/(1-R)), R = psi_c'(y)/psi_c(y); inf where R >= 1."""
    return y + float(_logit(path_ratios(c, y, 2)[1]))


def _logit(ratio: Numbers) -> np.ndarray:
    inside = np.asarray(ratio) < 1
    safe = np.where(inside, ratio, 0.5)
    return np.where(inside, np.log(safe) - np.log1p(-safe), np.inf)


def _lowest(c: float) -> float:
    """The y >= 0 at which the condition at c is lowest: the root of 2 r_2 - r_3 = 1 (r of `hop_ratios`)."""

    def slope(y: float) -> float:
        ratios = path_ratios(c, y, 3)
        return float(2 * ratios[1] - ratios[2] - 1)

    # r_2 decreases from c/2, so that the left side falls from 2c/3 - 1 at y = 0; it is near sqrt(c/y) - 1 for large y
    return 0.0 if c <= 1.5 else float(root(slope, max(c - 2, 0.0), c + 1, smallest=0.0))


def _latest(slope: float, q: float) -> float:
    dilution = slope * q
    # the scaled time at which the condition at y = 0 reaches the level: R = c/2 = e^level/(1 + e^level)
    first = 2 * (dilution - math.expm1(-slope))
    if first <= 1.5 * (1 + dilution) or slope == 0:
        return first if slope else 0.0
    level = _level(slope, q)
    guess = max(0.7 * level, 1.5)
    c = float(root(lambda c: _condition(c, _lowest(c)) - level, guess, max(level, 2.0) + 2, smallest=1.5))
    share = float(path_ratios(c, _lowest(c), 2)[1])
    steps = share / (1 - share) - dilution
    if abs(steps) <= 1e-11 * dilution:
        raise NotAccurate("rounding decides whether the last minimum is inside; change `slope` in its last digits.")
    return c * (1 + dilution) if steps > 0 else 0.0
