"""Numbers of modes of kernel densities of random samples, on the line and on the circle."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import mean_error
from attnflow.fields import Attention
from attnflow.spaces import Sphere
from attnflow.tokens import uniform

WINDOW = 9.0
"""Distance, in widths of the kernel, beyond which a sample does not count: e^(-40)."""
FINE = 16
"""Grid points per width of the kernel; every second one makes the coarse grid."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is sampled."""

    pair_betas: tuple[float, ...] = (0.5, 1.0, 4.0, 25.0, 100.0)
    """Of two samples."""
    pairs: int = 100_000
    diagonal: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000, 10_000)
    """Numbers n of samples on the line at beta = n."""
    steep: tuple[int, ...] = (30, 100, 300, 1000, 3000, 10_000)
    """Numbers n of samples on the line at beta = n^(3/2)."""
    flat: tuple[int, ...] = (100, 1000, 10_000, 30_000)
    """Numbers n of samples on the line at beta = n^(1/2)."""
    sweep: int = 1000
    """Number of samples on the line at the beta of `sweep_betas`."""
    sweep_betas: tuple[float, ...] = (1.0, 10.0, 100.0, 10_000.0, 100_000.0, 1_000_000.0)
    samples: int = 300_000
    """Samples in all of one case on the line; it is repeated 60 to 2000 times."""
    circle_betas: tuple[float, ...] = (1.0, 5.0, 20.0, 100.0, 400.0)
    circle: int = 400
    """Tokens on the circle."""
    circle_runs: int = 400
    points: int = 2048
    """Test particles around the circle."""
    expected_exponent: float = 16.5
    """Standard errors by which each exponent is expected to exceed 1/2."""


QUICK = Parameters(
    pair_betas=(1.0, 25.0),
    pairs=40_000,
    diagonal=(100, 1000),
    steep=(100, 1000),
    flat=(100,),
    sweep_betas=(100.0,),
    samples=100_000,
    circle_betas=(5.0, 100.0),
    circle=200,
    points=512,
    expected_exponent=17.0,
)


def cases(parameters: Parameters) -> list[tuple[int, float]]:
    """All (n, beta) on the line."""
    made = [(n, float(n)) for n in parameters.diagonal]
    made += [(parameters.sweep, beta) for beta in parameters.sweep_betas]
    made += [(n, float(n) ** 1.5) for n in parameters.steep] + [(n, float(n) ** 0.5) for n in parameters.flat]
    return list(dict.fromkeys(made))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Counts of modes: means, standard errors, and means on the coarse grid."""
    betas, lines = parameters.pair_betas, enumerate(cases(parameters))
    kinds: dict[str, dict[str, tuple[Any, ...]]] = {
        "pairs": {f"pairs-beta{beta:g}": (_pairs, parameters, k, beta) for k, beta in enumerate(betas)},
        "line": {f"line-{n}-beta{beta:.0f}": (_line, parameters, study, k, n, beta) for k, (n, beta) in lines},
        "circle": {f"circle-beta{beta:g}": (_circle, parameters, beta) for beta in parameters.circle_betas},
    }
    found = study.parts({name: make for parts in kinds.values() for name, make in parts.items()})
    return {kind: xr.concat([found[name] for name in parts], "case") for kind, parts in kinds.items()}


def _pairs(parameters: Parameters, index: int, beta: float) -> xr.Dataset:
    samples = normal(parameters.rng(0, 0, index), (parameters.pairs, 2))
    blocks = [count(some, beta) for some in np.array_split(samples, max(1, parameters.pairs // 1000))]
    fine, coarse, _ = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return xr.Dataset({"beta": beta, "fine": fine.mean(), "coarse": coarse.mean()})


def _line(parameters: Parameters, study: Study, index: int, n: int, beta: float) -> xr.Dataset:
    repeats = int(np.clip(parameters.samples / n, 60, 2000))
    rng, parts = parameters.rng(0, 1, index), []
    block = max(1, min(20, 200_000 // n))
    for done in range(0, repeats, block):
        study.progress(f"line, n = {n}, beta = {beta:g}", done / repeats)
        parts.append(count(normal(rng, (min(block, repeats - done), n)), beta))
    found = xr.Dataset({"n": n, "beta": beta, "repeats": repeats})
    for name, column in zip(("fine", "coarse", "middle"), zip(*parts, strict=True), strict=True):
        mean, error = mean_error(np.concatenate(column))
        found = found.assign({name: mean, f"{name}_error": error})
    return found


def _circle(parameters: Parameters, beta: float) -> xr.Dataset:
    fine, coarse = count_circle(beta, parameters)
    return xr.Dataset({"fine": ("seed", fine), "coarse": ("seed", coarse), "beta": beta})


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Standard normal samples."""
    return rng.standard_normal(shape)


def count(samples: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Modes of sum_i e^(-beta (t - X_i)^2/2) for every row of samples: fine grid, coarse grid, fine within [-1, 1].

    All rows are laid on one long line, too far apart to feel each other.
    """
    repeats = len(samples)
    y = np.sort(samples, axis=1) * np.sqrt(beta)
    length = float(np.ceil(y[:, -1].max() - y[:, 0].min() + 3 * WINDOW))
    origin = y[:, 0].min() - 1.5 * WINDOW
    spots = y - origin + length * np.arange(repeats)[:, None]
    slope = _slopes(spots.ravel(), int(repeats * length * FINE) + 1)
    at = np.flatnonzero(_maxima(slope))
    rows = np.minimum((at / (length * FINE)).astype(int), repeats - 1)
    where = (at / FINE - length * rows + origin) / np.sqrt(beta)
    coarse = 2 * np.flatnonzero(_maxima(slope[::2]))
    coarse_rows = np.minimum((coarse / (length * FINE)).astype(int), repeats - 1)
    fine, rough, middle = (
        np.bincount(some, minlength=repeats) for some in (rows, coarse_rows, rows[np.abs(where) <= 1])
    )
    return fine, rough, middle


def _slopes(spots: np.ndarray, size: int) -> np.ndarray:
    """Sum of gap e^(-gap^2/2) over the spots within the window, on a grid of 1/FINE; 0 where there are none."""
    slope, offsets = np.zeros(size), np.arange(int(2 * WINDOW * FINE) + 1)
    for some in np.array_split(spots, max(1, spots.size * offsets.size // 2_000_000)):
        index = np.ceil((some - WINDOW) * FINE).astype(int)[:, None] + offsets
        gap = some[:, None] - index / FINE
        slope += np.bincount(index.ravel(), (gap * np.exp(-0.5 * gap**2)).ravel(), minlength=size)
    return slope


def _maxima(slope: np.ndarray) -> np.ndarray:
    """Where the slope changes from + to -; a slope of 0, in empty places, counts as what it was before."""
    known = np.maximum.accumulate(np.where(slope != 0, np.arange(slope.size), 0))
    sign = slope[known]
    return (sign[:-1] > 0) & (sign[1:] < 0)


def count_circle(beta: float, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """Where the velocity of attention changes from + to - around the circle, for every seed: fine and coarse grid."""
    angles = 2 * np.pi * (np.arange(parameters.points) + 0.5) / parameters.points
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    forward = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    tokens = uniform(Sphere(2), n=parameters.circle, seed=parameters.seeds(range(parameters.circle_runs)))
    velocity = np.sum(np.asarray(Attention(beta).velocity(tokens, at=around)) * forward, axis=-1)
    grids = (velocity, velocity[:, ::2])
    fine, coarse = (np.sum((v > 0) & (np.roll(v, -1, axis=-1) <= 0), axis=-1) for v in grids)
    return fine, coarse
