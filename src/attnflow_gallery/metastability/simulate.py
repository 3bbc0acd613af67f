"""Tokens followed from the uniform distribution to consensus, and three caps that contract."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Evenly, Fixed, LongFlow, LongTime, solve, solve_long
from attnflow.observe import slow_motion_along
from attnflow.spaces import Sphere
from attnflow.tokens import caps, uniform

WIDTH = 1e-3
"""Clusters are one at the angle WIDTH/beta."""
STEP = 0.1
"""Of RK4, for three caps."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is followed."""

    n: int = 64
    """At most 65: then a frame is kept after every merge."""
    betas: tuple[float, ...] = (9.0, 25.0, 81.0)
    dims: tuple[int, ...] = (2, 3)
    usa0_beta: float = 25.0
    """The beta of the flow of USA0, in the largest dimension."""
    tol: float = 1e-6
    cap_beta: float = 25.0
    cap_tokens: int = 10
    """In each of three caps about an orthonormal frame."""
    cap_masses: tuple[float, ...] = (0.5, 0.3, 0.2)
    cap_radius: float = 0.03
    cap_until: float = 120.0


QUICK = Parameters(n=8, dims=(3,), cap_tokens=4)


def flows(parameters: Parameters) -> list[tuple[str, int, float]]:
    """Model, dimension and beta of every flow."""
    made = [("SA", dim, beta) for dim, beta in itertools.product(parameters.dims, parameters.betas)]
    return [*made, ("USA0", max(parameters.dims), parameters.usa0_beta)]


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Merges, staircase and plateaus of every flow; the frames of three caps."""
    makers: dict[str, Any] = {
        f"{model}-S{dim - 1}-{beta:g}": (_record, model, dim, beta, parameters)
        for model, dim, beta in flows(parameters)
    }
    return study.parts(makers | {"caps": (_caps, parameters)})


def _record(model: str, dim: int, beta: float, parameters: Parameters) -> xr.Dataset:
    """One flow to consensus."""
    method = LongTime(parameters.tol, WIDTH / beta, frames=4000)
    start = uniform(Sphere(dim), n=parameters.n, seed=parameters.seed(1))
    flow = solve_long(Attention(beta, normaliser=model), start, math.inf, method=method)
    tree, plateaus = flow.tree, flow.tree.plateaus()
    rows = [_plateau(flow, int(merges)) for merges in plateaus["merges"]]
    most = max(len(row["mass"]) for row in rows)
    columns: dict[str, Any] = {f"stair_{name}": tree.staircase[name] for name in ("log_time", "level", "arc")}
    columns |= {name: ("plateau", np.array([row[name] for row in rows])) for name in ("way", "lean", "then")}
    columns["pair"] = (("plateau", "side"), np.array([row["pair"] for row in rows]))
    for name, dims in (("mass", ("plateau", "cluster")), ("centre", ("plateau", "cluster", "dim"))):
        padded = np.zeros((len(rows), most, *rows[0][name].shape[1:]))
        for k, row in enumerate(rows):
            padded[k, : len(row[name])] = row[name]
        columns[name] = (dims, padded)
    merges = tree.merges[["log_time", "first", "second", "error"]]
    merges["error"] = merges["error"].where(~tree.merges["undetermined"])  # no tolerance where rounding decides
    found = merges.merge(plateaus.rename(merges="before")).assign(columns)
    return found.assign(linkage=(("merge", "entry"), tree.linkage())).assign_attrs(model=model, dim=dim, beta=beta)


def _plateau(flow: LongFlow, merges: int) -> dict[str, Any]:
    """Clusters at the beginning of a plateau, and how the pair that leaves it moves in the first step.

    way: the share of the closing that the first cluster does; lean: its share in the unstable direction; then: the
    angle after the step.
    """
    escape, table, names = flow.tree.escape(merges), flow.merges, np.unique(flow.tree.labels(merges))
    pair = [int(table[name][merges]) for name in ("first", "second")]
    start = int(np.searchsorted(flow.log_time, table["log_time"].values[merges - 1])) if merges else 0
    begin, after = flow.positions.values[start : start + 2, pair]
    ways = 2 * np.arcsin(np.linalg.norm(after - begin, axis=1) / 2)
    place = np.searchsorted(names, pair)
    turns = np.linalg.norm(escape["direction"].values[place], axis=1)
    then = 2 * math.asin(min(float(np.linalg.norm(after[0] - after[1])) / 2, 1.0))
    found = {"way": ways[0] / ways.sum(), "lean": turns[0] / turns.sum(), "then": then, "pair": place}
    return found | {name: escape[name].values for name in ("mass", "centre")}


def cap_field(parameters: Parameters) -> Attention:
    """USA0, for the three caps."""
    return Attention(parameters.cap_beta, normaliser="USA0")


def _caps(parameters: Parameters) -> xr.Dataset:
    """Three caps that contract, USA0, with the hypotheses of slow motion along the way."""
    beta, each, masses = parameters.cap_beta, parameters.cap_tokens, parameters.cap_masses
    sizes: dict[str, Any] = {"n": [each] * 3, "radius": parameters.cap_radius, "masses": masses}
    tokens = caps(Sphere(3), centres=np.eye(3), seed=parameters.seed(1), **sizes)
    flow = solve(cap_field(parameters), tokens, parameters.cap_until, save=Evenly(25), method=Fixed(STEP))
    x, labels = flow.positions.values, np.repeat(np.arange(3), each)
    found = slow_motion_along(x, flow.time.values, np.asarray(tokens.masses), labels, beta)
    groups = x.reshape(len(x), 3, each, 3)
    middle = groups.mean(axis=2, keepdims=True)
    square = np.sum((groups - middle / np.linalg.norm(middle, axis=3, keepdims=True)) ** 2, axis=(2, 3))
    square = square * np.array(masses) / each
    apart = np.max(np.sum((groups[:, :, :, None] - groups[:, :, None]) ** 2, axis=4), axis=(1, 2, 3))
    light = int(np.argmin(masses))
    rest = square.sum(axis=1) - square[:, light]
    # tokens of the lightest cap may coincide to the last bit
    others = np.divide(rest, square[:, light], out=np.full_like(rest, np.inf), where=square[:, light] > 0)
    return found.assign(apart=("time", apart), others=("time", others))
