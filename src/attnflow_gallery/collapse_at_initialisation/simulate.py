"""Random layers on Gram matrices from orthonormal tokens: mean overlaps through depth, and the first layer."""

import dataclasses
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.random_layers import gram_layers


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    d: int = 4096
    """And d_k."""
    cases: tuple[tuple[int, float], ...] = ((16, 0.0), (16, 1.0), (16, 4.0), (64, 0.0), (64, 1.0), (64, 4.0))
    """n and b."""
    replicas: tuple[tuple[int, int], ...] = ((16, 400), (64, 40))
    """n and how many networks."""
    until: int = 7
    """In tau; overlaps are kept at 0, 1, 2, ..."""
    layers: int = 16
    """In one unit of tau; and twice as many, to remove the bias of the steps."""
    dims: tuple[int, ...] = (64, 256, 1024, 4096)
    """Where networks are compared, at b = 0."""
    networks: int = 600
    """For every one of `dims`."""
    mark: int = 3
    """At this tau."""
    delay_contexts: tuple[int, ...] = (4, 8)
    """n for the depth of collapse at b = 0 in several dimensions."""
    delay_dims: tuple[int, ...] = (64, 256, 1024)
    """A factor of 4 apart."""
    delay_networks: int = 4000
    """With the same random numbers for all of `delay_dims`."""
    delay_layers: int = 32
    """In one unit of tau."""
    scales: tuple[float, ...] = (0.0, 1.0, 4.0, 16.0)
    """b of the first layer."""
    firsts: int = 4000
    """First layers for every b."""
    first_step: float = 1e-3
    """eta^2/H of the first layer."""
    first_d: int = 10**9
    """And d_k, of the first layer: noise of order d^(-1/2) would hide its mean."""


QUICK = Parameters(
    cases=((16, 0.0), (16, 1.0), (16, 4.0)),
    replicas=((16, 64),),
    dims=(256, 4096),
    networks=300,
    delay_contexts=(4,),
    delay_networks=1000,
    delay_layers=16,
    firsts=2000,
)
BATCHES = 50
"""Means of networks are kept in so many batches where the networks themselves would be many."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Mean overlaps of networks: through depth, in several dimensions, after the first layer."""
    return study.parts(
        {name(n, b): (path, parameters, n, b) for n, b in parameters.cases}
        | {f"d{d}": (networks, parameters, d) for d in parameters.dims}
        | {f"delay{n}": (delay, parameters, n) for n in parameters.delay_contexts}
        | {"first": (first, parameters)}
    )


def name(n: int, b: float) -> str:
    """Of a part."""
    return f"n{n}-b{b:g}"


def start(n: int) -> np.ndarray:
    """The overlaps of orthonormal tokens."""
    return np.eye(n)


def path(parameters: Parameters, n: int, b: float) -> xr.Dataset:
    """Mean overlaps (step, replica, tau), for steps of eta^2 = 1/layers and half of it."""
    replicas, until, rows = dict(parameters.replicas)[n], parameters.until, []
    for half in range(2):
        layers = parameters.layers * 2**half
        seed = parameters.seed(100 + 2 * parameters.cases.index((n, b)) + half)
        more: dict[str, Any] = {"replicas": replicas, "seed": seed, "save": until, "keep": False}
        rows.append(gram_layers(start(n), b, layers**-0.5, until * layers, parameters.d, **more).overlap)
    return xr.Dataset({"overlap": (("step", "replica", "tau"), np.array(rows))}, {"tau": np.arange(until + 1.0)})


def networks(parameters: Parameters, d: int) -> xr.Dataset:
    """Mean overlaps (replica,) at tau = `mark` without logits, in dimension d."""
    n, layers = parameters.cases[0][0], 2 * parameters.layers
    seed, replicas = parameters.seed(300 + parameters.dims.index(d)), parameters.networks
    count = parameters.mark * layers
    found = gram_layers(start(n), 0.0, layers**-0.5, count, d, d_k=1, replicas=replicas, seed=seed, keep=False)
    return xr.Dataset({"overlap": ("replica", found.overlap[:, -1])})


def delay(parameters: Parameters, n: int) -> xr.Dataset:
    """Mean overlaps (d, batch, layer) without logits, until they have passed 1/2.

    Networks of one number have the same Gaussian numbers in all dimensions, so that most of their noise is common.
    """
    h, seed, rows = 1 / parameters.delay_layers, parameters.seed(500 + n), []
    count = 4 * math.ceil((math.log(n + 1) + 0.4) / math.log1p(h) / 4)
    more: dict[str, Any] = {"d_k": 1, "replicas": parameters.delay_networks, "seed": seed, "keep": False}
    for d in parameters.delay_dims:
        found = gram_layers(start(n), 0.0, h**0.5, count, d, save=count // 4, **more)
        rows.append(found.overlap.reshape(BATCHES, -1, len(found.layers)).mean(axis=1))
    return xr.Dataset(
        {"overlap": (("d", "batch", "layer"), np.array(rows))},
        {"d": list(parameters.delay_dims), "layer": found.layers},
    )


def first(parameters: Parameters) -> xr.Dataset:
    """Mean overlaps (scale, replica) after one layer."""
    begin, step, d, rows = start(parameters.cases[0][0]), parameters.first_step**0.5, parameters.first_d, []
    for k, b in enumerate(parameters.scales):
        seed = parameters.seed(400 + k)
        found = gram_layers(begin, b, step, 1, d, replicas=parameters.firsts, seed=seed, keep=False)
        rows.append(found.overlap[:, -1])
    return xr.Dataset({"overlap": (("scale", "replica"), np.array(rows))}, {"scale": list(parameters.scales)})
