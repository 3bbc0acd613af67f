"""The checker of complete lists on the circle: its own branch and bound, in integers made from mpmath.iv.

n equal tokens, sorted, the largest gap last; gaps x_1, ..., x_{n-1} in the cube [0, 13/4]^{n-1}. A cube of gaps is
empty if a cut force H_c = sum over i <= c < j of v(theta_j - theta_i), or a combination of cut forces, is nowhere
zero in it; it is done if it lies in the box of a root, which holds exactly one zero.

The work is bounded: `CUBES` cubes and `ROOTS` roots in all slices together. A certificate that asks for more is
rejected.
"""

import itertools
from fractions import Fraction
from functools import cache
from math import factorial, prod
from typing import Any

import numpy as np
from mpmath import iv

from attnflow.certify.checking.integers import Matrix, Rejected, bounded, ends, interval, less, need

SCALE = 700
"""Forces are multiples of 2^-SCALE: those of antipodal clusters are as small as e^(-2 beta)."""
SIDE = Fraction(13, 4)
DEEPEST = 14
CUBES = 2_000_000
"""Cubes of gaps whose forces are enclosed; the saved lists of 3 to 6 tokens take 10^4 to 10^5."""
ROOTS = 20_000
"""Roots of all slices; a list of 6 tokens at one beta has fewer than 100."""
FINE = 8
"""Ranges of the force are unions over pieces of 13/4/2^FINE at most."""


def check_list(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm a certificate of a complete list; the lemmas that were used, or Rejected."""
    n, (low, high), slices = claims["n"], claims["beta"], data["slices"]
    need(3 <= n <= 6, "n is not 3, 4, 5 or 6")
    edges = [one["beta"] for one in slices]
    need(edges[0][0] == low and edges[-1][1] == high, "the slices do not cover the interval of beta")
    need(all(a[1] == b[0] for a, b in itertools.pairwise(edges)), "there is a hole between two slices")
    need(claims["euler"] == sum(c["labelled"] * (-1) ** c["unstable"] for c in claims["classes"]), "the sum is wrong")
    bounded(sum(len(one["roots"]) for one in slices), ROOTS, "roots")
    cubes = 0
    for one in slices:
        slice_ = _Slice(n, *one["beta"])
        need(len(one["roots"]) == len(one["radii"]), "roots and radii do not fit")
        roots = [slice_.root(np.array(x, float), float(r)) for x, r in zip(one["roots"], one["radii"], strict=True)]
        classes = _classes(n, roots)
        need(classes == claims["classes"], f"the classes for beta in {one['beta']} are {classes}")
        cubes = slice_.cover(roots, cubes)
    plane = (
        ["dimension: 3 tokens in equilibrium lie on a great circle, since (W - L)X = 0 with W > 0"] if n == 3 else []
    )
    return [
        *plane,
        "an open half circle holds only consensus: its outermost tokens are pulled inwards",
        "Krawczyk: every box of a root holds exactly one zero of the cut forces",
        "cover: every other cube of gaps has a combination of cut forces that is nowhere zero",
        "a gap within a box that the exchange of its two tokens maps into the same box is 0 exactly",
        "classes: images of zeros under shifts and reflections are told apart, or are the same by uniqueness",
        "inertia: Gershgorin's discs of V^t H' V miss 0",
    ]


def _pairs(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


class _Slice:
    """The pair force v = e^{-beta q} sin s, q = 1 - cos s, for all beta of a slice."""

    def __init__(self, n: int, low: float, high: float):
        self.n, self.beta = n, interval(low, high)
        self.middle = iv.mpf(low + (high - low) / 2)
        self.tau = self.beta - self.middle
        self.half = max(map(abs, ends(self.tau, SCALE)))
        self.point, self.cell = cache(self._point), cache(self._cell)

    def values(self, s: Any) -> tuple[Any, ...]:
        """v at the middle beta; its first derivative in beta there, its second over the slice."""
        q, sine = 2 * iv.sin(s / 2) ** 2, iv.sin(s)
        v = iv.exp(-self.middle * q) * sine
        return v, -q * v, q * q * iv.exp(-self.beta * q) * sine

    def slopes(self, s: Any) -> tuple[Any, Any]:
        """v' at the middle beta, and its derivative in beta over the slice."""
        q, square, cosine = 2 * iv.sin(s / 2) ** 2, iv.sin(s) ** 2, iv.cos(s)
        first = iv.exp(-self.middle * q) * (cosine - self.middle * square)
        return first, -iv.exp(-self.beta * q) * (q * (cosine - self.beta * square) + square)

    # cubes

    def _point(self, level: int, k: int) -> tuple[int, int, int, int]:
        """At k SIDE/2^level: v at the middle beta, and e with v = v(middle) + tau e (Taylor); middles and radii."""
        s = iv.mpf(13 * k) / (4 << level)
        v, first, second = self.values(s)
        a, b = ends(v, SCALE)
        c, d = ends(first + self.tau * second / 2, SCALE)
        return a + b, b - a, c + d, d - c

    def _cell(self, level: int, k: int) -> tuple[int, int, int, int]:
        """Bounds of v and of v' over [k, k + 1] SIDE/2^level and the slice."""
        if level < FINE:
            one, two = self.cell(level + 1, 2 * k), self.cell(level + 1, 2 * k + 1)
            return min(one[0], two[0]), max(one[1], two[1]), min(one[2], two[2]), max(one[3], two[3])
        s = iv.mpf([13 * k, 13 * (k + 1)]) / (4 << level)
        first, by_beta = self.slopes(s)
        slope = ends(first + self.tau * by_beta, SCALE)
        middle, _, moved, around = self.point(level + 1, 2 * k + 1)
        spread = self.point(level + 1, 2 * k + 1)[1]
        # v over the cell: v at its middle, plus tau v_beta, plus v' times half the side
        reach = (max(abs(slope[0]), abs(slope[1])) * 13 >> (level + 3)) + 1
        reach += ((abs(moved) + around + 1) // 2 * self.half >> SCALE) + 1
        return (middle - spread) // 2 - reach, (middle + spread + 1) // 2 + reach, *slope

    def window(self, level: int, k: int, m: int) -> tuple[int, int, int, int]:
        cells = [self.cell(level, k + e) for e in range(m)]
        lows, highs, falls, rises = zip(*cells, strict=True)
        return min(lows), max(highs), min(falls), max(rises)

    def empty(self, level: int, cube: tuple[int, ...]) -> bool:
        """Whether the cube holds no zero, by ranges, by mean values, by a combination of mean values."""
        n, size = self.n, self.n - 1
        starts = [(i, j, sum(cube[i:j])) for i, j in _pairs(n)]
        windows = [self.window(level, k, j - i) for i, j, k in starts]
        cuts = [[e for e, (i, j, _) in enumerate(starts) if i <= c < j] for c in range(size)]
        for cut in cuts:
            if sum(windows[e][0] for e in cut) > 0 or sum(windows[e][1] for e in cut) < 0:
                return True
        # twice the values, at the scale 2^-SCALE
        h, dh = np.zeros((2, size), dtype=object), np.zeros((2, size), dtype=object)
        slopes = np.zeros((2, size, size), dtype=object)
        for (i, j, k), (_, _, fall, rise) in zip(starts, windows, strict=True):
            v, around, moved, spread = self.point(level + 1, 2 * k + j - i)
            for kept, pair in ((h, (v, around)), (dh, (moved, spread))):
                kept[0, i:j] += pair[0]
                kept[1, i:j] += pair[1]
            slopes[0, i:j, i:j] += fall + rise
            slopes[1, i:j, i:j] += rise - fall
        drift = [(abs(a) + b) * self.half // (1 << SCALE) + 1 for a, b in dh.T]
        reach = [int(e) * 13 // (8 << level) + 1 for e in (abs(slopes[0]) + slopes[1]).sum(axis=1)]
        if any(abs(h[0, c]) > h[1, c] + drift[c] + reach[c] for c in range(size)):
            return True
        jacobian = (slopes[0] / (2 << SCALE)).astype(float)
        if not abs(np.linalg.det(jacobian)) > 0:
            return False
        y = np.linalg.inv(jacobian)
        if not (np.abs(y) < 2.0**40).all():
            return False
        y = np.array([[round(float(e) * 2.0**40) for e in row] for row in y], dtype=object)
        value, wide = abs(y.dot(h[0])), abs(y).dot(h[1])
        moves = (abs(y.dot(dh[0])) + abs(y).dot(dh[1])) * self.half // (1 << SCALE) + 1
        turns = (abs(y.dot(slopes[0])) + abs(y).dot(slopes[1])).sum(axis=1) * 13 // (8 << level) + 1
        return any(value[c] > wide[c] + moves[c] + turns[c] for c in range(size))

    def cover(self, roots: list["_Root"], looked: int = 0) -> int:
        """Every cube that meets the domain is empty or in the box of a root; `looked` and the cubes enclosed so far."""
        boxes = [([Fraction(float(c)) for c in root.centre], Fraction(root.radius)) for root in roots]
        pi = [Fraction(e, 1 << SCALE) for e in ends(iv.pi, SCALE)]
        corners, cubes = list(itertools.product((0, 1), repeat=self.n - 1)), [(0,) * (self.n - 1)]
        for level in range(1, DEEPEST + 1):
            h, left = SIDE / 2**level, []
            least, most = pi[0] / h, 2 * pi[1] / h
            scaled = [([c / h for c in centre], radius / h) for centre, radius in boxes]
            for cube in cubes:
                for corner in corners:
                    one = tuple(2 * a + e for a, e in zip(cube, corner, strict=True))
                    total = sum(one)
                    if total + self.n - 1 < least or total + max(one) > most:
                        continue
                    looked += 1
                    bounded(looked, CUBES, "cubes of gaps")
                    if level >= 3 and (_inside(one, scaled) or self.empty(level, one)):
                        continue
                    left.append(one)
            cubes = left
            if not cubes:
                return looked
        place = [float(a * SIDE / 2**DEEPEST) for a in cubes[0]]
        raise Rejected(f"a cube at {place} is neither empty nor in a box")

    # roots

    def jacobian(self, centre: np.ndarray, radius: float) -> list[Matrix]:
        size, pieces = self.n - 1, 1 if radius < 1e-4 else 12
        found = [[[iv.mpf(0)] * size for _ in range(size)] for _ in range(2)]
        for i, j in _pairs(self.n):
            s = sum((iv.mpf(float(c)) for c in centre[i:j]), iv.mpf(0))
            wide = (j - i) * iv.mpf(radius)
            edges = [s + wide * (2 * e - pieces) / pieces for e in range(pieces + 1)]
            parts = [self.slopes(iv.mpf([a.a, b.b])) for a, b in itertools.pairwise(edges)]
            for matrix, which in zip(found, (0, 1), strict=True):
                slope = iv.mpf([min(p[which].a for p in parts), max(p[which].b for p in parts)])
                for a, c in itertools.product(range(i, j), repeat=2):
                    matrix[a][c] += slope
        return [Matrix.of(part, SCALE) for part in found]

    def root(self, centre: np.ndarray, radius: float) -> "_Root":
        """Exactly one zero in the box; its enclosure, exact zeros among the gaps, and index."""
        size = self.n - 1
        need(centre.shape == (size,) and bool(np.isfinite(centre).all()) and 0 < radius < 1, "a root is malformed")
        value = [[iv.mpf(0)] * 3 for _ in range(size)]
        for i, j in _pairs(self.n):
            terms = self.values(sum((iv.mpf(float(c)) for c in centre[i:j]), iv.mpf(0)))
            for c in range(i, j):
                value[c] = [a + b for a, b in zip(value[c], terms, strict=True)]
        residual = Matrix.of([[v + self.tau * (a + self.tau * b / 2)] for v, a, b in value], SCALE)
        middle = self.jacobian(centre, 1e-12)[0].floats()
        need(bool(abs(np.linalg.det(middle)) > 0), "the derivative at a root is singular")
        y, v = np.linalg.inv(middle), np.linalg.eigh(middle)[1]
        step = max(float(iv.mpf(int(e[0])).b) for e in residual.between(y).sizes()) * 2.0 ** -(residual.scale + 60)
        step = float(np.nextafter(step * (1 + 1e-12), 1))
        small, tried = self._reach(centre, y, radius, step), max(2 * step, 1e-13)
        need(small < radius, f"the box of the root {centre} is not mapped into itself")
        while tried < radius:
            reach = self._reach(centre, y, tried, step)
            if reach < tried:
                small = reach
                break
            tried *= 4
        first, second = self.jacobian(centre, small)
        turned = first.between(v.T, v).plus(second.between(v.T, v).times(self.tau))
        unstable = 0
        for a in range(size):
            around = sum(int(e) for c, e in enumerate(turned.sizes()[a]) if c != a) + int(turned.radius[a][a])
            need(abs(int(turned.middle[a][a])) > around, f"an eigenvalue at the root {centre} may be zero")
            unstable += bool(turned.middle[a][a] < 0)
        zero = [bool(abs(c) + small < radius / 4 and abs(c) <= small) for c in centre]
        need(all(z or c - small > 0 for z, c in zip(zero, centre, strict=True)), "a gap of a root may be negative")
        need(not all(zero), "a root is consensus, which is a class of its own")
        return _Root(centre, radius, small, zero, unstable)

    def _reach(self, centre: np.ndarray, y: np.ndarray, radius: float, step: float) -> float:
        first, second = self.jacobian(centre, radius)
        total = first.between(y).plus(second.between(y).times(self.tau))
        one = np.array(
            [[int(a == c) << total.scale for c in range(self.n - 1)] for a in range(self.n - 1)], dtype=object
        )
        rows = Matrix(one - total.middle, total.radius, total.scale).sizes().sum(axis=1)
        worst = max(float((iv.mpf(int(row)) * iv.mpf(2) ** -total.scale * radius + step).b) for row in rows)
        return float(np.nextafter(worst, 2))


class _Root:
    def __init__(self, centre: np.ndarray, radius: float, small: float, zero: list[bool], unstable: int):
        self.centre, self.radius, self.small, self.zero, self.unstable = centre, radius, small, zero, unstable
        gaps = [
            iv.mpf(0) if z else iv.mpf(float(c)) + interval(-small, small) for c, z in zip(centre, zero, strict=True)
        ]
        self.gaps = [*gaps, 2 * iv.pi - sum(gaps, iv.mpf(0))]
        need(less(0, self.gaps[-1]), "the last gap of a root may vanish")

    def is_image(self, gaps: list[Any]) -> bool:
        """Whether these gaps, of a zero, are this zero; doubt rejects."""
        if all(less(abs(a - iv.mpf(float(c))), self.radius) for a, c in zip(gaps[:-1], self.centre, strict=True)):
            return True
        apart = any(less(a, b) or less(b, a) for a, b in zip(gaps, self.gaps, strict=True))
        need(apart, "two zeros cannot be told apart")
        return False


def _classes(n: int, roots: list[_Root]) -> list[dict[str, Any]]:
    """Consensus and the classes of the roots, as the certificate has to list them."""
    found: list[dict[str, Any]] = [{"sizes": [n], "unstable": 0, "labelled": 1}]
    seen: list[_Root] = []
    for root in roots:
        turned = [root.gaps[k:] + root.gaps[:k] for k in range(n)]
        mirrored = [gaps[::-1] for gaps in turned]
        if any(other.is_image(gaps) for other in seen for gaps in turned + mirrored):
            continue
        seen.append(root)
        turns = sum(root.is_image(gaps) for gaps in turned)
        chiral = 1 if sum(root.is_image(gaps) for gaps in mirrored) else 2
        sizes = [1]
        for gone in root.zero:
            sizes[-1] += gone
            if not gone:
                sizes.append(1)
        count = Fraction(factorial(n) * chiral, prod(map(factorial, sizes)) * turns)
        need(count.denominator == 1, "the symmetry of a configuration does not fit its clusters")
        every = [one[k:] + one[:k] for one in (sizes, sizes[::-1]) for k in range(len(sizes))]
        found.append({"sizes": max(every), "unstable": root.unstable, "labelled": int(count)})
    return sorted(found, key=lambda one: (len(one["sizes"]), one["sizes"], one["unstable"]))


def _inside(cube: tuple[int, ...], boxes: list[tuple[list[Fraction], Fraction]]) -> bool:
    return any(
        all(c - radius < a and a + 1 < c + radius for a, c in zip(cube, centre, strict=True))
        for centre, radius in boxes
    )
