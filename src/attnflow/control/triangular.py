"""Triangular maps: one coordinate after the other, each given those before it."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnflow.checks import number, whole
from attnflow.control.line import line_nodes, monotone
from attnflow.control.schedule import Schedule, chain, units
from attnflow.errors import InvalidInput

FINE = 4001
"""Points of the grid on which conditional maps are differentiated."""


def shear(
    function: Callable[[np.ndarray], Any],
    cells: int,
    span: tuple[float, float],
    *,
    dim: int = 2,
    along: int = 0,
    into: int = 1,
) -> Schedule:
    """x[into] += g(x[along]), g the linear interpolant of `function` at cells + 1 nodes of the `span`.

    Outside of the span g goes on as in the outer cells. The volume is preserved: the log-determinant is exactly 0. It
    has cells + 2 units; the error of g is of order cells^(-2).
    """
    n, d = whole("cells", cells, 1, 10**6), whole("dim", dim, 2, 10**6)
    along, into = whole("along", along, 0, d - 1), whole("into", into, 0, d - 1)
    if along == into:
        raise InvalidInput(f"`along` and `into` are both {along}; a shear reads one coordinate and moves another.")
    low, high = (number("span", end) for end in span)
    nodes = np.linspace(low, high, n + 1)
    values = np.asarray(function(nodes), float)
    if values.shape != nodes.shape or not np.isfinite(values).all():
        raise InvalidInput("`function` gives no finite number for every number; give a function of one array.")
    slopes = np.diff(values) / np.diff(nodes)
    reads, moves = np.eye(d)[along], np.eye(d)[into]
    # a constant, the first cell to the left, then a change of slope at every node
    u = np.concatenate([[values[0], -slopes[0], slopes[0]], np.diff(slopes)])
    a = np.concatenate([[0.0, -1.0, 1.0], np.ones(n - 1)])
    b = np.concatenate([[1.0, nodes[0], -nodes[0]], -nodes[1:-1]])
    return units(u[:, None] * moves, a[:, None] * reads, b)


def triangular(
    conditionals: Sequence[Any],
    *,
    slabs: int,
    cells: int,
    edges: Sequence[Any] | None = None,
    given: int = 0,
    base: Any = None,
    ramp: float = 1e-6,
) -> Schedule:
    """A schedule that carries independent coordinates with the density `base` to a joint density in R^d.

    conditionals[0] is the distribution of x_1, conditionals[k] a function of (x_1, ..., x_k) that gives that of
    x_(k+1): frozen distributions as for `match_density_1d`. Coordinate k is mapped like this (the conveyor, ours):
    a staircase of shears lifts every cell of the coordinates before it, `slabs` on each axis, to an interval of x_k of
    its own; one monotone map of x_k then applies another quantile map in every interval; the staircase is taken back.
    The divergence is of order cells^(-2) + slabs^(-2), with about slabs^(d-1) cells units.

    `given` coordinates at the front are left as they are: a conditional sampler of the others, (x_1, z) -> (x_1, x_2)
    with x_2 distributed given x_1. `edges` are the inner borders of the cells of every coordinate but the last; left
    out, `slabs` cells of the first one (needed for d > 2, or if the first is given). `ramp` is the width of
    a stair; round trips lose a factor of the height over the ramp.
    """
    from scipy.stats import norm

    base = norm() if base is None else base
    d, j = len(conditionals), whole("slabs", slabs, 1, 10**5)
    given, ramp = whole("given", given, 0, d - 1), number("ramp", ramp, low=1e-12)
    if d < 1:
        raise InvalidInput("`conditionals` is empty; give the distribution of x_1, then functions.")
    borders = _borders(conditionals, edges, d, j)
    parts: list[Schedule] = []
    for k in range(given, d):
        if k == 0:
            parts.append(_mapped([(conditionals[0], 0.0)], cells, base, d, 0))
            continue
        axes = [borders[i] for i in range(k)]
        centres = [_centres(edge, conditionals[i] if i == 0 else None) for i, edge in enumerate(axes)]
        targets = [conditionals[k](*centre) for centre in itertools.product(*centres)]
        lift = _height(targets, cells, base)
        strides = np.cumprod([1, *(len(edge) + 1 for edge in axes[::-1])])[-2::-1]  # the last axis moves by one lift
        stairs = [
            _staircase(edge, lift * stride, ramp, d, i, k)
            for i, (edge, stride) in enumerate(zip(axes, strides, strict=True))
            if len(edge)
        ]
        inner = _mapped([(one, lift * number) for number, one in enumerate(targets)], cells, base, d, k)
        parts += [*stairs, inner, *(stair.inverse() for stair in stairs)]
    return chain(parts)


def _borders(conditionals: Sequence[Any], edges: Sequence[Any] | None, d: int, j: int) -> list[np.ndarray]:
    if edges is not None:
        found = [np.asarray(edge, float) for edge in edges]
        if len(found) != d - 1 or any(edge.ndim != 1 or (np.diff(edge) <= 0).any() for edge in found):
            raise InvalidInput(
                f"`edges` has {len(found)} rows; give increasing numbers for each of {d - 1} coordinates."
            )
        return found
    if d > 2 or not hasattr(conditionals[0], "ppf"):
        raise InvalidInput(
            "`edges` is left out; give the borders of cells where d > 2 or the first coordinate is given."
        )
    # cells whose lengths go like rho^(-1/3): the best for an error rho h^2
    grid = np.linspace(float(conditionals[0].ppf(1e-6)), float(conditionals[0].isf(1e-6)), FINE)
    total = np.concatenate([[0.0], np.cumsum(conditionals[0].pdf(grid) ** (1 / 3))[:-1]])
    return [np.interp(np.arange(1, j) / j * total[-1], total, grid)]


def _centres(edge: np.ndarray, distribution: Any) -> np.ndarray:
    """Medians of cells where the distribution is known, else middles; the outer cells are as long as the next ones."""
    if hasattr(distribution, "ppf"):
        mass = np.concatenate([[0.0], np.asarray(distribution.cdf(edge), float), [1.0]])
        return np.asarray(distribution.ppf((mass[1:] + mass[:-1]) / 2), float)
    if len(edge) == 0:
        return np.zeros(1)
    gaps = np.diff(edge) if len(edge) > 1 else np.ones(1)
    ends = np.concatenate([[edge[0] - gaps[0]], edge, [edge[-1] + gaps[-1]]])
    return (ends[1:] + ends[:-1]) / 2


def _height(targets: Sequence[Any], cells: int, base: Any) -> float:
    """The distance of private intervals: they contain the base and all conditional distributions."""
    share = 1e-4 / cells**2
    ends = [(float(one.ppf(share)), float(one.isf(share))) for one in (*targets, base)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return 1.25 * (max(high, float(base.isf(1e-10))) - min(low, float(base.ppf(1e-10))))


def _mapped(targets: Sequence[tuple[Any, float]], cells: int, base: Any, d: int, axis: int) -> Schedule:
    """One monotone map of a coordinate: a quantile map around every offset."""
    sources, nodes = [], []
    for target, offset in targets:
        c, q, _ = line_nodes(target, base, cells, fine=FINE)
        sources.append(c + offset)
        nodes.append(q + offset)
    first, last = (np.diff(nodes[k])[e] / np.diff(sources[k])[e] for k, e in ((0, 0), (-1, -1)))
    return monotone(np.concatenate(sources), np.concatenate(nodes), (float(first), float(last)), dim=d, axis=axis)


def _staircase(edge: np.ndarray, lift: float, ramp: float, d: int, along: int, into: int) -> Schedule:
    """x[into] += lift * (number of edges below x[along]), two units for every edge."""
    kinks = np.concatenate([edge - ramp / 2, edge + ramp / 2])
    heights = np.concatenate([np.full(len(edge), lift / ramp), np.full(len(edge), -lift / ramp)])
    order = np.argsort(kinks, kind="stable")
    outer, inner = heights[order, None] * np.eye(d)[into], np.tile(np.eye(d)[along], (2 * len(edge), 1))
    return units(outer, inner, -kinks[order])
