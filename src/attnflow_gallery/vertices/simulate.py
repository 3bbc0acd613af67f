"""Rescaled tokens of attention with V = I, from random starts and from the corners of regular polytopes."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import leaders
from attnflow.fields import Attention, Rescaled
from attnflow.flows import Fixed, Solve
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

BEFORE = 2.0
"""How long before the end leaders are looked for."""
SPREAD = 0.3
"""Of the random matrices Q = K = e^(SPREAD G), G Gaussian: B = Q^T K is positive definite and well conditioned."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    tokens: int = 20
    starts: int = 120
    """Random ones, Gaussian; every second with a random B."""
    dims: tuple[int, ...] = (2, 3)
    corners: tuple[tuple[int, int], ...] = ((2, 2), (2, 4), (2, 5), (2, 10), (2, 20), (3, 4), (3, 20))
    """Regular starts: dimension and number of corners, which divides the number of tokens."""
    radii: tuple[float, ...] = (0.6, 1.0, 1.6)
    until: float = 12.0
    legs: int = 96
    steps: int = 12
    """Per leg; half as long ones are taken for comparison."""


QUICK = Parameters(starts=8, dims=(2,), corners=((2, 4), (2, 5)), radii=(0.6, 1.6), legs=24, steps=25)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames of all starts of a dimension, and who leads whom shortly before the end."""
    return {f"R{dim}": _followed(parameters, dim, study) for dim in study.along(parameters.dims)}


def _followed(parameters: Parameters, dim: int, study: Study) -> xr.Dataset:
    from scipy.linalg import expm

    regular = [(k, r) for (d, k), r in itertools.product(parameters.corners, parameters.radii) if d == dim]
    count = parameters.starts + len(regular)
    maps = parameters.rng(2, dim).standard_normal((count, dim, dim)) * (np.arange(count) % 2)[:, None, None]
    maps = np.array([expm(SPREAD * one) for one in maps])
    positions = list(parameters.rng(2).standard_normal((parameters.starts, parameters.tokens, dim)))
    for k, radius in regular:
        corners = np.repeat(solid(dim, k), parameters.tokens // k, axis=0)
        positions.append(radius * corners @ np.linalg.inv(maps[len(positions)]).T)
    tokens = stack("start", range(count), [Tokens(x, space=Euclidean(dim)) for x in positions])
    until, step = parameters.until, parameters.until / parameters.legs / parameters.steps
    flow = Solve(field(Along("start", maps)), tokens, until, save=parameters.legs, keep=("positions",))
    steps = {f"R{dim}-coarse": step, f"R{dim}-fine": step / 2}
    flows = {name: dataclasses.replace(flow, method=Fixed(h)) for name, h in steps.items()}
    coarse, found = (one.transpose("time", "start", ...) for one in study.parts(flows).values())
    early = int(np.searchsorted(found["time"], until - BEFORE - 1e-9))
    leader, doubt = leaders(
        field(maps[k]).matrix(float(found["time"][early]), Tokens(x, space=Euclidean(dim)))
        for k, x in enumerate(found["positions"].values[early, : parameters.starts])
    )
    return found.assign(
        coarse=coarse["positions"],
        map=(("start", "row", "dim"), maps),
        leader=(("random", "token"), leader),
        doubt=(("random", "token"), doubt),
        corners=("regular", np.array([k for k, _ in regular], int)),
        radius=("regular", np.array([r for _, r in regular], float)),
    ).assign_attrs(early=early)


def field(matrix: Any) -> Rescaled:
    """Attention with Q = K, one matrix or one per start."""
    return Rescaled(Attention(1.0, query=matrix, key=matrix))


def solid(dim: int, corners: int) -> np.ndarray:
    """Corners of a regular polygon, of the tetrahedron or of the dodecahedron, on the unit sphere."""
    if dim == 2:
        angles = 2 * np.pi * np.arange(corners) / corners
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=3)))
    if corners == 4:
        return signs[signs.prod(axis=1) > 0] / np.sqrt(3)
    golden = (1 + np.sqrt(5)) / 2
    ridge = np.array([[0.0, a / golden, b * golden] for a, b in itertools.product((1, -1), repeat=2)])
    return np.concatenate([signs, *(np.roll(ridge, k, axis=1) for k in range(3))]) / np.sqrt(3)
