"""Numbers of modes of kernel densities of random samples, on the line and on the circle."""

import dataclasses
import functools

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


QUICK = Parameters(
    pair_betas=(1.0, 25.0), pairs=40_000, diagonal=(100, 1000), steep=(100, 1000), flat=(100,), sweep=1000,
    sweep_betas=(100.0,), samples=100_000, circle_betas=(5.0, 100.0), circle=200, circle_runs=400, points=512,
)  # fmt: skip


def cases(parameters: Parameters) -> list[tuple[int, float]]:
    """All (n, beta) on the line."""
    made = [(n, float(n)) for n in parameters.diagonal]
    made += [(parameters.sweep, beta) for beta in parameters.sweep_betas]
    made += [(n, float(n) ** 1.5) for n in parameters.steep] + [(n, float(n) ** 0.5) for n in parameters.flat]
    return list(dict.fromkeys(made))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Counts of modes: means, standard errors, and means on the coarse grid."""
    todo = cases(parameters)

    def pairs(index: int, beta: float) -> xr.Dataset:
        study.progress(f"two samples, beta = {beta:g}", 0.05 * index / len(parameters.pair_betas))
        samples = normal(parameters.rng(0, 0, index), (parameters.pairs, 2))
        blocks = [count(some, beta) for some in np.array_split(samples, max(1, parameters.pairs // 1000))]
        fine, coarse, _ = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return xr.Dataset({"beta": beta, "fine": fine.mean(), "coarse": coarse.mean()})

    def line(index: int, n: int, beta: float) -> xr.Dataset:
        repeats = int(np.clip(parameters.samples / n, 60, 2000))
        rng, parts = parameters.rng(0, 1, index), []
        block = max(1, min(20, 200_000 // n))
        for done in range(0, repeats, block):
            study.progress(f"line, n = {n}, beta = {beta:g}", 0.05 + 0.9 * (index + done / repeats) / len(todo))
            parts.append(count(normal(rng, (min(block, repeats - done), n)), beta))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        (fine, fine_error), (coarse, _), (inner, inner_error) = (mean_error(column) for column in columns)
        return xr.Dataset(
            {"n": n, "beta": beta, "repeats": repeats, "fine": fine, "fine_error": fine_error, "coarse": coarse}
            | {"middle": inner, "middle_error": inner_error}
        )

    def circle(index: int, beta: float) -> xr.Dataset:
        study.progress(f"circle, beta = {beta:g}", 0.95 + 0.05 * index / len(parameters.circle_betas))
        fine, coarse = count_circle(beta, parameters)
        return xr.Dataset({"fine": ("seed", fine), "coarse": ("seed", coarse), "beta": beta})

    two = [study.part(f"pairs-beta{b:g}", functools.partial(pairs, k, b)) for k, b in enumerate(parameters.pair_betas)]
    lines = [study.part(f"line-{n}-beta{b:.0f}", functools.partial(line, k, n, b)) for k, (n, b) in enumerate(todo)]
    betas = enumerate(parameters.circle_betas)
    circles = [study.part(f"circle-beta{beta:g}", functools.partial(circle, k, beta)) for k, beta in betas]
    return {"pairs": xr.concat(two, "case"), "line": xr.concat(lines, "case"), "circle": xr.concat(circles, "case")}


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
    return (
        np.bincount(rows, minlength=repeats),
        np.bincount(coarse_rows, minlength=repeats),
        np.bincount(rows[np.abs(where) <= 1], minlength=repeats),
    )


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
    velocity = np.sum(np.asarray(Attention(beta).velocity(0.0, around, tokens)) * forward, axis=-1)
    grids = (velocity, velocity[:, ::2])
    fine, coarse = (np.sum((v > 0) & (np.roll(v, -1, axis=-1) <= 0), axis=-1) for v in grids)
    return fine, coarse
