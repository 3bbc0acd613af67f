"""Two topics in one causal context: which of them the last token follows, and from which time on.

The first tokens, up to the place `share` in (0, 1], lean towards one direction, the later ones towards another. In
linear theory dg/dc is the mean of g over what a place hears, the plain mean in u = e^{slope place} - 1 (u = place at
slope 0). With y = log(u(place)/u(share)), N_c and N_y independent Poisson variables of means c and y, the early signal
at a later place is e^c P(N_c > N_y) and the late one e^c P(N_c <= N_y) (ours; many tokens, leanings that stay small).
The scaled time is c = a_k t with a_k of `rates`; `slope` is the slope of ALiBi per token times the number of tokens.
"""

import numpy as np
from scipy.special import i0e

from attnflow.special.formula import Reals, formula
from attnflow.special.integrals import log_integral
from attnflow.special.numbers import ArrayLike
from attnflow.special.roots import root
from attnflow.theory.causal.continuum import PLACE, SLOPE, TIME, in_range, log_scaled_paths, place_ratio

HOPS = "np.where(place > share, slope * np.abs(place - share) + np.abs(np.log(place / share)), 0.0)"
"""A bound of y = log(u(place)/u(share))."""
SIGNAL = f"8e-16 * (50 + c + {HOPS})"
"""Error of the logarithm of a signal: of y, of its exponent 2 sqrt(c y) - y or c (three roundings each), and of a sum
of some sqrt(c + y) terms."""


@formula(c=TIME, share=PLACE, slope=SLOPE, place=PLACE, relative=f"8e-16 * (50 + np.minimum(c + {HOPS}, 1500.0))")
def early_share(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The part of the signal at `place` that comes from the early topic: P(N_c > N_y), 1 up to the place `share`.

    1 - Q_1(sqrt(2y), sqrt(2c)), Marcum's Q, with y = log[(e^{slope place} - 1)/(e^{slope share} - 1)] (ours). It grows
    with c, from 0 towards 1. Arguments broadcast.

    Arguments:
        c: scaled times.
        share: places up to which tokens lean towards the early topic.
        slope: slopes of ALiBi per token times the number of tokens.
        place: places at which the signal is read.
    """
    y, behind = _distance(share, slope, place)
    return np.where(behind, np.exp(log_poisson_order(c, y)[0]), 1.0)


@formula(c=TIME, share=PLACE, slope=SLOPE, place=PLACE, relative=SIGNAL)
def early_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The early topic's amplitude at `place`, in units of its initial one: e^c P(N_c > N_y), e^c up to `share` (ours).

    Beyond float range it is refused, `log_early_signal` goes there.

    Arguments:
        c: scaled times.
        share: places up to which tokens lean towards the early topic.
        slope: slopes of ALiBi per token times the number of tokens.
        place: places at which the signal is read.
    """
    return _plain(_log_signals(c, share, slope, place)[0], c, "log_early_signal")


@formula(c=TIME, share=PLACE, slope=SLOPE, place=PLACE, relative=SIGNAL)
def late_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The late topic's amplitude at `place`, in units of its initial one: e^c P(N_c <= N_y), 0 up to `share` (ours).

    Beyond float range it is refused, `log_late_signal` goes there.

    Arguments:
        c: scaled times.
        share: places up to which tokens lean towards the early topic.
        slope: slopes of ALiBi per token times the number of tokens.
        place: places at which the signal is read.
    """
    return _plain(_log_signals(c, share, slope, place)[1], c, "log_late_signal")


@formula(c=TIME, share=PLACE, slope=SLOPE, place=PLACE, relative=1e-15, absolute=SIGNAL)
def log_early_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The logarithm of `early_signal`, -inf at c = 0 after the switch.

    Arguments:
        c: scaled times.
        share: places up to which tokens lean towards the early topic.
        slope: slopes of ALiBi per token times the number of tokens.
        place: places at which the signal is read.
    """
    return _log_signals(c, share, slope, place)[0]


@formula(c=TIME, share=PLACE, slope=SLOPE, place=PLACE, relative=1e-15, absolute=SIGNAL)
def log_late_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The logarithm of `late_signal`, -inf up to the place `share`.

    Arguments:
        c: scaled times.
        share: places up to which tokens lean towards the early topic.
        slope: slopes of ALiBi per token times the number of tokens.
        place: places at which the signal is read.
    """
    return _log_signals(c, share, slope, place)[1]


@formula(share=PLACE, slope=SLOPE, place=PLACE, relative_dilution=Reals(0.0, 1e300, scalar=True), relative=1e-13)
def takeover_time(
    share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0, relative_dilution: float = 0.0
) -> np.ndarray:
    """The scaled time c at which the early topic owns half of the signal at `place`: the root of P(N_c > N_y) = 1/2.

    Near y + 1/2 for a small share, log(1/share) + 1/2 at slope 0 and place 1; log 2 just after the switch, and 0 up to
    it, where there is nothing late. With `relative_dilution` q of softmax (see `correlation`) the whole signal
    is e^c P(N_c <= N_z) with z the y of place 0, c becomes c/(1 + slope q) and u is shifted (ours).

    Arguments:
        share: places up to which tokens lean towards the early topic.
        slope: slopes of ALiBi per token times the number of tokens.
        place: places at which the signal is read.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.

    Raises:
        NotAccurate: if the time is above 1e8 (1 + slope q): dilution can hide an early topic for ever.
    """
    q = relative_dilution
    y, behind = _distance(share, slope, place, q)
    share, slope = np.broadcast_arrays(share, slope, y)[:2]
    takeovers = np.zeros(behind.shape)
    if not behind.any():
        return takeovers
    y, share, slope = y[behind], share[behind], slope[behind]
    if q:
        times = root(_diluted_lead, y, y + 0.7, y, place_ratio(share, np.zeros(()), slope, np.asarray(q)), **RANGE)
    else:
        # without dilution c - y falls from log 2 to 1/2
        times = root(_lead, y, y + 0.7, y, **RANGE)
    takeovers[behind] = times * (1 + slope * q)
    return takeovers


RANGE = {"smallest": 1e-300, "largest": 1e8}
"""Scaled times at which an early topic can take over."""


def _lead(c: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logarithm of the early signal over the late one."""
    early, late = log_poisson_order(c, y)
    return early - late


def _diluted_lead(c: np.ndarray, y: np.ndarray, extra: np.ndarray) -> np.ndarray:
    """The same with dilution, where the early signal comes from y to y + extra: no difference of probabilities."""

    def log_heard(x: np.ndarray, c: np.ndarray, low: np.ndarray) -> np.ndarray:
        # log of psi_c(y) e^{-y-c} dy/dx at y = x^2, over e^{-(sqrt c - sqrt y)^2} at its lower end
        root_c = np.sqrt(c)
        exponent = (x - low) * (2 * root_c - x - low)
        return np.log(2 * x) + np.log(c) + log_scaled_paths(2 * root_c * x) + exponent

    low, middle = np.sqrt(y), np.sqrt(c)
    high = np.minimum(np.sqrt(y + extra), np.maximum(middle, low) + 9)  # e^{-81} is left beyond
    early = log_integral(log_heard, low, high, c, low, points=np.stack([middle - 3, middle], -1))
    return np.asarray(early - log_poisson_order(c, y, scale="peak")[1])


def log_poisson_order(c: np.ndarray, y: np.ndarray, *, scale: str = "one") -> tuple[np.ndarray, np.ndarray]:
    """log P(N_c > N_y) and log P(N_c <= N_y), N_c and N_y independent Poisson variables of means c and y.

    Sums over the values of N_c - N_y, whose probabilities e^{-c-y} (c/y)^{k/2} I_k(2 sqrt(c y)) follow from that of 0
    by the continued fraction of their quotients: the smaller tail directly, the other as its complement (Skellam 1946).
    Both are multiplied by `scale`, without a difference of large exponents: 1, e^c for "signal", or
    e^{(sqrt c - sqrt y)^2} for "peak".
    """
    c, y = np.broadcast_arrays(c, y)
    z = 2 * np.sqrt(c) * np.sqrt(y)
    both = np.sqrt(c) + np.sqrt(y)
    gap = (c - y) / np.where(both > 0, both, 1.0)  # sqrt(c) - sqrt(y)
    whole = {"one": 0.0 * c, "signal": c, "peak": gap**2}[scale]
    exponent = {"one": -(gap**2), "signal": np.sqrt(y) * (2 * np.sqrt(c) - np.sqrt(y)), "peak": 0.0 * c}[scale]
    none = np.asarray(np.log(i0e(z)) + exponent)
    with np.errstate(divide="ignore", invalid="ignore"):
        # beyond nine standard deviations, or where quotients of sqrt(y/c) have multiplied, e^{-40} is left
        spread = np.where(np.abs(c - y) <= 30, np.inf, 80 / np.abs(np.log(y) - np.log(c)))
    terms = np.maximum(7 * np.sqrt(z), np.fmin(9 * np.sqrt(c + y), spread))
    top = 90 + int(np.max(terms, initial=0.0))
    far = np.hypot(top + 1.0, z)
    up, down = 2 * c / (top + 1 + far), 2 * y / (top + 1 + far)
    above, below = np.full(c.shape, -np.inf), np.full(c.shape, -np.inf)
    with np.errstate(divide="ignore"):
        for k in range(top, 0, -1):
            up, down = c / (k + y * up), y / (k + c * down)
            above, below = np.log(up) + np.logaddexp(0.0, above), np.log(down) + np.logaddexp(0.0, below)
        above, below = none + above, none + np.logaddexp(0.0, below)
        # where c > y + 30 the upper tail is not summed
        below = np.where(c >= y, below, whole + np.log1p(-np.exp(np.minimum(above - whole, 0.0))))
        above = np.where(c < y + 30, above, whole + np.log1p(-np.exp(np.minimum(below - whole, 0.0))))
    return np.minimum(above, whole), np.minimum(below, whole)


def _distance(share: np.ndarray, slope: np.ndarray, place: np.ndarray, q: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """y of a place after the switch (0 up to it), and whether it is after."""
    share, slope, place = np.broadcast_arrays(share, slope, place)
    return place_ratio(place, np.minimum(share, place), slope, np.asarray(q)), place > share


def _log_signals(
    c: np.ndarray, share: np.ndarray, slope: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    y, behind = _distance(share, slope, place)
    early, late = log_poisson_order(c, y, scale="signal")
    return np.where(behind, early, c), np.where(behind, late, -np.inf)


def _plain(logs: np.ndarray, c: ArrayLike, log_name: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return in_range(np.exp(logs), "c", c, log_name)
