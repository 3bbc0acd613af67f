"""Optimal transport on the circle and on the line: exact for weighted measures, by sorting.

On the line the quantile functions X and Y of two measures are coupled at equal levels. On the circle one of them is
shifted: with angles lifted to the real line, X(u + 1) = X(u) + 2 pi,

    W_p^p = min over alpha of C(alpha) = int_0^1 |X(u) - Y(u + alpha)|^p du,

and C is convex in alpha for p >= 1 (Delon, Salomon, Sobolevski 2010). Where X jumps from x_i to x_(i+1) at the level
a_i, the derivative of C is the sum over i of |x_i - Y(a_i + alpha)|^p - |x_(i+1) - Y(a_i + alpha)|^p. It is monotone,
so its zero is found by bisection: O(n log n) in all.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

TURN = 2 * np.pi


class Coupling(NamedTuple):
    """An optimal plan: `mass[k]` goes from `start[k]` to `end[k]`, in angles of one lift, or in points of the line."""

    mass: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def cost(self, order: int) -> float:
        """Sum of mass |end - start|^order."""
        return float(np.sum(self.mass * np.abs(self.end - self.start) ** order))


def couple_on_line(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray) -> Coupling:
    """The monotone plan between the points x with masses a and y with masses b; optimal for every order."""
    (x, a), (y, b) = _sorted(x, a), _sorted(y, b)
    cuts = np.union1d(np.concatenate([[0.0], a]), b)
    middle = (cuts[1:] + cuts[:-1]) / 2
    return Coupling(np.diff(cuts), x[_index(a, middle)], y[_index(b, middle)])


def couple_on_circle(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, order: int) -> Coupling:
    """An optimal plan between the angles x with masses a and y with masses b."""
    (x, a), (y, b) = _sorted(np.mod(x, TURN), a), _sorted(np.mod(y, TURN), b)
    shifts = _best_shifts(x, a, lambda levels: _lifted(y, b, levels), order)
    return min((_shifted(x, a, y, b, alpha) for alpha in shifts), key=lambda plan: plan.cost(order))


def squared_distance_to_quantiles(x: np.ndarray, a: np.ndarray, levels: np.ndarray, angles: np.ndarray) -> float:
    """W_2^2 on the circle between the angles x with masses a and a distribution with a continuous quantile function Y.

    Y is linear between Y(levels[k]) = angles[k]; levels run from 0 to 1, angles from 0 to 2 pi, both increasing.
    """
    x, a = _sorted(np.mod(x, TURN), a)

    def quantile(at: np.ndarray) -> np.ndarray:
        turns = np.floor(at)
        return np.asarray(np.interp(at - turns, levels, angles) + TURN * turns)

    def cost(alpha: float) -> float:
        cuts = np.unique(np.concatenate([[0.0], a, np.mod(levels - alpha, 1.0)]))
        here = x[_index(a, (cuts[1:] + cuts[:-1]) / 2)]
        ends = quantile(cuts + alpha)
        left, right = ends[:-1] - here, ends[1:] - here
        return float(np.sum(np.diff(cuts) * (left**2 + left * right + right**2)) / 3)

    return min(map(cost, _best_shifts(x, a, quantile, 2)))


def _best_shifts(x: np.ndarray, a: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray], order: int) -> set[float]:
    """Two neighbouring numbers between which C(alpha) has its minimum, and 0, which may be exact where they are not."""
    following = np.append(x[1:], x[0] + TURN)

    def slope(alpha: float) -> float:
        there = quantile(a + alpha)
        return float(np.sum(np.abs(x - there) ** order - np.abs(following - there) ** order))

    low, high = -1.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return {low, high, 0.0}


def _shifted(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, alpha: float) -> Coupling:
    """The plan between X(u) and Y(u + alpha)."""
    cuts = np.unique(np.concatenate([[0.0], a, np.mod(b - alpha, 1.0)]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    return Coupling(np.diff(cuts), x[_index(a, middle)], _lifted(y, b, middle + alpha))


def _sorted(x: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of positive mass in their order, and the levels at which the quantile function leaves them; the last is 1.

    Levels are rounded once, not once a place: the sum runs in long double.
    """
    order = np.argsort(x, kind="stable")
    order = order[masses[order] > 0]
    levels = np.cumsum(masses[order].astype(np.longdouble))
    levels = (levels / levels[-1]).astype(np.float64)
    return x[order], levels


def _index(levels: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(levels, at, side="right"), len(levels) - 1)


def _lifted(y: np.ndarray, levels: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The quantile function at any level: a whole turn is added with every unit."""
    turns = np.floor(at)
    return np.asarray(y[_index(levels, at - turns)] + TURN * turns)
