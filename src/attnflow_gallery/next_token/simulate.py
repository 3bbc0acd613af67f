"""Next-token distributions on plateaus of long flows, along a flow of orthonormal words, and of random prompts."""

import dataclasses
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, LongTime, Observable, Solve, solve, solve_long
from attnflow.spaces import Sphere
from attnflow.text import alternatives, distribution_along, from_text, next_token_distribution, random_embedding
from attnflow.tokens import Tokens, stack, uniform

WIDTH = 1e-3
"""Clusters are one at the angle WIDTH/beta."""
PROMPT = "Need a new paper on AI"
STEPS = 16
"""From one frame to the next, of the flow of orthonormal words."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """Tokens on S^2 that go to consensus; a prompt of orthonormal words, and prompts of random words."""

    n: int = 40
    beta: float = 40.0
    starts: int = 4
    words: int = 600
    read: tuple[float, ...] = (400.0, 40.0)
    """Inverse temperatures of the read-out on S^2; three digits are claimed of the first."""
    prompt_beta: float = 4.0
    prompt_read: float = 12.0
    orthonormal: int = 256
    """Words, and dimension, of the orthonormal vocabulary."""
    until: float = 12.0
    frames: int = 48
    dim: int = 64
    vocabulary: int = 2000
    draws: int = 64
    """Prompts of random words."""


QUICK = Parameters(n=8, starts=1, orthonormal=64, frames=12, draws=32)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Plateaus of every start; the prompt of orthonormal words; prompts of random words."""
    stairs = {f"stairs-{k}": (_plateaus, parameters, k) for k in range(parameters.starts)}
    found = study.parts(stairs | {"random": (_random, parameters)})
    return found | {"orthonormal": study.refined("orthonormal", _orthonormal(parameters))}


def evenly(count: int) -> np.ndarray:
    """Points that cover S^2 evenly, on a spiral."""
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    return np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z], axis=1)


def _plateaus(parameters: Parameters, start: int) -> xr.Dataset:
    """Masses and centres of the clusters of every plateau, and what the read-outs say there and at all frames."""
    tokens = uniform(Sphere(3), n=parameters.n, seed=parameters.seed(start))
    method = LongTime(1e-6, WIDTH / parameters.beta, frames=4000)
    flow = solve_long(Attention(parameters.beta), tokens, math.inf, method=method)
    words = evenly(parameters.words)
    reads = [distribution_along(flow, words, beta=beta) for beta in parameters.read]
    times, merged = flow.log_time.values, flow.merges["log_time"].values
    rows = []
    for merges in flow.tree.plateaus()["merges"].values.astype(int):
        at = int(np.searchsorted(times, merged[merges - 1])) if merges else 0
        _, label = np.unique(flow.tree.labels(merges), return_inverse=True)
        masses = np.bincount(label, np.asarray(tokens.masses))
        first = [int(np.argmax(label == k)) for k in range(len(masses))]
        rows.append((at, masses, flow.positions.values[at, first]))
    most = max(len(masses) for _, masses, _ in rows)
    mass, centre = np.zeros((len(rows), most)), np.zeros((len(rows), most, 3))
    for k, (_, masses, centres) in enumerate(rows):
        mass[k, : len(masses)], centre[k, : len(masses)] = masses, centres
    numbers: dict[str, Any] = {
        "mass": (("plateau", "cluster"), mass),
        "centre": (("plateau", "cluster", "axis"), centre),
    }
    numbers["frame"] = ("plateau", np.array([at for at, _, _ in rows]))
    for name in ("entropy", "conditional_entropy"):
        numbers[name] = (("read", "time"), np.array([getattr(read, name) for read in reads]))
    return xr.Dataset(numbers | {"log_time": ("time", np.maximum(times, -50.0))}, {"read": list(parameters.read)})


def _orthonormal(parameters: Parameters) -> Solve:
    """A prompt of orthonormal words, in a vocabulary of orthonormal words; H and exp(I) at every frame."""
    words = np.eye(parameters.orthonormal)
    tokens = Tokens(words[: len(PROMPT.split())])
    seen = {
        "entropy": Observable(lambda mu: entropy(mu, words, parameters.prompt_read)),
        "alternatives": alternatives.of(words=words, beta=parameters.prompt_read),
    }
    method = Fixed(parameters.until / parameters.frames / STEPS)
    field = Attention(parameters.prompt_beta)
    return Solve(field, tokens, parameters.until, save=parameters.frames, method=method, observe=seen, keep=())


def entropy(mu: Any, words: np.ndarray, beta: float) -> Any:
    """H of the next word."""
    return next_token_distribution(mu, words, beta=beta).entropy


def _random(parameters: Parameters) -> xr.Dataset:
    """(draw, time): H and exp(I) of prompts whose words are random directions."""
    tables = [
        random_embedding(PROMPT.split(), dim=parameters.dim, vocabulary=parameters.vocabulary, seed=seed)
        for seed in parameters.seeds(range(parameters.draws))
    ]
    prompts = [from_text(PROMPT, embedding=table) for table in tables]
    flow = solve(
        Attention(parameters.prompt_beta), stack("draw", range(len(prompts)), prompts), parameters.until, save=12
    )
    found = []
    for k, table in enumerate(tables):
        along = distribution_along(flow.member(draw=k), table.vectors, beta=parameters.prompt_read)
        found.append((along.entropy, along.alternatives))
    names, columns = ("entropy", "alternatives"), np.array(found).transpose(1, 0, 2)
    return xr.Dataset(
        {name: (("draw", "time"), column) for name, column in zip(names, columns, strict=True)},
        {"time": flow.time.values},
    )
