"""Hulls, limits, leaders, the approach to leaders, and the radius of regular starts."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import rates
from attnflow.observe import convex_hull, distinct
from attnflow_gallery.vertices.simulate import Parameters, solid

POLYTOPE = published("geshkovski2023emergence")
VERTICES = consequence("Limits are vertices and lead themselves")
REGULAR = consequence("Regular polytopes keep their shape")
SURE = 1e-9
"""A row of attention is decided if all but one of its weights add up to less."""
DIRECTIONS = 200
"""In which the extent of the hull is measured."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Hulls, vertices, matches, leaders, approach; then the regular starts. Each is about all dimensions."""
    return [
        _nested(parameters, data), _at_vertices(parameters, data), _matches(parameters, data),
        _leaders(parameters, data), _approach(parameters, data), _regular(parameters, data),
    ]  # fmt: skip


def _parts(parameters: Parameters, data: dict[str, xr.Dataset]) -> Iterator[tuple[int, xr.Dataset]]:
    return ((dim, data[f"R{dim}"]) for dim in parameters.dims)


def _starts(parameters: Parameters, data: dict[str, xr.Dataset]) -> Iterator[tuple[int, xr.Dataset, int]]:
    """Dimension, part and number of every random start."""
    return ((dim, part, k) for dim, part in _parts(parameters, data) for k in range(parameters.starts))


def _nested(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    growth, tolerance, names = [], [], []
    for dim, part in _parts(parameters, data):
        rays = parameters.rng(0).standard_normal((DIRECTIONS, dim))
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        extent, error = np.max(part["fine"].values @ rays.T, axis=2), part["error"].values
        growth.append(np.diff(extent, axis=0).max(axis=2))
        tolerance.append(error[1:] + error[:-1])
        names += [f"R^{dim}, start {k}" for k in range(part.sizes["start"])]
    return Claim.at_most(
        f"Growth of the convex hull of z from frame to frame, {DIRECTIONS} directions", 0.0,
        np.concatenate(growth, axis=1), np.concatenate(tolerance, axis=1), "change by halving the steps",
        origin=POLYTOPE, labels=lambda at: names[at[1]],
    )  # fmt: skip


def resolution(part: xr.Dataset, start: int) -> float:
    """e^(-t/2) times the largest |z| at t = 0: tokens that chose a leader before t/2 are nearer to it than that."""
    size = np.linalg.norm(part["fine"].values[0, start], axis=1).max()
    return float(size * np.exp(-part["time"].values[-1] / 2))


def limits(part: xr.Dataset, start: int) -> np.ndarray:
    """Groups of tokens at the end, each nearer to another of its group than the resolution."""
    return distinct(part["fine"].values[-1, start], resolution(part, start))


def _vertices(part: xr.Dataset, start: int) -> np.ndarray:
    found = limits(part, start)
    return np.asarray(found[convex_hull(found).vertices])


def _at_vertices(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, names, single = [], [], 0
    for dim, part, k in _starts(parameters, data):
        corners = _vertices(part, k)
        apart = np.linalg.norm(part["fine"].values[-1, k][:, None] - corners, axis=2).min(axis=1)
        rows.append(apart / resolution(part, k))
        names.append(f"R^{dim}, start {k}")
        single += len(corners) == 1
    return Claim.at_most(
        "Random starts: distance of a token from the nearest vertex of the limit, over e^(-t/2) max |z(0)|", 1.0,
        np.array(rows), 0.0, "tokens that chose a leader before t/2 are nearer to it than that",
        origin=VERTICES, labels=lambda at: f"{names[at[0]]}, token {at[1]}",
        detail=f"{single} of {len(rows)} limits are a single point",
    )  # fmt: skip


def _matches(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Over pairs of limits c and c' of a start."""
    margins, slacks, names = [], [], []
    for dim, part, k in _starts(parameters, data):
        z, found, matrix = part["fine"].values[-1, k], limits(part, k), part["map"].values[k]
        seen = found @ matrix.T
        margin = np.sum(seen * seen, axis=1, keepdims=True) - seen @ seen.T
        radius = np.linalg.norm(z[:, None] - found, axis=2).min(axis=1).max() + part["error"].values[-1, k]
        slack = 4 * np.linalg.norm(seen, axis=1).max() * np.linalg.norm(matrix, 2) * radius
        pairs = margin[~np.eye(len(found), dtype=bool)]
        margins += list(pairs)
        slacks += [slack] * len(pairs)
        names += [f"R^{dim}, start {k}"] * len(pairs)
    return Claim.at_least(
        "Random starts: <Bc, c> - <Bc, c'> for limits c and c' of a start", 0.0, np.array(margins),
        np.array(slacks), "distance of tokens from their limit, times the gradient of <Bc, c - c'>",
        origin=VERTICES, labels=names,
    )  # fmt: skip


def _leaders(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    expected, found, names = [], [], []
    for dim, part, k in _starts(parameters, data):
        own = (part["leader"].values[k] == np.arange(parameters.tokens)) & (part["doubt"].values[k] < SURE)
        expected.append(len(_vertices(part, k)))
        found.append(int(own.sum()))
        names.append(f"R^{dim}, start {k}")
    return Claim.equal(
        "Random starts: number of tokens that attend to themselves alone = number of vertices",
        np.array(expected), np.array(found), 0.0, f"counted; alone: other weights add up to less than {SURE:g}",
        origin=VERTICES, labels=names,
    )  # fmt: skip


def _approach(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """How far tokens come towards their leader between the frame `early` and the end."""
    found, allowed, names, count = [], [], [], 0
    for dim, part in _parts(parameters, data):
        early, leader, doubt = int(part.attrs["early"]), part["leader"].values, part["doubt"].values
        rows = np.arange(parameters.starts)[:, None]
        before, after = (
            [
                np.linalg.norm(z - z[rows, leader], axis=2)
                for z in (part[name].values[frame, : parameters.starts] for name in ("fine", "coarse"))
            ]
            for frame in (early, -1)
        )
        sure = (doubt < SURE) & (doubt[rows, leader] < SURE) & (before[0] > 0)
        size = np.ptp(part["fine"].values[early, : parameters.starts], axis=1).max(axis=1)[:, None]
        span = float(part["time"].values[-1] - part["time"].values[early])
        # d|z_i - z_l|/dt + |z_i - z_l| is at most the weights on others, of both tokens, times the size of the hull
        rate, tolerance = rates(before, after, span, 2 * SURE * size + 1e-15, sure)
        found.append(rate)
        allowed.append(tolerance)
        names += [f"R^{dim}, start {k}" for k in range(parameters.starts)]
        count += int(sure.sum())
    return Claim.equal(
        "Random starts: rate at which tokens approach their leader", 1.0, np.concatenate(found),
        np.concatenate(allowed), f"change by halving the steps; weights on others, below {SURE:g}", origin=VERTICES,
        labels=lambda at: f"{names[at[0]]}, token {at[1]}", detail=f"{count} tokens follow another",
    )  # fmt: skip


def regular_radii(part: xr.Dataset) -> np.ndarray:
    """Radii of the regular starts at all frames, as B sees them: (frame, regular, token)."""
    first = part.sizes["start"] - part.sizes["regular"]
    seen = np.einsum("fstd,sed->fste", part["fine"].values[:, first:], part["map"].values[first:])
    return np.asarray(np.linalg.norm(seen, axis=-1))


def _regular(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    measured, predicted, tolerance, names = [], [], [], []
    for dim, part in _parts(parameters, data):
        first = part.sizes["start"] - part.sizes["regular"]
        for k, (corners, radius) in enumerate(zip(part["corners"].values, part["radius"].values, strict=True)):
            limit = theory.landscape.regular_radius(solid(dim, int(corners)), float(radius))
            scale = np.linalg.norm(part["map"].values[first + k], 2)
            predicted.append(limit)
            tolerance.append(scale * part["error"].values[-1, first + k] + 1e-11 * limit)
            names.append(f"R^{dim}, {corners} corners, radius {radius:g}")
        measured.append(regular_radii(part)[-1])
    return Claim.equal(
        "Regular polygons and polyhedra: radius of the limit of z", np.array(predicted)[:, None],
        np.concatenate(measured), np.array(tolerance)[:, None], "change by halving the steps; error of the integral",
        origin=REGULAR, labels=lambda at: names[at[0]],
    )  # fmt: skip
