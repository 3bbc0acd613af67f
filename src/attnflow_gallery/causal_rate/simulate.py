"""Monte Carlo of causal prompts on the circle: distances from the uniform measure, and means from another start."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged, reduced
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.masks import AbstractMask, Causal, Everyone
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

STEP = 0.25
"""Of the Runge-Kutta method: off by (rate step)^5/120 a step, 1e-5 at the largest rate, 1."""
AMPLITUDE = 0.6
"""Of the start 1 + AMPLITUDE cos(angle), whose mean moves."""
PAIRS = 2**21
"""Of tokens, in all prompts that move at a time."""
DEGREES = 4
"""Of controls."""
NODES = 256
"""Of the quadrature that follows the density."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated: attention without normaliser (USA)."""

    beta: float = 1.0
    until: float = 0.5
    sizes: tuple[int, ...] = (32, 64, 128)
    """Of prompts that start uniform."""
    draws: tuple[int, ...] = (32768, 16384, 16384)
    bias_sizes: tuple[int, ...] = (16, 64, 256)
    bias_draws: tuple[int, ...] = (32768, 16384, 8192)
    """With the mask."""
    plain_sizes: tuple[int, ...] = (16, 64)
    plain_draws: tuple[int, ...] = (32768, 16384)
    """Without a mask."""
    expected_excess: float = 60.0
    """Standard errors by which a causal prompt is expected to exceed the limit without a mask."""
    expected_growth: float = 10.5
    """Standard errors by which the bias is expected to fall as N grows."""


QUICK = Parameters(
    sizes=(8, 16, 32),
    draws=(2048, 2048, 8192),
    bias_sizes=(8, 32),
    bias_draws=(8192, 8192),
    plain_sizes=(8, 32),
    plain_draws=(4096, 4096),
    expected_excess=10.5,
    expected_growth=13.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Distances, and means with and without the mask."""
    makers: dict[str, Any] = {f"distance-{n}": (distances, parameters, n, r) for n, r in cases(parameters, "sizes")}
    makers |= {f"bias-{n}": (biases, parameters, n, r, True) for n, r in cases(parameters, "bias_sizes")}
    makers |= {f"plain-{n}": (biases, parameters, n, r, False) for n, r in cases(parameters, "plain_sizes")}
    return study.parts(makers)


def cases(parameters: Parameters, which: str) -> list[tuple[int, int]]:
    """Sizes and draws."""
    draws = {"sizes": parameters.draws, "bias_sizes": parameters.bias_draws, "plain_sizes": parameters.plain_draws}
    return list(zip(getattr(parameters, which), draws[which], strict=True))


def mask(causal: bool) -> AbstractMask:
    """Every token sees those before it, or all tokens."""
    return Causal(strict=True) if causal else Everyone()


def ends(parameters: Parameters, angles: np.ndarray, causal: bool) -> np.ndarray:
    """e^(i angle) of all tokens at the end, (prompt, token)."""
    field = Attention(parameters.beta, normaliser="USA", mask=mask(causal))
    found, block = [], min(max(PAIRS // angles.shape[1] ** 2, 4), 1024)
    for begin in range(0, len(angles), block):
        some = angles[begin : begin + block]
        # the last block is filled, so that one program serves all
        filled = np.concatenate([some, np.zeros((block - len(some), angles.shape[1]))])
        x = np.stack([np.cos(filled), np.sin(filled)], axis=-1)
        start = Tokens(x, space=Sphere(2), dims=("prompt",))
        end = np.asarray(advance(field, start, 0.0, parameters.until, Fixed(STEP)).positions)[: len(some)]
        found.append(end[..., 0] + 1j * end[..., 1])
    return np.concatenate(found)


def squared_distance(z: np.ndarray) -> np.ndarray:
    """W_2^2 of the tokens of every prompt to the uniform measure on the circle.

    Sorted angles less those of equal cells, except for a shift, and the second moment of a cell.
    """
    n = z.shape[1]
    off = np.sort(np.angle(z), axis=1) - 2 * np.pi * (np.arange(n) + 0.5) / n
    return np.asarray(np.var(off, axis=1) + (2 * np.pi / n) ** 2 / 12)


def carried(c: float, n: int) -> np.ndarray:
    """exp(c W^T) 1: with which weights the starts enter the mean of the prompt, to first order."""
    return np.asarray(theory.causal.correlation_matrix(c, n, 0.0).sum(axis=0))


def distances(parameters: Parameters, n: int, draws: int) -> xr.Dataset:
    """N E W_2^2 and its standard error; controls: W_2^2 of the start, and squares of the linear theory.

    All controls have exact means: N E W_2^2 = pi^2/3 for iid uniform tokens, and |exp(c W^T) 1|^2/N.
    """
    angles = parameters.rng(0, n).uniform(-np.pi, np.pi, (draws, n))
    value = n * squared_distance(ends(parameters, angles, True))
    controls = [n * squared_distance(np.exp(1j * angles)) - np.pi**2 / 3]
    for k in range(1, DEGREES + 1):
        v = carried(float(theory.causal.rates(k, parameters.beta, 2, model="USA")) * parameters.until, n)
        controls.append(np.abs(np.exp(1j * k * angles) @ v) ** 2 / n - v @ v / n)
    mean, error = averaged(reduced(value, np.stack(controls, axis=1)))
    return xr.Dataset({"mean": mean, "error": error})


def drawn(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Angles of the density 1 + AMPLITUDE cos(angle), by the inverse of its integral on a fine grid."""
    grid = np.linspace(-np.pi, np.pi, 200_001)
    return np.asarray(np.interp(rng.uniform(-np.pi, np.pi, shape), grid + AMPLITUDE * np.sin(grid), grid))


def mean_of_density(parameters: Parameters) -> float:
    """The mean of cos(angle) at the end for many tokens: a quadrature whose nodes move and keep their masses."""
    angles = 2 * np.pi * np.arange(NODES) / NODES
    tokens = Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1), 1 + AMPLITUDE * np.cos(angles))
    field = Attention(parameters.beta, normaliser="USA")
    end = advance(field, tokens, 0.0, parameters.until, Fixed(STEP / 4))
    return float(np.asarray(end.masses) @ np.asarray(end.positions)[:, 0])


def biases(parameters: Parameters, n: int, draws: int, causal: bool) -> xr.Dataset:
    """N times (E of the mean of cos(angle) less that of the density), and its standard error.

    Controls: means of cos(k angle) of the start, with weights that the linear theory of prefixes hands on.
    """
    angles = drawn(parameters.rng(1, n, int(causal)), (draws, n))
    value = n * (ends(parameters, angles, causal).real.mean(axis=1) - mean_of_density(parameters))
    weights, w = [np.ones(n)], theory.causal.weights(n, 0.0)
    for _ in range(3 if causal else 0):
        weights.append(w.T @ weights[-1])
    controls = []
    for k in range(1, DEGREES + 1):
        start = np.cos(k * angles) - (AMPLITUDE / 2 if k == 1 else 0.0)
        controls += [start @ one for one in weights]
    mean, error = averaged(reduced(value, np.stack(controls, axis=1)))
    return xr.Dataset({"mean": mean, "error": error})
