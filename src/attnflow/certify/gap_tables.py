"""Tables of the pair force on the circle over a dyadic grid, with proved bounds: what lists of equilibria are made of.

v(s) = e^{-beta (1 - cos s)} sin s is the force of two tokens an angle s apart (clock USA0). FLINT encloses cos, sin
and exp; the rest is float64 arithmetic rounded outwards. For fixed s, v is monotone in beta, so that its values at the
two ends of a slice of beta bound it.
"""

import functools
import math
from typing import Any

import numpy as np

from attnflow.certify.balls import above, below, precision

SIDE = 3.25
"""The side of the first cube of gaps, above pi and dyadic, so that halving is exact."""
SPAN = 3
"""Tables reach from 0 to SPAN times SIDE."""
Bounds = tuple[np.ndarray, np.ndarray]


def down(x: np.ndarray) -> np.ndarray:
    """The next floats below."""
    return np.nextafter(x, -np.inf)


def up(x: np.ndarray) -> np.ndarray:
    """The next floats above."""
    return np.nextafter(x, np.inf)


def times(a: Bounds, b: Bounds) -> Bounds:
    """Products of intervals, rounded outwards."""
    products = np.stack([a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]])
    return down(products.min(axis=0)), up(products.max(axis=0))


def plus(a: Bounds, b: Bounds) -> Bounds:
    """Sums of intervals, rounded outwards."""
    return down(a[0] + b[0]), up(a[1] + b[1])


def minus(a: Bounds, b: Bounds) -> Bounds:
    """Differences of intervals, rounded outwards."""
    return down(a[0] - b[1]), up(a[1] - b[0])


@functools.lru_cache(maxsize=16)
def _angles(level: int) -> tuple[Bounds, Bounds, Bounds]:
    """cos, sin and 1 - cos at the multiples of SIDE/2^level up to SPAN times SIDE."""
    count = SPAN * 2**level + 1
    found = np.empty((3, 2, count))
    with precision(80) as module:
        for k in range(count):
            s = module.arb(k * (SIDE / 2**level))
            sine, cosine = s.sin_cos()
            half = (s / 2).sin()
            for row, value in enumerate((cosine, sine, 2 * half * half)):
                found[row, :, k] = below(value), above(value)
    cosines, sines, rests = ((np.clip(low, -2, 2), np.clip(high, -2, 2)) for low, high in found)
    return cosines, sines, (np.maximum(rests[0], 0.0), rests[1])


def _exponentials(beta: float, q: Bounds) -> Bounds:
    """e^{-beta q}."""
    low, high = np.empty_like(q[0]), np.empty_like(q[0])
    with precision(80) as module:
        arb, b = module.arb, module.arb(beta)
        for k, (a, c) in enumerate(zip(*q, strict=True)):
            value = (-b * arb(a).union(arb(c))).exp()
            low[k], high[k] = below(value), above(value)
    return np.maximum(low, 0.0), high


def _over_cells(points: Bounds, turning: tuple[Any, ...], level: int, top: float, bottom: float) -> Bounds:
    """A function over the cells of a grid, monotone except at the given angles of tops and bottoms."""
    low, high = np.minimum(points[0][:-1], points[0][1:]), np.maximum(points[1][:-1], points[1][1:])
    edges = np.arange(len(points[0])) * (SIDE / 2**level)
    for angles, value, best in zip(turning, (top, bottom), (high, low), strict=True):
        for a, c in angles:
            best[(edges[1:] >= a) & (edges[:-1] <= c)] = value
    return low, high


class Tables:
    """Bounds of v and of its derivatives for all beta of a slice."""

    def __init__(self, low: float, high: float):
        self.low, self.high = low, high
        self.middle = low + (high - low) / 2
        widest = max(high - self.middle, self.middle - low)
        self.half = math.nextafter(widest, math.inf) if high > low else 0.0
        self._points: dict[int, dict[str, Bounds]] = {}
        self._cells: dict[int, dict[str, Bounds]] = {}

    def points(self, level: int) -> dict[str, Bounds]:
        """At the grid: `v` over the slice, `middle` (v at the middle beta), `beta` (the derivative in beta)."""
        if level not in self._points:
            _, sines, q = _angles(level)
            ends = [times(_exponentials(b, q), sines) for b in (self.low, self.middle, self.high)]
            v = (
                np.minimum.reduce([low for low, _ in ends]),
                np.maximum.reduce([high for _, high in ends]),
            )
            by_beta = times((-q[1], -q[0]), v)
            self._points[level] = {"v": v, "middle": ends[1], "beta": by_beta}
        return self._points[level]

    def cells(self, level: int) -> dict[str, Bounds]:
        """Over cells and slice: `v` and `slope`, its derivative e^{-beta q} (cos s - beta sin^2 s) in s.

        v over a cell is v at its middle plus slope times half the width.
        """
        if level not in self._cells:
            cosines, sines, q = _angles(level)
            pi = ((3.141592653589793, 3.1415926535897936), (9.42477796076937, 9.424777960769381))
            turn = ((0.0, 0.0), (6.283185307179586, 6.283185307179588), (12.566370614359171, 12.566370614359176))
            quarter = ((1.5707963267948966, 1.5707963267948968), (7.853981633974482, 7.853981633974484))
            three = ((4.71238898038469, 4.712388980384691), (10.995574287564275, 10.995574287564278))
            cosine = _over_cells(cosines, (turn, pi), level, 1.0, -1.0)
            sine = _over_cells(sines, (quarter, three), level, 1.0, -1.0)
            rest = _over_cells(q, (pi, turn), level, 2.0, 0.0)
            first, last = (_exponentials(b, rest) for b in (self.low, self.high))
            weight = np.minimum(first[0], last[0]), np.maximum(first[1], last[1])
            square = times(sine, sine)
            square = np.maximum(square[0], 0.0), square[1]
            beta = np.full(len(sine[0]), self.low), np.full(len(sine[0]), self.high)
            slope = times(weight, minus(cosine, times(beta, square)))
            low, high = self.points(level + 1)["v"]
            size = np.maximum(np.abs(slope[0]), np.abs(slope[1])) * (SIDE / 2 ** (level + 1))
            size = up(size)
            self._cells[level] = {"v": plus((low[1::2], high[1::2]), (-size, size)), "slope": slope}
        return self._cells[level]

    def windows(self, level: int, most: int) -> dict[str, list[Bounds]]:
        """`cells` over 1, ..., most neighbouring cells: entry m - 1 at k is for [k, k + m] times SIDE/2^level."""
        fine = max(level, 7)
        found: dict[str, list[Bounds]] = {}
        for name, (low, high) in self.cells(fine).items():
            blocks = 2 ** (fine - level)
            low, high = low.reshape(-1, blocks).min(axis=1), high.reshape(-1, blocks).max(axis=1)
            rows = [(low, high)]
            for m in range(2, most + 1):
                before = rows[-1]
                a, c = np.full_like(low, -np.inf), np.full_like(high, np.inf)
                a[: 1 - m], c[: 1 - m] = (
                    np.minimum(before[0][: 1 - m], low[m - 1 :]),
                    np.maximum(before[1][: 1 - m], high[m - 1 :]),
                )
                rows.append((a, c))
            found[name] = rows
        return found
