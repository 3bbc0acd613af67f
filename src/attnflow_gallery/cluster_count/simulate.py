"""Softmax attention on the circle from iid tokens, from densities of very many tokens, and from seeded rings."""

import dataclasses
import math

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, solve
from attnflow.observe import cluster_scale
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, stack, uniform

FIRST_SEED = 100
"""The claims were chosen on seeds 0 to 15."""
LEG = 2.0
"""Flows end at a multiple of this time."""
LOOKS = (0.0, 2.0, 4.0, 8.0, 16.0)
"""When modes are counted."""
NOT_LOOKED = -1
"""The number of modes at a look after the end of a flow."""
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
    runs: int = 96
    step: float = 0.5
    points: int = 1024
    """Test particles around the circle."""
    expected_fewer: float = 9.5
    """Standard errors by which the mean number of clusters is expected to lie below k_max."""


QUICK = Parameters(
    betas=(25.0,),
    tokens=128,
    density_betas=(25.0,),
    densities=(1e12,),
    ring=96,
    runs=48,
    points=256,
    expected_fewer=9.5,
)


def run(parameters: Parameters, study: Study) -> xr.Dataset:
    """Numbers of modes at the looks, and of clusters at the end, seed by seed."""
    jobs = [("iid", float(parameters.tokens), beta) for beta in parameters.betas]
    jobs += [("density", size, beta) for size in parameters.densities for beta in parameters.density_betas]
    jobs += [("seeded", math.inf, beta) for beta in parameters.density_betas]

    makers = {
        f"{start}-{size:g}-beta{beta:g}".replace("+", ""): (_case, parameters, start, size, beta)
        for start, size, beta in jobs
    }
    return xr.concat(list(study.parts(makers).values()), dim="case")


def _case(parameters: Parameters, start: str, size: float, beta: float) -> xr.Dataset:
    until = LEG * math.ceil((linear_time(beta, size) + CONDENSED) / LEG)
    found = follow(_start(start, size, beta, parameters), beta, until, parameters)
    return found.assign(start=start, size=size, beta=beta)


def _start(start: str, size: float, beta: float, parameters: Parameters) -> Tokens:
    numbers, ring = range(parameters.runs), parameters.ring
    if start == "iid":
        return uniform(Sphere(2), n=parameters.tokens, seed=parameters.seeds(FIRST_SEED + k for k in numbers))
    streams = [parameters.rng(FIRST_SEED + k, 1 if start == "density" else 2) for k in numbers]
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


def follow(tokens: Tokens, beta: float, until: float, parameters: Parameters) -> xr.Dataset:
    """The flow of all seeds to `until`: modes at the looks (NOT_LOOKED after its end), clusters at the end."""
    field, early = Attention(beta), [t for t in LOOKS if t <= until]
    save = sorted({*early, until})
    flow = solve(field, tokens, until, save=save, method=Fixed(parameters.step), keep=("positions",))
    modes = np.full((len(LOOKS), parameters.runs), NOT_LOOKED)
    modes[: len(early)] = [count_modes(field, flow[k], parameters.points) for k in range(len(early))]
    end = flow[-1:].clusters(scale=cluster_scale(beta)).isel(time=-1)
    found = {"clusters": ("seed", end["count"].values), "condensed": ("seed", end["condensed"].values)}
    labels = {"time": list(LOOKS), "seed": np.arange(parameters.runs)}
    return xr.Dataset({"modes": (("time", "seed"), modes), "until": until} | found, labels)


def count_modes(field: Attention, tokens: Tokens, points: int) -> np.ndarray:
    """Modes of the smoothed density: where the velocity changes from + to - around the circle, for every seed."""
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    forward = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    velocity = np.sum(np.asarray(field.velocity(tokens, at=around)) * forward, axis=-1)
    return np.sum((velocity > 0) & (np.roll(velocity, -1, axis=-1) <= 0), axis=-1)
