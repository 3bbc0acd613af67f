"""Densities on the line: the monotone rearrangement of one into another as a schedule of ReLU units."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import flag, number, shown, whole
from attnflow.control.schedule import Schedule, layers
from attnflow.errors import InvalidInput

MESHES = ("optimal", "uniform", "quantile")
METHODS = ("pdf", "logpdf", "cdf", "sf", "ppf", "isf")
POINTS = 20
"""Gauss points in a cell. The density that a schedule makes jumps at the nodes, so integrals go cell by cell."""
FINE = 40_001
"""Points of the grid on which the slope of the map is differentiated."""
DEPTH = 600.0
"""Tails are integrated down to e^(-DEPTH) of their mass."""


class Mixture:
    """A mixture of distributions on the line, with the methods of SciPy's frozen distributions that builders need."""

    def __init__(self, weights: Sequence[float], parts: Sequence[Any]):
        self.weights = np.asarray(weights, float)
        self.parts = tuple(parts)
        if self.weights.shape != (len(self.parts),) or not (self.weights > 0).all():
            raise InvalidInput(
                f"`weights` is {shown(weights)} for {len(self.parts)} parts; give a positive one for each."
            )
        self.weights = self.weights / self.weights.sum()

    def pdf(self, x: Any) -> Any:
        """The density."""
        return self._mean("pdf", x)

    def logpdf(self, x: Any) -> Any:
        """Its logarithm."""
        terms = [np.log(w) + part.logpdf(x) for w, part in zip(self.weights, self.parts, strict=True)]
        return np.logaddexp.reduce(terms)

    def cdf(self, x: Any) -> Any:
        """The mass below x."""
        return self._mean("cdf", x)

    def sf(self, x: Any) -> Any:
        """The mass above x."""
        return self._mean("sf", x)

    def ppf(self, p: Any) -> Any:
        """Where the mass below is p."""
        return self._find("ppf", self.cdf, np.asarray(p, float), 1.0)

    def isf(self, p: Any) -> Any:
        """Where the mass above is p."""
        return self._find("isf", self.sf, np.asarray(p, float), -1.0)

    def rvs(self, size: int, random_state: Any) -> np.ndarray:
        """Independent samples."""
        which = random_state.choice(len(self.parts), size=size, p=self.weights)
        found = np.empty(size)
        for k, part in enumerate(self.parts):
            found[which == k] = part.rvs(size=int((which == k).sum()), random_state=random_state)
        return found

    def _mean(self, method: str, x: Any) -> Any:
        return sum(w * getattr(part, method)(x) for w, part in zip(self.weights, self.parts, strict=True))

    def _find(self, method: str, mass: Any, p: np.ndarray, sign: float) -> Any:
        """By bisection between the quantiles of the parts, down to neighbouring numbers."""
        ends = np.stack([np.asarray(getattr(part, method)(p), float) for part in self.parts])
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(120):
            middle = (low + high) / 2
            below = sign * (mass(middle) - p) < 0
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2


@dataclasses.dataclass(frozen=True)
class LineMatch:
    """A schedule that carries the base into the target, and what it costs."""

    schedule: Schedule
    cells: int
    mesh: str
    kl: float
    """KL(target || what the schedule makes of the base); inf where no schedule of ReLU units can make it finite."""
    reverse_kl: float
    """The same the other way round; inf where the target has no mass somewhere, since the base is pushed everywhere."""
    w1: float
    """W_1 of the target and what the schedule makes of the base, between the outer nodes ..."""
    w2: float
    """... and W_2."""
    predicted: float
    """The leading term of both as cells -> infinity, without tails."""
    mass_error: float
    """|1 - the total mass of the new density|, by quadrature."""
    sources: np.ndarray
    """Nodes in base space ..."""
    nodes: np.ndarray
    """... and where they go."""
    slopes: tuple[float, float]
    """Of the map in the left and the right tail."""


def match_density_1d(
    target: Any,
    cells: int,
    *,
    base: Any = None,
    mesh: str = "optimal",
    span: tuple[float, float] | None = None,
    allow_infinite: bool = False,
) -> LineMatch:
    """A schedule of cells + 3 ReLU units in R whose flow carries the density `base` to one close to `target`.

    The monotone rearrangement T = F_target^(-1) F_base is interpolated linearly at `cells` + 1 nodes of the `span`
    (by default all but 10^-4/cells^2 of the mass of the target on each side). A residual layer for every kink makes
    exactly that map, and a layer is the flow of one unit. Cells get their mass exactly. With g = (log S')', S = T^(-1),

        KL ~ (1/24) int rho h^2 g^2, best with h ~ (rho g^2)^(-1/3), then KL ~ (int (rho g^2)^(1/3))^3/(24 cells^2)

    in both directions (ours; arXiv:2412.19366 proves that ReLU flows approximate densities in relative entropy). Tails
    go on with constant slopes, which are chosen to minimise the divergence.

    Maps of ReLU flows are bi-Lipschitz. So KL(target || .) is infinite for every schedule if -log of the base is not
    integrable under the target: for a Gaussian base, if the target has no second moment. Such targets are refused,
    unless `allow_infinite`.

    `target` and `base` (default: the standard normal density) are frozen distributions of SciPy, `Mixture`, or other
    objects with pdf, logpdf, cdf, sf, ppf and isf. `mesh` is "optimal", "uniform" or "quantile" (equal masses).
    """
    from scipy.stats import norm

    cells, base = whole("cells", cells, 1, 10**6), norm() if base is None else base
    for name, one in (("target", target), ("base", base)):
        missing = [method for method in METHODS if not callable(getattr(one, method, None))]
        if missing:
            raise InvalidInput(
                f"`{name}` is {shown(one)}, which has no {missing[0]}; give a frozen distribution such as norm()."
            )
    if mesh not in MESHES:
        raise InvalidInput(f"`mesh` is {shown(mesh)}; give one of {', '.join(MESHES)}.")
    sources, nodes, (grid, density, bend) = line_nodes(target, base, cells, mesh, span)
    finite = [_tail_is_finite(base, target, side) for side in (-1, 1)]
    if not (all(finite) or flag("allow_infinite", allow_infinite)):
        raise InvalidInput(
            "KL(target || anything that a ReLU flow makes of the base) is infinite: -log of the base density is not "
            "integrable under the target (for a normal base: no finite second moment); give a target with lighter "
            "tails, or allow_infinite=True."
        )
    left, right = (
        _tail_slope(base, target, sources, nodes, side) if finite[max(side, 0)] else _edge_slope(sources, nodes, side)
        for side in (-1, 1)
    )
    slopes = (left, right)
    schedule = monotone(sources, nodes, slopes)
    kl, reverse, mass = _divergences(base, target, sources, nodes, slopes, finite)
    w1, w2 = _distances(base, target, sources, nodes)
    return LineMatch(
        schedule,
        cells,
        mesh,
        kl,
        reverse,
        w1,
        w2,
        _predicted(grid, density, bend, cells, mesh),
        mass,
        sources,
        nodes,
        slopes,
    )


def line_nodes(
    target: Any, base: Any, cells: int, mesh: str = "optimal", span: Any = None, fine: int = FINE
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(sources, nodes, (grid, density of the target, (log S')')) of the interpolated rearrangement."""
    grid = np.linspace(*_ends(target, cells, span), fine)
    density, bend = target.pdf(grid), _bend(base, target, grid)
    nodes = _nodes(target, grid, density, bend, cells, mesh)
    sources = rearranged(target, base, nodes)
    _increasing(sources, nodes)
    return sources, nodes, (grid, density, bend)


def monotone(sources: Any, nodes: Any, slopes: tuple[float, float], *, dim: int = 1, axis: int = 0) -> Schedule:
    """The increasing piecewise linear map of coordinate `axis` with sources[k] -> nodes[k] and two outer slopes.

    For K cells it has K + 3 units: a translation, a ray to the left, and a unit for every node.
    """
    return along(sources, nodes, slopes, np.eye(dim)[whole("axis", axis, 0, dim - 1)])


def along(sources: Any, nodes: Any, slopes: tuple[float, float], unit: np.ndarray) -> Schedule:
    """`monotone` as a map of <unit, x>, |unit| = 1, that leaves what is orthogonal to `unit`."""
    c, q = np.asarray(sources, float), np.asarray(nodes, float)
    _increasing(c, q)
    left, right = (number("slopes", slope, low=1e-300) for slope in slopes)
    steps = np.concatenate([np.diff(q) / np.diff(c), [right]])
    ratios = np.concatenate([steps[:1], steps[1:] / steps[:-1]]) - 1
    u = np.concatenate([[q[0] - c[0], -(left - 1)], ratios])
    a = np.concatenate([[0.0, -1.0], np.ones(len(q))])
    b = np.concatenate([[1.0, q[0]], -q])
    return layers(u[:, None] * unit, a[:, None] * unit, b)


def rearranged(source: Any, goal: Any, x: np.ndarray) -> np.ndarray:
    """F_goal^(-1)(F_source(x)), through the upper tails above the median."""
    below, above = source.cdf(x), source.sf(x)
    return np.where(below <= above, goal.ppf(np.minimum(below, 0.5)), goal.isf(np.minimum(above, 0.5)))


def _ends(target: Any, cells: int, span: Any) -> tuple[float, float]:
    if span is None:
        share = 1e-4 / cells**2
        low, high = float(target.ppf(share)), float(target.isf(share))
    else:
        try:
            low, high = (float(end) for end in span)
        except (TypeError, ValueError):
            raise InvalidInput(f"`span` is {shown(span)}; give two numbers.") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise InvalidInput(f"`span` is ({low:g}, {high:g}); give two finite numbers, the smaller one first.")
    return low, high


def _increasing(sources: np.ndarray, nodes: np.ndarray) -> None:
    if sources.shape != nodes.shape or sources.ndim != 1 or len(nodes) < 2:
        raise InvalidInput(f"{sources.shape} sources and {nodes.shape} nodes; give as many of both, at least two.")
    for name, values in (("nodes", nodes), ("sources", sources)):
        bad = ~(np.diff(values) > 0)
        if not np.isfinite(values).all() or bad.any():
            where = float(nodes[np.argmax(bad)])
            raise InvalidInput(
                f"the {name} do not increase near {where:.4g}: a cdf is not strictly increasing there, so there is no "
                "monotone map with a density; give distributions with positive density in the span."
            )


def _bend(base: Any, target: Any, grid: np.ndarray) -> np.ndarray:
    """(log S')' on the grid, S' = rho_target(x)/rho_base(S(x))."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = target.logpdf(grid) - base.logpdf(rearranged(target, base, grid))
    if not np.isfinite(slope).all():
        raise InvalidInput(
            f"the target has no density at {grid[~np.isfinite(slope)][0]:.4g}, inside of the span; give a smaller span."
        )
    from scipy.interpolate import CubicSpline

    return np.asarray(CubicSpline(grid, slope).derivative()(grid))


def _nodes(target: Any, grid: np.ndarray, density: np.ndarray, bend: np.ndarray, cells: int, mesh: str) -> np.ndarray:
    if mesh == "uniform":
        return np.linspace(grid[0], grid[-1], cells + 1)
    if mesh == "quantile":
        # equal masses, by the lower and the upper tail
        below, above = float(target.cdf(grid[0])), float(target.sf(grid[-1]))
        share = np.linspace(0, 1, cells + 1)
        low, high = below + share * (1 - below - above), above + (1 - share) * (1 - below - above)
        found = np.where(low <= high, target.ppf(np.minimum(low, 0.5)), target.isf(np.minimum(high, 0.5)))
        return np.concatenate([grid[:1], found[1:-1], grid[-1:]])
    wanted = (density * bend**2) ** (1 / 3)
    wanted = wanted + 1e-3 * wanted.mean()  # no cell is endless where the map is straight
    total = np.concatenate([[0.0], np.cumsum((wanted[1:] + wanted[:-1]) / 2)])
    found = np.interp(np.linspace(0, total[-1], cells + 1), total, grid)
    return np.concatenate([grid[:1], found[1:-1], grid[-1:]])


def _predicted(grid: np.ndarray, density: np.ndarray, bend: np.ndarray, cells: int, mesh: str) -> float:
    """The leading term of the divergence."""
    if mesh == "optimal":
        return float(np.trapezoid((density * bend**2) ** (1 / 3), grid) ** 3 / 24 / cells**2)
    if mesh == "uniform":
        return float((grid[-1] - grid[0]) ** 2 * np.trapezoid(density * bend**2, grid) / 24 / cells**2)
    mass = np.trapezoid(density, grid)
    return float(mass**2 * np.trapezoid(bend**2 / density, grid) / 24 / cells**2)


def _depths() -> tuple[np.ndarray, np.ndarray]:
    """Nodes s and weights with sum w f(s) = int f(s) e^(-s) ds from 0 to DEPTH."""
    edges = np.concatenate([np.linspace(0, 8, 9), np.geomspace(8, DEPTH, 41)[1:]])
    x, w = np.polynomial.legendre.leggauss(POINTS)
    half = np.diff(edges)[:, None] / 2
    s = ((edges[1:] + edges[:-1])[:, None] / 2 + half * x).ravel()
    return s, (half * w).ravel() * np.exp(-s)


def _tail_points(distribution: Any, mass: float, side: int, depth: np.ndarray) -> np.ndarray:
    """Where the mass beyond is mass e^(-depth)."""
    p = mass * np.exp(-depth)
    return np.asarray(distribution.ppf(p) if side < 0 else distribution.isf(p), float)


class _Tail:
    """The tail of one distribution beyond a node, with points and weights for means over it."""

    def __init__(self, distribution: Any, node: float, side: int):
        self.mass = float(distribution.cdf(node) if side < 0 else distribution.sf(node))
        depth, weights = _depths()
        x = _tail_points(distribution, self.mass, side, depth) if self.mass > 0 else np.full(depth.shape, np.inf)
        with np.errstate(all="ignore"):
            log = distribution.logpdf(x)
        # the end of a bounded support and masses below the range of numbers: shares of e^(-36) and less
        kept = np.isfinite(x) & np.isfinite(log)
        self.x, self.log, self.weights = x[kept], log[kept], weights[kept]

    def mean(self, other: Any) -> float:
        """The integral of the density times log(density/other), for log(other) at the points."""
        return float(self.mass * np.sum(self.weights * (self.log - other)))


def _tail_is_finite(base: Any, target: Any, side: int) -> bool:
    """Whether -log of the base is integrable in the tail of the target: its share of deeper shells decays."""
    depth = np.array([0.35, 0.7]) * DEPTH
    x = _tail_points(target, 0.25, side, depth)
    with np.errstate(all="ignore"):
        cost = -base.logpdf(x)
    if not np.isfinite(cost).all():
        return False
    cost = np.maximum(cost, 1.0)
    return bool((np.log(cost[1]) - np.log(cost[0])) / np.diff(depth)[0] < 1 - 2e-3)


def _edge_slope(sources: np.ndarray, nodes: np.ndarray, side: int) -> float:
    cut = slice(0, 2) if side < 0 else slice(-2, None)
    return float(np.diff(nodes[cut])[0] / np.diff(sources[cut])[0])


def _tail_cost(tail: _Tail, base: Any, source: float, node: float, slope: float) -> float:
    """The part of KL(target || .) in a tail of the target, where the map has this slope."""
    with np.errstate(over="ignore"):
        made = base.logpdf(source + (tail.x - node) / slope)
    return tail.mean(made - np.log(slope))


def _tail_slope(base: Any, target: Any, sources: np.ndarray, nodes: np.ndarray, side: int) -> float:
    end, edge = (0 if side < 0 else -1), np.log(_edge_slope(sources, nodes, side))
    tail = _Tail(target, nodes[end], side)
    if tail.mass == 0:
        return float(np.exp(edge))

    def cost(log_slope: float) -> float:
        found = _tail_cost(tail, base, sources[end], nodes[end], float(np.exp(log_slope)))
        return min(found, 1e100) if np.isfinite(found) else 1e100  # the search multiplies costs

    from scipy.optimize import minimize_scalar

    found = minimize_scalar(cost, bounds=(edge - 12, edge + 12), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


def _distances(base: Any, target: Any, sources: np.ndarray, nodes: np.ndarray) -> tuple[float, float]:
    """W_1 and W_2: both maps are monotone, so they are means of |T - T_h| and its square under the base."""
    x, w = np.polynomial.legendre.leggauss(4)
    at = (sources[1:] + sources[:-1])[:, None] / 2 + np.diff(sources)[:, None] / 2 * x
    weights = np.diff(sources)[:, None] / 2 * w * base.pdf(at)
    off = np.abs(rearranged(base, target, at) - np.interp(at, sources, nodes))
    return float(np.sum(weights * off)), float(np.sqrt(np.sum(weights * off**2)))


def _divergences(
    base: Any, target: Any, sources: np.ndarray, nodes: np.ndarray, slopes: tuple[float, float], finite: list[bool]
) -> tuple[float, float, float]:
    """KL both ways and the error of the mass; r = log(target/made) in cells, whose masses are equal."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    at = (nodes[1:] + nodes[:-1])[:, None] / 2 + np.diff(nodes)[:, None] / 2 * x
    weights = np.diff(nodes)[:, None] / 2 * w
    steps = np.diff(nodes) / np.diff(sources)
    made = base.logpdf(sources[:-1, None] + (at - nodes[:-1, None]) / steps[:, None]) - np.log(steps)[:, None]
    wanted = target.logpdf(at)
    r = wanted - made
    kl = float(np.sum(weights * np.exp(wanted) * (np.expm1(-r) + r)))
    reverse = float(np.sum(weights * np.exp(made) * (np.expm1(r) - r)))
    inside = float(np.sum(weights * np.exp(made)))
    for side, slope in zip((-1, 1), slopes, strict=True):
        end = 0 if side < 0 else -1
        tail = _Tail(target, nodes[end], side)
        kl += _tail_cost(tail, base, sources[end], nodes[end], slope) if finite[max(side, 0)] else np.inf
        start = _Tail(base, sources[end], side)
        inside += start.mass
        with np.errstate(all="ignore"):
            goal = target.logpdf(nodes[end] + slope * (start.x - sources[end]))
        reverse += start.mean(goal + np.log(slope))
    return kl, reverse, abs(inside - 1)
