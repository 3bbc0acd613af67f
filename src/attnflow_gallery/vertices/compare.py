"""Hulls, limits, leaders, the approach to leaders, and the radius of regular starts."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows, rates
from attnflow.observe import convex_hull, distinct
from attnflow_gallery.vertices.simulate import Parameters, solid

POLYTOPE = published("geshkovski2023emergence")
NESTED = consequence("The hull shrinks")
VERTICES = consequence("Limits are vertices and lead themselves")
REGULAR = consequence("Regular polytopes keep their shape")
SURE = 1e-9
"""A row of attention is decided if all but one of its weights add up to less."""
DIRECTIONS = 200
"""In which the extent of the hull is measured."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Hulls, vertices, matches, leaders, approach; then the regular starts. Each is about all dimensions."""
    return [
        _nested(parameters, data),
        _at_vertices(parameters, data),
        _matches(parameters, data),
        _leaders(parameters, data),
        _approach(parameters, data),
        _regular(parameters, data),
    ]


def _parts(parameters: Parameters, data: dict[str, xr.Dataset]) -> Iterator[tuple[int, xr.Dataset]]:
    return ((dim, data[f"R{dim}"]) for dim in parameters.dims)


def _starts(parameters: Parameters, data: dict[str, xr.Dataset]) -> Iterator[tuple[str, xr.Dataset, int]]:
    """Name, part and number of every random start."""
    parts = _parts(parameters, data)
    return ((f"R^{dim}, start {k}", part, k) for dim, part in parts for k in range(parameters.starts))


def error(part: xr.Dataset) -> np.ndarray:
    """(time, start) the largest change of a token by halving the steps, 15 times the error of order 4; rounding."""
    z, change = part["positions"].values, part["positions"].values - part["coarse"].values
    return np.asarray(np.linalg.norm(change, axis=-1).max(axis=-1) + 64 * EPS * np.abs(z).max(axis=(-2, -1)))


def _nested(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for dim, part in _parts(parameters, data):
        rays = parameters.rng(0).standard_normal((DIRECTIONS, dim))
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        extent, off = np.max(part["positions"].values @ rays.T, axis=2), error(part)
        growth = np.diff(extent, axis=0).max(axis=2)
        for k in range(part.sizes["start"]):
            rows.add(0.0, growth[:, k], off[1:, k] + off[:-1, k], f"R^{dim}, start {k}")
    statement = f"Growth of the convex hull of z from frame to frame, {DIRECTIONS} directions"
    return rows.at_most(statement, "change by halving the steps", origin=NESTED)


def resolution(part: xr.Dataset, start: int) -> float:
    """e^(-t/2) times the largest |z| at t = 0: tokens that chose a leader before t/2 are nearer to it than that."""
    size = np.linalg.norm(part["positions"].values[0, start], axis=1).max()
    return float(size * np.exp(-part["time"].values[-1] / 2))


def limits(part: xr.Dataset, start: int) -> np.ndarray:
    """Groups of tokens at the end, each nearer to another of its group than the resolution."""
    return distinct(part["positions"].values[-1, start], resolution(part, start))


def _vertices(part: xr.Dataset, start: int) -> np.ndarray:
    found = limits(part, start)
    return np.asarray(found[convex_hull(found).vertices])


def _at_vertices(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, points = Rows(), []
    for name, part, k in _starts(parameters, data):
        corners = _vertices(part, k)
        apart = np.linalg.norm(part["positions"].values[-1, k][:, None] - corners, axis=2).min(axis=1)
        rows.add(1.0, apart / resolution(part, k), 0.0, [f"{name}, token {i}" for i in range(len(apart))])
        points.append(len(corners) == 1)
    return rows.at_most(
        "Random starts: distance of a token from the nearest vertex of the limit, over e^(-t/2) max |z(0)|",
        "tokens that chose a leader before t/2 are nearer to it than that",
        origin=POLYTOPE,
        detail=f"{sum(points)} of {len(points)} limits are a single point",
    )


def _matches(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Over pairs of limits c and c' of a start."""
    rows, errors = Rows(), {dim: error(part)[-1] for dim, part in _parts(parameters, data)}
    for name, part, k in _starts(parameters, data):
        z, found, matrix = part["positions"].values[-1, k], limits(part, k), part["map"].values[k]
        seen = found @ matrix.T
        margin = np.sum(seen * seen, axis=1, keepdims=True) - seen @ seen.T
        radius = np.linalg.norm(z[:, None] - found, axis=2).min(axis=1).max() + errors[part.sizes["dim"]][k]
        slack = 4 * np.linalg.norm(seen, axis=1).max() * np.linalg.norm(matrix, 2) * radius
        rows.add(0.0, margin[~np.eye(len(found), dtype=bool)], slack, name)
    statement = "Random starts: <Bc, c> - <Bc, c'> for limits c and c' of a start"
    reason = "distance of tokens from their limit, times the gradient of <Bc, c - c'>"
    return rows.at_least(statement, reason, origin=VERTICES)


def _leaders(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for name, part, k in _starts(parameters, data):
        own = (part["leader"].values[k] == np.arange(parameters.tokens)) & (part["doubt"].values[k] < SURE)
        rows.add(len(_vertices(part, k)), own.sum(), 0.0, name)
    statement = "Random starts: number of tokens that attend to themselves alone = number of vertices"
    return rows.equal(statement, f"counted; alone: other weights add up to less than {SURE:g}", origin=VERTICES)


def _apart(part: xr.Dataset, frame: int) -> list[np.ndarray]:
    """Distances (random start, token) from the leaders: in fine steps and in coarse ones."""
    leader = part["leader"].values
    rows = np.arange(len(leader))[:, None]
    both = (part[name].values[frame, : len(leader)] for name in ("positions", "coarse"))
    return [np.linalg.norm(z - z[rows, leader], axis=2) for z in both]


def _approach(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """How far tokens come towards their leader between the frame `early` and the end."""
    rows, count = Rows(), 0
    for dim, part in _parts(parameters, data):
        early, leader, doubt = int(part.attrs["early"]), part["leader"].values, part["doubt"].values
        before, after = (_apart(part, frame) for frame in (early, -1))
        sure = (doubt < SURE) & (np.take_along_axis(doubt, leader, axis=1) < SURE) & (before[0] > 0)
        size = np.ptp(part["positions"].values[early, : parameters.starts], axis=1).max(axis=1)[:, None]
        span = float(part["time"][-1] - part["time"][early])
        # d|z_i - z_l|/dt + |z_i - z_l| is at most the weights on others, of both tokens, times the size of the hull
        rate, tolerance = rates(before, after, span, 2 * SURE * size + 1e-15, sure)
        rows.add(1.0, rate, tolerance, [f"R^{dim}, start {k}, token {i}" for k, i in np.ndindex(rate.shape)])
        count += int(sure.sum())
    return rows.equal(
        "Random starts: rate at which tokens approach their leader",
        f"change by halving the steps; weights on others, below {SURE:g}",
        origin=VERTICES,
        detail=f"{count} tokens follow another",
    )


def regular_radii(part: xr.Dataset) -> np.ndarray:
    """Radii of the regular starts at all frames, as B sees them: (frame, regular, token)."""
    first = part.sizes["start"] - part.sizes["regular"]
    seen = np.einsum("fstd,sed->fste", part["positions"].values[:, first:], part["map"].values[first:])
    return np.asarray(np.linalg.norm(seen, axis=-1))


def _regular(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for dim, part in _parts(parameters, data):
        first = part.sizes["start"] - part.sizes["regular"]
        radii, off = regular_radii(part)[-1], error(part)[-1]
        for k, (corners, radius) in enumerate(zip(part["corners"].values, part["radius"].values, strict=True)):
            limit = theory.landscape.regular_radius(solid(dim, int(corners)), float(radius))
            allowed = np.linalg.norm(part["map"].values[first + k], 2) * off[first + k] + 1e-11 * limit
            rows.add(limit, radii[k], allowed, f"R^{dim}, {corners} corners, radius {radius:g}")
    statement = "Regular polygons and polyhedra: radius of the limit of z"
    return rows.equal(statement, "change by halving the steps; error of the integral", origin=REGULAR)
