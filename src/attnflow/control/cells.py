"""Permutations of cells of the plane by shears, and maps with their densities by permutations and one stretching."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from attnflow.checks import number, whole
from attnflow.control.line import monotone
from attnflow.control.schedule import Schedule, units
from attnflow.errors import InvalidInput

Cell = tuple[int, int]
"""Column and row."""
Triple = tuple[Cell, Cell, Cell]


def permute_cells(permutation: Any, *, side: float = 1.0, ramp: float = 1e-4) -> Schedule:
    """A schedule of shears of R^2 that permutes the n x n cells of the square [0, side]^2.

    Cell k = column + n row goes to cell permutation[k]. The core of a cell (all but a rim of `ramp` times its side) is
    translated exactly; what is off lies in the rims. The volume is preserved exactly. Cells are placed one at a time by
    `three_cycle`, so about 16 elements for each; a row of cells above the square serves as a store, which absorbs the
    parity.
    """
    goal = np.asarray(permutation)
    n = round(len(goal) ** 0.5) if goal.ndim == 1 else 0
    if n < 1 or n * n != len(goal) or not np.array_equal(np.sort(goal), np.arange(n * n)):
        raise InvalidInput(
            "`permutation` is no permutation of the n^2 cells of a square; give n^2 numbers 0 ... n^2-1."
        )
    moves = [((k % n, k // n), (int(g) % n, int(g) // n)) for k, g in enumerate(goal)]
    cycles = _cycles(sorted(moves, key=lambda move: move[1][::-1]), n)
    if not cycles:
        raise InvalidInput("`permutation` is the identity; there is nothing to do.")
    return _schedule(cycles, number("side", side, low=1e-300) / n, ramp)


def three_cycle(corner: Cell, columns: int, rows: int, *, side: float = 1.0, ramp: float = 0.02) -> Schedule:
    """16 shears with (i-m, j) -> (i, j) -> (i, j-n) -> (i-m, j) for cells of this side; all others stay.

    `corner` is (i, j), `columns` m and `rows` n. It is the commutator of "shift row j by m cells" and "shift column i
    by n cells": their supports meet in one cell.
    """
    i, j = corner
    if columns == 0 or rows == 0:
        raise InvalidInput("a three-cycle by 0 columns or rows is no cycle; give integers other than 0.")
    return _schedule([((i - columns, j), (i, j), (i, j - rows))], side, ramp)


@dataclasses.dataclass(frozen=True)
class PolarMatch:
    """A schedule for a map and its density together."""

    schedule: Schedule
    elements: tuple[int, int, int]
    """Of the first permutation, the stretching and the second permutation."""
    stretched: np.ndarray
    """(n^2,) the Jacobian that every cell gets."""


def polar(
    phi: Callable[[np.ndarray], Any], jacobian: Callable[[np.ndarray], Any], cells: int, parts: int, *,
    ramp: float = 1e-6, points: int = 8,
) -> PolarMatch:  # fmt: skip
    """A schedule close to the diffeomorphism `phi` of the unit square, together with its Jacobian.

    The n x n = `cells`^2 cells are permuted into a row; one monotone map of x_1 stretches cell k by the mean of the
    `jacobian` in it, rounded to a multiple of 1/`parts`; then the small cells of side 1/(n parts) of the row go to the
    places where phi has them. So phi and the push-forward of a density are approximated together, at a cost of
    eps^(-2) elements for an error eps in L^2. This is our reading of the theorem in arXiv:2602.08606 (a permutation,
    a gradient of a convex function, a permutation). Smooth maps are better built by other means: it is a proof, not a
    method. `ramp` has to shrink faster than the cells: points in rims of the long row are displaced by O(n).

    `phi` and `jacobian` take points (point, 2) and give (point, 2) and (point,).
    """
    n, m = whole("cells", cells, 2, 64), whole("parts", parts, 1, 64)
    h, at = 1.0 / n, (np.arange(points) + 0.5) / points
    corners = np.stack(np.meshgrid(np.arange(n), np.arange(n)), axis=-1).reshape(-1, 2)  # column first, then row
    inside = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    mean = np.array([np.mean(jacobian((corner + inside) * h)) for corner in corners])
    if not (np.isfinite(mean) & (mean > 0)).all():
        raise InvalidInput(f"`jacobian` has the mean {mean.min():.3g} in a cell; give a map with a positive Jacobian.")
    share = np.maximum(np.round(mean * m), 1).astype(int)
    # the images of all parts of cells; cell k is cut into share[k] columns of m parts
    centres = [
        (corner + np.stack(np.meshgrid((np.arange(s) + 0.5) / s, (np.arange(m) + 0.5) / m), axis=-1).reshape(-1, 2)) * h
        for corner, s in zip(corners, share, strict=True)
    ]
    images = np.asarray(phi(np.concatenate(centres)), float)
    small = h / m
    low = np.floor(images.min(axis=0) / small).astype(int) - 1
    high = np.ceil(images.max(axis=0) / small).astype(int) + 1
    below = min(int(np.floor(low[1] / m)), 0) - 2  # row of the strip, in cells of side h
    first = _cycles([((int(c), int(r)), (k, below)) for k, (c, r) in enumerate(corners)])
    ends = np.concatenate([[0], np.cumsum(share)]) * small
    stretch = monotone(np.arange(n * n + 1) * h, ends, (1.0, 1.0), dim=2)
    goals = _assigned(images, low, high, small)
    starts = [
        (int(begin) + column, below * m + row)
        for begin, s in zip(np.concatenate([[0], np.cumsum(share)]), share, strict=False)
        for row in range(m)
        for column in range(s)
    ]
    second = _cycles(list(zip(starts, goals, strict=True)))
    pieces = (_schedule(first, h, ramp), stretch, _schedule(second, small, ramp))
    whole_ = pieces[0].then(pieces[1]).then(pieces[2])
    return PolarMatch(whole_, (len(pieces[0]), len(pieces[1]), len(pieces[2])), share / m)


def _assigned(images: np.ndarray, low: np.ndarray, high: np.ndarray, small: float) -> list[Cell]:
    """For every image a cell of its own, with the least sum of squared distances."""
    from scipy.optimize import linear_sum_assignment

    columns, rows = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
    candidates = np.stack([columns.ravel(), rows.ravel()], axis=1)
    cost = np.sum(((candidates + 0.5)[None] * small - images[:, None]) ** 2, axis=-1)
    _, chosen = linear_sum_assignment(cost)
    return [(int(c), int(r)) for c, r in candidates[chosen]]


def _cycles(moves: Iterable[tuple[Cell, Cell]], store: int | None = None) -> list[Triple]:
    """Three-cycles (A, B, C), A -> B -> C -> A with B the corner or reversed, that place one cell after the other.

    Each moves what belongs to a goal there, and two other cells that are not placed yet. `store` is the first row
    that nothing belongs to.
    """
    moves = list(moves)
    where = {start: start for start, _ in moves}  # what started there is now at
    holds = {start: start for start, _ in moves}  # the cell holds what started at
    placed: set[Cell] = set()
    found: list[Triple] = []
    for start, goal in moves:
        here = where[start]
        if here != goal:
            cycle = _triple(here, goal, placed, store)
            found.append(cycle)
            before = [holds.get(cell) for cell in cycle]
            for cell, content in zip((*cycle[1:], cycle[0]), before, strict=True):
                if content is None:
                    holds.pop(cell, None)
                else:
                    holds[cell], where[content] = content, cell
        placed.add(goal)
    return found


def _triple(here: Cell, goal: Cell, placed: set[Cell], store: int | None) -> Triple:
    """A cycle with here -> goal whose third cell is not placed; two of the cells share a row and two a column."""
    if here[0] != goal[0] and here[1] != goal[1]:
        for third in ((goal[0], here[1]), (here[0], goal[1])):
            if third not in placed:
                return here, goal, third
    elif here[1] == goal[1]:  # one row: the third is in the column of the goal, or of here
        rows = [store] if store is not None else [here[1] + 1, here[1] - 1]
        for column in (goal[0], here[0]):
            for row in (r for r in rows if r is not None and r != here[1]):
                if (column, row) not in placed:
                    return here, goal, (column, row)
        above = here[1] + 1 if store is None or here[1] < store else here[1] - 1
        return here, goal, (here[0], above)
    columns = (c for step in range(1, len(placed) + 3) for c in (here[0] + step, here[0] - step))
    return here, goal, (next(c for c in columns if (c, here[1]) not in placed and c >= 0), here[1])


def _schedule(cycles: list[Triple], h: float, ramp: float) -> Schedule:
    """All cycles as shears of cells of side h."""
    delta = number("ramp", ramp, low=1e-12, high=0.49) * h
    parts = [shear for cycle in cycles for shear in _commutator(cycle, h, delta)]
    outer, inner, bias = (np.concatenate(part) for part in zip(*parts, strict=True))
    return units(outer, inner, bias)


def _commutator(cycle: Triple, h: float, delta: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Four shears for first -> second -> third -> first: rows and columns in one order, or in the other."""
    turned = [cycle[k:] + cycle[:k] for k in range(3)]
    for a, b, c in turned:
        if a[1] == b[1] and b[0] == c[0]:  # (i-m, j) -> (i, j) -> (i, j-n)
            row, column = (b[1], b[0] - a[0]), (b[0], b[1] - c[1])
            return [_shift(*row, 0, h, delta), _shift(*column, 1, h, delta),
                    _shift(row[0], -row[1], 0, h, delta), _shift(column[0], -column[1], 1, h, delta)]  # fmt: skip
        if a[0] == b[0] and b[1] == c[1]:  # the inverse: (i, j-n) -> (i, j) -> (i-m, j)
            row, column = (b[1], b[0] - c[0]), (b[0], b[1] - a[1])
            return [_shift(*column, 1, h, delta), _shift(*row, 0, h, delta),
                    _shift(column[0], -column[1], 1, h, delta), _shift(row[0], -row[1], 0, h, delta)]  # fmt: skip
    raise InvalidInput(f"the cells {cycle} do not share a row and a column; give an L-shaped triple.")


def _shift(line: int, by: int, axis: int, h: float, delta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shift row (axis 0) or column (axis 1) number `line` by `by` cells: a trapezoid of height by h, in 4 units."""
    kinks = line * h + np.array([0.0, delta, h - delta, h])
    signs = np.array([1.0, -1.0, -1.0, 1.0]) * by * h / delta
    along, across = np.eye(2)[axis], np.eye(2)[1 - axis]
    return signs[:, None] * along, np.tile(across, (4, 1)), -kinks
