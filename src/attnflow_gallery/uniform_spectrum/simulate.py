"""Tokens that stand for the uniform measure: the linearised field, and seeded modes along flows."""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import eval_jacobi, roots_jacobi

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, AbstractQuery, AtPoints, Attention, Laws, Part
from attnflow.flows import Fixed, solve
from attnflow.spaces import AbstractSpace
from attnflow.stability import jacobian_operator
from attnflow.tokens import Measure, Tokens, stack

MODELS = "SA", "USA0"
NEAR = 1e-4
"""How far below and above a switching threshold the fastest degree is looked for, in relation to it."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    circle_betas: tuple[float, ...] = (0.5, 2.0, 9.0, 30.0, 100.0, 400.0)
    """Of the linearised field on the circle."""
    ring: int = 512
    """Tokens on the circle."""
    sphere_betas: tuple[float, ...] = (0.5, 2.0, 9.0, 20.0)
    """Of the linearised field on S^2."""
    latitudes: int = 32
    """Of the tokens on S^2, with twice as many longitudes."""
    thresholds: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    """Degrees k at whose thresholds, where k_max steps from k to k+1, the field on the circle is linearised too."""
    growth_betas: tuple[float, ...] = (2.0, 9.0, 20.0)
    dims: tuple[int, ...] = (2, 3, 4, 8, 16)
    """Of the spaces R^d around the spheres whose modes grow."""
    degrees: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    meridian: int = 28
    """Tokens of a meridian."""
    sides: int = 24
    """Nodes of their orbits."""
    size: float = 1e-8
    """Root mean square of the relative density that a mode starts with."""
    until: float = 16.0
    """How long modes grow, on the clock of SA."""
    step: float = 0.1
    saturation: float = 40.0
    """How long the modes of the figure are followed, to where they stop growing."""


QUICK = Parameters(
    circle_betas=(),
    ring=64,
    thresholds=(1, 2, 3),
    sphere_betas=(5.0,),
    latitudes=16,
    growth_betas=(5.0,),
    dims=(2, 3, 8),
    degrees=(1, 2, 3, 4),
    meridian=16,
    sides=12,
    until=8.0,
    saturation=0.0,
)


class Zonal(AbstractField):
    """Attention on S^(d-1) in a distribution that is symmetric about an axis, as one meridian feels it.

    Tokens (c, r, 0) of the meridian stand for their orbits; seen from the meridian an orbit is the distribution of
    (c, r s, +-r sqrt(1 - s^2)), s = <y, u> with y uniform on S^(d-2), here a Gauss quadrature with masses `shares`. The
    halves + and - pull equally, except for the third component of the drive, which cancels: one half is left out.
    """

    attention: Attention
    sides: Any
    shares: Any

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Any:
        axis, radius = mu.positions[:, 0, None], mu.positions[:, 1, None]
        s = jnp.asarray(self.sides)[None, :]
        orbit = jnp.stack([axis * jnp.ones_like(s), radius * s, radius * jnp.sqrt(1 - s**2)], axis=-1)
        masses = mu.masses[:, None] * jnp.asarray(self.shares)[None, :]
        whole = Measure(orbit.reshape(-1, 3), masses.reshape(-1), space=mu.space)
        return self.attention.formula(t, AtPoints(query.points(mu)), whole) * jnp.asarray([[1.0, 1.0, 0.0]])

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()  # the tiles of `attention` are exact

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        self.attention.check(tokens)

    @property
    def laws(self) -> Laws:
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=True)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Rates of the linearised field, and amplitudes of modes along flows."""
    near = tuple(float((1 + side) * beta) for beta in thresholds(parameters) for side in (-NEAR, NEAR))
    spaces = {"circle": parameters.circle_betas, "sphere": parameters.sphere_betas}
    linear = {space: (linear_rates, space, betas, parameters) for space, betas in spaces.items() if betas}
    flows: dict[str, Any] = {
        f"{model}-beta{beta:g}-S{d - 1}": (grown, model, beta, d, parameters.until, parameters)
        for model, beta, d in itertools.product(MODELS, parameters.growth_betas, parameters.dims)
    }
    makers = linear | {"steps": (linear_rates, "circle", near, parameters)} | flows
    if parameters.saturation > 0:
        makers["saturation"] = (grown, "SA", typical(parameters), 2, parameters.saturation, parameters)
    found = study.parts(makers)
    growth = xr.concat([found.pop(name) for name in flows], dim="flow")
    return found | {"growth": growth}


def thresholds(parameters: Parameters) -> np.ndarray:
    """The inverse temperatures at which degrees k and k+1 are equally unstable on the circle."""
    return theory.uniform.switching_threshold(np.array(parameters.thresholds), 2)


def typical(parameters: Parameters) -> float:
    """The inverse temperature of the pictures."""
    return sorted(parameters.growth_betas)[len(parameters.growth_betas) // 2]


def linear_rates(space: str, betas: tuple[float, ...], parameters: Parameters) -> xr.Dataset:
    """Along gradients v of harmonics: the rate <v, DF v>/<v, v>, and what DF v, the linearised field, has beyond."""
    tokens = even_circle(parameters.ring) if space == "circle" else even_sphere(parameters.latitudes)
    top = int(2 * np.sqrt(2 * max(betas))) + 2  # well past sqrt(2 beta), where the rates peak
    rows = []
    for model, beta in itertools.product(MODELS, betas):
        apply = jacobian_operator(Attention(beta, normaliser=model), tokens)
        rows.append([_on_harmonic(apply, tokens, k, parameters.rng(k)) for k in range(1, top + 1)])
    table = np.reshape(rows, (len(MODELS), len(betas), top, 3))
    return xr.Dataset(
        {name: (("model", "beta", "degree"), table[..., k]) for k, name in enumerate(("rate", "rest", "peak"))},
        {"model": list(MODELS), "beta": list(betas), "degree": np.arange(1, top + 1)},
    )


def even_circle(n: int) -> Tokens:
    """Equispaced tokens: exact up to degree n - 1."""
    angles = 2 * np.pi * np.arange(n) / n
    return Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def even_sphere(latitudes: int) -> Tokens:
    """Gauss-Legendre latitudes, twice as many longitudes: exact up to degree 2 latitudes - 1."""
    c, masses = _gauss(latitudes, 0.0)
    around = np.asarray(even_circle(2 * latitudes).positions)
    flat = np.sqrt(1 - c**2)[:, None, None] * around
    up = np.broadcast_to(c[:, None, None], (*flat.shape[:2], 1))
    return Tokens(np.concatenate([flat, up], axis=-1).reshape(-1, 3), np.repeat(masses, len(around)))


def harmonic(k: int, d: int, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The zonal harmonic of degree k on S^(d-1) at <x, axis> = c, of mean square 1, and its derivative in c.

    sqrt(N) P_k(c): P_k the Jacobi polynomial of parameters (d-3)/2 that is 1 at 1, N the number of such harmonics.
    """
    a = (d - 3) / 2
    scale = np.sqrt(float(theory.uniform.multiplicity(k, d))) / eval_jacobi(k, a, a, 1.0)
    slope = (k + d - 2) / 2 * eval_jacobi(k - 1, a + 1, a + 1, c)
    return scale * eval_jacobi(k, a, a, c), scale * slope


def _on_harmonic(apply: Any, tokens: Tokens, k: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Along the gradient of a harmonic of random axis: rate, largest rest, largest gradient (of mean square 1)."""
    x, masses = np.asarray(tokens.positions), np.asarray(tokens.masses)[:, None]
    axis = rng.standard_normal((tokens.dim,))
    axis = axis / np.linalg.norm(axis)
    c = x @ axis
    v = harmonic(k, x.shape[1], c)[1][:, None] * (axis - c[:, None] * x)
    v /= np.sqrt(np.sum(masses * v**2))
    moved = apply(v)
    rate = float(np.sum(masses * v * moved))
    return rate, float(np.abs(moved - rate * v).max()), float(np.linalg.norm(v, axis=1).max())


def grown(model: str, beta: float, d: int, until: float, parameters: Parameters) -> xr.Dataset:
    """Amplitudes of seeded modes along a flow: the mean of the harmonic over the tokens, the odd part in the seed."""
    c, masses = _gauss(parameters.meridian, (d - 3) / 2)
    field = Zonal(Attention(beta, normaliser=model), *_orbit(parameters.sides, d))
    # unnormalised weights are small far from the diagonal: the clock is stretched by their mean
    unit = 1.0 if model == "SA" else 1 / float(np.sum(masses * np.exp(beta * (c - 1))))
    angles, starts = np.arccos(c), []
    for k, sign in itertools.product(parameters.degrees, (1, -1)):
        slope = -np.sin(angles) * harmonic(k, d, c)[1]
        moved = angles + sign * parameters.size / (k * (k + d - 2)) * slope
        starts.append(Tokens(np.stack([np.cos(moved), np.sin(moved), np.zeros_like(moved)], axis=1), masses))
    tokens = stack("start", range(len(starts)), starts)
    times, method = np.arange(0, until + 0.5), Fixed(parameters.step * unit)
    flow = solve(field, tokens, times[-1] * unit, save=len(times) - 1, method=method, keep=("positions",))
    heights = flow.positions.transpose("start", "time", "token", ...).values[..., 0]
    means = [
        [np.sum(masses * harmonic(k, d, rows)[0], axis=-1) for rows in pair]
        for k, pair in zip(parameters.degrees, np.split(heights, len(parameters.degrees)), strict=True)
    ]
    plus, minus = np.moveaxis(np.array(means), 1, 0)
    found: dict[str, Any] = {"amplitude": (("degree", "time"), (plus - minus) / 2)}
    fourth = [np.sum(masses * harmonic(k, d, c)[0] ** 4) for k in parameters.degrees]
    found |= {"fourth": ("degree", np.array(fourth)), "unit": unit, "model": model, "beta": beta, "dimension": d}
    return xr.Dataset(found, {"degree": list(parameters.degrees), "time": times})


def _orbit(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The measure of one coordinate on S^(d-2) as n nodes and masses; S^0 is two points, other nodes have no mass."""
    if d > 2:
        return _gauss(n, (d - 4) / 2)
    return np.where(np.arange(n) % 2, -1.0, 1.0), np.where(np.arange(n) < 2, 0.5, 0.0)


def _gauss(n: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and masses of the distribution proportional to (1 - s^2)^power on [-1, 1]: exact up to degree 2n - 1."""
    nodes, weights = roots_jacobi(n, power, power)
    return nodes, weights / weights.sum()
