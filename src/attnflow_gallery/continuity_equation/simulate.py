"""Densities by harmonics and by finite volumes, iid and quiet tokens, and what each makes of sampling noise."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import follow, sampling_noise
from attnflow.fields import Attention
from attnflow.flows import At, Fixed, advance
from attnflow.meanfield import (
    AbstractBasis,
    CircleBasis,
    Density,
    SphereBasis,
    cells_from_density,
    circle_cells,
    empirical,
    evolve,
    evolve_cells,
    mixture,
    multipliers,
    quiet,
    sample,
    von_mises_fisher,
)
from attnflow.observe import cluster_scale, clusters
from attnflow.tokens import Tokens

BUMPS = {
    "circle": ((0.45, 0.33, 0.22), ((0.92, 0.39), (-0.86, 0.52), (-0.21, -0.98))),
    "sphere": ((0.35, 0.27, 0.22, 0.16), ((1.0, 0.0, 0.2), (-0.6, 0.8, 0.3), (-0.4, -0.9, -0.1), (0.2, 0.1, -1.0))),
}
"""Masses and directions of the bumps of the start."""
HEIGHT = 3.0
"""Their concentration."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    circle: tuple[str, ...] = ("SA", "USA0")
    """Models on the circle."""
    sphere: tuple[str, ...] = ("SA", "USA0")
    """Models on S^2."""
    circle_beta: float = 9.0
    sphere_beta: float = 6.0
    circle_n: int = 100_000
    """Tokens on the circle."""
    sphere_n: int = 50_000
    """Tokens on S^2."""
    circle_degree: int = 128
    sphere_degree: int = 48
    circle_until: float = 2.0
    sphere_until: float = 1.2
    legs: int = 4
    """Times at which tokens and density are compared, beyond the start: an even number."""
    steps: int = 4
    """Of RK4 between two such times."""
    cells: tuple[int, ...] = (128, 256, 512, 1024)
    lost_degree: int = 48
    """Of the basis that the density outgrows before tokens take over."""
    end: float = 10.0
    """How long those tokens go on."""


QUICK = Parameters(
    circle=("SA",), sphere=(), circle_n=10_000, circle_degree=64, circle_until=1.2, legs=2, cells=(64, 128, 256)
)

LOW = {"circle": 4, "sphere": 3}
"""The harmonics that are compared have degrees from 1 to this."""
SEEN = 32
"""Degree up to which coefficients of tokens are kept: the kernel has nothing beyond."""
CHECKED = 256
"""Tokens with which the error of the steps is found."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Densities and tokens of every case; cells; clusters."""
    cases = [("circle", model) for model in parameters.circle] + [("sphere", model) for model in parameters.sphere]
    tokens = {f"{space}-{model}": (compared, space, model, parameters) for space, model in cases}
    return study.parts(tokens | {"cells": (volumes, parameters), "clusters": (clustered, parameters)})


def setting(space: str, model: str, parameters: Parameters) -> tuple[Attention, Density, float, float]:
    """The field, the start, the time between two comparisons and the unit of time."""
    on_circle = space == "circle"
    basis: AbstractBasis = CircleBasis(parameters.circle_degree) if on_circle else SphereBasis(parameters.sphere_degree)
    beta = parameters.circle_beta if on_circle else parameters.sphere_beta
    until = parameters.circle_until if on_circle else parameters.sphere_until
    density = start(basis, space)
    unit = 1.0
    if model == "USA0":
        kernel = np.asarray(multipliers(beta, basis.dim, basis.degree))[basis.degrees]
        unit = 1 / float(np.max(basis.synthesis(kernel * np.asarray(density.coefficients))))
    return Attention(beta, normaliser=model), density, unit * until / parameters.legs, unit


def start(basis: AbstractBasis, space: str) -> Density:
    """A mixture of von Mises-Fisher densities."""
    masses, directions = BUMPS[space]
    return mixture(masses, [von_mises_fisher(basis, HEIGHT, direction) for direction in directions])


def compared(space: str, model: str, parameters: Parameters) -> xr.Dataset:
    """One model in one space: the density, iid and quiet tokens, the standard errors, and what steps in time miss."""
    field, density, gap, unit = setting(space, model, parameters)
    counts, low, basis = (parameters.legs, parameters.steps), LOW[space], density.basis
    n = parameters.circle_n if space == "circle" else parameters.sphere_n
    times = gap * np.arange(parameters.legs + 1)
    flow = evolve(field, density, float(times[-1]), save=times)
    coefficients = flow.dataset["coefficients"].values
    found = sampling_noise.influence(field, density, low, gap, counts)
    small = basis.refined(min(SEEN, basis.degree))
    kinds = {"iid": sample(density, n, parameters.seed(0)), "quiet": quiet(density, n)}
    seen, predicted, shown = [], [], []
    for tokens in kinds.values():
        frames = follow(field, tokens, gap, counts, lambda now: (empirical(small, now), _shown(space, now)))
        seen.append(sampling_noise.observe(field, small, low, np.array([c for c, _ in frames])))
        shown.append(np.array([picture for _, picture in frames]))
        predicted.append(sampling_noise.galerkin(field, density, low, empirical(basis, tokens), gap, counts))
    by = ("tokens", "time", "observable")
    return xr.Dataset(
        {
            "measured": (by, np.array(seen)),
            "predicted": (by, np.array(predicted)),
            "density": (by[1:], sampling_noise.observe(field, basis, low, coefficients)),
            "deviation": (by[1:], sampling_noise.deviations(density, found)),
            "coefficients": (("time", *(f"axis{i}" for i in range(basis.mask.ndim))), coefficients),
            "shown": (("tokens", "time", *(f"place{i}" for i in range(shown[0].ndim - 1))), np.array(shown)),
            "cut": sampling_noise.last_degrees(density, found),
            "step": _step_error(field, density, low, small, gap, counts),
        },
        {"tokens": list(kinds), "time": times / unit},
        {"space": space, "model": model, "n": n},
    )


def _shown(space: str, tokens: Tokens) -> np.ndarray:
    """For the figure: a histogram of the angle, or some of the tokens on S^2."""
    x = np.asarray(tokens.positions)
    if space == "sphere":
        return x[:: max(len(x) // 1200, 1)][:1200]
    counts = np.histogram(np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi), 90, (0, 2 * np.pi))[0]
    return np.asarray(counts * (90 / len(x)))


def _step_error(field: Attention, density: Density, low: int, basis: AbstractBasis, gap: float, counts: Any) -> float:
    """By how much steps of half the number change the observables: some 15 times the error of the steps used.

    The larger one of RK4 for a few quiet tokens and RK4 for the coefficients.
    """
    tokens = quiet(density, CHECKED)
    legs, steps = counts
    rows = []
    for width, number in ((gap, legs), (2 * gap, legs // 2)):
        frames = follow(field, tokens, width, (number, steps), functools.partial(empirical, basis))
        rows.append(sampling_noise.observe(field, basis, low, np.array(frames)))
    c = density.coefficients
    fine, coarse = (sampling_noise.galerkin(field, density, low, c, width, counts) for width in (gap, 2 * gap))
    missed = [rows[0][::2] - rows[1], fine[::2] - coarse[: legs // 2 + 1]]
    return float(max(np.abs(one).max() for one in missed))


def volumes(parameters: Parameters) -> xr.Dataset:
    """Finite volumes of several widths against harmonics, in L^1, on the circle at the last time of comparison."""
    rows = []
    for model in parameters.circle:
        field, density, gap, _ = setting("circle", model, parameters)
        until = parameters.legs * gap
        truth = evolve(field, density, until, save=1).density()
        for count in parameters.cells:
            cells = circle_cells(count)
            masses = cells_from_density(cells, density)
            found = evolve_cells(field, cells, masses, until, tol=1e-6, save=At([until])).masses.values[-1]
            rows.append(np.sum(np.abs(found - cells_from_density(cells, truth))))
    return xr.Dataset(
        {"error": (("model", "count"), np.reshape(rows, (-1, len(parameters.cells))))},
        {"model": list(parameters.circle), "count": list(parameters.cells)},
    )


def clustered(parameters: Parameters) -> xr.Dataset:
    """SA on the circle to clusters: harmonics while they resolve, then tokens; tokens alone; cells alone."""
    field = Attention(parameters.circle_beta)
    density = start(CircleBasis(parameters.lost_degree), "circle")
    times = np.linspace(0, parameters.end, 81)
    flow = evolve(field, density, parameters.end, save=times, check=False)
    lost, tokens = float(flow.time[-1]), flow.hand_over()
    cells = circle_cells(max(parameters.cells))
    start_masses, save = cells_from_density(cells, density), At(times[1:].tolist())
    volume = evolve_cells(field, cells, start_masses, parameters.end, save=save)
    step, last = Fixed(0.1), volume.masses.values[-1]
    ends = {
        "handed over": advance(field, tokens, 0.0, parameters.end - lost, step),
        "tokens alone": advance(field, quiet(density, tokens.n), 0.0, parameters.end, step),
        "cells": _heavy(volume.hand_over(), 1 / cells.count),
    }
    scale = cluster_scale(parameters.circle_beta)
    found = {name: clusters(end, scale=scale) for name, end in ends.items()}
    most, masses, angles = max(one.count for one in found.values()), [], []
    for one in found.values():
        spare = (0, most - one.count)
        masses.append(np.pad(one.masses, spare))
        angles.append(np.pad(np.mod(np.arctan2(one.centres[:, 1], one.centres[:, 0]), 2 * np.pi), spare))
    return xr.Dataset(
        {
            "count": ("way", [one.count for one in found.values()]),
            "masses": (("way", "cluster"), np.array(masses)),
            "angles": (("way", "cluster"), np.array(angles)),
            "left": float(np.sum(last[last < 1 / cells.count])),
            "condensed": ("way", [one.condensed for one in found.values()]),
            "border": _border(density),
            "tokens": tokens.n,
            "lost": lost,
            "frame_time": ("frame", flow.time.values),
            "harmonics": (("frame", "angle"), flow.values),
            "cells": (("time", "cell"), volume.values),
        },
        {"way": list(found), "time": volume.time.values, "angle": flow.basis.points(), "cell": cells.centres},
    )


def _heavy(tokens: Tokens, least: float) -> Tokens:
    """The tokens of at least this mass: cells between clusters are never quite empty."""
    masses = np.asarray(tokens.masses)
    return Tokens(np.asarray(tokens.positions)[masses >= least], masses[masses >= least])


def _border(density: Density) -> float:
    """The largest of the minima of rho: where the basins of clusters meet, it only falls with time."""
    rho = np.asarray(density.values)
    return float(np.max(rho[(rho <= np.roll(rho, 1)) & (rho <= np.roll(rho, -1))]))
