"""Mean overlaps of iid tokens on a grid of times and inverse temperatures, and times of the transition."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import in_span
from attnflow.fields import Attention
from attnflow.flows import Fixed, Solve
from attnflow.tokens import Measure

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
    n=8,
    until=8.0,
    map_dims=(4, 64, 1024),
    map_betas=tuple(0.5 * k for k in range(6)),
    dims=(64, 256, 1024, 4096),
    betas=(1.0, 3.0),
    draws=100,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Mean overlaps on the grid of the maps, and times of the transition for many draws."""
    maps = overlaps(parameters, parameters.map_dims, parameters.map_betas, parameters.map_draws)
    times = overlaps(parameters, parameters.dims, parameters.betas, parameters.draws)
    found = study.parts({"maps": maps, "times": times})
    frames = found["times"]["overlap"].transpose("time", "beta", "d", "seed")
    start = frames.isel(time=0, drop=True)
    passed = start.copy(data=crossing(frames.values, parameters))
    return {"maps": found["maps"][["overlap"]].mean("seed"), "times": xr.Dataset({"time": passed, "start": start})}


def frame_times(parameters: Parameters) -> np.ndarray:
    """Times of the frames."""
    return parameters.span * np.arange(int(np.ceil(parameters.until / parameters.span)) + 1)


def overlaps(parameters: Parameters, dims: tuple[int, ...], betas: tuple[float, ...], draws: int) -> Solve:
    """The flow of all betas, d and draws; observed is the mean overlap at every frame."""
    tokens, times = in_span(parameters, parameters.n, dims, draws), frame_times(parameters)
    field, observe = Attention(Along("beta", betas)), {"overlap": mean_overlap}
    return Solve(field, tokens, times[-1], save=len(times) - 1, method=Fixed(STEP), observe=observe, keep=())


def mean_overlap(mu: Measure) -> Any:
    """The mean of <x_i, x_j> over pairs, (|sum x|^2 - n)/(n (n-1))."""
    n = mu.positions.shape[-2]
    return ((mu.positions.sum(axis=-2) ** 2).sum(axis=-1) - n) / (n * (n - 1))


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
