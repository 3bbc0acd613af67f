"""Harmonics and energy of tokens against the density, finite volumes, and clusters."""

import numpy as np
import xarray as xr
from scipy.stats import norm

from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, sampling_noise
from attnflow.meanfield import AbstractBasis, CircleBasis, SphereBasis
from attnflow_gallery.continuity_equation.simulate import BUMPS, LOW, Parameters

LIMIT = published("geshkovski2025perspective")
NOISE = consequence("The standard error that the flow carries")
QUIET = consequence("Quiet tokens")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Tokens as a solution, iid tokens, quiet tokens; finite volumes; clusters."""
    parts = [part for part in data.values() if "deviation" in part]
    tokens = [_solution(parts), _iid(parts), _quiet(parts)]
    return [*tokens, _order(parameters, data["cells"]), *_clusters(parameters, data["clusters"])]


def labels(space: str) -> list[str]:
    """What the observables are called."""
    degree = LOW[space]
    basis: AbstractBasis = CircleBasis(degree) if space == "circle" else SphereBasis(degree)
    places = [np.unravel_index(i, basis.mask.shape) for i in sampling_noise.entries(basis, degree)]
    if space == "circle":
        names = [f"√2 {'cos' if i <= degree else 'sin'} {i - degree * (i > degree)}θ" for (i,) in places]
    else:
        names = [f"Y of degree {k}, order {-m if part else m}" for part, m, k in places]
    return [*names, "energy"]


def _rows(part: xr.Dataset) -> list[str]:
    """Names of all observables at all times beyond the start, in the order of a flattened array."""
    where = f"{part.attrs['model']} on {'the circle' if part.attrs['space'] == 'circle' else 'S²'}"
    return [f"{where}, {name}, t = {t:.2g}" for t in part["time"].values[1:] for name in labels(part.attrs["space"])]


def _late(part: xr.Dataset, name: str, kind: str | None = None) -> np.ndarray:
    one = part[name] if kind is None else part[name].sel(tokens=kind)
    return np.asarray(one.values[1:].ravel())


def _solution(parts: list[xr.Dataset]) -> Claim:
    rows = Rows()
    for part in parts:
        room = float(part["step"]) + 5 * float(part["cut"]) / np.sqrt(part.attrs["n"])
        for kind in part["tokens"].values:
            names = [f"{kind} tokens, {name}" for name in _rows(part)]
            rows.add(_late(part, "predicted", kind), _late(part, "measured", kind), room, names)
    words = "the measure of n tokens solves the continuity equation: harmonics and energy"
    reason = "the change on doubling the steps; 5 standard errors of the degrees beyond the basis"
    return rows.equal(words, reason, origin=LIMIT)


def _iid(parts: list[xr.Dataset]) -> Claim:
    rows = Rows()
    z = float(norm.isf(LEVEL / (2 * sum(part["deviation"][1:].size for part in parts))))
    for part in parts:
        error = _late(part, "deviation") / np.sqrt(part.attrs["n"])
        rows.add(0.0, _late(part, "measured", "iid") - _late(part, "density"), z * error, _rows(part))
    words = "iid tokens miss harmonics and energy of the density by the standard error that the flow carries, times z"
    reason = f"z for level {LEVEL:g} of all observables together"
    return rows.equal(words, reason, origin=NOISE, level=LEVEL, detail=f"z = {z:.2f}")


def _quiet(parts: list[xr.Dataset]) -> Claim:
    rows = Rows()
    for part in parts:
        if part.attrs["space"] == "circle":
            rows.add(0.0, _late(part, "measured", "quiet") - _late(part, "density"), part["step"], _rows(part))
    words = "quiet tokens on the circle have the harmonics and the energy of the density"
    return rows.equal(words, "the change on doubling the steps", origin=QUIET)


def _order(parameters: Parameters, part: xr.Dataset) -> Claim:
    """In some three cells about each extremum of the density the limiter cuts slopes.

    There the second-order error has another constant, which depends on where in its cell the extremum lies.
    """
    counts, error, rows = part["count"].values, part["error"].values, Rows()
    extrema = 2 * len(BUMPS["circle"][0])
    for model, orders in zip(parameters.circle, np.log(error[:, :-1] / error[:, 1:]), strict=True):
        last = (orders / np.log(counts[1:] / counts[:-1]))[-2:]
        rows.add(2.0, last[1], 2 * abs(last[1] - last[0]) + np.log2(1 + 3 * extrema / counts[-2]), model)
    return rows.equal(
        "finite volumes on the circle approach the harmonics at second order in L¹",
        "twice the change of the order since coarser cells; three cells about each extremum",
        origin=NUMERICS,
        detail=f"{counts[-2]} to {counts[-1]} cells, errors down to {error.min():.1e}",
    )


def _clusters(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    mine, masses, places = part.sel(way="handed over"), Rows(), Rows()
    border, left = float(part["border"]), float(part["left"])
    own = {"tokens alone": 1 / float(part["tokens"]), "cells": border / max(parameters.cells) + left}
    names = [f"cluster {k + 1}" for k in range(part.sizes["cluster"])]
    for way, least in own.items():
        allowed = 2 * (border / part.sizes["angle"] + least)
        masses.add(mine["masses"], part["masses"].sel(way=way), allowed, [f"{way}, {name}" for name in names])
    turn = np.angle(np.exp(1j * (part["angles"].sel(way="cells") - mine["angles"]).values))
    places.add(0.0, turn, 2 * np.pi / max(parameters.cells), names)
    return [
        masses.equal(
            f"clusters at t = {parameters.end:g}: masses by harmonics, then tokens, as by tokens alone and by cells",
            "one token, or cell, of the start at each end of a basin; what is left between clusters",
            origin=NUMERICS,
            detail="numbers of clusters: " + ", ".join(str(k) for k in part["count"].values),
        ),
        places.equal(
            f"clusters at t = {parameters.end:g}: places by harmonics, then tokens, as by cells",
            "places in finite volumes are good to a cell",
            origin=NUMERICS,
        ),
    ]
