"""Two topics in one causal context: which of them the last token follows, and from which time on.

The first tokens, up to the place `share` in (0, 1], lean towards one direction, the later ones towards another. In
linear theory dg/dc is the mean of g over what a place hears, the plain mean in u = e^{slope place} - 1 (u = place at
slope 0). With y = log(u(place)/u(share)), N_c and N_y independent Poisson variables of means c and y, the early signal
at a later place is e^c P(N_c > N_y) and the late one e^c P(N_c <= N_y) (ours; many tokens, leanings that stay small).
The scaled time is c = a_k t with a_k of `rates`; `slope` is the slope of ALiBi per token times the number of tokens.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ive

from attnflow.errors import InvalidInput
from attnflow.theory.causal.continuum import (
    LARGEST_LOG,
    checked_amount,
    checked_place,
    checked_slope,
    checked_time,
    log_place_ratio,
)


def early_share(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The part of the signal at `place` that comes from the early topic: P(N_c > N_y), 1 up to the place `share`.

    1 - Q_1(sqrt(2y), sqrt(2c)), Marcum's Q (ours). It grows with c, from 0 towards 1. Arguments broadcast;
    relative accuracy also where it is tiny.
    """
    return np.exp(_log_tails(c, share, slope, place)[0])


def early_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The early topic's amplitude at `place`, in units of its initial one: e^c P(N_c > N_y), e^c up to `share` (ours).

    Beyond float range it is refused, `log_early_signal` goes there.
    """
    return _plain(log_early_signal(c, share, slope=slope, place=place), c, "log_early_signal")


def late_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The late topic's amplitude at `place`, in units of its initial one: e^c P(N_c <= N_y), 0 up to `share` (ours).

    Beyond float range it is refused, `log_late_signal` goes there.
    """
    return _plain(log_late_signal(c, share, slope=slope, place=place), c, "log_late_signal")


def log_early_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The logarithm of `early_signal`, -inf at c = 0 after the switch."""
    return np.asarray(checked_time(c) + _log_tails(c, share, slope, place)[0])


def log_late_signal(c: ArrayLike, share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0) -> np.ndarray:
    """The logarithm of `late_signal`, -inf up to the place `share`."""
    return np.asarray(checked_time(c) + _log_tails(c, share, slope, place)[1])


def takeover_time(
    share: ArrayLike, *, slope: ArrayLike = 0.0, place: ArrayLike = 1.0, relative_dilution: float = 0.0
) -> np.ndarray:
    """The scaled time c at which the early topic owns half of the signal at `place`: the root of P(N_c > N_y) = 1/2.

    Near y + 1/2 for a small share, log(1/share) + 1/2 at slope 0 and place 1; log 2 just after the switch, and 0 up to
    it, where there is nothing late. With `relative_dilution` q of softmax (see `correlation`) the whole signal
    is e^c P(N_c <= N_z) with z the y of place 0, c becomes c/(1 + slope q) and u is shifted (ours).
    """
    dilution = float(checked_amount("relative_dilution", relative_dilution))
    y, behind = _distance(share, slope, place, dilution)
    slopes, places = np.broadcast_arrays(slope, place, y)[:2]
    found = [
        _takeover(float(one), float(_whole(at, steep, dilution))) * (1 + float(steep) * dilution) if there else 0.0
        for one, there, steep, at in zip(y.ravel(), behind.ravel(), slopes.ravel(), places.ravel(), strict=True)
    ]
    return np.array(found).reshape(y.shape)


def _takeover(y: float, whole: float) -> float:
    from scipy.optimize import brentq

    def lead(c: float) -> float:
        early, late = log_poisson_order(np.asarray(c), np.asarray(y))
        if whole == np.inf:
            return float(early - late)
        return float(log_poisson_order(np.asarray(c), np.asarray(whole))[1] - late - np.log(2))

    high = y + 0.7  # without dilution c - y falls from log 2 to 1/2, dilution delays it
    while not lead(high) > 0:
        high *= 1.5
    return float(brentq(lead, y, high, xtol=1e-14, rtol=1e-15))


def _whole(place: ArrayLike, slope: ArrayLike, dilution: float) -> np.ndarray:
    """y of the very beginning: infinite without dilution."""
    if dilution == 0:
        return np.asarray(np.inf)
    return log_place_ratio(place, np.finfo(np.float64).tiny, slope, relative_dilution=dilution)


def log_poisson_order(c: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log P(N_c > N_y) and log P(N_c <= N_y), N_c and N_y independent Poisson variables of means c and y.

    Sums over the values of N_c - N_y, whose probabilities e^{-c-y} (c/y)^{k/2} I_k(2 sqrt(c y)) follow from that of 0
    by the continued fraction of their quotients: the smaller tail directly, the other as its complement (Skellam 1946).
    """
    c, y = np.broadcast_arrays(c, y)
    none = np.asarray(np.log(ive(0, 2 * np.sqrt(c) * np.sqrt(y))) - _gap(c, y) ** 2)
    # beyond nine standard deviations e^{-40} is left; where c > y + 30 the upper tail is not summed
    top = 90 + int(9 * np.sqrt(np.max(c + y, initial=0.0)))
    root = np.hypot(top + 1.0, 2 * np.sqrt(c) * np.sqrt(y))
    up, down = 2 * c / (top + 1 + root), 2 * y / (top + 1 + root)
    above, below = np.full(c.shape, -np.inf), np.full(c.shape, -np.inf)
    with np.errstate(divide="ignore"):
        for k in range(top, 0, -1):
            up, down = c / (k + y * up), y / (k + c * down)
            above, below = np.log(up) + np.logaddexp(0.0, above), np.log(down) + np.logaddexp(0.0, below)
        above, below = none + above, none + np.logaddexp(0.0, below)
        below = np.where(c >= y, below, np.log1p(-np.exp(np.minimum(above, 0.0))))
        above = np.where(c < y + 30, above, np.log1p(-np.exp(np.minimum(below, 0.0))))
    return np.minimum(above, 0.0), np.minimum(below, 0.0)


def _gap(c: np.ndarray, y: np.ndarray) -> np.ndarray:
    """sqrt(c) - sqrt(y)."""
    both = np.sqrt(c) + np.sqrt(y)
    return np.asarray((c - y) / np.where(both > 0, both, 1.0))


def _distance(
    share: ArrayLike, slope: ArrayLike, place: ArrayLike, dilution: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """y of a place after the switch (0 up to it), and whether it is after."""
    share, slope, place = np.broadcast_arrays(
        checked_place("share", share), checked_slope(slope), checked_place("place", place)
    )
    return log_place_ratio(place, np.minimum(share, place), slope, relative_dilution=dilution), place > share


def _log_tails(c: ArrayLike, share: ArrayLike, slope: ArrayLike, place: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    y, behind = _distance(share, slope, place)
    early, late = log_poisson_order(checked_time(c), y)
    return np.where(behind, early, 0.0), np.where(behind, late, -np.inf)


def _plain(logs: np.ndarray, c: ArrayLike, instead: str) -> np.ndarray:
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"c is {c!r}; the signal leaves float range there, use {instead}.")
    return np.asarray(np.exp(logs))
