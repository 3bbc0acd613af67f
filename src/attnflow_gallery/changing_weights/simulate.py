"""Seeded modes under a growing beta, two clusters under a growing beta, two clusters under V with a skew part."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import crossing, pair_angle
from attnflow.fields import AbstractField, Attention, Biased, Interpolated
from attnflow.flows import Adaptive, Evenly, Fixed, solve
from attnflow.tokens import Tokens

MODELS = "USA0", "SA"
MODES = 9
SMALL = 1e-4
"""Density amplitude of every mode at the start."""
LARGE = 0.6
"""Density amplitude at which the winner is read off: |mean of e^(ik angle)| = 0.3."""
RING = 96
LAST = 300.0
"""Of beta, when a pair counts as frozen or merged."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    products: tuple[float, ...] = (0.5, 2.0, 5.0, 9.5)
    """r log(LARGE/SMALL) of ramps."""
    phases: int = 3
    """Random phases of the modes, for every ramp."""
    pairs: tuple[tuple[float, float], ...] = ((0.0, 1.0), (5.0, 1.0), (5.0, 1.5))
    """First beta and angle of two clusters under a ramp."""
    near: float = 0.001
    """How far below and above the critical rate."""
    beta: float = 10.0
    masses: tuple[float, float] = (0.7, 0.3)
    skews: tuple[float, ...] = (0.0, 0.1, 0.5, -0.1)
    angle: float = 1.5
    until: float = 0.01
    rtol: float = 1e-10


QUICK = Parameters(products=(2.0,), phases=1, pairs=((5.0, 1.0),), skews=(0.5,))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Winners, angles that are left, and times to merge."""
    makers: dict[str, Any] = {"ramps": (_ramps, parameters), "freezing": (_freezing, parameters)}
    makers |= {f"skew-{model}": (_skew, parameters, model) for model in MODELS}
    return study.parts(makers)


def ramped(first: float, rate: float, model: str, until: float) -> AbstractField:
    """Attention with beta = first + rate t on the circle up to `until`, weights e^(beta (<x, y> - 1)).

    A third feature, -beta of queries and 1 of keys, makes the -1. Weights that are linear in t are arrays, so that one
    program serves all ramps.
    """
    betas = np.array([first, first + rate * until])
    plane, apart = np.eye(3)[:, :2], np.array([0.0, 0.0, 1.0])
    matrix, bias = betas[:, None, None] * plane, -betas[:, None] * apart
    query = Biased(Interpolated(matrix, until), Interpolated(bias, until))
    # with beta = 1 the kernel is e^(logit - 1), and the clock USA takes the -1 back
    return Attention(1.0, query=query, key=Biased(plane, apart), normaliser="USA" if model == "USA0" else "SA")


def skewed(beta: float, skew: float, model: str) -> AbstractField:
    """Attention with V = I + skew J."""
    return Attention(beta, value=np.array([[1.0, -skew], [skew, 1.0]]), normaliser=model)


def rate_of(product: float) -> float:
    """r of a ramp, from r log(LARGE/SMALL)."""
    return product / float(np.log(LARGE / SMALL))


def _ramps(parameters: Parameters) -> xr.Dataset:
    """The mode that first reaches the amplitude LARGE, and the ratio of the second largest to it."""
    base, rows = 2 * np.pi * np.arange(RING) / RING, []
    modes = np.arange(1, MODES + 1)
    for k, product in enumerate(parameters.products):
        # by then the winner has its amplitude: F_k(beta)/r = log(LARGE/SMALL), with a beta below 2.5 product + 2
        until = (2.5 * product + 2) / rate_of(product)
        for phase in range(parameters.phases):
            shifts = parameters.rng(k, phase).uniform(0, 2 * np.pi, MODES)
            # a displacement (eps/k) sin(k angle) makes the density 1 - eps cos(k angle)
            off = np.sum(SMALL / modes * np.sin(modes * base[:, None] + shifts), axis=1)
            tokens = Tokens(np.stack([np.cos(base + off), np.sin(base + off)], axis=1))
            flow = solve(
                ramped(0.0, rate_of(product), "SA", until),
                tokens,
                until,
                save=Evenly(200),
                method=Fixed(until / 400),
                keep=["positions"],
            )
            x, y = np.moveaxis(flow.positions.values, -1, 0)
            sizes = np.abs(np.mean((x + 1j * y)[..., None] ** modes, axis=1))
            first = int(np.argmax(sizes.max(axis=1) > LARGE / 2))
            order = np.sort(sizes[first])
            rows.append((float(np.argmax(sizes[first]) + 1) if first else 0.0, order[-2] / order[-1]))
    winner, second = np.array(rows).T.reshape(2, len(parameters.products), parameters.phases)
    return xr.Dataset({"winner": (("ramp", "phase"), winner), "second": (("ramp", "phase"), second)})


def critical_rates(parameters: Parameters) -> np.ndarray:
    """Critical rates of the pairs."""
    from attnflow import theory

    return np.array([theory.merging.freezing_rate(angle, first) for first, angle in parameters.pairs])


def _freezing(parameters: Parameters) -> xr.Dataset:
    """Angles of two clusters when beta is LAST, below and above the critical rate, and these rates."""
    rows = []
    for (first, angle), critical in zip(parameters.pairs, critical_rates(parameters), strict=True):
        tokens = Tokens(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
        for rate in (critical * (1 - parameters.near), critical * (1 + parameters.near)):
            until, method = (LAST - first) / rate, Adaptive(parameters.rtol, 1e-13)
            flow = solve(ramped(first, rate, "USA0", until), tokens, until, save=1, method=method, keep=["positions"])
            rows.append((float(pair_angle(flow.positions.values[-1])), rate))
    left, rates = np.moveaxis(np.reshape(rows, (-1, 2, 2)), -1, 0)
    return xr.Dataset({"angle": (("pair", "side"), left), "rate": (("pair", "side"), rates)})


def _skew(parameters: Parameters, model: str) -> xr.Dataset:
    """Times to merge under V = I + skew J."""
    method, found = Adaptive(parameters.rtol, 1e-12), []
    half = np.array([[np.cos(parameters.angle), np.sin(parameters.angle)], [1.0, 0.0]])
    for skew in parameters.skews:
        field = skewed(parameters.beta, skew, model)
        found.append(crossing(field, Tokens(half, parameters.masses), method, parameters.until)[0])
    return xr.Dataset({"time": ("skew", np.array(found))})
