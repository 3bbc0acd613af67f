"""Triangular maps: one coordinate after the other, each given those before it."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnflow.checks import number, shown, whole
from attnflow.control.line import Mixture, line_nodes, monotone
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
    out, `slabs` cells with lengths like the -1/3 power of the density of that coordinate, which is the mixture of its
    conditional densities over the cells before it (a given coordinate needs its distribution for this). `ramp` is the
    width of a stair; round trips lose a factor of the height over the ramp.
    """
    from scipy.stats import norm

    base = norm() if base is None else base
    d, j = len(conditionals), whole("slabs", slabs, 1, 10**5)
    given, ramp = whole("given", given, 0, d - 1), number("ramp", ramp, low=1e-12)
    if d < 1:
        raise InvalidInput("`conditionals` is empty; give the distribution of x_1, then functions.")
    borders, centres = _grid(conditionals, edges, d, j)
    parts: list[Schedule] = []
    for k in range(given, d):
        if k == 0:
            parts.append(_mapped([(conditionals[0], 0.0)], cells, base, d, 0))
            continue
        axes = borders[:k]
        targets = [conditionals[k](*centre) for centre in itertools.product(*centres[:k])]
        reach = _reach(targets, cells, base)
        lift = reach[1] - reach[0]
        strides = np.cumprod([1, *(len(edge) + 1 for edge in axes[::-1])])[-2::-1]  # the last axis moves by one lift
        stairs = [
            _staircase(edge, lift * stride, ramp, d, i, k)
            for i, (edge, stride) in enumerate(zip(axes, strides, strict=True))
            if len(edge)
        ]
        inner = _mapped([(one, lift * number) for number, one in enumerate(targets)], cells, base, d, k, reach)
        parts += [*stairs, inner, *(stair.inverse() for stair in stairs)]
    return chain(parts)


def _grid(
    conditionals: Sequence[Any], edges: Sequence[Any] | None, d: int, j: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Borders and medians of the cells of every coordinate but the last; middles where no distribution is known.

    The distribution of a coordinate is the mixture of its conditional ones at the centres of the cells before it.
    """
    given = None if edges is None else [np.asarray(edge, float) for edge in edges]
    if given is not None and (len(given) != d - 1 or any(e.ndim != 1 or (np.diff(e) <= 0).any() for e in given)):
        raise InvalidInput(f"`edges` has {len(given)} rows; give increasing numbers for each of {d - 1} coordinates.")
    borders: list[np.ndarray] = []
    centres: list[np.ndarray] = []
    masses, known = np.ones(1), True  # of the cells so far
    for k in range(d - 1):
        # a given coordinate may have no distribution, and then no later one has
        known = known and (hasattr(conditionals[k], "ppf") if k == 0 else callable(conditionals[k]))
        if given is None and not known:
            raise InvalidInput(
                f"`edges` is left out, and conditionals[{k}] is {shown(conditionals[k])}; give the borders of cells, "
                "or the distribution of that coordinate."
            )
        if not known:
            borders.append(given[k])  # type: ignore[index]
            centres.append(_middles(borders[k]))
            continue
        each = [conditionals[k](*at) if k else conditionals[0] for at in itertools.product(*centres)]
        joint = Mixture(list(masses[masses > 0]), [one for one, mass in zip(each, masses, strict=True) if mass > 0])
        borders.append(_cells(joint, j) if given is None else given[k])
        below = np.array([[0.0, *np.ravel(one.cdf(borders[k])), 1.0] for one in (joint, *each)])
        centres.append(np.asarray(joint.ppf(np.clip((below[0, 1:] + below[0, :-1]) / 2, 1e-12, 1 - 1e-12)), float))
        masses = (masses[:, None] * np.diff(below[1:], axis=1)).ravel()
    return borders, centres


def _cells(one: Any, j: int) -> np.ndarray:
    """Borders of cells whose lengths go like rho^(-1/3): the best for an error rho h^2."""
    grid = np.linspace(float(one.ppf(1e-6)), float(one.isf(1e-6)), FINE)
    total = np.concatenate([[0.0], np.cumsum(one.pdf(grid) ** (1 / 3))[:-1]])
    return np.interp(np.arange(1, j) / j * total[-1], total, grid)


def _middles(edge: np.ndarray) -> np.ndarray:
    """Middles of cells; the outer ones are as long as those beside them."""
    if len(edge) == 0:
        return np.zeros(1)
    gaps = np.diff(edge) if len(edge) > 1 else np.ones(1)
    ends = np.concatenate([[edge[0] - gaps[0]], edge, [edge[-1] + gaps[-1]]])
    return (ends[1:] + ends[:-1]) / 2


def _reach(targets: Sequence[Any], cells: int, base: Any) -> tuple[float, float]:
    """The ends of private intervals: twice as long as the base and all conditional distributions together."""
    share = 1e-4 / cells**2
    ends = [(float(one.ppf(share)), float(one.isf(share))) for one in (*targets, base)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    low, high = min(low, float(base.ppf(1e-10))), max(high, float(base.isf(1e-10)))
    return low - (high - low) / 2, high + (high - low) / 2


def _mapped(
    targets: Sequence[tuple[Any, float]], cells: int, base: Any, d: int, axis: int, reach: Any = None
) -> Schedule:
    """One monotone map of a coordinate: a quantile map around every offset, its tails straight up to the `reach`."""
    sources, nodes = [], []
    for target, offset in targets:
        c, q, _ = line_nodes(target, base, cells, fine=FINE)
        if reach is not None:
            c, q = _prolonged(c, q, *reach)
        sources.append(c + offset)
        nodes.append(q + offset)
    first, last = (np.diff(nodes[k])[e] / np.diff(sources[k])[e] for k, e in ((0, 0), (-1, -1)))
    return monotone(np.concatenate(sources), np.concatenate(nodes), (float(first), float(last)), dim=d, axis=axis)


def _prolonged(c: np.ndarray, q: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last cell go on with their slopes, almost to where c or q leaves the interval."""
    left, right = (np.diff(q)[e] / np.diff(c)[e] for e in (0, -1))
    back = 0.98 * min(c[0] - low, (q[0] - low) / left)
    on = 0.98 * min(high - c[-1], (high - q[-1]) / right)
    return (
        np.concatenate([[c[0] - back], c, [c[-1] + on]]),
        np.concatenate([[q[0] - left * back], q, [q[-1] + right * on]]),
    )


def _staircase(edge: np.ndarray, lift: float, ramp: float, d: int, along: int, into: int) -> Schedule:
    """x[into] += lift * (number of edges below x[along]), two units for every edge."""
    kinks = np.concatenate([edge - ramp / 2, edge + ramp / 2])
    heights = np.concatenate([np.full(len(edge), lift / ramp), np.full(len(edge), -lift / ramp)])
    order = np.argsort(kinks, kind="stable")
    outer, inner = heights[order, None] * np.eye(d)[into], np.tile(np.eye(d)[along], (2 * len(edge), 1))
    return units(outer, inner, -kinks[order])
