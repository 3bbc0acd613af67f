"""Least squares over random heads for several targets, the diagonal, and averages of independent heads."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.learn import fit_heads
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

TARGETS = ("softmax", "flow", "product", "even", "sum")
"""One head with Q^T K = 3 I; the flow map of softmax attention; |mean|^2 mean; e_1; e_1 and the flow map together."""

FRESH = 7000
"""Where the labels of random numbers begin: those of the labels from 0 on were seen while the claims were written."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    sizes: tuple[tuple[int, int], ...] = ((2, 2), (4, 3))
    """(n, d): tokens and dimension."""
    heads: tuple[int, ...] = (8, 16, 32, 64)
    samples: int = 1024
    """Independent prompts of a fit, and of its test."""
    beta: float = 2.0
    """Of the flow."""
    until: float = 1.0
    averaged: tuple[int, ...] = (16, 64, 256)
    """Numbers of independent heads of which averages are taken."""
    repeats: int = 400
    """Averages of each kind."""


QUICK = Parameters(sizes=((2, 2), (4, 2)), heads=(8, 24, 48), samples=640, averaged=(16, 64), repeats=200)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """A part for each size, and two more."""
    return study.parts(
        {f"fits-{n}-{d}": (fits, n, d, parameters) for n, d in parameters.sizes}
        | {"exact": (exact, parameters), "diagonal": (diagonal, parameters), "averages": (averages, parameters)}
    )


def target_of(name: str, parameters: Parameters) -> Any:
    """The map of prompts (prompt, token, dim) of a name."""

    def even(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.eye(1, x.shape[2]), x.shape)

    def flow(x: np.ndarray) -> np.ndarray:
        tokens = Tokens(x, dims=("prompt",), space=Sphere(x.shape[2]))
        moved = advance(Attention(parameters.beta), tokens, 0.0, parameters.until, Fixed(0.1))
        return np.asarray(moved.positions)

    def product(x: np.ndarray) -> np.ndarray:
        mean = x.mean(axis=1, keepdims=True)
        return np.broadcast_to(np.sum(mean**2, axis=-1, keepdims=True) * mean, x.shape)

    named = {"softmax": lambda x: head(x, 3.0 * np.eye(x.shape[2])), "flow": flow, "product": product, "even": even}
    return named.get(name, lambda x: even(x) + flow(x))


def head(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """sum_j softmax_j(<A x_i, x_j>) x_j."""
    logits = (x @ np.swapaxes(matrix, -1, -2)) @ np.swapaxes(x, -1, -2)
    share = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(share / share.sum(axis=-1, keepdims=True) @ x)


def fits(n: int, d: int, parameters: Parameters) -> xr.Dataset:
    """(target, heads): errors on fresh prompts without a bias; that of e_1 with a bias."""
    seed = parameters.seed(FRESH + 100 * n + d)
    options: dict[str, Any] = {"tokens": n, "dim": d, "samples": parameters.samples, "seed": seed}
    error = np.zeros((len(TARGETS), len(parameters.heads)))
    for index in np.ndindex(error.shape):
        name, heads = TARGETS[index[0]], parameters.heads[index[1]]
        error[index] = fitted(target_of(name, parameters), heads=heads, **options)
    biased = float(fit_heads(target_of("even", parameters), heads=parameters.heads[0], bias=True, **options).error)
    labels = {"target": list(TARGETS), "heads": list(parameters.heads)}
    return xr.Dataset({"error": (("target", "heads"), error), "biased": biased}, labels)


def fitted(target: Any, **options: Any) -> float:
    """The error on fresh prompts of heads without a bias."""
    return float(fit_heads(target, **options).error)


def dictionary(rng: np.random.Generator, d: int) -> np.ndarray:
    """Eight matrices A_h: Gaussian ones, and 3 I."""
    return np.concatenate([rng.standard_normal((7, d, d)), 3.0 * np.eye(d)[None]])


def exact(parameters: Parameters) -> xr.Dataset:
    """The error of one head whose matrix is among the heads."""
    n, d = parameters.sizes[-1]
    options: dict[str, Any] = {"tokens": n, "dim": d, "samples": parameters.samples, "seed": parameters.seed(FRESH + 1)}
    matrices = dictionary(parameters.rng(FRESH + 1), d)
    found = fit_heads(target_of("softmax", parameters), heads=8, matrices=matrices, **options)
    return xr.Dataset({"error": float(found.error)})


def diagonal(parameters: Parameters) -> xr.Dataset:
    """(point, dim): what fitted heads make of prompts (x, ..., x), and the sum of the values times x."""
    n, d = parameters.sizes[-1]
    options: dict[str, Any] = {"tokens": n, "dim": d, "samples": parameters.samples, "seed": parameters.seed(FRESH + 2)}
    found = fit_heads(target_of("flow", parameters), heads=parameters.heads[0], **options)
    points = Sphere(d).sample(parameters.rng(FRESH + 2), 50)
    answers = found(on_diagonal(points, n))[:, 0]
    line = points @ found.values.sum(axis=0).T
    size = np.abs(found.values).sum()
    dims = ("point", "dim")
    return xr.Dataset({"answer": (dims, answers), "line": (dims, line), "size": float(size)})


def on_diagonal(points: np.ndarray, n: int) -> np.ndarray:
    """Prompts of n equal tokens."""
    return np.repeat(points[:, None], n, axis=1)


def averages(parameters: Parameters) -> xr.Dataset:
    """Squared errors of averages of H independent heads, H times, and the variance of one head, at one prompt."""
    n, d = parameters.sizes[-1]
    x = Sphere(d).sample(parameters.rng(FRESH + 3), n)
    rng = parameters.rng(FRESH + 4)
    most, repeats = max(parameters.averaged), parameters.repeats
    mean = head(x, independent(parameters.rng(FRESH + 5), 200 * most, d)).mean(axis=0)
    variance = np.sum((head(x, independent(rng, 100 * most, d)) - mean) ** 2, axis=(1, 2))
    square = [
        np.sum(
            (head(x, independent(rng, repeats * count, d)).reshape(repeats, count, n, d).mean(axis=1) - mean) ** 2,
            axis=(1, 2),
        )
        * count
        for count in parameters.averaged
    ]
    return xr.Dataset(
        {"square": (("heads", "repeat"), np.array(square)), "variance": ("draw", variance)},
        {"heads": list(parameters.averaged)},
    )


def independent(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    """Independent Gaussian matrices A_h."""
    return np.asarray(2.0 * rng.standard_normal((count, d, d)))
