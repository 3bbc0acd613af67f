"""Clusters on the sphere followed to consensus at many beta, and a search for the beta at which an order changes."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import LongFlow, LongTime, solve_long
from attnflow.tokens import Tokens

MODELS = ("SA", "USA0")
WIDTH = 1e-3
"""Clusters are one at the angle WIDTH/beta."""
FIRST, MARGIN = 0.05, 0.02
"""Smallest u = 1 - cos of the closest pair, and smallest distance of s between merges, of a random start."""
DECIDED = 0.1
"""A cascade whose pairs disturb each other by more, in log t, makes no statement."""
FOUR = (0.1, 0.2, 0.3, 0.4)
"""Masses of the four clusters whose order of merges changes."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is followed."""

    betas: tuple[float, ...] = (12.0, 25.0, 50.0, 100.0, 200.0, 400.0, 700.0, 1400.0, 2500.0, 5000.0, 10000.0)
    kinds: tuple[str, ...] = ("equal", "unequal")
    """Masses of the clusters."""
    clusters: int = 8
    tol: float = 1e-6
    fit_from: float = 400.0
    """Smallest beta of the fits."""
    four: tuple[float, ...] = (0.0, 0.9, 2.3, 3.9)
    """Angles of the four clusters."""
    order_betas: tuple[float, float] = (40.0, 400.0)
    """On either side of the change."""
    halvings: int = 14
    """Of this interval, in search of the change."""


QUICK = Parameters(betas=(400.0, 2000.0, 10000.0), kinds=("unequal",), halvings=8)


def place(parameters: Parameters, kind: str) -> Tokens:
    """The clusters, the same for all beta: the first random ones whose merges are well separated in the limit."""
    rng = parameters.rng(5)
    while True:
        x = rng.standard_normal((parameters.clusters, 3))
        masses = rng.uniform(0.5, 2.0, parameters.clusters)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        weights = {"equal": np.ones(parameters.clusters), "unequal": masses}
        if all(separated(parameters, x, weights[name], model) for name in weights for model in MODELS):
            return Tokens(x, masses if kind == "unequal" else None)


def separated(parameters: Parameters, x: np.ndarray, masses: np.ndarray, model: str) -> bool:
    """Whether merges are far apart in the limit, and cascades make the same ones from `fit_from` on."""
    stairs = theory.merging.limit_staircase(x, masses, model=model)
    if stairs.s[0] < FIRST or np.diff(stairs.s).min() < MARGIN:
        return False
    pairs = theory.merging.pair_cascade(x, masses / masses.sum(), parameters.fit_from, model=model)
    same = np.array_equal(pairs.first, stairs.first) and np.array_equal(pairs.second, stairs.second)
    return bool(same and pairs.disturbance[-1] < DECIDED / 2)


def place_four(parameters: Parameters) -> Tokens:
    """The four clusters, on a great circle of the sphere."""
    angles = np.array(parameters.four)
    return Tokens(np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1), np.array(FOUR))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """The merges and the staircase of every flow, and the search for the change of order."""
    cases = itertools.product(parameters.kinds, MODELS)
    flows = {f"{kind}-{model}": (_flows, parameters, study, kind, model) for kind, model in cases}
    return study.parts(flows | {"order": (_search, parameters, study)})


def _flows(parameters: Parameters, study: Study, kind: str, model: str) -> xr.Dataset:
    """The same start at every beta."""
    tokens, flows = place(parameters, kind), []
    for k, beta in enumerate(parameters.betas):
        study.progress(f"{model}, {kind} masses, β = {beta:g}", k / len(parameters.betas))
        flows.append(_record(follow(model, beta, tokens, parameters)))
    return xr.concat(flows, dim="beta", join="outer").assign_coords(beta=list(parameters.betas))


def _search(parameters: Parameters, study: Study) -> xr.Dataset:
    """Halve the interval that holds the beta at which the second merge of four clusters changes."""
    tokens, (low, high), tried = place_four(parameters), parameters.order_betas, []

    def second(beta: float) -> int:
        tried.append((beta, int(follow("SA", beta, tokens, parameters).merges["first"][1])))
        return tried[-1][1]

    at_low, _ = second(low), second(high)
    for k in range(parameters.halvings):
        study.progress("order of four clusters", k / parameters.halvings)
        beta = math.sqrt(low * high)
        low, high = (beta, high) if second(beta) == at_low else (low, beta)
    betas, firsts = map(np.array, zip(*tried, strict=True))
    return xr.Dataset({"tried": ("try", betas), "first": ("try", firsts), "low": low, "high": high})


def follow(model: str, beta: float, tokens: Tokens, parameters: Parameters) -> LongFlow:
    """One flow to consensus."""
    method = LongTime(parameters.tol, WIDTH / beta)
    return solve_long(Attention(beta, normaliser=model), tokens, math.inf, method=method)


def _record(flow: LongFlow) -> xr.Dataset:
    """Merges, with the arc length after them, and all steps; a merge that rounding may have changed has no time."""
    stairs = flow.tree.staircase
    row = np.searchsorted(stairs["log_time"], flow.merges["log_time"], side="right") - 1
    columns: dict[str, Any] = {
        f"stair_{name}": stairs[name].assign_attrs(counts="stairs") for name in ("log_time", "level", "arc")
    }
    columns["stairs"] = stairs.sizes["step"]
    columns["arc"] = ("merge", stairs["arc"].values[row])
    columns["log_time"] = flow.merges["log_time"].where(~flow.merges["undetermined"])
    kept = flow.merges[["first", "second", "point", "error"]]
    return kept.assign(columns).assign_coords(step=np.arange(stairs.sizes["step"]))
