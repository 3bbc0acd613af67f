"""3-cycles, random permutations, and a swirl of the square, as shears."""

import dataclasses
import functools

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment

from attnflow.control import permute_cells, three_cycle
from attnflow.experiments import Salted, Study

CORE = 0.02
"""The rim of a cell in the part about single cycles."""
TURN = 2.0
"""Largest angle of the swirl."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    cycles: int = 40
    points: int = 4000
    sizes: tuple[int, ...] = (4, 6, 8, 12, 16, 24)
    """Cells on a side."""
    ramp: float = 1e-4
    wide: float = 3e-2
    """Another width of rims."""
    permutations: tuple[int, ...] = (3, 6, 10)
    """Sizes of random permutations."""


QUICK = Parameters(cycles=10, points=1000, sizes=(4, 8, 16), permutations=(3, 6))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Errors of cycles, of random permutations, and of the swirl."""
    return {
        "cycles": study.part("cycles", functools.partial(cycles, parameters)),
        "random": study.part("random", functools.partial(random, parameters)),
        "swirl": study.part("swirl", functools.partial(swirls, parameters, study)),
    }


def centres(n: int) -> np.ndarray:
    """Centres of the n x n cells of the unit square, row by row."""
    return (np.stack(np.meshgrid(np.arange(n), np.arange(n)), axis=-1).reshape(-1, 2) + 0.5) / n


def swirl(x: np.ndarray) -> np.ndarray:
    """A rotation about the centre by an angle that falls to 0 at the radius 1/2; it preserves areas."""
    y = x - 0.5
    r = np.linalg.norm(y, axis=1)
    angle = TURN * np.maximum(1 - (2 * r) ** 2, 0) ** 2
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * y[:, 0] - s * y[:, 1], s * y[:, 0] + c * y[:, 1]], axis=1) + 0.5


def assigned(n: int) -> np.ndarray:
    """The permutation of cells that is nearest to the swirl in the sense of squares."""
    at = centres(n)
    cost = np.sum((swirl(at)[:, None] - at[None]) ** 2, axis=-1)
    return np.asarray(linear_sum_assignment(cost)[1])


def cycles(parameters: Parameters) -> xr.Dataset:
    """Largest errors of random 3-cycles at points of cores, and of their log-determinants."""
    rng = parameters.rng(1)
    rows = []
    for _ in range(parameters.cycles):
        i, j = (int(k) for k in rng.integers(0, 6, 2))
        m, n = (int(k) for k in rng.choice([-3, -2, -1, 1, 2, 3], 2))
        schedule = three_cycle((i, j), m, n, side=0.25, ramp=CORE)
        cells = [(i - m, j), (i, j), (i, j - n)]
        inside = rng.uniform(CORE, 1 - CORE, (100, 2))
        for k, cell in enumerate(cells):
            end, log_det = schedule.push((np.array(cell) + inside) * 0.25)
            goal = (np.array(cells[(k + 1) % 3]) + inside) * 0.25
            rows.append((np.abs(end - goal).max(), np.abs(log_det).max()))
    found = np.array(rows)
    return xr.Dataset({"error": ("cell", found[:, 0]), "log_det": ("cell", found[:, 1])})


def random(parameters: Parameters) -> xr.Dataset:
    """Random permutations: errors at centres of cells, and elements."""
    rows = []
    for n in parameters.permutations:
        goal = parameters.rng(2, n).permutation(n * n)
        schedule = permute_cells(goal, ramp=CORE)
        end, _ = schedule.push(centres(n))
        rows.append((np.abs(end - centres(n)[goal]).max(), len(schedule)))
    found = np.array(rows)
    return xr.Dataset(
        {"error": ("n", found[:, 0]), "elements": ("n", found[:, 1])},
        {"n": list(parameters.permutations)},
    )


def swirls(parameters: Parameters, study: Study) -> xr.Dataset:
    """(width of rims, n) root mean square errors of the swirl; elements; starts and ends of some points."""
    x = parameters.rng(3).random((parameters.points, 2))
    errors, elements, ends = np.zeros((2, len(parameters.sizes))), [], []
    for k, n in enumerate(parameters.sizes):
        study.progress(f"swirl, {n} x {n} cells", k / len(parameters.sizes))
        goal = assigned(n)
        for row, ramp in enumerate((parameters.ramp, parameters.wide)):
            schedule = permute_cells(goal, ramp=ramp)
            end, _ = schedule.push(x)
            errors[row, k] = np.sqrt(np.mean(np.sum((end - swirl(x)) ** 2, axis=1)))
            if row == 0:
                elements.append(len(schedule))
                ends.append(end)
    return xr.Dataset(
        {"error": (("ramp", "n"), errors), "elements": ("n", elements), "start": (("point", "axis"), x),
         "end": (("n", "point", "axis"), np.array(ends))},
        {"n": list(parameters.sizes), "ramp": [parameters.ramp, parameters.wide]},
    )  # fmt: skip
