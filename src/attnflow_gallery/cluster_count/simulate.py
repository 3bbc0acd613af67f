"""Softmax attention on the circle from iid tokens, from densities of very many tokens, and from seeded rings."""

import dataclasses
import functools
import math

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.observe import cluster_scale, clusters
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, stack, uniform

FIRST_SEED = 100
"""The claims were chosen on seeds 0 to 15."""
LEG = 2.0
"""Time between two looks."""
LOOKS = (0.0, 2.0, 4.0, 8.0, 16.0)
"""When modes are counted."""
CONDENSED = 8.0
"""How long clusters have to contract (at rate 1) after fluctuations have reached the size of the mean."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    betas: tuple[float, ...] = (4.0, 8.0, 16.0, 25.0, 49.0, 100.0)
    """Of iid tokens."""
    tokens: int = 400
    density_betas: tuple[float, ...] = (8.0, 25.0, 100.0)
    """Of the densities of very many tokens, and of seeded rings."""
    densities: tuple[float, ...] = (1e4, 1e8, 1e16)
    """How many tokens the fluctuations of a density are those of."""
    ring: int = 192
    """Tokens that carry such a density."""
    runs: int = 48
    step: float = 0.5
    points: int = 1024
    """Test particles around the circle."""


QUICK = Parameters(betas=(25.0,), tokens=128, density_betas=(25.0,), densities=(1e12,), ring=96, runs=48, points=256)


def run(parameters: Parameters, study: Study) -> xr.Dataset:
    """Numbers of modes at the looks, and of clusters at the end, seed by seed."""
    jobs = [("iid", float(parameters.tokens), beta) for beta in parameters.betas]
    jobs += [("density", size, beta) for size in parameters.densities for beta in parameters.density_betas]
    jobs += [("seeded", math.inf, beta) for beta in parameters.density_betas]

    def make(index: int, start: str, size: float, beta: float) -> xr.Dataset:
        study.progress(f"{start}, {size:g} tokens, beta {beta:g}", index / len(jobs))
        made = _start(start, size, beta, parameters)
        return follow(made, beta, _end(beta, size), parameters).assign(start=start, size=size, beta=beta)

    made = [
        study.part(f"{start}-{size:g}-beta{beta:g}".replace("+", ""), functools.partial(make, k, start, size, beta))
        for k, (start, size, beta) in enumerate(jobs)
    ]
    return xr.concat(made, dim="case")


def _start(start: str, size: float, beta: float, parameters: Parameters) -> Tokens:
    numbers = range(parameters.runs)
    if start == "iid":
        seeds = parameters.seeds(FIRST_SEED + k for k in numbers)
        return uniform(Sphere(2), n=parameters.tokens, seed=seeds)
    kind, ring = 1 if start == "density" else 2, parameters.ring
    streams = [parameters.rng(FIRST_SEED + k, kind) for k in numbers]
    if start == "density":
        return stack("seed", numbers, [many(size, ring, rng) for rng in streams])
    return stack("seed", numbers, [one_mode(seeded_degree(beta, k), ring, streams[k]) for k in numbers])


def many(size: float, ring: int, rng: np.random.Generator) -> Tokens:
    """A ring with the fluctuations of `size` iid tokens: density 1 + sum_k 2 (a_k cos + b_k sin) by displacement."""
    top = ring // 3
    a, b = rng.standard_normal((2, top)) * np.sqrt(0.5 / size)
    k, angles = np.arange(1, top + 1), 2 * np.pi * np.arange(ring) / ring
    waves = np.outer(angles, k)
    return _at(angles + np.cos(waves) @ (2 * b / k) - np.sin(waves) @ (2 * a / k))


def one_mode(k: int, ring: int, rng: np.random.Generator) -> Tokens:
    """A ring seeded with k crests of relative density 1e-3 and random phase."""
    angles = 2 * np.pi * np.arange(ring) / ring
    return _at(angles + 1e-3 / k * np.sin(k * angles + rng.uniform(0, 2 * np.pi)))


def seeded_degree(beta: float, number: int) -> int:
    """The degree that ring number `number` is seeded with: k_max, or one more or less, by turns."""
    return int(theory.uniform.dominant_degree(beta, 2)) + (number + FIRST_SEED + 1) % 3 - 1


def _at(angles: np.ndarray) -> Tokens:
    return Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def linear_time(beta: float, size: float) -> float:
    """When fluctuations reach the mean, by linear theory (12 for a seeded mode)."""
    return 12.0 if math.isinf(size) else theory.uniform.linear_time(size, beta)


def _end(beta: float, size: float) -> float:
    return LEG * math.ceil((linear_time(beta, size) + CONDENSED) / LEG)


def follow(tokens: Tokens, beta: float, until: float, parameters: Parameters) -> xr.Dataset:
    """The flow of all seeds to `until`, leg by leg."""
    field = Attention(beta)
    modes = {}
    for t in np.arange(0.0, until + LEG / 2, LEG):
        if t > 0:
            tokens = advance(field, tokens, 0.0, LEG, Fixed(parameters.step))
        if t in LOOKS:
            modes[float(t)] = count_modes(field, tokens, parameters.points)
    found = [clusters(tokens.member(seed=k), scale=cluster_scale(beta)) for k in range(parameters.runs)]
    rows = np.array([modes.get(t, np.full(parameters.runs, np.nan)) for t in LOOKS])
    return xr.Dataset(
        {
            "modes": (("time", "seed"), rows),
            "clusters": ("seed", np.array([one.count for one in found])),
            "condensed": ("seed", np.array([one.condensed for one in found])),
            "until": until,
        },
        {"time": list(LOOKS), "seed": np.arange(parameters.runs)},
    )


def count_modes(field: Attention, tokens: Tokens, points: int) -> np.ndarray:
    """Modes of the smoothed density: where the velocity changes from + to - around the circle, for every seed."""
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    forward = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    velocity = np.sum(np.asarray(field.velocity(0.0, around, tokens)) * forward, axis=-1)
    return np.sum((velocity > 0) & (np.roll(velocity, -1, axis=-1) <= 0), axis=-1)
