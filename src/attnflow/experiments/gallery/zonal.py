"""Densities with an axis on S^(d-1), d = 2 to 64, grow and condense at the rates of theory, however they are followed.

A density that is symmetric about an axis stays so, and its continuity equation has one variable, the overlap s = <x,
axis>, in every dimension. Degree k of a perturbed uniform measure grows at the rate k (k+d-2) I_(k+d/2-1)(beta) /
(beta I_(d/2-1)(beta)) under softmax attention (SA), and at the mean weight times that under its gradient-flow variant
(USA0): arXiv:2312.10794, Funk and Hecke.

Shown: the rates of the linearised equation; the time in which a density of small mean overlap condenses, which grows by
log 10 over the first rate when the overlap is divided by ten; zonal solvers against those of the circle and of S^2
(harmonics), finite volumes against harmonics in every d, and tokens on S^7 against the density.
Not shown: perturbations that break the symmetry, which other modes would amplify.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery import _carried as carried
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import At
from attnflow.meanfield import (
    AbstractBasis,
    CircleBasis,
    Density,
    SphereBasis,
    ZonalBasis,
    cells_from_density,
    evolve,
    evolve_cells,
    linearised,
    mixture,
    perturbed,
    sample,
    uniform,
    von_mises_fisher,
    zonal_cells,
)
from attnflow.plots.style import PAGE, styled

PAPERS = ("arXiv:2312.10794",)

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
EPS = float(np.finfo(np.float64).eps)
TICK = 0.1
"""Time between two saved overlaps."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    dims: tuple[int, ...] = (2, 3, 4, 8, 16, 32, 64)
    """Of the spaces R^d around the spheres on which densities condense."""
    rate_dims: tuple[int, ...] = (2, 3, 4, 8, 16, 32, 64)
    """Of those of the rates."""
    betas: tuple[float, ...] = (1.0, 4.0, 16.0)
    """Of the rates."""
    models: tuple[str, ...] = ("SA", "USA0")
    """Of the rates."""
    degrees: int = 8
    """Of the rates: 1 to this."""
    rate_degree: int = 24
    """Of the basis of the linearised equation."""
    beta: float = 1.0
    """Of the condensation."""
    overlaps: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    """Mean overlaps that densities start with."""
    condensed: float = 0.5
    """The mean overlap at which a density counts as condensed."""
    degree: int = 80
    """Of the basis of the condensation."""
    flow_beta: float = 4.0
    """Of the comparisons."""
    flow_until: float = 1.5
    flow_degree: int = 48
    general: tuple[int, ...] = (2, 3)
    """Dimensions in which zonal solvers are compared with general ones."""
    cell_dims: tuple[int, ...] = (2, 3, 8, 64)
    cells: tuple[int, ...] = (64, 128, 256)
    token_dim: int = 8
    n: int = 2000
    seeds: int = 4


QUICK = Parameters(
    dims=(2, 8),
    rate_dims=(2, 8, 64),
    models=("SA",),
    betas=(1.0, 4.0),
    degree=48,
    general=(2,),
    cell_dims=(8,),
    cells=(32, 64, 128),
    n=1000,
    seeds=1,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Rates, condensations, the comparisons of solvers, and tokens."""
    data: dict[str, xr.Dataset] = {}
    makers = {
        "rates": rates,
        "condensation": condensation,
        "solvers": solvers,
        "cells": volumes,
        "tokens": tokens,
    }
    for k, (name, make) in enumerate(makers.items()):
        study.progress(name, k / len(makers))
        data[name] = study.part(name, functools.partial(make, parameters))
    return data


def rates(parameters: Parameters) -> xr.Dataset:
    """The matrix of the linearised equation at the uniform measure: its diagonal, and the largest entry beside it."""
    shape = (len(parameters.models), len(parameters.rate_dims), len(parameters.betas))
    rate, rest = np.empty((*shape, parameters.degrees)), np.empty((*shape, parameters.degrees))
    for place in np.ndindex(shape):
        model, d, beta = parameters.models[place[0]], parameters.rate_dims[place[1]], parameters.betas[place[2]]
        density = uniform(ZonalBasis(d, parameters.rate_degree))
        matrix = linearised(Attention(beta, normaliser=MODELS[model]), density).matrix
        rate[place] = np.diag(matrix)[: parameters.degrees]
        rest[place] = np.abs(matrix - np.diag(np.diag(matrix))).max(axis=0)[: parameters.degrees]
    by = ("model", "dimension", "beta", "degree")
    return xr.Dataset(
        {"rate": (by, rate), "rest": (by, rest)},
        {
            "model": list(parameters.models),
            "dimension": list(parameters.rate_dims),
            "beta": list(parameters.betas),
            "degree": np.arange(1, parameters.degrees + 1),
        },
    )


def condensation(parameters: Parameters) -> xr.Dataset:
    """SA from the density 1 + overlap d s: times at which the mean overlap is `condensed`, and densities on the way."""
    times, profiles, overlaps = [], [], []
    for d in parameters.dims:
        basis = ZonalBasis(d, parameters.degree)
        first = float(theory.growth_rates(parameters.beta, d, 1))
        row = []
        for overlap in parameters.overlaps:
            until = TICK * np.ceil((np.log(1 / overlap) / first + 3) / TICK)
            density = perturbed(basis, 1, overlap * d)
            save = np.arange(0, until + TICK / 2, TICK)
            flow = evolve(Attention(parameters.beta), density, float(save[-1]), save=save, check=False)
            t, mean = flow.time.values, flow.dataset["coefficients"].values[:, 1] / np.sqrt(d)
            row.append(crossing(t, mean, parameters.condensed))
        times.append(row)
        chosen = [int(np.argmax(mean >= level)) for level in LEVELS if mean[-1] >= level]
        heights = np.cos(ANGLES)
        made = [flow.density(k)(heights) for k in chosen]
        profiles.append(made + [np.full(len(ANGLES), np.nan)] * (len(LEVELS) - len(made)))
        overlaps.append([mean[k] for k in chosen] + [np.nan] * (len(LEVELS) - len(made)))
    return xr.Dataset(
        {
            "time": (("dimension", "overlap"), np.array(times)),
            "profile": (("dimension", "level", "angle"), np.array(profiles)),
            "mean": (("dimension", "level"), np.array(overlaps)),
        },
        {"dimension": list(parameters.dims), "overlap": list(parameters.overlaps), "angle": ANGLES},
    )


LEVELS = (0.0, 0.1, 0.3, 0.5)
"""Mean overlaps at which densities are drawn."""
ANGLES = np.linspace(0, np.pi, 361)


def crossing(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """When values rise through a level: on a cubic spline through them; NaN if they do not."""
    above = np.flatnonzero(values >= level)
    if not len(above) or above[0] == 0:
        return float("nan")
    k = int(above[0])
    spline = CubicSpline(times, values)
    return float(brentq(lambda t: float(spline(t)) - level, times[k - 1], times[k], xtol=1e-13))


def two_poles(basis: AbstractBasis) -> Density:
    """A density with a bump at either end of the last axis."""
    axis = np.eye(basis.dim)[-1]
    return mixture((0.7, 0.3), [von_mises_fisher(basis, 3.0, axis), von_mises_fisher(basis, 3.0, -axis)])


def solvers(parameters: Parameters) -> xr.Dataset:
    """Circle and S^2: how far the zonal solver is from the general one, and what steps in time may miss."""
    rows = []
    field = Attention(parameters.flow_beta)
    for d in parameters.general:
        basis = {2: CircleBasis, 3: SphereBasis}[d](parameters.flow_degree)
        start = two_poles(ZonalBasis(d, parameters.flow_degree))
        flat, loose = (evolve(field, start, parameters.flow_until, save=1, rtol=rtol) for rtol in (1e-10, 1e-8))
        full = evolve(field, two_poles(basis), parameters.flow_until, save=1)
        c, own = full.dataset["coefficients"].values[-1], flat.dataset["coefficients"].values[-1]
        zonal, rest = _on_axis(c) if d == 2 else (c[0, 0], c[:, 1:])
        rows.append(
            {
                "difference": float(np.sqrt(np.sum((zonal - own) ** 2) + np.sum(rest**2))),
                "steps": float(np.linalg.norm(own - loose.dataset["coefficients"].values[-1])),
                "tail": float(np.linalg.norm(own)) * float(flat.dataset["tail"].values[-1]),
            }
        )
    names = ("difference", "steps", "tail")
    return xr.Dataset(
        {name: ("dimension", np.array([row[name] for row in rows])) for name in names},
        {"dimension": list(parameters.general)},
    )


def _on_axis(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients in cos k(theta - pi/2), and in sin k(theta - pi/2), of a function on the circle."""
    cosines, sines = np.split(c[1:], 2)
    k = np.arange(1, len(cosines) + 1)
    turn = np.exp(0.5j * np.pi * k)
    return np.append(c[0], cosines * turn.real + sines * turn.imag), sines * turn.real - cosines * turn.imag


def volumes(parameters: Parameters) -> xr.Dataset:
    """Finite volumes of several widths against harmonics, in L^1."""
    field, until, rows = Attention(parameters.flow_beta), parameters.flow_until, []
    for d in parameters.cell_dims:
        start = two_poles(ZonalBasis(d, parameters.flow_degree))
        truth = evolve(field, start, until, save=1).density()
        for count in parameters.cells:
            cells = zonal_cells(d, count)
            flow = evolve_cells(
                field, cells, cells_from_density(cells, start), until, tolerance=1e-6, save=At([until])
            )  # fmt: skip
            rows.append(np.sum(np.abs(flow.masses.values[-1] - cells_from_density(cells, truth))))
    return xr.Dataset(
        {"error": (("dimension", "count"), np.reshape(rows, (-1, len(parameters.cells))))},
        {"dimension": list(parameters.cell_dims), "count": list(parameters.cells)},
    )


def tokens(parameters: Parameters) -> xr.Dataset:
    """Mean overlaps with the axis of iid tokens and of the density, and the standard error that the flow carries."""
    d, counts = parameters.token_dim, (4, 4)
    field, start = Attention(parameters.flow_beta), von_mises_fisher(ZonalBasis(d, parameters.flow_degree), 3.0)
    gap = parameters.flow_until / counts[0]
    times = gap * np.arange(counts[0] + 1)
    flow = evolve(field, start, parameters.flow_until, save=times)
    noise = carried.deviations(start, carried.influence(field, start, 1, gap, counts))[:, 0] / np.sqrt(d)
    found = [
        carried.follow(
            field, sample(start, parameters.n, seed), gap, counts,
            lambda now: float(np.mean(np.asarray(now.positions)[:, -1])),
        )
        for seed in range(parameters.seeds)
    ]  # fmt: skip
    return xr.Dataset(
        {
            "overlap": (("seed", "time"), np.array(found)),
            "density": ("time", flow.dataset["coefficients"].values[:, 1] / np.sqrt(d)),
            "noise": ("time", noise / np.sqrt(parameters.n)),
        },
        {"time": times, "seed": np.arange(parameters.seeds)},
    )


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Per dimension the rate and the condensation; then solvers, finite volumes and tokens."""
    made = [_rate_claim(parameters, data["rates"], d) for d in parameters.rate_dims]
    made += [_time_claim(parameters, data["condensation"], d) for d in parameters.dims]
    for d in parameters.general:
        one = data["solvers"].sel(dimension=d)
        made.append(
            Claim.at_most(
                f"d = {d}: zonal harmonics against those of {'the circle' if d == 2 else 'S²'}, 2-norm of what differs",
                0.0, float(one["difference"]), float(one["steps"] + one["tail"]),
                "the change when steps may err 100 times more; the last degrees",
            )
        )  # fmt: skip
    for d in parameters.cell_dims:
        error = data["cells"]["error"].sel(dimension=d).values
        made.append(carried.order_claim(f"d = {d}", np.array(parameters.cells), error, 3))
    one = data["tokens"]
    off = np.abs(one["overlap"].values - one["density"].values) / one["noise"].values
    seed, t = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
    made.append(
        Claim.equal(
            f"d = {parameters.token_dim}: mean overlap with the axis of {parameters.n:,} iid tokens "
            f"(worst of {off.size}: seed {seed}, t = {float(one['time'][t]):.3g})",
            float(one["density"][t]), float(one["overlap"][seed, t]), 4 * float(one["noise"][t]),
            "4 standard errors: the variance of iid tokens, carried by the tangent flow",
        )
    )  # fmt: skip
    return made


def _rate_claim(parameters: Parameters, part: xr.Dataset, d: int) -> Claim:
    """The rate of this dimension that uses most of its tolerance.

    An entry of the matrix is a sum over the grid of products of a Laplacian, at most degree (degree + d - 2), with
    functions of size 1.
    """
    top = parameters.rate_degree
    tolerance = 4 * np.sqrt(top) * EPS * top * (top + d - 2)
    rows = []
    for model in parameters.models:
        for beta in parameters.betas:
            expected = theory.growth_rates(beta, d, part["degree"].values, model)
            one = part.sel(model=model, dimension=d, beta=beta)
            off = np.maximum(np.abs(one["rate"].values - expected), one["rest"].values)
            k = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            rows.append((off[k], model, beta, k + 1))
    worst, model, beta, k = max(rows, key=lambda row: np.inf if np.isnan(row[0]) else row[0])
    count = len(rows) * parameters.degrees
    return Claim.at_most(
        f"d = {d}: the linearised equation is diagonal with the rates λ_k (worst of {count}: {model}, β = {beta:g}, "
        f"degree {k}; difference)",
        0.0, worst, tolerance, "round-off in sums of second derivatives",
    )  # fmt: skip


def _time_claim(parameters: Parameters, part: xr.Dataset, d: int) -> Claim:
    gaps = np.diff(part["time"].sel(dimension=d).values)
    rate, factor = float(theory.growth_rates(parameters.beta, d, 1)), parameters.overlaps[-2] / parameters.overlaps[-1]
    return Claim.equal(
        f"d = {d}: time to a mean overlap of {parameters.condensed:g} from {parameters.overlaps[-1]:g} instead of "
        f"{parameters.overlaps[-2]:g} is longer by log {factor:.3g}/λ_1",
        float(np.log(factor)) / rate, gaps[-1], abs(gaps[-1] - gaps[-2]) + 5 / 384 * TICK**4,
        "the change since larger overlaps, which falls geometrically; the spline",
    )  # fmt: skip


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Densities with an axis on S^(d-1) under softmax attention.

    (a) The distribution of the angle to the axis, for several d (shifted upwards), at mean overlaps 0 (dashed), 0.1,
    0.3 and 0.5
    (darker). (b) Growth rates: linearised equation (marks) and closed form (lines), at the middle beta. (c) Time to the
    mean overlap of condensation against d, from small mean overlaps; lines: straight on at the rate of degree 1.
    (d) Mean overlap of tokens less that of the density (marks: seeds; band: 2 standard errors); inset: both. (e) Finite
    volumes against harmonics; dashed: second order.
    """
    from attnflow.experiments.gallery import _zonal_figure as panels

    with styled() as figure:
        return panels.draw(figure.Figure(figsize=(PAGE, 5.2)), parameters, data)
