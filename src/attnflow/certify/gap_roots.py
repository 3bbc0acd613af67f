"""Zeros of the cut forces: found in floats, enclosed in balls, with what their gaps and their symmetry are exactly."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnflow.certify.balls import flint, hull, largest, precision
from attnflow.certify.exclusion import spans
from attnflow.certify.gap_tables import Tables

TRIED = 500
RADII = (0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)


@dataclass(frozen=True)
class Root:
    """Exactly one zero has gaps within `radius` of `centre`, and within `small`, for every beta of a slice."""

    centre: np.ndarray
    radius: float
    small: float
    zero: tuple[bool, ...]
    """Which gaps vanish exactly."""
    unstable: int


def forces(x: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Cut forces and their symmetric derivative, in floats."""
    n = len(x) + 1
    h, j = np.zeros(n - 1), np.zeros((n - 1, n - 1))
    for a, b in spans(n):
        s = x[a:b].sum()
        w = np.exp(-beta * (1 - np.cos(s)))
        h[a:b] += w * np.sin(s)
        j[a:b, a:b] += w * (np.cos(s) - beta * np.sin(s) ** 2)
    return h, j


def newton(x: np.ndarray, beta: float) -> np.ndarray | None:
    """The zero that Newton's method reaches, or None."""
    for _ in range(60):
        h, j = forces(x, beta)
        try:
            move = np.linalg.solve(j, h)
        except np.linalg.LinAlgError:
            return None
        x = x - move * min(1.0, 0.5 / max(np.abs(move).max(), 1e-300))
        if not np.isfinite(x).all():
            return None
        if np.abs(move).max() < 1e-14:
            return x
    return None


def proposals(starts: list[np.ndarray], beta: float) -> list[np.ndarray]:
    """Different zeros near the domain that Newton's method reaches from these gaps; gaps below 1e-9 are set to 0."""
    found: list[np.ndarray] = []
    for start in starts[:: 1 + len(starts) // TRIED]:
        x = newton(start, beta)
        if x is None or x.min() < -1e-7 or x.sum() > 2 * np.pi:
            continue
        last = 2 * np.pi - x.sum()
        if last > np.pi + 1e-7 or last < x.max() - 1e-7:
            continue
        x = np.where(np.abs(x) < 1e-9, 0.0, x)
        if all(np.abs(x - y).max() > 1e-6 for y in found):
            found.append(x)
    return found


def prove_root(centre: np.ndarray, tables: Tables) -> Root | str:
    """The widest box of RADII in which exactly one zero lies for every beta of the slice; or why none was proved."""
    _, j = forces(centre, tables.middle)
    if not np.abs(np.linalg.det(j)) > 0:
        return "the derivative is singular"
    y = np.linalg.inv(j)
    with precision(128) as module:
        value = _cuts(centre, tables)
        exact = module.arb_mat([[module.arb(float(e)) for e in row] for row in y])
        step = max(map(largest, (exact * module.arb_mat([[one] for one in value])).entries()))
        wide = next((r for r in RADII if _contracts(centre, y, tables, r, step) < r), None)
        if wide is None:
            return "no box was mapped into itself"
        goal, tried = _contracts(centre, y, tables, wide, step), max(2 * step, 1e-13)
        while tried < wide:
            reach = _contracts(centre, y, tables, tried, step)
            if reach < tried:
                goal = reach
                break
            tried *= 4
        index = _index(centre, tables, goal)
    if index is None:
        return "an eigenvalue may be zero"
    zero = tuple(bool(abs(c) + goal < wide / 4 and abs(c) <= goal) for c in centre)
    if any(not z and not c - goal > 0 for z, c in zip(zero, centre, strict=True)):
        return "a gap may be negative"
    return Root(centre, wide, goal, zero, index)


def _cuts(centre: np.ndarray, tables: Tables) -> list[Any]:
    """Cut forces at the centre for all beta of the slice, by Taylor's formula of order 2 in beta: v_beta = -q v."""
    arb, n = flint().arb, len(centre) + 1
    b, ball = arb(tables.middle), hull(tables.low, tables.high)
    tau, found = ball - b, [[arb(0)] * 3 for _ in range(n - 1)]
    for i, j in spans(n):
        s = sum((arb(float(c)) for c in centre[i:j]), arb(0))
        half, sine = (s / 2).sin(), s.sin()
        q = 2 * half * half
        v = (-b * q).exp() * sine
        terms = v, -q * v, q * q * (-ball * q).exp() * sine
        for c in range(i, j):
            found[c] = [one + two for one, two in zip(found[c], terms, strict=True)]
    return [v + tau * (first + tau * second / 2) for v, first, second in found]


def _slopes(centre: np.ndarray, tables: Tables, radius: float) -> list[tuple[Any, Any]]:
    """The derivative J of the cut forces over the box: (1, J at the middle beta), (tau, dJ/dbeta over the slice).

    Wide angles are cut into pieces.
    """
    module, n = flint(), len(centre) + 1
    arb, pieces = module.arb, 1 if radius < 1e-4 else 12
    b, ball = arb(tables.middle), hull(tables.low, tables.high)
    found = [[[arb(0)] * (n - 1) for _ in range(n - 1)] for _ in range(2)]
    for i, j in spans(n):
        s, wide = sum((arb(float(c)) for c in centre[i:j]), arb(0)), (j - i) * arb(radius)
        slopes: list[Any] = []
        for k in range(pieces):
            ends = [s + wide * (2 * e - pieces) / pieces for e in (k, k + 1)]
            part = ends[0].union(ends[1])
            half, sine, cosine = (part / 2).sin(), part.sin(), part.cos()
            q, square = 2 * half * half, sine * sine
            first = (-b * q).exp() * (cosine - b * square)
            second = -(-ball * q).exp() * (q * (cosine - ball * square) + square)
            slopes = (
                [one.union(two) for one, two in zip(slopes, (first, second), strict=True)] if k else [first, second]
            )
        for matrix, slope in zip(found, slopes, strict=True):
            for a in range(i, j):
                for c in range(i, j):
                    matrix[a][c] += slope
    return [(arb(1), module.arb_mat(found[0])), (ball - b, module.arb_mat(found[1]))]


def _contracts(centre: np.ndarray, y: np.ndarray, tables: Tables, radius: float, step: float) -> float:
    """The reach of Krawczyk's operator on the box."""
    module, size, worst = flint(), len(centre), 0.0
    exact = module.arb_mat([[module.arb(float(e)) for e in row] for row in y])
    rest = module.arb_mat([[int(a == c) for c in range(size)] for a in range(size)])
    for factor, part in _slopes(centre, tables, radius):
        rest -= exact * part * factor
    for a in range(size):
        row = sum((rest[a, c].abs_upper() for c in range(size)), module.arb(0))
        worst = max(worst, largest(row * module.arb(radius) + module.arb(step)))
    return worst


def _index(centre: np.ndarray, tables: Tables, small: float) -> int | None:
    """The number of unstable directions: negative eigenvalues of the derivative, by Gershgorin's discs."""
    module, size = flint(), len(centre)
    v = np.linalg.eigh(forces(centre, tables.middle)[1])[1]
    exact = module.arb_mat([[module.arb(float(e)) for e in row] for row in v])
    parts = _slopes(centre, tables, small)
    found = exact.transpose() * parts[0][1] * exact + exact.transpose() * parts[1][1] * exact * parts[1][0]
    unstable = 0
    for a in range(size):
        around = sum((found[a, c].abs_upper() for c in range(size) if c != a), module.arb(0))
        if found[a, a] + around < 0:
            unstable += 1
        elif not found[a, a] - around > 0:
            return None
    return unstable
