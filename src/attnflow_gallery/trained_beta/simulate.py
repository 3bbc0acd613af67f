"""Fits of log-attention on cosines in trained networks and in their nulls, text by text."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import BesideNulls, activations, correlations, network_of, numbers_of, opened
from attnflow.probe import Stream


@dataclasses.dataclass(frozen=True)
class Parameters(BesideNulls, Salted):
    """What is looked at; the salt draws nulls and texts."""


QUICK = Parameters(networks=("rxnmapper",), draws=(7,), texts=10, tokens=32)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (text, layer) of every network and every draw of its nulls."""
    return study.parts(parameters.parts(look))


def look(parameters: Parameters, which: str, case: str, draw: int) -> xr.Dataset:
    """Correlation, beta and R^2 of the median head, share of heads with beta > 0, and mean overlap: (text, layer)."""
    net, texts = opened(parameters, which, case, draw, network_of)
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
