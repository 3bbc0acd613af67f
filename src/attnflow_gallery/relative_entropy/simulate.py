"""Schedules for a mixture of normal densities and for Student densities; their divergences, cell by cell."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm, t

from attnflow.control import Mixture, Schedule, match_density_1d
from attnflow.experiments import Study

WEIGHTS, CENTRES, WIDTHS = (0.3, 0.5, 0.2), (-2.5, 0.5, 3.0), (0.5, 0.8, 0.3)
SPAN = (-5.2, 4.6)
OUTSIDE = (-13.0, 10.0)
"""Beyond, both densities are below 1e-60 of their largest values."""
POINTS = 20
"""Gauss points in a cell; the reached density jumps at nodes."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    cells: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
    meshes: tuple[str, ...] = ("uniform", "quantile", "optimal")
    degrees: tuple[float, ...] = (1.2, 1.5, 1.8, 2.2, 2.5, 3.0)
    """Of freedom of Student targets."""
    student_cells: int = 256
    shells: tuple[int, ...] = tuple(range(2, 13))
    """Shells 10^k < |x| < 10^(k+1)."""
    fitted: int = 4
    """Last shells to which a power is fitted."""


QUICK = Parameters(cells=(4, 32, 512, 1024, 2048), degrees=(1.5, 2.5), student_cells=64)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Divergences for every mesh and number of cells; divergences of Student targets by shells."""
    return study.parts({"meshes": (meshes, parameters, study), "tails": (tails, parameters, study)})


def target() -> Mixture:
    """Three normal densities."""
    return Mixture(WEIGHTS, [norm(c, w) for c, w in zip(CENTRES, WIDTHS, strict=True)])


def log_base(x: np.ndarray) -> Any:
    """Log of the normal density at points (point, 1)."""
    return norm.logpdf(x[:, 0])


def reached(schedule: Schedule, x: np.ndarray) -> np.ndarray:
    """Log of the density that the schedule makes of the normal one, at points of any shape."""
    return np.asarray(schedule.log_density(x.reshape(-1, 1), log_base)).reshape(x.shape)


def gauss(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss's rule in every cell."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    half = np.diff(edges)[:, None] / 2
    return (edges[1:] + edges[:-1])[:, None] / 2 + half * x, half * w


def divergences(wanted: np.ndarray, made: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """KL(wanted || made), KL(made || wanted) and the mass of the made density, from logarithms of both."""
    r = wanted - made
    one = float(np.sum(weights * np.exp(wanted) * (np.expm1(-r) + r)))
    other = float(np.sum(weights * np.exp(made) * (np.expm1(r) - r)))
    return one, other, float(np.sum(weights * np.exp(made)))


def meshes(parameters: Parameters, study: Study) -> xr.Dataset:
    """(mesh, cells): divergences both ways, in the span and in all; masses and numbers of elements."""
    cases, wanted, rows = list(itertools.product(parameters.meshes, parameters.cells)), target(), []
    below, above = np.linspace(OUTSIDE[0], SPAN[0], 17)[:-1], np.linspace(SPAN[1], OUTSIDE[1], 17)[1:]
    for k, (mesh, cells) in enumerate(cases):
        study.progress(f"{mesh}, {cells} cells", k / len(cases))
        match = match_density_1d(wanted, cells, mesh=mesh, span=SPAN)
        at, weights = gauss(np.concatenate([below, match.nodes, above]))
        logs, inside = (wanted.logpdf(at), reached(match.schedule, at)), slice(len(below), len(below) + cells)
        within = divergences(logs[0][inside], logs[1][inside], weights[inside])[:2]
        rows.append((*divergences(*logs, weights), *within, len(match.schedule)))
    columns = np.array(rows).T.reshape(6, len(parameters.meshes), len(parameters.cells))
    labels = ("forward", "backward", "mass", "forward_inside", "backward_inside", "elements")
    names = zip(labels, columns, strict=True)
    coords = {"mesh": list(parameters.meshes), "cells": list(parameters.cells)}
    return xr.Dataset({name: (("mesh", "cells"), column) for name, column in names}, coords)


def tails(parameters: Parameters, study: Study) -> xr.Dataset:
    """(degrees, shell): the parts of KL(target || reached) on both sides of shells."""
    parts = np.zeros((len(parameters.degrees), len(parameters.shells)))
    for k, nu in enumerate(parameters.degrees):
        study.progress(f"Student, nu = {nu:g}", k / len(parameters.degrees))
        match = match_density_1d(t(nu), parameters.student_cells, span=(-50.0, 50.0), allow_infinite=True)
        for j, shell in enumerate(parameters.shells):
            logs, weights = gauss(np.linspace(shell, shell + 1, 9) * np.log(10))
            for side in (-np.exp(logs), np.exp(logs)):
                wanted = t(nu).logpdf(side)
                gap = wanted - reached(match.schedule, side)
                parts[k, j] += float(np.sum(weights * np.exp(logs + wanted) * gap))
    coords = {"degrees": list(parameters.degrees), "shell": list(parameters.shells)}
    return xr.Dataset({"part": (("degrees", "shell"), parts)}, coords)
