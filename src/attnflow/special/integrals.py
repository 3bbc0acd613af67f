"""Definite integrals of smooth functions, with a stated error; many at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import NotAccurate

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
DEEPEST = 60
"""Halvings of a panel; beyond, neighbouring nodes are the same float."""
GRADES = 4.0 ** -np.arange(1, 15)
"""Distances from either end, as shares of the interval, where it is divided at first."""
MOST_PANELS = 200_000
"""Panels of all integrals together, some 25 MB of values."""


def integral(
    integrand: Callable[..., Any],
    low: ArrayLike,
    high: ArrayLike,
    *arguments: ArrayLike,
    points: ArrayLike | None = None,
    rtol: float = 1e-13,
) -> np.ndarray:
    """The integral of `integrand(x, *arguments)` from `low` to `high`, each to relative accuracy `rtol`.

    The first panels become smaller by factors of 4 towards both ends, so that a peak or a logarithm at an end is seen.
    Each is integrated by Gauss's rule with 16 nodes, whole and in two halves. The halves are kept where the two agree
    to `rtol` of the integral of |integrand|, and divided again where they do not; the halves are far more accurate than
    the difference says, so the errors of all panels together stay below `rtol`.

    Arguments:
        integrand: a function of an array x (panel, node) and of `arguments`, each of shape (panel, 1); smooth inside
            the interval. A peak inside that is narrower than 1/50 of the interval has to be announced by `points`.
        low: lower ends.
        high: upper ends; the shapes of both and of `arguments` are broadcast.
        arguments: what else the integrand depends on, one value an integral.
        points: inner points where the interval is divided at first, along a further last axis; those outside are
            ignored.
        rtol: relative accuracy.

    Returns:
        The integrals, in the broadcast shape.

    Raises:
        NotAccurate: if the accuracy is not reached, or if the integral is so small beside that of |integrand| that
            rounding alone exceeds it.
    """
    low, high, *values = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (low, high, *arguments)))
    shape = low.shape
    low, high, values = low.ravel(), high.ravel(), [value.ravel() for value in values]
    case, left, right = _panels(low, high, points, shape)

    def gauss(case: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Integrals of the integrand and of its absolute value over panels."""
        middle, half = (left + right)[:, None] / 2, (right - left)[:, None] / 2
        with np.errstate(all="ignore"):
            heights = np.asarray(integrand(middle + half * NODES, *(value[case, None] for value in values)), np.float64)
        heights = np.broadcast_to(heights, (len(case), len(NODES))) * (half * WEIGHTS)
        return heights.sum(axis=1), np.abs(heights).sum(axis=1)

    total, size = np.zeros(low.size), np.zeros(low.size)  # of panels that are done
    whole = gauss(case, left, right)[0]
    for _ in range(DEEPEST):
        middle = (left + right) / 2
        case2, left2, right2 = (
            np.repeat(case, 2),
            np.stack([left, middle], 1).ravel(),
            np.stack([middle, right], 1).ravel(),
        )
        halves, sizes = gauss(case2, left2, right2)
        if not np.isfinite(sizes).all():
            raise NotAccurate("the integrand of a formula is not finite.")
        both, both_sizes = halves.reshape(-1, 2).sum(axis=1), sizes.reshape(-1, 2).sum(axis=1)
        expected_size = size + np.bincount(case, both_sizes, low.size)
        done = np.abs(both - whole) <= rtol * expected_size[case]
        total += np.bincount(case[done], both[done], low.size)
        size += np.bincount(case[done], both_sizes[done], low.size)
        again = np.repeat(~done, 2)
        case, left, right, whole = case2[again], left2[again], right2[again], halves[again]
        if not len(case):
            break
        if len(case) > MOST_PANELS:
            raise NotAccurate(f"an integral needs more than {MOST_PANELS} panels to be accurate to {rtol:.1g}.")
    else:
        raise NotAccurate(f"an integral is not accurate to {rtol:.1g} after {DEEPEST} halvings of a panel.")
    if (1e-16 * size > rtol * np.abs(total)).any():
        raise NotAccurate(f"parts of an integral cancel, so that it is not accurate to {rtol:.1g}.")
    return total.reshape(shape)


def log_integral(
    log_integrand: Callable[..., Any],
    low: ArrayLike,
    high: ArrayLike,
    *arguments: ArrayLike,
    points: ArrayLike | None = None,
    rtol: float = 1e-13,
) -> np.ndarray:
    """Logarithm of the integral of exp(`log_integrand`) from `low` to `high`; the integrand may leave float range.

    The integrand is divided by its largest value at the nodes of the first panels. Arguments are those of `integral`;
    `rtol` is the absolute accuracy of the logarithm, as far as rounding of `log_integrand` allows. -inf where the ends
    are equal.
    """
    low, high, *values = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (low, high, *arguments)))
    shape, empty = low.shape, (low == high).ravel()
    case, left, right = _panels(low.ravel(), high.ravel(), points, shape)
    middle, half = (left + right)[:, None] / 2, (right - left)[:, None] / 2
    nodes = middle + half * np.concatenate([[-1.0], NODES, [1.0]])
    with np.errstate(all="ignore"):
        logs = np.asarray(log_integrand(nodes, *(value.ravel()[case, None] for value in values)), np.float64)
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    top = np.full(low.size, -np.inf)
    np.maximum.at(top, case, np.broadcast_to(logs, nodes.shape).max(axis=1, initial=-np.inf))
    top[empty] = 0.0

    def scaled(x: np.ndarray, top: np.ndarray, *values: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_integrand(x, *values) - top))

    with np.errstate(over="ignore", divide="ignore"):
        rest = integral(scaled, low, high, top.reshape(shape), *values, points=points, rtol=rtol)
        return np.asarray(np.where(empty.reshape(shape), -np.inf, top.reshape(shape) + np.log(rest)))


def _panels(
    low: np.ndarray, high: np.ndarray, points: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first panels: the number of its integral, the left and the right end of each."""
    inner = np.empty(0) if points is None else np.asarray(points, dtype=np.float64)
    inner = np.broadcast_to(inner, (*shape, inner.shape[-1])).reshape(low.size, -1)
    bottom, top = np.minimum(low, high)[:, None], np.maximum(low, high)[:, None]
    width = top - bottom
    edges = [
        bottom,
        bottom + width * GRADES,
        bottom + width / 2,
        np.clip(inner, bottom, top),
        top - width * GRADES,
        top,
    ]
    ends = np.sort(np.concatenate(edges, axis=1), axis=1)
    ends = np.where((low <= high)[:, None], ends, ends[:, ::-1])
    case = np.repeat(np.arange(low.size), ends.shape[1] - 1)
    left, right = ends[:, :-1].ravel(), ends[:, 1:].ravel()
    kept = left != right
    return case[kept], left[kept], right[kept]
