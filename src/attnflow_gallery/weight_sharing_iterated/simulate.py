"""One trained layer, whole and with parts left out, applied again and again to the tokens of reactions."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr
from scipy.sparse.csgraph import connected_components

from attnflow.experiments import Study
from attnflow.experiments.kit import reactions
from attnflow.probe import network

NETWORK = "network"
PERMUTATION = 3
"""The seed of permuted weights."""
GLUED = 0.999
"""Cosine above which two tokens count as one."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is iterated; nothing is drawn but one permutation of the weights."""

    network: str = "rxnmapper"
    cases: tuple[str, ...] = (
        "permuted",
        "attention only",
        "perceptron only",
        "norms only",
        "norm biases zero",
        "biases zero",
    )
    texts: int = 50
    depths: tuple[int, ...] = (12, 64, 256, 512)
    """12 is the depth that the network was trained with; permuted weights, at one point by then, go no farther."""


QUICK = Parameters(cases=("permuted", "attention only", "norms only", "biases zero"), texts=10, depths=(12, 64, 256))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (text, depth) of the full layer and of every ablation."""
    every = {name(case): case for case in (NETWORK, *parameters.cases)}
    return study.parts({part: (iterate, parameters, case) for part, case in every.items()})


def name(case: str) -> str:
    """Of a part."""
    return case.replace(" ", "-")


def trained(which: str) -> Any:
    """The network as it was trained."""
    return network(which)


def ablated(which: str, kind: str, seed: int) -> Any:
    """The network with a part left out, or with its weights permuted."""
    return network(which).null(kind, seed)


def iterate(parameters: Parameters, case: str) -> xr.Dataset:
    """Mean overlap, effective rank, share of glued pairs and number of clusters (text, depth)."""
    which = parameters.network
    net = trained(which) if case == NETWORK else ablated(which, case, PERMUTATION)
    depths = parameters.depths[:1] if case == "permuted" else parameters.depths
    rows = []
    for reaction in reactions(parameters.texts):
        ids = net.encode(reaction)
        states = net.run(ids, depth=max(depths)).hidden[0]
        free = np.ones(len(ids), bool)
        free[list(net.special)] = False
        rows.append([numbers(np.asarray(states[depth][free], float)) for depth in depths])
    values = np.moveaxis(np.array(rows), -1, 0)
    names = ("overlap", "rank", "glued", "clusters")
    dims = ("text", "depth")
    return xr.Dataset({key: (dims, one) for key, one in zip(names, values, strict=True)}, {"depth": list(depths)})


def numbers(x: np.ndarray) -> tuple[float, float, float, float]:
    """Of the tokens of one text: mean overlap, effective rank, share of glued pairs, clusters of glued tokens."""
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = u @ u.T
    pairs = cosines[np.triu_indices(len(u), 1)]
    shares = np.clip(np.linalg.eigvalsh(cosines / len(u)), 1e-300, None)
    rank = np.exp(-np.sum(shares * np.log(shares)))
    count, _ = connected_components(cosines > GLUED, directed=False)
    return float(pairs.mean()), float(rank), float(np.mean(pairs > GLUED)), float(count)
