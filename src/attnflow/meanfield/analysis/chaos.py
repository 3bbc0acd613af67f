"""The distance between n tokens and the density from which they are drawn, through time.

The noise eta = sqrt(n) (mu_n - mu) of iid tokens starts as a Gaussian field with the covariance int f g dmu - int f dmu
int g dmu and follows the linearised continuity equation along the density (Braun and Hepp, Commun. Math. Phys. 56,
1977). A unit mass at a becomes one at X_t(a), carried by the flow of the density, plus a smooth response s_t(a):
ds/dt = L(rho_t) s - div(rho_t grad Phi'[delta_X]), s_0 = 0, with L the derivative of the equation. Noise of all degrees
is moved exactly in this way, and only smooth functions are expanded in harmonics.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attnflow.axes import finite_array
from attnflow.checks import generator, instance, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.meanfield.analysis.distances import GRID, circle_of, distance_to_series, on_circle, sobolev_shares
from attnflow.meanfield.harmonics.basis import AbstractBasis, CircleBasis, ZonalBasis
from attnflow.meanfield.harmonics.density import Density, tail_of
from attnflow.meanfield.harmonics.exponential import advance, begin
from attnflow.meanfield.harmonics.model import Model, grid_positions, model_on
from attnflow.meanfield.samples import quadrature
from attnflow.precision import full_precision
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

STARTS = 128
STEPS = 100_000


class Expected(NamedTuple):
    """sqrt(n) E W_1 at each time, its Monte Carlo standard error, and the standard deviation of sqrt(n) W_1."""

    mean: np.ndarray
    error: np.ndarray
    deviation: np.ndarray


@dataclasses.dataclass(frozen=True)
class Fluctuations:
    """Frames of the linearised flow: where unit masses at `starts` are carried, and how the density responds."""

    start: Density
    times: np.ndarray
    coefficients: np.ndarray
    """(time, *coefficients): the density."""
    starts: Tokens
    """Points a, with masses that are a quadrature of the distribution at time 0."""
    moved: np.ndarray
    """(time, start, dim): X_t(a)."""
    responses: np.ndarray
    """(time, start, *coefficients): s_t(a)."""

    @property
    def basis(self) -> AbstractBasis:
        """The basis of the density and of the responses."""
        return self.start.basis

    def density(self, at: int = -1) -> Density:
        """The density of frame number `at`."""
        return self.start.moved(self.coefficients[at])


def fluctuations(
    field: AbstractField,
    density: Density,
    times: Sequence[float] | np.ndarray,
    *,
    starts: Tokens | None = None,
    rtol: float = 1e-8,
    resolution: float = 1e-6,
) -> Fluctuations:
    """The density along `field` without diffusion, and the tangent flow along it, at increasing `times`.

    Arguments:
        starts: where unit masses start, with masses that integrate smooth functions against the density at time 0: by
            default 128 even angles on the circle (W_1 needs even ones), and the grid of the basis on S^2, which is
            costly: for a density with an axis `quadrature` of its zonal form, with 4 `copies` above the degree of
            the observables, is as good.
        rtol: the error of a step, relative to the 2-norm of density, positions and responses together.
        resolution: refused if the tail (see `evolve`) of the density or of a response exceeds it at one of the times.
    """
    basis = instance("density", density, Density, "a Density, as uniform(basis) is one").basis
    if isinstance(basis, ZonalBasis):
        raise InvalidInput("`density` has a ZonalBasis, but noise has no axis; use CircleBasis or SphereBasis.")
    number("rtol", rtol, low=1e-13, high=1.0)
    number("resolution", resolution, low=1e-14, high=1.0)
    model = model_on(field, basis, 0.0, resolution)
    if not float(model.beta) > 0:
        raise InvalidInput(f"`beta` is {float(model.beta)}; give one above 0, so that tokens feel each other's place.")
    moments = np.asarray(finite_array("times", times))
    if moments.ndim != 1 or not len(moments) or moments[0] < 0 or (np.diff(moments) <= 0).any():
        raise InvalidInput(f"`times` is {shown(times)}; give increasing times from 0 on.")
    starts = _even(density) if starts is None else instance("starts", starts, Tokens, "Tokens")
    if starts.dims or starts.dim != basis.dim:
        raise InvalidInput(
            f"`starts` has positions of shape {starts.positions.shape}; give unit vectors of R^{basis.dim}."
        )
    frames = []
    with full_precision():
        c, x = jnp.asarray(density.coefficients), jnp.asarray(starts.positions)
        flat, shaped = ravel_pytree((c, x, jnp.zeros((starts.n, *c.shape))))
        state, grid = begin(flat), jnp.asarray(grid_positions(basis))
        for t in moments:
            state = _follow(model, basis, grid, starts.n, state, jnp.asarray(t), jnp.asarray(rtol)) if t else state
            now = shaped(state.c)
            tail = max(float(tail_of(basis, now[0])), float(jnp.max(_tails(basis, now[2]))))
            if not tail <= resolution or state.trouble:
                raise InvalidInput(
                    f"`times` goes to {t:g}, where the last degrees hold {tail:.2g} of the largest, above "
                    f"{resolution:g}; end before, or use `basis.refined({2 * basis.degree})`."
                )
            frames.append([np.asarray(part) for part in now])
    rows = [np.stack(parts) for parts in zip(*frames, strict=True)]
    return Fluctuations(density, moments, rows[0], starts, rows[1], rows[2])


def expected_distance(flow: Fluctuations, *, samples: int = 4096, cells: int = 512, seed: int = 0) -> Expected:
    """The limit of sqrt(n) E W_1 on the circle for iid tokens, at every time of the linearised flow.

    For a small signed measure eta of mass 0, W_1 is the integral of |G - its median|, G the primitive of eta. At time 0
    G is a Brownian bridge at the level F_0(a), drawn at the ends of `cells` cells; at time t it is that at X_t^{-1},
    plus the primitive of the responses. The same noise serves all times.
    """
    rho = np.asarray(circle_of(_checked(flow).start).evaluate(flow.start.coefficients, angles=_centres(cells)))
    masses = rho / np.sum(rho)
    z = generator(seed).standard_normal((whole("samples", samples, 2), cells))
    noise = np.sqrt(masses) * z - masses * (z @ np.sqrt(masses))[:, None]
    coarse, steps, rows = _coarse(flow), np.tril(np.ones((cells, cells))), []
    between = _waves(coarse, _centres(cells)).T @ _waves(coarse, coarse.points()) / coarse.grid  # starts to cells
    for at in range(len(flow.times)):
        ends = _carried(flow, at, _centres(cells) + np.pi / cells)
        gains = between @ flow.responses[at]  # (cell, harmonic)
        g = noise @ (steps.T + gains @ _primitives(flow.basis, ends))  # (sample, end)
        lengths = (np.roll(ends, -1) - np.roll(ends, 1)) / 2
        lengths[[0, -1]] += np.pi
        rows.append(_spread(g, lengths))
    found = np.array(rows)
    deviation = np.std(found, axis=1, ddof=1)
    return Expected(np.mean(found, axis=1), deviation / np.sqrt(samples), deviation)


def linearised_distance(flow: Fluctuations, tokens: Tokens, *, grid: int = GRID) -> np.ndarray:
    """W_1 at every time, on the circle, by the linearised flow, for these tokens at time 0.

    The distance between the tokens carried to X_t and rho_t less the response to mu_n - mu_0. The result differs from
    W_1 by the square of the noise, a share of order n^(-1/2).
    """
    basis, coarse = circle_of(_checked(flow).start), _coarse(flow)
    on_circle(tokens, basis, grid)
    angles, masses = basis.variable(tokens.positions), np.asarray(tokens.masses)
    noise = coarse.atoms(tokens.positions, masses) - np.asarray(basis.resized(flow.start.coefficients, coarse.degree))
    shares, rows = noise @ _waves(coarse, coarse.points()) / coarse.grid, []
    for at in range(len(flow.times)):
        rest = flow.coefficients[at] - np.sum(shares[:, None] * flow.responses[at], axis=0)
        rows.append(distance_to_series(_carried(flow, at, angles), masses, rest, grid))
    return np.array(rows)


def expected_observable(flow: Fluctuations, degree: int) -> np.ndarray:
    """The limit of the root of n E observable_distance^2 for iid tokens, at every time; no Monte Carlo.

    An observable f has the variance over a of f(X_t(a)) + int f s_t(a): a quadrature over the starts.
    """
    basis, masses = flow.basis, np.asarray(flow.starts.masses)
    kept = np.where(basis.degrees <= whole("degree", degree, 1), sobolev_shares(basis), 0.0)
    if degree > basis.degree:
        raise InvalidInput(f"`degree` is {degree}, above the {basis.degree} of the density; use `basis.refined`.")
    found = []
    for points, responses in zip(flow.moved, flow.responses, strict=True):
        bare = np.stack([basis.atoms(x, [1.0]) for x in points])
        seen = bare + responses
        mean = np.tensordot(masses, seen, 1)
        found.append(np.sum(kept * (np.tensordot(masses, seen**2, 1) - mean**2)))
    return np.sqrt(np.array(found))


def carried_noise(flow: Fluctuations) -> np.ndarray:
    """How large the noise of iid tokens is for the nonlinear flow: sqrt(n) times its share of the density, by time.

    The root of E int s^2/rho, s = int s_t(a) eta(da) the response to the noise eta: without it tokens are carried by
    the density alone, and the linearised flow is exact. What that misses is of second order in this share.
    """
    basis, masses = flow.basis, np.asarray(flow.starts.masses)
    found = []
    with full_precision():
        for c, responses in zip(flow.coefficients, flow.responses, strict=True):
            values = np.asarray(jax.lax.map(basis.synthesis, jnp.asarray(responses)))
            variance = np.tensordot(masses, values**2, 1) - np.tensordot(masses, values, 1) ** 2
            found.append(np.sum(basis.weights * variance / np.asarray(basis.synthesis(jnp.asarray(c)))))
    return np.sqrt(np.array(found))


def _checked(flow: Fluctuations) -> Fluctuations:
    return instance("flow", flow, Fluctuations, "what `fluctuations` gives")


@eqx.filter_jit
def _follow(model: Model, basis: AbstractBasis, grid: Any, count: int, state: Any, target: Any, rtol: Any) -> Any:
    """Density, points and responses together up to the time `target`."""
    shape = basis.mask.shape
    ravelled = ravel_pytree((jnp.zeros(shape), jnp.zeros((count, basis.dim)), jnp.zeros((count, *shape))))[1]

    def rate(flat: Any) -> Any:
        c, x, s = ravelled(flat)
        change, tangent = jax.linearize(lambda c: model.rate(basis, c), c)
        respond = _response(model, basis, grid, c)
        moved = jax.vmap(_velocity(model, basis, grid, c))(x)
        grown = jax.lax.map(lambda one: tangent(one[0]) + respond(one[1]), (s, x), batch_size=64)
        return ravel_pytree((change, moved, grown))[0]

    return advance(rate, jnp.zeros_like(state.c), state, target, STEPS, rtol=rtol, atol=jnp.asarray(1e-12))


def _velocity(model: Model, basis: AbstractBasis, grid: Any, c: Any) -> Any:
    """The gradient of Phi at any unit vector, by quadrature on the grid."""
    places = grid.reshape(-1, basis.dim)
    masses = (basis.weights * basis.synthesis(c)).reshape(-1)

    def velocity_potential(x: Any) -> Any:
        z = jnp.sum(masses * jnp.exp(model.beta * (places @ x - 1)))
        phi = jnp.log(z) / model.beta if model.softmax else model.clock_factor * z / model.beta
        return phi + sum((part.potential(x) for part in model.potentials), jnp.zeros(()))

    def velocity(x: Any) -> Any:
        slope = jax.grad(velocity_potential)(x)
        return slope - x * jnp.sum(slope * x)

    return velocity


def _response(model: Model, basis: AbstractBasis, grid: Any, c: Any) -> Any:
    """-div(rho grad Phi'[delta_x]) in coefficients, as a function of x; Phi' = K_x/beta, over Z for softmax."""
    rho = basis.synthesis(c)
    carried = rho / model.convolved(basis, c) if model.softmax else model.clock_factor * rho
    slope = model.attention_velocity(basis, c) if model.softmax else None  # grad Z/(beta Z)

    def respond(x: Any) -> Any:
        near = jnp.exp(model.beta * (grid @ x - 1))
        change = basis.gradient(basis.analysis(near / model.beta))
        if slope is not None:
            change = change - jnp.broadcast_to(near, slope.shape) * slope
        return basis.inflow(jnp.broadcast_to(carried, change.shape) * change)

    return respond


@eqx.filter_jit
def _tails(basis: AbstractBasis, responses: Any) -> Any:
    """The tail of every response; 0 at time 0, where all responses are 0."""
    zero = jnp.max(jnp.abs(responses)) == 0
    return jnp.where(zero, 0.0, jax.vmap(lambda s: tail_of(basis, s))(jnp.where(zero, 1.0, responses)))


def _even(density: Density) -> Tokens:
    """Even angles with their masses, enough for twice the degree of the distribution; or the grid."""
    basis = density.basis
    if not isinstance(basis, CircleBasis):
        return quadrature(density)
    theta = 2 * np.pi * np.arange(STARTS) / STARTS
    return Tokens(
        np.stack([np.cos(theta), np.sin(theta)], axis=1), np.maximum(density(angles=theta), 0.0), space=Sphere(2)
    )


def _coarse(flow: Fluctuations) -> CircleBasis:
    """The basis for functions of the start a."""
    circle_of(flow.start)
    coarse = CircleBasis((flow.starts.n - 1) // 2, flow.starts.n)
    even = np.exp(1j * coarse.points())
    if np.max(np.abs(np.asarray(flow.starts.positions) @ [1, 1j] - even)) > 1e-9:
        raise InvalidInput("`starts` are not even angles from 0, which W_1 needs; leave them out in `fluctuations`.")
    return coarse


def _carried(flow: Fluctuations, at: int, angles: np.ndarray) -> np.ndarray:
    """X_t at any angles, on the real line: displacements are smooth and periodic."""
    coarse = _coarse(flow)
    moved = np.arctan2(flow.moved[at, :, 1], flow.moved[at, :, 0])
    gaps = np.unwrap(moved - coarse.points())
    gaps -= 2 * np.pi * np.round(np.mean(gaps) / (2 * np.pi))
    return angles + coarse.evaluate(np.asarray(coarse.analysis(gaps)), angles=angles)


def _waves(basis: CircleBasis, angles: np.ndarray) -> np.ndarray:
    """All harmonics at the angles, (harmonic, angle)."""
    phases = np.outer(np.arange(1, basis.degree + 1), angles)
    return np.concatenate([np.ones((1, len(angles))), np.sqrt(2.0) * np.cos(phases), np.sqrt(2.0) * np.sin(phases)])


def _primitives(basis: AbstractBasis, angles: np.ndarray) -> np.ndarray:
    """Primitives of the harmonics of degree at least 1 against dtheta/2pi, (harmonic, angle)."""
    k = np.arange(1, basis.degree + 1)[:, None]
    phases, scale = k * angles[None], np.sqrt(2.0) / (2 * np.pi * k)
    return np.concatenate([np.zeros((1, len(angles))), scale * np.sin(phases), -scale * np.cos(phases)])


def _centres(cells: int) -> np.ndarray:
    return 2 * np.pi * (np.arange(whole("cells", cells, 8)) + 0.5) / cells


def _spread(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """sum_j lengths_j |row_j - median|, the median for these lengths, of every row."""
    order = np.argsort(rows, axis=1)
    reached = np.cumsum(lengths[order], axis=1)
    middle = np.argmax(reached >= reached[:, -1:] / 2, axis=1)
    medians = np.take_along_axis(rows, np.take_along_axis(order, middle[:, None], 1), 1)
    return np.asarray(np.abs(rows - medians) @ lengths)
