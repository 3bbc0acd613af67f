"""Wasserstein distances of order 1 and 2 for the geodesic distance of a space, geodesics, and sliced distances."""

from typing import Any, Literal

import numpy as np

from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe.observable import observable
from attnflow.spaces import AbstractSpace, Euclidean, Sphere, Torus
from attnflow.special.formula import Integers, Optional, Other, Reals, formula
from attnflow.tokens import Measure, Tokens
from attnflow.transport.circle import Coupling, couple_on_circle, couple_on_line
from attnflow.transport.plans import plan, require_feasible

Order = Literal[1, 2]
BLOCK = 2**22
"""Numbers in a block of differences."""
SYSTEM = Other("tokens of one system, with positions of length up to 1; the error grows with longer ones")
ORDER = Integers(1, 2, scalar=True)
LIMIT = Optional(Integers(1, scalar=True))
ROUNDING = "np.where(np.equal(order, 1), 1e-14, 3e-8)"
"""Masses are rounded, to 1e-16 each: so much more or less may go a long way, and W_2 is the root of what it costs."""


@observable
@formula(
    mu=SYSTEM,
    nu=Other("tokens on the same space, or a density, with the error of `meanfield.quadrature_error`"),
    order=ORDER,
    limit=LIMIT,
    relative=1e-13,
    absolute=ROUNDING,
)
def distance(mu: Tokens | Measure, nu: Any, *, order: Order = 1, limit: int | None = None) -> float:
    """The Wasserstein distance W_p, p = `order`, 1 or 2: (min over plans of the sum of mass |x - y|^p)^(1/p); exact.

    |x - y| is the geodesic distance of the space: angles on the sphere. On the circle and the line plans
    are found by sorting, in O(n log n) for masses and numbers of tokens of any kind; elsewhere by linear programming
    (POT if it is installed, else SciPy), and more than `limit` tokens are refused. `nu` is a measure, or a `Density` of
    `attnflow.meanfield` on the circle.

    ```python
    af.transport.distance(tokens, af.uniform(tokens.space, n=tokens.n, seed=1), order=2)
    ```
    """
    if hasattr(nu, "distance_from"):  # a density knows its quantiles
        return float(nu.distance_from(_single("mu", mu), order))
    mu, nu = _pair(mu, nu)
    coupled = _by_sorting(mu, nu, order)
    if coupled is not None:
        return float(coupled.cost(order) ** (1 / order))
    require_feasible(mu.n, nu.n, limit)
    cost = _costs(mu.space, mu.positions, nu.positions) ** order
    return float(np.sum(plan(cost, np.asarray(mu.masses), np.asarray(nu.masses)) * cost) ** (1 / order))


@formula(mu=SYSTEM, nu=SYSTEM, s=Reals(0.0, 1.0, scalar=True), limit=LIMIT, relative=1e-13, absolute=3e-8)
@checked_arguments
def geodesic(mu: Tokens | Measure, nu: Tokens | Measure, s: float, *, limit: int | None = None) -> Tokens:
    """The measure at the share s of the way from mu (s = 0) to nu (s = 1) on a geodesic of W_2.

    Every piece of mass of an optimal plan moves at constant speed along the shortest path, so that W_2 from mu is
    s W_2(mu, nu). On the circle, the sphere and R^d. Where the optimal plan is not unique, one is chosen.
    """
    mu, nu = _pair(mu, nu)
    coupled = _by_sorting(mu, nu, 2)
    if coupled is not None:
        place = coupled.start + s * (coupled.end - coupled.start)
        if isinstance(mu.space, Euclidean):
            return Tokens(place[:, None], coupled.mass, space=mu.space)
        return Tokens(np.stack([np.cos(place), np.sin(place)], axis=1), coupled.mass, space=mu.space)
    if not isinstance(mu.space, Sphere | Euclidean):
        raise InvalidInput(f"`mu` lives on {mu.space}; geodesics are known on spheres and R^d.")
    require_feasible(mu.n, nu.n, limit)
    x, y = np.asarray(mu.positions), np.asarray(nu.positions)
    mass = plan(_costs(mu.space, x, y) ** 2, np.asarray(mu.masses), np.asarray(nu.masses))
    i, j = np.nonzero(mass)
    start, end = x[i], y[j]
    if isinstance(mu.space, Euclidean):
        return Tokens(start + s * (end - start), mass[i, j], space=mu.space)
    return Tokens(_on_great_circles(start, end, s), mass[i, j], space=mu.space)


@formula(
    mu=SYSTEM,
    nu=SYSTEM,
    order=ORDER,
    circles=Integers(1, scalar=True),
    seed=Integers(0, scalar=True),
    relative=1e-12,
    absolute="np.where(np.equal(order, 1), 1e-12, 3e-8)",
)
@checked_arguments
def sliced_distance(
    mu: Tokens | Measure, nu: Tokens | Measure, *, order: Order = 2, circles: int = 200, seed: int = 0
) -> float:
    """The root of the mean of W_p^p over random great circles, on which tokens are projected: O(n log n) each.

    A distance of measures on the sphere S^(d-1), d > 2, that needs no plan in d dimensions (Bonet et al. 2023). It is
    random: of `circles` great circles, drawn with `seed`, uniformly. On the circle it is `distance`.
    """
    mu, nu = _pair(mu, nu)
    if not isinstance(mu.space, Sphere):
        raise InvalidInput(f"`mu` lives on {mu.space}; sliced distances are defined on a sphere.")
    if mu.dim == 2:
        return float(distance(mu, nu, order=order))
    rng, total = np.random.default_rng(seed), 0.0
    for _ in range(circles):
        basis = np.linalg.qr(rng.standard_normal((mu.dim, 2)))[0]
        angles = [np.arctan2(*(np.asarray(one.positions) @ basis).T[::-1]) for one in (mu, nu)]
        total += couple_on_circle(angles[0], np.asarray(mu.masses), angles[1], np.asarray(nu.masses), order).cost(order)
    return float((total / circles) ** (1 / order))


def _single(name: str, mu: Tokens | Measure) -> Tokens | Measure:
    instance(name, mu, Tokens | Measure, "tokens, one system")
    mu.single(name)
    return mu.member()  # without absent rows


def _pair(mu: Tokens | Measure, nu: Any) -> tuple[Tokens | Measure, Tokens | Measure]:
    first, second = _single("mu", mu), _single("nu", nu)
    if first.space != second.space:
        raise InvalidInput(f"`mu` lives on {first.space} and `nu` on {second.space}; they must share a space.")
    return first, second


def _by_sorting(mu: Tokens | Measure, nu: Tokens | Measure, order: int) -> Coupling | None:
    """The optimal plan on the circle or the line; None on other spaces."""
    a, b = np.asarray(mu.masses), np.asarray(nu.masses)
    x, y = np.asarray(mu.positions), np.asarray(nu.positions)
    if isinstance(mu.space, Sphere | Torus) and mu.dim == 2:
        return couple_on_circle(np.arctan2(x[:, 1], x[:, 0]), a, np.arctan2(y[:, 1], y[:, 0]), b, order)
    if isinstance(mu.space, Euclidean) and mu.dim == 1:
        return couple_on_line(x[:, 0], a, y[:, 0], b)
    return None


def _costs(space: AbstractSpace, x: Any, y: Any) -> np.ndarray:
    """The (n, m) distances in blocks of rows: the differences of all pairs are never in memory at once."""
    x, y = np.asarray(x), np.asarray(y)
    rows = max(1, BLOCK // y.size)
    blocks = (x[k : k + rows, None] for k in range(0, len(x), rows))
    return np.concatenate([np.asarray(space.distance(some, y[None])) for some in blocks])


def _on_great_circles(x: np.ndarray, y: np.ndarray, share: float) -> np.ndarray:
    """The points at a share of the way from x to y; for antipodal ones on some great circle."""
    angle = 2 * np.arctan2(np.linalg.norm(x - y, axis=1), np.linalg.norm(x + y, axis=1))[:, None]
    across = y - np.sum(x * y, axis=1, keepdims=True) * x
    size = np.linalg.norm(across, axis=1, keepdims=True)
    other = np.eye(x.shape[1])[np.argmin(np.abs(x), axis=1)]
    other = other - np.sum(other * x, axis=1, keepdims=True) * x
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    across = np.where(size > 1e-12, across / np.maximum(size, 1e-300), other)
    return np.asarray(np.cos(share * angle) * x + np.sin(share * angle) * across)
