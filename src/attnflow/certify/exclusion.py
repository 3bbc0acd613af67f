"""Branch and bound over gaps: which cubes hold no equilibrium on the circle, and which are left.

Sorted tokens with gaps x_1, ..., x_{n-1} and the largest gap last. The gaps are the unknowns, and the cut forces
H_c = sum over i <= c < j of v(theta_j - theta_i) vanish at an equilibrium. Forces inside a cluster cancel in them
exactly, so that clusters far apart, which feel forces of e^{-2 beta}, are still seen.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from attnflow.certify.gap_tables import SIDE, Bounds, Tables

PI_LOW, PI_HIGH = 3.141592653589793, 3.1415926535897936
MOST, CHUNK = 400_000, 50_000
SLACK = 1e-14
"""Sums of at most 36 floats are wrong by less than SLACK times the sum of the absolute values (36 times 2^-53)."""


def spans(n: int) -> list[tuple[int, int]]:
    """Pairs of tokens, as the gaps first, ..., last - 1 between them."""
    return list(itertools.combinations(range(n), 2))


def feasible(cubes: np.ndarray, level: int, n: int) -> np.ndarray:
    """Cubes that meet the domain: the last gap 2 pi - sum x is at most pi and at least every other."""
    h = SIDE / 2**level  # sums and multiples of h are exact
    low, high = cubes.sum(axis=1) * h, (cubes.sum(axis=1) + n - 1) * h
    return (high >= PI_LOW) & (low + cubes.max(axis=1) * h <= 2 * PI_HIGH)


def excluded(cubes: np.ndarray, level: int, n: int, tables: Tables) -> np.ndarray:
    """Cubes in which some cut force, or a combination of cut forces, is nowhere zero for any beta of the slice."""
    found = np.zeros(len(cubes), dtype=bool)
    windows, points = tables.windows(level, n - 1), tables.points(level + 1)
    for first in range(0, len(cubes), CHUNK):
        part = np.arange(first, min(first + CHUNK, len(cubes)))
        rest = part[~_by_range(cubes[part], n, windows["v"])]
        found[part] = True
        found[rest] = _by_mean_value(cubes[rest], level, n, tables.half, windows["slope"], points)
    return found


def _by_range(cubes: np.ndarray, n: int, v: list[Bounds]) -> np.ndarray:
    """Where the range of some cut force excludes 0."""
    done = np.zeros(len(cubes), dtype=bool)
    terms = {(i, j): [w[cubes[:, i:j].sum(axis=1)] for w in v[j - i - 1]] for i, j in spans(n)}
    for c in range(1, n):
        cut = [terms[p] for p in terms if p[0] < c <= p[1]]
        low, high = sum(a for a, _ in cut), sum(b for _, b in cut)
        slack = SLACK * sum(np.abs(a) + np.abs(b) for a, b in cut)
        done |= (low > slack) | (high < -slack)
    return done


def _by_mean_value(
    cubes: np.ndarray, level: int, n: int, half: float, slope: list[Bounds], points: dict[str, Bounds]
) -> np.ndarray:
    """Where H(middle) + tau H_beta + H' [-h/2, h/2] excludes 0 in some cut, or in some row of Y times it.

    Y is a float inverse of the middle of H', read exactly. Every quantity is a middle and a radius; radii hold SLACK
    times the absolute values that were summed.
    """
    size, count = n - 1, len(cubes)
    h, dh = np.zeros((2, count, size)), np.zeros((2, count, size))
    j = np.zeros((2, count, size, size))
    for a, b in spans(n):
        k, m = cubes[:, a:b].sum(axis=1), b - a
        for kept, (low, high) in (
            (h, (w[2 * k + m] for w in points["middle"])),
            (dh, (w[2 * k + m] for w in points["beta"])),
        ):
            kept[0, :, a:b] += ((low + high) / 2)[:, None]
            kept[1, :, a:b] += ((high - low) / 2 + SLACK * (np.abs(low) + np.abs(high)))[:, None]
        low, high = (w[k] for w in slope[m - 1])
        j[0, :, a:b, a:b] += ((low + high) / 2)[:, None, None]
        j[1, :, a:b, a:b] += ((high - low) / 2 + SLACK * (np.abs(low) + np.abs(high)))[:, None, None]
    # sums of the absolute values of middles over pairs are at most those of radii plus middles, times the pairs
    side = SIDE / 2 ** (level + 1)
    value, drift = np.abs(h[0]), half * (np.abs(dh[0]) + dh[1])
    reach = h[1] + drift + side * (np.abs(j[0]) + j[1]).sum(axis=2)
    done = (value * (1 - SLACK) > reach * (1 + SLACK)).any(axis=1)
    rest = np.flatnonzero(~done & np.isfinite(j).all(axis=(0, 2, 3)))
    rest = rest[np.abs(np.linalg.det(j[0, rest])) > 1e-290]
    y = np.linalg.inv(j[0, rest])
    rest, y = (one[np.isfinite(y).all(axis=(1, 2))] for one in (rest, y))
    size_y, (hm, hr), (dm, dr), (jm, jr) = np.abs(y), h[:, rest, :, None], dh[:, rest, :, None], j[:, rest]
    value = np.abs(y @ hm)[:, :, 0]
    error = (size_y @ (hr + SLACK * np.abs(hm)))[:, :, 0]
    error += half * (np.abs(y @ dm) + size_y @ (dr + SLACK * np.abs(dm)))[:, :, 0]
    error += side * (np.abs(y @ jm) + size_y @ (jr + SLACK * np.abs(jm))).sum(axis=2)
    done[rest] = (value * (1 - SLACK) > error * (1 + SLACK)).any(axis=1)
    return done


def within(cubes: np.ndarray, level: int, boxes: Sequence[tuple[np.ndarray, float]]) -> np.ndarray:
    """Cubes that lie in one of the boxes |x - centre| < radius."""
    h, found = SIDE / 2**level, np.zeros(len(cubes), dtype=bool)
    low, high = cubes * h, (cubes + 1) * h
    for centre, radius in boxes:
        found |= ((low - centre > -radius * (1 - SLACK)) & (high - centre < radius * (1 - SLACK))).all(axis=1)
    return found


def search(
    n: int, tables: Tables, boxes: Sequence[tuple[np.ndarray, float]], deepest: int
) -> tuple[np.ndarray, int, int]:
    """(cubes that are left, their level, number of cubes looked at), by halving all sides to the level `deepest`."""
    corners = np.array(list(itertools.product((0, 1), repeat=n - 1)))
    cubes, looked = np.zeros((1, n - 1), dtype=np.int64), 0
    for level in range(1, deepest + 1):
        cubes = (2 * cubes[:, None, :] + corners).reshape(-1, n - 1)
        cubes = cubes[feasible(cubes, level, n)]
        looked += len(cubes)
        if level >= 3 and len(cubes):
            cubes = cubes[~within(cubes, level, boxes)]
            cubes = cubes[~excluded(cubes, level, n, tables)]
        if len(cubes) == 0 or len(cubes) * len(corners) > MOST:
            return cubes, level, looked
    return cubes, deepest, looked
