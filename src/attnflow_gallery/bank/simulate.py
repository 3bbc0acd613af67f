"""The drift of a word between two topics, and the ratio of masses at which a flow carries it to the other one."""

import dataclasses
import itertools

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from attnflow.experiments import Study
from attnflow.fields import Attention
from attnflow.flows import solve
from attnflow.tokens import Tokens, stack

TRIED = 33
"""Ratios that flow side by side."""
WIDE = 0.5
"""Half the first interval of the logarithm of the ratio."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Words at angles from topic 1."""

    angles: tuple[float, ...] = (0.6, 0.4, 0.9)
    betas: tuple[float, ...] = (6.0, 8.0, 10.0, 12.0)
    warm: float = 3.0
    """The beta at which the formula fails."""
    warm_angle: float = 0.4
    until: float = 20.0
    rounds: int = 6
    """Of the search; each divides the interval by TRIED - 1."""


QUICK = Parameters(angles=(0.6,), betas=(6.0, 10.0))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Roots and borders; (angle, beta)."""
    return study.parts({"still": (_still, parameters), "flow": (_flows, parameters), "warm": (_warm, parameters)})


def attention(beta: float) -> Attention:
    """Softmax attention."""
    return Attention(beta)


def prompt(angle: float, ratio: float) -> Tokens:
    """Two topics at a right angle with masses ratio : 1, and a word without mass."""
    x = np.array([[1.0, 0.0], [0.0, 1.0], [np.cos(angle), np.sin(angle)]])
    return Tokens(x, [ratio, 1.0, 0.0], labels=("finance", "river", "bank"))


def root(beta: float, angle: float) -> float:
    """The ratio of masses at which the word does not move."""
    along = np.array([-np.sin(angle), np.cos(angle)])
    field = attention(beta)

    def drift(log_ratio: float) -> float:
        return float(np.asarray(field.velocity(prompt(angle, float(np.exp(log_ratio)))))[2] @ along)

    return float(np.exp(brentq(drift, -20.0, 20.0, xtol=1e-14)))


def border(parameters: Parameters, beta: float, angle: float) -> tuple[float, float]:
    """The logarithm of the ratio at which the flow carries the word to topic 1, and half the interval that is left.

    NaN is never stored: where the word ends at one topic for all ratios, the end of the first interval is the border.
    """
    middle = np.log(root(beta, angle))
    low, high = middle - WIDE, middle + WIDE
    for _ in range(parameters.rounds):
        grid = np.linspace(low, high, TRIED)
        start = stack("ratio", range(TRIED), [prompt(angle, float(np.exp(one))) for one in grid])
        x = solve(attention(beta), start, parameters.until, save=1, keep=("positions",)).positions.values[:, -1]
        joins = np.sum(x[:, 2] * x[:, 0], axis=1) > np.sum(x[:, 2] * x[:, 1], axis=1)
        if joins.all() or not joins.any():
            return float(low if joins.all() else high), 0.0
        first = int(np.argmax(joins))
        low, high = grid[max(first - 1, 0)], grid[first]
    return float(low + high) / 2, float(high - low) / 2


def _still(parameters: Parameters) -> xr.Dataset:
    found = [[root(beta, angle) for beta in parameters.betas] for angle in parameters.angles]
    return xr.Dataset({"ratio": (("angle", "beta"), np.array(found))}, _axes(parameters))


def _flows(parameters: Parameters) -> xr.Dataset:
    cases = itertools.product(parameters.angles, parameters.betas)
    found = np.array([border(parameters, beta, angle) for angle, beta in cases])
    both = found.reshape(len(parameters.angles), len(parameters.betas), 2)
    columns = {"border": (("angle", "beta"), both[..., 0]), "half": (("angle", "beta"), both[..., 1])}
    return xr.Dataset(columns, _axes(parameters))


def _axes(parameters: Parameters) -> dict[str, list[float]]:
    return {"angle": list(parameters.angles), "beta": list(parameters.betas)}


def _warm(parameters: Parameters) -> xr.Dataset:
    found, _ = border(parameters, parameters.warm, parameters.warm_angle)
    return xr.Dataset({"border": found})
