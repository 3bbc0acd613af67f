"""Layers with a weighted skip connection: equiangular tokens, tight clouds, two clusters, rings."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import pair_angle
from attnflow.fields import AbstractField, Attention
from attnflow.flows import EveryLayer, Layers, Renormalise, solve
from attnflow.tokens import Tokens

RING = 128
"""Tokens of a ring; what it differs from the uniform measure is of order I_(128 - k)(beta), far below rounding."""
SMALL = 1e-6
"""Amplitude of a mode of the ring."""
SPREAD = 1e-3
"""Of tight clouds."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 8
    skips: tuple[float, ...] = (0.0, 0.25, 1.0, 4.0)
    betas: tuple[float, ...] = (1.0, 2.0, 4.0)
    layers: int = 12
    """Of equiangular tokens."""
    deficits: tuple[float, ...] = (1e-2, 3e-3, 1e-3)
    """1 - overlap of tokens near consensus, for one layer."""
    clouds: int = 8
    pair: tuple[float, float] = (10.0, 1.5)
    """Inverse temperature and angle of two clusters."""
    pair_layers: int = 3000
    until: float = 0.01
    ring_beta: float = 5.0
    degrees: tuple[int, ...] = (1, 2, 3, 4)


QUICK = Parameters(skips=(0.0, 1.0), betas=(2.0,), clouds=2, pair=(5.0, 1.5), pair_layers=60, degrees=(1, 3))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Overlaps, clouds, angles and amplitudes."""
    return study.parts(
        {
            "equiangular": (_equiangular, parameters),
            "near": (_near, parameters),
            "clouds": (_clouds, parameters),
            "pairs": (_pairs, parameters),
            "rings": (_rings, parameters),
        }
    )


def attention(beta: float) -> AbstractField:
    """Softmax attention with Q = K = V = I."""
    return Attention(beta)


def method(skip: float) -> Layers:
    """Layers x <- N(skip x + attention), one for each unit of time."""
    return Layers(1.0, Renormalise(skip=skip))


def layered(beta: float, skip: float, tokens: Tokens, layers: int) -> np.ndarray:
    """Positions (layer, token, coordinate), the start first."""
    flow = solve(
        attention(beta), tokens, float(layers), save=EveryLayer(), method=method(skip), keep=["positions"], check=False
    )
    return np.asarray(flow.positions.values)


def equiangular(n: int, deficit: float) -> Tokens:
    """n tokens in R^n with the common overlap 1 - deficit."""
    centre = np.full(n, n**-0.5)
    rest = np.eye(n) - np.outer(centre, centre)  # rows of squared length 1 - 1/n, with products -1/n
    side = deficit * (n - 1) / n
    return Tokens(np.sqrt(1 - side) * centre + np.sqrt(side * n / (n - 1)) * rest)


def deficits_of(positions: np.ndarray) -> np.ndarray:
    """Mean of |x - y|^2/2 over pairs, which is 1 - overlap without cancellation: positions (..., token, coordinate)."""
    n = positions.shape[-2]
    apart = positions[..., :, None, :] - positions[..., None, :, :]
    return np.asarray(np.sum(apart**2, axis=(-3, -2, -1)) / (2 * n * (n - 1)))


def _equiangular(parameters: Parameters) -> xr.Dataset:
    found = [
        [
            deficits_of(layered(beta, skip, equiangular(parameters.n, 1.0), parameters.layers))
            for skip in parameters.skips
        ]
        for beta in parameters.betas
    ]
    return xr.Dataset({"deficit": (("beta", "skip", "layer"), np.array(found))})


def _near(parameters: Parameters) -> xr.Dataset:
    """One layer from tokens near consensus."""
    every = itertools.product(parameters.betas, parameters.skips, parameters.deficits)
    found = [deficits_of(layered(b, s, equiangular(parameters.n, e), parameters.layers))[1] for b, s, e in every]
    shape = len(parameters.betas), len(parameters.skips), len(parameters.deficits)
    return xr.Dataset({"deficit": (("beta", "skip", "start"), np.reshape(found, shape))})


def _clouds(parameters: Parameters) -> xr.Dataset:
    """Spectra of covariances of tight random clouds before and after one layer, at the first beta."""
    n, rows = parameters.n, []
    for k in range(parameters.clouds):
        x = np.eye(n)[0] + SPREAD * parameters.rng(0, k).standard_normal((n, n)) * np.geomspace(1, 0.3, n)
        tokens = Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
        runs = [layered(parameters.betas[0], skip, tokens, parameters.layers)[:2] for skip in parameters.skips]
        rows.append([[np.linalg.svd(y - y.mean(axis=0), compute_uv=False)[:3] ** 2 / n for y in run] for run in runs])
    return xr.Dataset({"spectrum": (("cloud", "skip", "layer", "rank"), np.array(rows))})


def _pairs(parameters: Parameters) -> xr.Dataset:
    beta, angle = parameters.pair
    tokens = Tokens(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
    found: list[Any] = [pair_angle(layered(beta, skip, tokens, parameters.pair_layers)) for skip in parameters.skips]
    return xr.Dataset({"angle": (("skip", "layer"), np.array(found))})


def _rings(parameters: Parameters) -> xr.Dataset:
    """Factors by which modes of a ring grow in one layer."""
    base, rows = 2 * np.pi * np.arange(RING) / RING, []
    for skip, k in itertools.product(parameters.skips, parameters.degrees):
        angle = base + SMALL * np.sin(k * base)
        x = layered(parameters.ring_beta, skip, Tokens(np.stack([np.cos(angle), np.sin(angle)], axis=1)), 1)
        moved = np.arctan2(x[1] @ [0, 1], x[1] @ [1, 0]) - base
        off = np.angle(np.exp(1j * moved))
        rows.append(2 * np.mean(off * np.sin(k * base)) / SMALL)
    return xr.Dataset(
        {"factor": (("skip", "degree"), np.reshape(rows, (len(parameters.skips), len(parameters.degrees))))}
    )
