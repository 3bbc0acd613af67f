"""3-cycles, random permutations, and a swirl of the square, as shears."""

import dataclasses

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment

from attnflow.control import permute_cells, three_cycle
from attnflow.experiments import Salted, Study

CORE = 0.02
"""The rim of a cell in the part about single cycles."""
TURN = 2.0
"""Largest angle of the swirl."""
BATCHES = 20
"""Batches of points, for standard errors."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    cycles: int = 40
    points: int = 20_000
    sizes: tuple[int, ...] = (4, 6, 8, 10, 12, 16, 20, 24)
    """Cells on a side."""
    ramp: float = 1e-4
    wide: float = 3e-2
    """Another width of rims."""
    permutations: tuple[int, ...] = (3, 6, 10)
    """Sizes of random permutations."""


QUICK = Parameters(cycles=10, points=6000, sizes=(4, 6, 8, 12, 16), permutations=(3, 6))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Errors of cycles, of random permutations, and of the swirl."""
    makers = {"cycles": (cycles, parameters), "random": (random, parameters), "swirl": (swirls, parameters, study)}
    return study.parts(makers)


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
    """Largest errors of random 3-cycles at points of cores."""
    rng = parameters.rng(1)
    rows = []
    for _ in range(parameters.cycles):
        i, j = (int(k) for k in rng.integers(0, 6, 2))
        m, n = (int(k) for k in rng.choice([-3, -2, -1, 1, 2, 3], 2))
        schedule = three_cycle((i, j), m, n, side=0.25, ramp=CORE)
        cells = [(i - m, j), (i, j), (i, j - n)]
        inside = rng.uniform(CORE, 1 - CORE, (100, 2))
        for k, cell in enumerate(cells):
            end, _ = schedule.push((np.array(cell) + inside) * 0.25)
            goal = (np.array(cells[(k + 1) % 3]) + inside) * 0.25
            rows.append(np.abs(end - goal).max())
    return xr.Dataset({"error": ("cell", rows)})


def random(parameters: Parameters) -> xr.Dataset:
    """Random permutations: errors at centres of cells."""
    rows = []
    for n in parameters.permutations:
        goal = parameters.rng(2, n).permutation(n * n)
        schedule = permute_cells(goal, ramp=CORE)
        end, _ = schedule.push(centres(n))
        rows.append(np.abs(end - centres(n)[goal]).max())
    return xr.Dataset({"error": ("n", rows)}, {"n": list(parameters.permutations)})


def swirls(parameters: Parameters, study: Study) -> xr.Dataset:
    """(n, width of rims, batch) mean squares of errors of the swirl; elements; starts and ends of some points."""
    x = parameters.rng(3).random((parameters.points, 2))
    ramps, errors, elements, ends = [parameters.ramp, parameters.wide], [], [], []
    for k, n in enumerate(parameters.sizes):
        study.progress(f"swirl, {n} x {n} cells", k / len(parameters.sizes))
        schedules = [permute_cells(assigned(n), ramp=ramp) for ramp in ramps]
        both = [schedule.push(x)[0] for schedule in schedules]
        errors.append([np.sum((end - swirl(x)) ** 2, axis=1).reshape(BATCHES, -1).mean(axis=1) for end in both])
        elements.append(len(schedules[0]))
        ends.append(both[0])
    found = {"square": (("n", "ramp", "batch"), np.array(errors)), "elements": ("n", elements)}
    found |= {"start": (("point", "axis"), x), "end": (("n", "point", "axis"), np.array(ends))}
    return xr.Dataset(found, {"n": list(parameters.sizes), "ramp": ramps})
