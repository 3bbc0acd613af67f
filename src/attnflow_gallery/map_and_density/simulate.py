"""A map of the square by permutations and a stretching, at several sizes."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.control import polar
from attnflow.experiments import Salted, Study

BATCHES = 20
"""Batches of points, for standard errors."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    sizes: tuple[tuple[int, int], ...] = tuple((n, n) for n in range(2, 9))
    """Cells on a side, and parts of a cell on a side."""
    points: int = 20_000
    ramp: float = 1e-6


QUICK = Parameters(sizes=tuple((n, n) for n in range(2, 7)), points=2000)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Errors of maps and log-densities, and some points."""
    return study.parts({"errors": (errors, parameters, study)})


def phi(x: np.ndarray) -> np.ndarray:
    """The map: it bends verticals and fans horizontals out."""
    return np.stack([x[:, 0] + 0.25 * np.sin(np.pi * x[:, 1]), x[:, 1] * (0.6 + 0.8 * x[:, 0])], axis=1)


def jacobian(x: np.ndarray) -> np.ndarray:
    """Its determinant."""
    return np.asarray(0.6 + 0.8 * x[:, 0] - 0.2 * np.pi * np.cos(np.pi * x[:, 1]) * x[:, 1])


def errors(parameters: Parameters, study: Study) -> xr.Dataset:
    """(size, batch) mean errors of the map, mean squares of those of the log-density; elements; ends of points."""
    x = parameters.rng(1).random((parameters.points, 2))
    rows, elements, ends = np.zeros((2, len(parameters.sizes), BATCHES)), [], []
    for k, (n, m) in enumerate(parameters.sizes):
        study.progress(f"{n} x {n} cells of {m} x {m} parts", k / len(parameters.sizes))
        match = polar(phi, jacobian, n, m, ramp=parameters.ramp)
        end, log_det = match.schedule.push(x)
        rows[0, k] = np.linalg.norm(end - phi(x), axis=1).reshape(BATCHES, -1).mean(axis=1)
        rows[1, k] = ((log_det - np.log(jacobian(x))) ** 2).reshape(BATCHES, -1).mean(axis=1)
        elements.append(len(match.schedule))
        ends.append(end)
    dims = ("size", "batch")
    found = {"map": (dims, rows[0]), "log_density": (dims, rows[1]), "elements": ("size", elements)}
    points = {"start": (("point", "axis"), x), "end": (("size", "point", "axis"), np.array(ends))}
    return xr.Dataset(found | points, {"size": [n for n, _ in parameters.sizes]})
