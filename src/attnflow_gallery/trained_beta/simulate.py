"""Fits of log-attention on cosines in trained networks and in their nulls, text by text."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import correlations, numbers_of, texts_for
from attnflow.probe import Stream, network

NETWORK = "network"


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is looked at."""

    networks: tuple[str, ...] = ("rxnmapper", "minilm")
    nulls: tuple[str, ...] = ("permuted", "init")
    texts: int = 50
    tokens: int = 64
    """Of a text, at most."""


QUICK = Parameters(networks=("rxnmapper",), texts=30, tokens=32)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (text, layer) of every network and every null."""
    return study.parts(
        {
            name(which, case): (look, parameters, which, case)
            for which in parameters.networks
            for case in (NETWORK, *parameters.nulls)
        }
    )


def name(which: str, case: str) -> str:
    """Of a part."""
    return f"{which}-{case}"


def trained(which: str) -> Any:
    """The network as it was trained."""
    return network(which)


def untrained(which: str, kind: str, seed: int) -> Any:
    """A null of it."""
    return network(which).null(kind, seed).held()


def activations(net: Any, ids: np.ndarray) -> Stream:
    """The stream of one text."""
    found: Stream = net.run(ids)
    return found


def look(parameters: Parameters, which: str, case: str) -> xr.Dataset:
    """Correlation, beta and R^2 of the median head, share of heads with beta > 0, and mean overlap: (text, layer)."""
    number = parameters.networks.index(which)
    seed = parameters.seed(10 * number + (NETWORK, *parameters.nulls).index(case))
    net = trained(which) if case == NETWORK else untrained(which, case, seed)
    texts = texts_for(net, parameters.texts, parameters.tokens, parameters.rng(1, number))
    streams = [activations(net, ids) for ids in texts]
    data = numbers_of(streams, net.special, ("heads",))
    found = data.isel(layer=slice(0, -1))
    dims = ("text", "layer")
    return xr.Dataset(
        {
            "correlation": (dims, np.median(correlations(data), axis=-1)),
            "beta": (dims, np.median(found["beta"].values, axis=-1)),
            "r2": (dims, np.median(found["beta_r2"].values, axis=-1)),
            "positive": (dims, np.mean(found["beta"].values > 0, axis=-1)),
            "overlap": (dims, np.array([overlaps(stream) for stream in streams])),
        }
    )


def overlaps(stream: Stream) -> np.ndarray:
    """The mean overlap of pairs before every layer."""
    x = np.asarray(stream.hidden[0][:-1], float)
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    n = u.shape[1]
    return np.asarray((np.sum(u.sum(axis=1) ** 2, axis=-1) - n) / (n * (n - 1)))
