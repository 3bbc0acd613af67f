"""Monte Carlo of exchangeable tokens: pairs at one time and at two times, and triples."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.decoders import uniform_prompts
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged, reduced
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.masks import AbstractMask, Everyone
from attnflow.tokens import Tokens

MODELS = "SA", "USA"
DEGREES = 1, 2
STEP = 0.25
"""Of the Runge-Kutta method: off by (rate step)^5/120 a step, 1e-5 at the largest rate, 1."""
BATCH = 8192
"""Draws that are made at a time."""
NAMES = ("pair, degree 1", "pair, degree 2", "two times, degree 1", "two times, degree 2", "triple")


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    beta: float = 1.0
    until: float = 0.5
    sizes: tuple[int, ...] = (16, 32, 64)
    batches: tuple[int, ...] = (12, 20, 20)
    """Of 8192 draws each, by size."""
    sphere_beta: float = 4.0
    sphere_size: int = 32
    sphere_batches: int = 8
    expected_triples: float = 41.0
    """Standard errors by which the correlations of three tokens are expected to differ from 0."""


QUICK = Parameters(
    sizes=(8, 16, 32),
    batches=(2, 2, 2),
    sphere_size=16,
    sphere_batches=1,
    expected_triples=11.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Both models on the circle, at every size, and softmax on S^2."""
    makers: dict[str, Any] = {model: (circle, parameters, model) for model in MODELS}
    return study.parts(makers | {"sphere": (sphere, parameters)})


def mask(n: int) -> AbstractMask:
    """Who sees whom among n tokens."""
    return Everyone()


def ends(start: Tokens, beta: float, model: str, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions at the start and at the end."""
    field = Attention(beta, normaliser=model, mask=mask(start.n))
    return np.asarray(start.positions), np.asarray(advance(field, start, 0.0, until, Fixed(STEP)).positions)


def circle(parameters: Parameters, model: str) -> xr.Dataset:
    """Means and standard errors of n E cos k(theta_1 - theta_2) and of the triple, (size, quantity)."""
    rows = []
    for n, batches in zip(parameters.sizes, parameters.batches, strict=True):
        values = []
        for batch in range(batches):
            start = uniform_prompts(n, 2, BATCH, (parameters.seed(0), n, batch))
            before, after = (x[..., 0] + 1j * x[..., 1] for x in ends(start, parameters.beta, model, parameters.until))
            values.append([statistics(before, after), statistics(before, before)])
        rows.append(averaged(reduced(*np.concatenate(values, axis=1))))
    mean, error = np.array(rows).swapaxes(0, 1)
    found = {"mean": (("size", "quantity"), mean), "error": (("size", "quantity"), error)}
    return xr.Dataset(found, {"size": list(parameters.sizes), "quantity": list(NAMES)})


def statistics(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """n times pairs (degrees 1, 2; then with the start), n^2 times triples, of distinct tokens; (draw, quantity).

    Of iid uniform tokens all means are 0, so that the values at the start are controls.
    """
    n, first, second = after.shape[1], after.sum(axis=1), (after**2).sum(axis=1)
    pairs = [(np.abs(total) ** 2 - n) / (n - 1) for total in (first, second)]
    across = [
        np.real((after**k).sum(axis=1) * np.conj(before**k).sum(axis=1) - ((after * np.conj(before)) ** k).sum(axis=1))
        / (n - 1)
        for k in DEGREES
    ]
    distinct = np.real(first**2 * np.conj(second)) - np.abs(second) ** 2 - 2 * np.abs(first) ** 2 + 2 * n
    return np.stack([*pairs, *across, n * distinct / ((n - 1) * (n - 2))], axis=1)


def sphere(parameters: Parameters) -> xr.Dataset:
    """n E P_k(<x_1, x_2>) of softmax on S^2, degrees 1 and 2."""
    n, values = parameters.sphere_size, []
    for batch in range(parameters.sphere_batches):
        start = uniform_prompts(n, 3, BATCH, (parameters.seed(1), n, batch))
        before, after = ends(start, parameters.sphere_beta, "SA", parameters.until)
        values.append([zonal_pairs(after), zonal_pairs(before)])
    mean, error = averaged(reduced(*np.concatenate(values, axis=1)))
    return xr.Dataset({"mean": ("degree", mean), "error": ("degree", error)}, {"degree": list(DEGREES)})


def zonal_pairs(x: np.ndarray) -> np.ndarray:
    """n times the means of s and of (3 s^2 - 1)/2 over pairs, s = <x_i, x_j>, (draw, degree)."""
    n, total = x.shape[1], x.sum(axis=1)
    one = np.sum(total**2, axis=-1) - n
    squares = np.sum(np.einsum("pia,pib->pab", x, x) ** 2, axis=(1, 2)) - n
    return np.stack([one / (n - 1), (3 * squares / (n - 1) - n) / 2], axis=1)
