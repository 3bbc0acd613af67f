"""Where retrieval from many codewords is lost in the middle: profiles, accuracies and minima for the soft decoder.

The profile (`soft_profile`) is a weighted sum over degrees, each of which has the retrieval profile that
`attnflow.theory.causal.find_middle` looks at, with a time of its own. The conditions beyond the cited theorems are
ours.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import expit, ive, logsumexp

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.special.roots import root
from attnflow.theory.causal.continuum import LARGEST_TIME, PLACE, in_range, log_paths, log_profile, path_ratios
from attnflow.theory.causal.middle import CONVEX, SCALAR_SLOPE, SURE, Middle, check_steepness, level_of, logit

BETA = Reals(1e-290, 700.0, scalar=True)
CODEWORDS = Integers(1, 1_000_000, scalar=True)
FLOW_TIME = Reals(1e-290, 1e290, scalar=True)


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
    times, level = np.exp(log_times), level_of(slope, 0.0)
    log_last = float(_log_soft_profile(modes, np.asarray(1.0), slope))

    def parts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parts of the degrees in S, their R, and their psi''/psi', for y of any shape."""
        logs = log_weights + log_times + log_paths(times, y[..., None])
        ratios = path_ratios(times, y[..., None], 3)
        return np.exp(logs - logsumexp(logs, axis=-1, keepdims=True)), ratios[..., 1], ratios[..., 2]

    def condition(y: float) -> float:
        shares, ratios, _ = parts(np.asarray(y))
        return min(float(y + logit(np.sum(shares * ratios)) - level), 1e300)

    low, high = _last_crossing(parts, level, log_times, log_weights)
    if low is None:
        return Middle("falling", 1.0, log_last, log_last)
    y = float(root(condition, low, high, smallest=low, largest=high))
    shares, ratios, thirds = parts(np.asarray(y))
    share = np.sum(shares * ratios)
    relative_fall = share - np.sum(shares * ratios * thirds) / share  # -R'/R
    check_steepness(relative_fall / (1 - share), level, y)
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
    low, top, crossed = edges[:-1], edges[1:], -1.0
    for _ in range(HALVINGS):
        (shares, ratios, _), (top_shares, top_ratios, _) = parts(low), parts(top)
        for y, means in ((low, np.sum(shares * ratios, -1)), (top, np.sum(top_shares * top_ratios, -1))):
            crossed = max(crossed, float(np.max(y[means < expit(level - y)], initial=-1.0)))
        may_cross = (top > crossed) & (np.sum(shares * top_ratios, -1) <= expit(level - low))
        low, top = low[may_cross], top[may_cross]
        if not len(low):
            return None, 0.0
        if crossed >= 0 and top.max() - crossed <= 1e-3 * (1e-9 + min(crossed, 1.0)):
            return crossed, float(top.max())
        middle = (low + top) / 2
        low, top = np.concatenate([low, middle]), np.concatenate([middle, top])
    raise NotAccurate("rounding decides whether there is a minimum; change `t` in its last digits.")


HALVINGS = 45
"""Halvings of an interval of y; beyond, a root cannot be told from a near miss."""


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
