"""Overlaps and ranks of states of trained networks and of their nulls, on texts and on the same texts shuffled."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.experiments import Study
from attnflow.experiments.kit import BesideNulls, activations, network_of, numbers_of, opened, shuffled

ORDERS = ("text", "shuffled")
VIEWS = {"overlap": "raw", "overlap_few": "without top 10"}


@dataclasses.dataclass(frozen=True)
class Parameters(BesideNulls):
    """What is looked at; nulls, texts and orders are one draw each."""

    networks: tuple[str, ...] = ("rxnmapper", "minilm", "smollm2")
    draws: tuple[int, ...] = (1, 1, 1)


QUICK = Parameters(networks=("rxnmapper",), nulls=("permuted",), draws=(1,), texts=20)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (order, text, state) of every network and every null."""
    return study.parts(parameters.parts(look))


def look(parameters: Parameters, which: str, case: str, draw: int) -> xr.Dataset:
    """Overlap, raw and without the ten largest coordinates, and effective rank, raw and centred, of every state."""
    net, texts = opened(parameters, which, case, draw, network_of)
    fixed = [0, *net.special] if net.causal else list(net.special)
    others = [shuffled(ids, fixed, [2, text]) for text, ids in enumerate(texts)]  # the same for all cases
    found = []
    for many in (texts, others):
        data = numbers_of((activations(net, ids) for ids in many), net.special, ("overlaps", "rank"))
        views = [data["overlap"].sel(view=view).values for view in VIEWS.values()]
        found.append([*views, data["effective_rank"].values, data["effective_rank_centred"].values])
    dims = ("order", "text", "state")
    names = (*VIEWS, "rank", "rank_centred")
    columns = {name: (dims, np.array([row[k] for row in found])) for k, name in enumerate(names)}
    return xr.Dataset(columns | {"causal": ((), int(net.causal))}, {"order": list(ORDERS)})
