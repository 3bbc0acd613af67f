"""Outputs of one attention layer: all tokens, two tokens and the mean of the others, iid tokens."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, equiangular

QUERIES = 4
"""Tokens whose outputs are computed, where all tokens are there."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    overlaps: tuple[float, ...] = (0.2, 0.5)
    places: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75)
    """c in units of the threshold; 1 is among them in any case."""
    counts: tuple[int, ...] = (16, 256, 4096)
    """n with all tokens there."""
    large: tuple[float, ...] = (1e2, 1e4, 1e6, 1e8, 1e12)
    """n with the others replaced by their mean."""
    iid_count: int = 16384
    iid_dim: int = 128
    iid_draws: int = 32


QUICK = Parameters(
    overlaps=(0.5,),
    places=(0.5, 0.9, 1.1, 1.5),
    counts=(256,),
    large=(1e4, 1e12),
    iid_count=4096,
    iid_dim=64,
    iid_draws=16,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Cosines of outputs: all tokens, others replaced by their mean, iid tokens."""
    return study.parts(
        {f"all-{n}": (_all, parameters, n) for n in parameters.counts}
        | {"mean": (_mean, parameters), "iid": (_iid, parameters, study)}
    )


def scan(parameters: Parameters, overlap: float) -> np.ndarray:
    """Values of c: places around the threshold of this overlap, the threshold among them; around 1/2 for overlap 0."""
    unit = float(theory.uniform.long_context_threshold(overlap)) if overlap else 0.5
    return unit * np.unique([*parameters.places, 1.0])


def layer(parameters: Parameters, overlap: float, n: float) -> Attention:
    """Attention with beta = c log n for all c at once."""
    return Attention(Along("c", scan(parameters, overlap) * np.log(n)))


def _paired(parameters: Parameters, overlap: float, n: float, tokens: Tokens, queries: int = 2) -> np.ndarray:
    """Cosines of the outputs at the first two tokens."""
    return cosines(layer(parameters, overlap, n), np.asarray(tokens.positions)[:queries], tokens)


def cosines(field: Attention, queries: np.ndarray, tokens: Tokens) -> np.ndarray:
    """Cosine of the outputs at the first two queries; the field is the one of the library, before any projection."""
    free = Tokens(tokens.positions, tokens.masses, space=Euclidean(tokens.dim), dims=tokens.dims)
    drive = np.asarray(field.velocity(free, at=queries))
    unit = drive / np.linalg.norm(drive, axis=-1, keepdims=True)
    return np.asarray(np.sum(unit[..., 0, :] * unit[..., 1, :], axis=-1))


def _all(parameters: Parameters, n: int) -> xr.Dataset:
    """All n tokens of equal overlaps in R^n."""
    rows = []
    for overlap in parameters.overlaps:
        tokens = equiangular(Sphere(n), n=n, overlap=overlap)
        rows.append(_paired(parameters, overlap, n, tokens, QUERIES))
    return xr.Dataset({"cosine": (("overlap", "place"), np.array(rows))}, {"overlap": list(parameters.overlaps)})


def _mean(parameters: Parameters) -> xr.Dataset:
    """Two tokens, and the mean of all others with their mass; overlap 0 too."""
    overlaps = (0.0, *parameters.overlaps)
    found = [[_paired(parameters, one, n, with_mean(n, one)) for n in parameters.large] for one in overlaps]
    coordinates = {"overlap": list(overlaps), "n": list(parameters.large)}
    return xr.Dataset({"cosine": (("overlap", "n", "place"), np.array(found))}, coordinates)


def with_mean(n: float, overlap: float) -> Tokens:
    """Two unit tokens, and the mean y of n - 2 others: <y, x> = overlap and |y|^2 = (1 + (n-3) overlap)/(n-2)."""
    pair = np.array([[1.0, 0.0, 0.0], [overlap, np.sqrt(1 - overlap**2), 0.0]])
    inside = overlap / (1 + overlap) * (pair[0] + pair[1])
    rest = (1 + (n - 3) * overlap) / (n - 2) - inside @ inside
    others = inside + np.array([0.0, 0.0, np.sqrt(max(rest, 0.0))])
    return Tokens([*pair, others], [1 / n, 1 / n, 1 - 2 / n], space=Euclidean(3))


def _iid(parameters: Parameters, study: Study) -> xr.Dataset:
    """x_j = sqrt(rho) e + sqrt(1 - rho) u_j, u_j iid uniform and orthogonal to e; the queries are u_1 = -u_2.

    (A pair of queries at a fixed angle leaves the randomness of the others alone.)
    """
    n, overlap, found = parameters.iid_count, parameters.overlaps[-1], []
    for draw in range(parameters.iid_draws):
        study.progress(f"{n} iid tokens, draw {draw}", draw / parameters.iid_draws)
        found.append(_paired(parameters, overlap, n, around(parameters, overlap, draw)))
    return xr.Dataset({"cosine": (("draw", "place"), np.array(found))}, attrs={"overlap": overlap})


def around(parameters: Parameters, overlap: float, draw: int) -> Tokens:
    """One draw of iid tokens around the first axis; the first two are opposite to each other across it."""
    n, d = parameters.iid_count, parameters.iid_dim
    u = parameters.rng(draw).standard_normal((n, d - 1))
    u[1] = -u[0]
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    x = np.concatenate([np.full((n, 1), np.sqrt(overlap)), np.sqrt(1 - overlap) * u], axis=1)
    return Tokens(x, space=Sphere(d))
