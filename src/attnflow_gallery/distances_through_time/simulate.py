"""Histograms of overlaps: Monte Carlo of their first change, atoms after condensation, transforms along flows."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.decoders import uniform_prompts
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged, reduced
from attnflow.fields import Attention
from attnflow.flows import Fixed, Observable, advance, solve
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, stack, uniform

BINS = 10
"""Equal bins in s = <x_i, x_j>."""
BATCH = 2048
"""Draws that are made at a time."""
MODELS = "SA", "USA0"
SOLIDS = {"octahedron": 1, "cube": -1}
"""Signs of the seed x^4 + y^4 + z^4 - 3/5, a harmonic of degree 4."""
SEED = 0.02
LOW = 0.5
"""Of beta; the transform at LOW may fall."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated, on S^2."""

    beta: float = 2.0
    until: float = 0.25
    sizes: tuple[int, ...] = (16, 32, 64)
    batches: tuple[int, ...] = (8, 16, 16)
    """Of 2048 draws each, by size."""
    solid_beta: float = 10.0
    latitudes: int = 22
    solid_until: float = 15.0
    rise_beta: float = 9.0
    tokens: int = 40
    runs: int = 32
    """Random starts, along which the transform is followed."""
    rise_until: float = 20.0
    frames: int = 100


QUICK = Parameters(sizes=(8, 16, 32), batches=(2, 2, 2), latitudes=10, runs=4, rise_until=8.0, frames=40)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """The first change, solids, rises of both models, and a start whose transform at another beta falls."""
    makers: dict[str, Any] = {"change": (change, parameters)}
    makers |= {solid: (condensed, parameters, solid) for solid in SOLIDS}
    return study.parts(makers | {f"rise-{model}": (rises, parameters, model) for model in MODELS})


def field(beta: float, model: str) -> Attention:
    """The attention that moves all tokens."""
    return Attention(beta, normaliser=model)


def histogram(x: np.ndarray) -> np.ndarray:
    """Shares of the pairs in every bin of s, (draw, bin)."""
    n = x.shape[1]
    rows, columns = np.triu_indices(n, 1)
    s = np.einsum("pid,pjd->pij", x, x)[:, rows, columns]
    index = np.clip(((s + 1) / 2 * BINS).astype(int), 0, BINS - 1)
    counts = np.stack([np.sum(index == k, axis=1) for k in range(BINS)], axis=1)
    return counts / len(rows)


def change(parameters: Parameters) -> xr.Dataset:
    """n times the change of the shares of the bins, mean and standard error, (size, bin)."""
    edges = np.linspace(-1, 1, BINS + 1)
    beta_shares = np.diff(theory.uniform.overlap_distribution(edges, 3))
    rows = []
    for n, batches in zip(parameters.sizes, parameters.batches, strict=True):
        values = []
        for batch in range(batches):
            start = uniform_prompts(n, 3, BATCH, (parameters.seed(0), n, batch))
            end = advance(field(parameters.beta, "SA"), start, 0.0, parameters.until, Fixed(0.125))
            values.append([histogram(np.asarray(one.positions)) - beta_shares for one in (end, start)])
        after, before = np.concatenate(values, axis=1)
        # shares sum to 1, so that the last control is one too many
        rows.append(averaged(n * reduced(after, before[:, :-1])))
    mean, error = np.array(rows).swapaxes(0, 1)
    found = {"mean": (("size", "bin"), mean), "error": (("size", "bin"), error)}
    return xr.Dataset(found, {"size": list(parameters.sizes)})


def nodes(latitudes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss latitudes, twice as many longitudes: positions and masses."""
    c, masses = np.polynomial.legendre.leggauss(latitudes)
    phi = np.pi * np.arange(2 * latitudes) / latitudes
    around = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    flat = np.sqrt(1 - c**2)[:, None, None] * around
    up = np.broadcast_to(c[:, None, None], (*flat.shape[:2], 1))
    return np.concatenate([flat, up], axis=-1).reshape(-1, 3), np.repeat(masses, 2 * latitudes) / (4 * latitudes)


def seeded(masses: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """Masses of the density 1 + a multiple of `pattern`, root mean square SEED."""
    return masses * (1 + SEED * pattern / np.sqrt(masses @ pattern**2))


def condensed(parameters: Parameters, solid: str) -> xr.Dataset:
    """Mass of pairs by bins of the angle, self pairs included, at the end of a seed with the symmetry of the cube."""
    x, masses = nodes(parameters.latitudes)
    turned = np.linalg.qr(parameters.rng(1).standard_normal((3, 3)))[0]
    pattern = SOLIDS[solid] * (np.sum((x @ turned) ** 4, axis=1) - 0.6)
    tokens = Tokens(x, seeded(masses, pattern))
    flow = solve(field(parameters.solid_beta, "SA"), tokens, parameters.solid_until, save=1, method=Fixed(0.1))
    end, weight = np.asarray(flow.tokens(-1).positions), np.asarray(tokens.masses)
    s = np.clip(end @ end.T, -1, 1)
    edges = np.linspace(-1, 1, 2 * BINS + 1)
    mass = np.histogram(s, edges, weights=np.outer(weight, weight))[0]
    return xr.Dataset({"mass": ("bin", mass)})


def transform(mu: Measure, beta: float) -> Any:
    """The integral of e^(-beta r^2/2) over all pairs."""
    return mu.masses @ jnp.exp(beta * (mu.positions @ mu.positions.T - 1)) @ mu.masses


def starts(parameters: Parameters) -> Tokens:
    """Random starts of equal masses; the last are three tokens of which the lightest leaves the heaviest."""
    seeds = parameters.seeds(range(2, 2 + parameters.runs))
    angles = np.array([0.0, -0.5, 2.0])
    few = np.stack([np.cos(angles), np.sin(angles), np.zeros(3)], axis=1)
    every = [uniform(Sphere(3), n=parameters.tokens, seed=seed) for seed in seeds]
    return stack("run", range(len(seeds) + 1), [*every, Tokens(few, np.array([0.02, 0.18, 0.8]))])


def rises(parameters: Parameters, model: str) -> xr.Dataset:
    """The transform at beta and at LOW along the flows, (run, time)."""
    beta, until = parameters.rise_beta, parameters.rise_until
    observe = {"own": Observable(lambda mu: transform(mu, beta)), "low": Observable(lambda mu: transform(mu, LOW))}
    how: Any = {"save": parameters.frames, "method": Fixed(until / parameters.frames / 2), "keep": ()}
    flow = solve(field(beta, model), starts(parameters), until, observe=observe, **how).dataset
    return flow[["own", "low"]].transpose("run", "time")
