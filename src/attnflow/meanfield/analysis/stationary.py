"""Stationary states with noise kappa > 0: rho proportional to exp(Phi[rho]/kappa), by Newton's method and continuation.

Phi = K * mu/beta for unnormalised attention and log(K * mu)/beta for softmax, whose states are powers
(K * mu)^(1/(beta kappa)). The flow of unnormalised attention ascends the free energy F = E - kappa S, S the integral of
rho log rho, and its stationary states are the critical points of F; for softmax F is no Lyapunov function.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import xlogy

from attnflow.axes import finite_array
from attnflow.checks import ABOVE_ZERO, instance, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Attention, Total
from attnflow.meanfield.analysis.energies import pair_energy
from attnflow.meanfield.analysis.linearised import free_entries, rotations, stability
from attnflow.meanfield.harmonics.basis import AbstractBasis
from attnflow.meanfield.harmonics.density import Density
from attnflow.meanfield.harmonics.model import Model, as_model, model_on
from attnflow.precision import in_float64

TOLERANCE = 1e-10
TAIL = 1e-8
MOST_NEWTON = 40
PARAMETERS = ("kappa", "beta")


@dataclasses.dataclass(frozen=True)
class Stationary:
    """A solution of rho = exp(Phi[rho]/kappa)/mass."""

    density: Density
    kappa: float
    residual: float
    """The largest coefficient of the difference of the two sides."""
    iterations: int


class _Point(NamedTuple):
    v: np.ndarray
    p: float
    residual: float
    iterations: int


def stationary(
    field: AbstractField, kappa: float, start: Density, *, relax: int = 0, tol: float = TOLERANCE
) -> Stationary:
    """The stationary state of `field` with noise `kappa` that Newton's method reaches from `start`, in its basis.

    Damped Newton steps in coefficients, which end in stable and unstable states alike, the uniform measure among them:
    ask `stability`. With `relax` that many steps of the map rho -> exp(Phi[rho]/kappa)/mass come first; for
    unnormalised attention they ascend F, so that some tens lead to a stable state. On the circle and on S^2 rotations
    are held by extra conditions; the axis of a `ZonalBasis` removes them, with d = 2 for the even densities of the
    circle. Refused: kappa <= 0, a start too far away, and a basis whose last degrees hold more than 1e-8.
    """
    problem = Problem(field, "kappa", _checked(start).basis, kappa)
    number("tol", tol, low=1e-14, high=1.0)
    v = problem.free(start)
    for _ in range(whole("relax", relax, 0)):
        v = v - problem.system(v, problem.first)[0]
    found = problem.solve(v, problem.first, tol=tol)
    if found is None:
        raise InvalidInput(
            f"`start` is too far from a stationary state at kappa = {problem.first:g}, where Newton's method fails; "
            "start nearer, with `relax`, or follow a `branch` to this kappa."
        )
    density = problem.density(found.v)
    _check_resolved(density)
    return Stationary(density, problem.first, found.residual, found.iterations)


def branch(
    field: AbstractField,
    kappa: float,
    start: Density,
    *,
    along: str = "kappa",
    within: Sequence[float],
    towards: int = 1,
    step: float = 0.1,
    most: int = 200,
) -> Any:
    """The branch of stationary states through the one near `start`, followed in kappa or in beta past its folds.

    Pseudo-arclength continuation: steps of length at most `step` in (coefficients v of degree >= 1 over 1 + |v|,
    parameter over the length of `within`), first in the direction in which the parameter grows (`towards=1`) or falls
    (`towards=-1`), until it leaves `within`, the branch passes through the uniform measure, outgrows the basis, or has
    `most` points; the attribute `ended` says which.

    Returns: an xarray Dataset along `point` with `kappa`, `beta`, `order` (the length of the mean of x), `free_energy`,
    `energy`, `entropy`, `unstable` and `growth` (of `stability`: all perturbations but rotations), `fold` (whether the
    parameter turned there), `residual`, `tail`, and the `coefficients`.
    """
    if along not in PARAMETERS:
        raise InvalidInput(f"`along` is {shown(along)}; use 'kappa' or 'beta'.")
    ends = finite_array("within", within)
    if np.shape(ends) != (2,):
        raise InvalidInput(f"`within` is {shown(within)}; give two increasing numbers.")
    low, high = (float(x) for x in ends)
    number("step", step, low=0.0, high=1.0)
    if not (0 <= low < high < np.inf and (low > 0 or along == "beta")):
        raise InvalidInput(f"`within` is {tuple(within)}; give two increasing finite numbers, above 0 for kappa.")
    if towards not in (-1, 1) or not 0 < step <= 1:
        raise InvalidInput(f"`towards` is {towards} and `step` {step}; give 1 or -1, and a step in (0, 1].")
    problem = Problem(field, along, _checked(start).basis, kappa)
    if not low <= problem.first <= high:
        raise InvalidInput(f"`within` is {(low, high)}, but {along} starts at {problem.first:g}; include it.")
    now = problem.solve(problem.free(start), problem.first)
    if now is None:
        raise InvalidInput("`start` is too far from a stationary state; pass the density of `stationary(...)`.")
    _check_resolved(problem.density(now.v))
    points, ended = _followed(problem, now, (low, high), towards, step, whole("most", most, 1))
    return _table(problem, points, ended)


class Problem:
    """F(v, p) = v - the coefficients of exp(Phi/kappa)/mass, p the parameter, v the coefficients of degree >= 1."""

    def __init__(self, field: AbstractField, along: str, basis: AbstractBasis, kappa: float):
        number("kappa", kappa, low=ABOVE_ZERO)
        kappa = float(kappa)
        model = model_on(field, basis, kappa)
        self.field, self.along, self.basis = field, along, basis
        self.is_invariant = not model.potentials
        self.fixed = {"kappa": kappa, "beta": float(model.beta)}
        self.first = self.fixed[along]

    def parameters(self, p: float) -> dict[str, float]:
        return self.fixed | {self.along: p}

    def free(self, density: Density) -> np.ndarray:
        return np.asarray(density.coefficients, dtype=np.float64).reshape(-1)[free_entries(self.basis)]

    def coefficients(self, v: np.ndarray, mass: float = 1.0) -> np.ndarray:
        found = np.zeros(self.basis.mask.size)
        found[0], found[free_entries(self.basis)] = mass, v
        return found.reshape(self.basis.mask.shape)

    def density(self, v: np.ndarray) -> Density:
        return Density(self.basis, self.coefficients(v), tol=np.inf)  # its tail is what gets checked

    def system(self, v: np.ndarray, p: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F and its derivatives by v and by p."""
        values = self.parameters(p)
        arrays = _system(self.field, self.along, self.basis, v, *(np.asarray(values[name]) for name in PARAMETERS))
        return np.asarray(arrays[0]), np.asarray(arrays[1]), np.asarray(arrays[2])

    def rotated(self, v: np.ndarray) -> np.ndarray:
        """Orthonormal directions in which rotations move the state."""
        if not self.is_invariant or np.linalg.norm(v) < 1e-8:
            return np.zeros((0, len(v)))
        sizes, axes = np.linalg.svd(rotations(self.basis, self.coefficients(v)), full_matrices=False)[1:]
        return np.asarray(axes[sizes > 1e-6 * np.max(sizes, initial=0.0)])

    def bordered(self, jacobian: np.ndarray, by_p: np.ndarray, turns: np.ndarray, row: np.ndarray, by: float) -> Any:
        """The matrix of Newton's equations, with a multiplier for every rotation that is held."""
        corner = np.zeros((len(turns), len(turns) + 1))
        last = np.concatenate([row, np.zeros(len(turns)), [by]])
        return np.vstack([np.hstack([jacobian, turns.T, by_p[:, None]]), np.hstack([turns, corner]), last])

    def solve(
        self,
        v: np.ndarray,
        p: float,
        row: np.ndarray | None = None,
        by: float = 1.0,
        target: float | None = None,
        *,
        tol: float = TOLERANCE,
    ) -> _Point | None:
        """The solution of F = 0 with row . v + by p = target (p fixed, unless said otherwise) near (v, p)."""
        line = np.zeros(len(v)) if row is None else row
        goal = by * p if target is None else target
        turns, size = self.rotated(v), len(v)
        value, jacobian, by_p = self.system(v, p)
        for iteration in range(MOST_NEWTON):
            rest = np.concatenate([value, np.zeros(len(turns)), [line @ v + by * p - goal]])
            try:
                move = -np.linalg.solve(self.bordered(jacobian, by_p, turns, line, by), rest)
            except np.linalg.LinAlgError:
                return None
            settled = np.max(np.abs(move)) <= 1e-13 * (1 + np.max(np.abs(v)))
            for share in 0.5 ** np.arange(14):
                there, q = v + share * move[:size], float(p + share * move[-1])
                if q > 0 or (self.along == "beta" and q == 0):
                    then = self.system(there, q)
                    left = np.hypot(np.linalg.norm(then[0]), line @ there + by * q - goal)
                    if left < np.linalg.norm(rest) or (settled and left < tol):
                        break
            else:
                if np.max(np.abs(rest)) <= tol / 10:
                    return _Point(v, p, float(np.max(np.abs(value))), iteration)
                return None
            v, p, (value, jacobian, by_p) = there, q, then
            if not np.isfinite(value).all():
                return None
            if settled and np.max(np.abs(value)) <= tol:
                return _Point(v, p, float(np.max(np.abs(value))), iteration + 1)
        return None


def _followed(
    problem: Problem, now: _Point, within: tuple[float, float], towards: int, step: float, most: int
) -> tuple[list[_Point], str]:
    (low, high), size = within, len(now.v)
    scale, points, length = high - low, [now], step / 4
    heading, slope = np.zeros(size), float(towards) * scale  # the unit tangent, by v and by p
    while len(points) < most:
        reach = 1 + float(np.linalg.norm(now.v))
        _, jacobian, by_p = problem.system(now.v, now.p)
        matrix = problem.bordered(jacobian, by_p, problem.rotated(now.v), heading / reach**2, slope / scale**2)
        try:
            tangent = np.linalg.solve(matrix, np.eye(len(matrix))[-1])
        except np.linalg.LinAlgError:
            return points, "two branches meet"
        tangent /= np.hypot(np.linalg.norm(tangent[:size]) / reach, tangent[-1] / scale)
        heading, slope = tangent[:size], float(tangent[-1])
        row, by = heading / reach**2, slope / scale**2
        while True:
            v, p = now.v + length * heading, now.p + length * slope
            edge = min(max(p, low), high)
            if edge != p:  # the last step is to the edge, unless there is a fold before it
                share = (edge - now.p) / (p - now.p)
                last = problem.solve(now.v + share * (v - now.v), edge)
                if last is not None and np.linalg.norm(last.v - now.v) <= 2 * length * reach:
                    return [*points, last], f"`within` was left at {edge:g}"
            ahead = problem.solve(v, p, row, by, float(row @ v + by * p)) if p > 0 else None
            if ahead is not None and np.linalg.norm(ahead.v - now.v) <= 2 * length * reach:
                through = ahead.v @ now.v < -1e-16
                if low <= ahead.p <= high and (not through or length <= step / 16):
                    break
            length /= 2
            if length < 1e-6 * step:
                return points, "Newton's method failed"
        if through:
            return points, "the branch reached the uniform measure"
        if float(problem.density(ahead.v).tail) > TAIL:
            return points, f"the state outgrew degree {problem.basis.degree}; refine the basis"
        now = ahead
        points.append(now)
        length = min(step, length * (1.4 if ahead.iterations <= 5 else 0.7))
    return points, f"`most` = {most} points"


def _table(problem: Problem, points: list[_Point], ended: str) -> Any:
    import xarray as xr

    rows: dict[str, list[float]] = {}
    coefficients = []
    for point in points:
        values = problem.parameters(point.p)
        field = _at(problem.field, values["beta"])
        density = problem.density(point.v)
        energies = _energies(as_model(field, values["kappa"]), density)
        try:
            kept = stability(field, density, values["kappa"])
        except InvalidInput as refusal:
            if not rows:
                raise
            ended = str(refusal)
            break
        found = values | dict(zip(("free_energy", "energy", "entropy"), energies, strict=True))
        found |= {"order": float(np.linalg.norm(density.moments.mean)), "unstable": kept.unstable}
        found |= {"growth": kept.growth, "residual": point.residual, "tail": float(density.tail)}
        for name, value in found.items():
            rows.setdefault(name, []).append(value)
        coefficients.append(density.coefficients)
    turn = np.sign(np.diff(rows[problem.along]))
    fold = np.zeros(len(coefficients), dtype=bool)
    fold[1:-1] = turn[1:] * turn[:-1] < 0
    dims = ("point", *(f"coefficient_{i}" for i in range(len(problem.basis.mask.shape))))
    table = {name: (("point",), np.asarray(column)) for name, column in rows.items()}
    return xr.Dataset(
        table | {"fold": (("point",), fold), "coefficients": (dims, np.stack(coefficients))},
        attrs={"along": problem.along, "ended": ended, "dim": problem.basis.dim, "degree": problem.basis.degree},
    ).set_coords(list(PARAMETERS))


def _checked(start: Density) -> Density:
    return instance("start", start, Density, "a Density, as von_mises_fisher(basis, 2.0) is one")


def _check_resolved(density: Density) -> None:
    tail, degree = float(density.tail), density.basis.degree
    if tail > TAIL:
        raise InvalidInput(
            f"`start` has degree {degree}, too few for exp(Phi/kappa) (last degrees {tail:.1g} of the largest); use "
            f"`basis.refined({2 * degree})` or more noise."
        )


def _at(field: AbstractField, beta: Any) -> Any:
    """The field with another inverse temperature."""

    def places(tree: Any) -> list[Any]:
        parts = tree.parts if isinstance(tree, Total) else (tree,)
        return [cast(Any, part.kernel).beta for part in parts if isinstance(part, Attention)]

    return eqx.tree_at(places, field, [beta])


def _energies(model: Model, density: Density) -> tuple[float, float, float]:
    """F, E and S on the grid of the density."""
    basis, rho = density.basis, np.maximum(density.values, 0.0)
    external = np.sum(basis.weights * rho * in_float64(model.external_potential)(basis))
    energy = float(model.clock_factor) * pair_energy(float(model.beta), density) + external
    entropy = np.sum(basis.weights * xlogy(rho, rho))
    return float(energy - model.kappa * entropy), float(energy), float(entropy)


@in_float64
@eqx.filter_jit
def _system(field: Any, along: str, basis: AbstractBasis, v: Any, kappa: Any, beta: Any) -> Any:
    index, values = free_entries(basis), {"kappa": jnp.asarray(kappa), "beta": jnp.asarray(beta)}

    def gap(v: Any, p: Any) -> Any:
        now = values | {along: p}
        c = jnp.zeros(basis.mask.size).at[0].set(1.0).at[index].set(v).reshape(basis.mask.shape)
        phi = as_model(_at(field, now["beta"]), now["kappa"]).velocity_potential(basis, c)
        raw = basis.analysis(jnp.exp((phi - jnp.max(phi)) / now["kappa"])).reshape(-1)
        return v - raw[index] / raw[0]

    value, push = jax.linearize(gap, jnp.asarray(v), values[along])
    jacobian = jax.vmap(lambda column: push(column, jnp.zeros(())))(jnp.eye(len(index))).T
    return value, jacobian, push(jnp.zeros(len(index)), jnp.ones(()))
