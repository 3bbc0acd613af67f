"""Pairs in a uniform population, collapsed and antipodal tokens, whole populations, and hot pairs on the circle."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention
from attnflow.fields.weights import Random
from attnflow.flows import Layers, solve
from attnflow.random_layers import gram_layers, random_attention
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

NEAR = 1e-5
"""The angle of nearby tokens."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated. Times are canonical, tau = eta^2 L/H with H = 1; h = eta^2 is the time of a layer."""

    d: int = 8
    cases: tuple[tuple[int, float], ...] = ((4, 2.0), (4, 4.0), (4, 8.0), (4, 32.0), (4, 64.0), (2, 32.0), (8, 64.0))
    """(d_k, b) of pairs in a uniform population."""
    pairs: int = 1000
    pair_tau: float = 2.0
    pair_h: float = 0.002
    collapsed_b: tuple[float, ...] = (0.0, 4.0, 64.0)
    collapsed_n: int = 6
    d_k: int = 4
    """Of collapsed tokens and of populations."""
    antipodal_beta: tuple[float, ...] = (0.3, 0.8, 1.5, 2.5)
    collapsed_replicas: int = 8000
    replicas: int = 16_000
    """Networks of antipodal tokens."""
    tau: float = 1.0
    h: float = 0.01
    simplex_b: tuple[float, ...] = (1.0, 8.0)
    simplex_n: int = 16
    simplex_d: int = 1024
    simplex_tau: float = 6.0
    simplex_h: float = 0.02
    simplex_replicas: int = 128
    population_b: tuple[float, ...] = (1.0, 64.0)
    """The first is compared with the others."""
    population_n: int = 64
    population_tau: float = 12.0
    population_h: float = 0.04
    populations: int = 256
    hot_overlaps: tuple[float, ...] = (0.3, -0.5)
    hot_tau: float = 40.0
    hot_h: float = 0.1
    hot_pairs: int = 8000
    expected_drift: float = 21.0
    """Standard errors by which each mean drift of a pair is expected to differ from 0."""
    expected_turn: float = 12.5
    """Standard errors by which each exponent near antipodes is expected to differ from 0."""
    expected_difference: float = 27.0
    """Standard errors by which overlaps of populations are expected to be lower for large b."""


QUICK = Parameters(
    cases=((4, 4.0), (4, 64.0)),
    pairs=200,
    pair_tau=1.0,
    collapsed_b=(64.0,),
    collapsed_replicas=1000,
    antipodal_beta=(0.3, 2.5),
    replicas=4000,
    simplex_replicas=32,
    simplex_tau=4.0,
    simplex_h=0.04,
    populations=160,
    population_tau=8.0,
    hot_overlaps=(0.3,),
    hot_tau=24.0,
    hot_pairs=4000,
    expected_drift=13.5,
    expected_turn=14.5,
    expected_difference=11.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """All parts; they do not depend on one another."""
    makers: dict[str, Any] = {f"pairs-{k}-{b:g}": (pairs, k, b, parameters) for k, b in parameters.cases}
    for make, values in (
        (collapsed, parameters.collapsed_b),
        (antipodal, parameters.antipodal_beta),
        (simplex, parameters.simplex_b),
        (population, parameters.population_b),
        (hot, parameters.hot_overlaps),
    ):
        makers |= {f"{make.__name__}-{value:g}": (make, value, parameters) for value in values}
    return study.parts(makers)


def uniform_mean(x: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Softmax means of infinitely many uniform tokens at the queries x (pair, d): r(|a|) a/|a|, a = `logits` x."""
    a = np.einsum("pij,pj->pi", logits, x)
    size = np.linalg.norm(a, axis=1, keepdims=True)
    order = x.shape[1] / 2
    return np.asarray(ive(order, size) / ive(order - 1, size) * a / size)


def keys(count: int, d: int, d_k: int, b: float, rng: np.random.Generator) -> np.ndarray:
    """(count, d, d) matrices (b/sqrt(d_k)) K^T Q of one head each."""
    query, key = rng.standard_normal((2, count, d_k, d))
    return np.asarray(b / np.sqrt(d_k) * np.swapaxes(key, 1, 2) @ query)


def near(x: np.ndarray, angle: float, rng: np.random.Generator) -> np.ndarray:
    """Tokens at `angle` from x, in random directions."""
    along = rng.standard_normal(x.shape)
    along -= np.sum(along * x, axis=1, keepdims=True) * x
    return np.asarray(np.cos(angle) * x + np.sin(angle) * _unit(along))


def pairs(d_k: int, b: float, parameters: Parameters) -> xr.Dataset:
    """Nearby tokens through layers in a population that is uniform in every layer.

    `drift` is the mean change of log(1-R) over the two signs of V, summed along the path: of the same mean as the path
    and without its noise.
    """
    rng, d, h = parameters.rng(0, d_k, round(10 * b)), parameters.d, parameters.pair_h
    x = _unit(rng.standard_normal((parameters.pairs, d)))
    y = near(x, NEAR, rng)
    layers, frames = round(parameters.pair_tau / h), 20
    drift, weight = np.zeros((2, parameters.pairs))
    drifts = [drift.copy()]
    for layer in range(1, layers + 1):
        logits = keys(parameters.pairs, d, d_k, b, rng)
        values = np.sqrt(h / d) * rng.standard_normal((parameters.pairs, d, d))
        means = [uniform_mean(x, logits), uniform_mean(y, logits)]
        before = np.sum((x - y) ** 2, axis=1)
        weight += (np.sum(means[0] ** 2, axis=1) + np.sum((means[0] - means[1]) ** 2, axis=1) / before) ** 2 / layers
        moves = [np.einsum("pij,pj->pi", values, mean) for mean in means]
        ends = [(_unit(x + sign * moves[0]), _unit(y + sign * moves[1])) for sign in (1, -1)]
        changes = [np.log(np.sum((one - other) ** 2, axis=1) / before) for one, other in ends]
        drift += (changes[0] + changes[1]) / 2
        x, y = ends[0]
        if layer * frames % layers < frames:
            drifts.append(drift.copy())
    return xr.Dataset(
        {"drift": (("tau", "pair"), drifts), "weight": ("pair", weight)},
        {"tau": np.linspace(0, layers * h, len(drifts))},
    )


def through_layers(
    field: AbstractField, tokens: Tokens, tau: float, h: float, save: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times tau, and positions (seed, time, token, dim) of tokens that go through layers of time h."""
    step = float(np.sqrt(h))
    until = step * round(tau / h)
    flow = solve(field, tokens, until, method=Layers(step), save=save, keep=("positions",))
    return step * flow.time.values, flow.positions.transpose("seed", "time", ...).values


def collapsed(b: float, parameters: Parameters) -> xr.Dataset:
    """log of the mean 1-R of tokens that start close together, after tau over its start."""
    d, h, count = parameters.d, parameters.h, parameters.collapsed_replicas
    seeds = Along("seed", parameters.seeds(range(20_000, 20_000 + count)))
    centre = np.broadcast_to(np.eye(d)[0], (count * parameters.collapsed_n, d))
    start = near(centre, NEAR, parameters.rng(1, round(10 * b))).reshape(count, parameters.collapsed_n, d)
    field = random_attention(d, b, 1, parameters.d_k, step=float(np.sqrt(h)), seed=seeds)
    tau, x = through_layers(field, Tokens(start, dims=("seed",), space=Sphere(d)), parameters.tau, h, 1)
    gap = np.sum((x - x.mean(axis=2, keepdims=True)) ** 2, axis=(2, 3))
    return xr.Dataset({"growth": ("replica", np.log(gap[:, -1] / gap[:, 0]) / tau[-1])})


def antipodal(beta: float, parameters: Parameters) -> xr.Dataset:
    """log(1+R) of two nearly antipodal tokens with Q^T K = I, after tau over its start."""
    d, h, angle = parameters.d, parameters.h, np.pi - 100 * NEAR
    seeds = Along("seed", parameters.seeds(range(1000, 1000 + parameters.replicas)))
    start = np.zeros((2, d))
    start[0, 0], start[1, :2] = 1.0, (np.cos(angle), np.sin(angle))
    field = Attention(beta, value=Random((d, d), seed=seeds, step=float(np.sqrt(h)), scale=d**-0.5))
    tau, x = through_layers(field, Tokens(start, space=Sphere(d)), parameters.tau, h, 1)
    square = np.sum((x[:, :, 0] + x[:, :, 1]) ** 2, axis=-1)
    return xr.Dataset({"growth": ("replica", np.log(square[:, -1] / square[:, 0]) / tau[-1])})


def simplex(b: float, parameters: Parameters) -> xr.Dataset:
    """The mean overlap of orthonormal tokens in a high dimension, with as many keys."""
    tau, h, seed = parameters.simplex_tau, parameters.simplex_h, parameters.seed(90_000 + round(10 * b))
    size: Any = {"n": parameters.simplex_n, "replicas": parameters.simplex_replicas, "save": round(tau), "keep": False}
    path = gram_layers(0.0, b, float(np.sqrt(h)), round(tau / h), parameters.simplex_d, seed=seed, **size)
    return xr.Dataset({"overlap": (("replica", "tau"), path.overlap)}, {"tau": path.tau})


def population(b: float, parameters: Parameters) -> xr.Dataset:
    """The mean overlap of tokens that start uniform, with few keys; populations of one number share heads for all b."""
    d, n, h = parameters.d, parameters.population_n, parameters.population_h
    seeds = Along("seed", parameters.seeds(range(50_000, 50_000 + parameters.populations)))
    start = _unit(parameters.rng(2).standard_normal((parameters.populations, n, d)))
    field = random_attention(d, b, 1, parameters.d_k, step=float(np.sqrt(h)), seed=seeds)
    tokens = Tokens(start, dims=("seed",), space=Sphere(d))
    tau, x = through_layers(field, tokens, parameters.population_tau, h, 12)
    overlap = (n * np.sum(x.mean(axis=2) ** 2, axis=-1) - 1) / (n - 1)
    return xr.Dataset({"overlap": (("seed", "tau"), overlap)}, {"tau": tau})


def hot(overlap: float, parameters: Parameters) -> xr.Dataset:
    """The angle of two tokens on the circle at infinite temperature."""
    h, first = parameters.hot_h, 60_000 + round(10_000 * (1 + overlap))
    seeds = Along("seed", parameters.seeds(range(first, first + parameters.hot_pairs)))
    start = np.array([[1.0, 0.0], [overlap, np.sqrt(1 - overlap**2)]])
    field = random_attention(2, 0.0, step=float(np.sqrt(h)), seed=seeds)
    tau, x = through_layers(field, Tokens(start, space=Sphere(2)), parameters.hot_tau, h, 4)
    minus, plus = (np.linalg.norm(x[:, :, 0] + sign * x[:, :, 1], axis=-1) for sign in (-1, 1))
    return xr.Dataset({"angle": (("seed", "tau"), 2 * np.arctan2(minus, plus))}, {"tau": tau})


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))
