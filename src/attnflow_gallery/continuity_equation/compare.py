"""Harmonics and energy of tokens against the density, finite volumes, and clusters."""

import numpy as np
import xarray as xr
from scipy.stats import norm

from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import sampling_noise
from attnflow.meanfield import AbstractBasis, CircleBasis, SphereBasis
from attnflow_gallery.continuity_equation.simulate import BUMPS, LOW, Parameters

LIMIT = published("geshkovski2025perspective")
NOISE = consequence("The standard error that the flow carries")
QUIET = consequence("Quiet tokens")
LEVEL = 1e-4
"""Probability that one of all iid observables exceeds its tolerance by chance."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Tokens as a solution, iid tokens, quiet tokens; finite volumes; clusters."""
    parts = [part for part in data.values() if "deviation" in part]
    return [
        _solution(parts), _iid(parts), _quiet(parts), _order(parameters, data["cells"]),
        *_clusters(parameters, data["clusters"]),
    ]  # fmt: skip


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
    predicted, measured, slack, names = [], [], [], []
    for part in parts:
        for kind in part["tokens"].values:
            predicted.append(_late(part, "predicted", kind))
            measured.append(_late(part, "measured", kind))
            room = float(part["step"]) + 5 * float(part["cut"]) / np.sqrt(part.attrs["n"])
            slack.append(np.full(len(predicted[-1]), room))
            names += [f"{kind} tokens, {name}" for name in _rows(part)]
    return Claim.equal(
        "the measure of n tokens solves the continuity equation: harmonics and energy", np.concatenate(predicted),
        np.concatenate(measured), np.concatenate(slack),
        "the change on doubling the steps; 5 standard errors of the degrees beyond the basis", origin=LIMIT,
        labels=names,
    )  # fmt: skip


def _iid(parts: list[xr.Dataset]) -> Claim:
    error = [_late(part, "deviation") / np.sqrt(part.attrs["n"]) for part in parts]
    count = sum(map(len, error))
    allowed = float(norm.isf(LEVEL / (2 * count)))
    return Claim.equal(
        "iid tokens miss harmonics and energy of the density by the standard error that the flow carries, times z", 0.0,
        np.concatenate([_late(part, "measured", "iid") - _late(part, "density") for part in parts]),
        allowed * np.concatenate(error), f"z for level {LEVEL:g} of all observables together", origin=NOISE,
        labels=[name for part in parts for name in _rows(part)], detail=f"z = {allowed:.2f}",
    )  # fmt: skip


def _quiet(parts: list[xr.Dataset]) -> Claim:
    on_circle = [part for part in parts if part.attrs["space"] == "circle"]
    return Claim.equal(
        "quiet tokens on the circle have the harmonics and the energy of the density", 0.0,
        np.concatenate([_late(part, "measured", "quiet") - _late(part, "density") for part in on_circle]),
        np.concatenate([np.full(len(_late(part, "density")), float(part["step"])) for part in on_circle]),
        "the change on doubling the steps", origin=QUIET, labels=[name for part in on_circle for name in _rows(part)],
    )  # fmt: skip


def _order(parameters: Parameters, part: xr.Dataset) -> Claim:
    """In some three cells about each extremum of the density the limiter cuts slopes.

    There the second-order error has another constant, which depends on where in its cell the extremum lies.
    """
    counts, error = part["count"].values, part["error"].values
    orders = np.log(error[:, :-1] / error[:, 1:]) / np.log(counts[1:] / counts[:-1])
    extrema = 2 * len(BUMPS["circle"][0])
    return Claim.equal(
        "finite volumes on the circle approach the harmonics at second order in L¹", 2.0, orders[:, -1],
        2 * np.abs(orders[:, -1] - orders[:, -2]) + np.log2(1 + 3 * extrema / counts[-2]),
        "twice the change of the order since coarser cells; three cells about each extremum", origin=NUMERICS,
        labels=list(parameters.circle), detail=f"{counts[-2]} to {counts[-1]} cells, errors down to {error.min():.1e}",
    )  # fmt: skip


def _clusters(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    masses, angles, ways = part["masses"], part["angles"], ["tokens alone", "cells"]
    own = np.array([1 / float(part["tokens"]), float(part["border"]) / max(parameters.cells) + float(part["left"])])
    first = float(part["border"]) / part.sizes["angle"]
    heavy, mine = masses.sel(way=ways).values, masses.sel(way="handed over").values
    turn = np.angle(np.exp(1j * (angles.sel(way="cells") - angles.sel(way="handed over")).values))
    return [
        Claim.equal(
            f"clusters at t = {parameters.end:g}: masses by harmonics, then tokens, as by tokens alone and by cells",
            np.broadcast_to(mine, heavy.shape), heavy, 2 * (first + own)[:, None],
            "one token, or cell, of the start at each end of a basin; what is left between clusters", origin=NUMERICS,
            labels=lambda at: f"{ways[at[0]]}, cluster {at[1] + 1}",
            detail="numbers of clusters: " + ", ".join(str(k) for k in part["count"].values),
        ),
        Claim.equal(
            f"clusters at t = {parameters.end:g}: places by harmonics, then tokens, as by cells", 0.0, turn,
            2 * np.pi / max(parameters.cells), "places in finite volumes are good to a cell", origin=NUMERICS,
            labels=lambda at: f"cluster {at[0] + 1}",
        ),
    ]  # fmt: skip
