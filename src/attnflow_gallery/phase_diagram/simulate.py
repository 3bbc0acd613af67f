"""Mean overlaps of iid tokens on a grid of times and inverse temperatures, and times of the transition."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import in_span
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.tokens import Tokens, stack

STEP = 0.125
"""Of time. Rates of SA are of order 1; the error, about STEP^4/120 per unit of time, is below all others here."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 16
    until: float = 20.0
    span: float = 0.25
    """Time between frames."""
    level: float = 0.5
    """Of the mean overlap: where the transition is."""
    map_dims: tuple[int, ...] = (8, 64, 1024)
    map_betas: tuple[float, ...] = tuple(round(0.2 * k, 1) for k in range(33))
    map_draws: int = 4
    dims: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    betas: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    draws: int = 200


QUICK = Parameters(
    n=8, until=8.0, map_dims=(4, 64, 1024), map_betas=tuple(0.5 * k for k in range(6)), map_draws=4,
    dims=(64, 256, 1024, 4096), betas=(1.0, 3.0), draws=100,
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Mean overlaps on the grid of the maps, and times of the transition for many draws."""
    maps = functools.partial(_maps, parameters, study)
    times = functools.partial(_times, parameters, study)
    return {"maps": study.part("maps", maps), "times": study.part("times", times)}


def _maps(parameters: Parameters, study: Study) -> xr.Dataset:
    grid = parameters.map_dims, parameters.map_betas, parameters.map_draws
    frames = _mean_overlaps(parameters, *grid, lambda share: study.progress("maps", 0.3 * share))
    return xr.Dataset(
        {"overlap": (("time", "beta", "d"), frames.mean(axis=-1))},
        {"time": frame_times(parameters), "beta": list(parameters.map_betas), "d": list(parameters.map_dims)},
    )


def _times(parameters: Parameters, study: Study) -> xr.Dataset:
    grid = parameters.dims, parameters.betas, parameters.draws
    frames = _mean_overlaps(parameters, *grid, lambda share: study.progress("transition times", 0.3 + 0.7 * share))
    dims = ("beta", "d", "seed")
    return xr.Dataset(
        {"time": (dims, crossing(frames, parameters)), "start": (dims, frames[0])},
        {"beta": list(parameters.betas), "d": list(parameters.dims)},
    )


def frame_times(parameters: Parameters) -> np.ndarray:
    """Times of the frames."""
    return parameters.span * np.arange(int(np.ceil(parameters.until / parameters.span)) + 1)


def _mean_overlaps(
    parameters: Parameters, dims: tuple[int, ...], betas: tuple[float, ...], draws: int, on_share: Any
) -> np.ndarray:
    """(time, beta, d, seed): the mean of <x_i, x_j>, i != j, at every frame."""
    start = in_span(parameters, parameters.n, dims, draws)
    tokens = stack("beta", betas, [start] * len(betas))
    field = Attention(Along("beta", betas))
    times, frames = frame_times(parameters), [mean_overlap(tokens)]
    for k in range(1, len(times)):
        tokens = advance(field, tokens, 0.0, parameters.span, Fixed(STEP))
        frames.append(mean_overlap(tokens))
        on_share(k / len(times))
    return np.array(frames)


def mean_overlap(tokens: Tokens) -> np.ndarray:
    """The mean of <x_i, x_j> over pairs, (|sum x|^2 - n)/(n (n-1)), for every member."""
    total = np.sum(np.asarray(tokens.positions), axis=-2)
    return np.asarray((np.sum(total**2, axis=-1) - tokens.n) / (tokens.n * (tokens.n - 1)))


def crossing(frames: np.ndarray, parameters: Parameters) -> np.ndarray:
    """When the mean overlap passes the level, by cubic interpolation in its log-odds; NaN where it does not.

    At beta = 0 orthonormal tokens have log((1 + (n-1) gamma)/(1 - gamma)) = 2t + const, so that time is a smooth
    function of these log-odds; four frames around the crossing leave an error of order span^4.
    """
    times, n = frame_times(parameters), parameters.n
    frames = np.clip(frames, -1 / n, 1 - 1e-12)  # of the frames at the crossing only these matter
    odds = np.log1p((n - 1) * frames) - np.log1p(-frames)
    odds = odds - np.log1p((n - 1) * parameters.level) + np.log1p(-parameters.level)
    first = np.clip(np.argmax(odds >= 0, axis=0), 2, len(times) - 2)
    near = first + np.arange(-2, 2).reshape(-1, *[1] * (odds.ndim - 1))
    x, y = np.take_along_axis(odds, near, axis=0), times[near]
    found = np.zeros(odds.shape[1:])
    with np.errstate(divide="ignore", invalid="ignore"):  # overlaps that stand still, and cross nothing
        for j in range(4):
            found += y[j] * np.prod([-x[k] / (x[j] - x[k]) for k in range(4) if k != j], axis=0)
    return np.where(odds[-1] >= 0, found, np.nan)
