"""Tokens on the circle under attention and a perceptron block, attracting and repelling."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import Along, theory
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention, Potential
from attnflow.flows import Fixed, Solve
from attnflow.observe import energy
from attnflow.theory.landscape import circle_points
from attnflow.tokens import Tokens

UNITS = 5
LEG = 10
"""Steps between frames."""
BIAS = 1.5
"""Units of the exception have their kink off the circle: w ((c + z)^2 - (c - z)^2)/2 = 2 c w z, so that U = u cos."""
ARC = 0.2
"""Half the arc around the highest peak of U on which tokens start that gather in one atom."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    beta: float = 9.0
    tokens: int = 60
    networks: int = 16
    until: float = 300.0
    step: float = 0.1
    """Of order 4; rates are of order 1."""
    exception_tokens: int = 64
    shares: tuple[float, ...] = (0.5, 1.0, 2.0)
    """u over its threshold, for the exception."""
    repelling: int = 4
    """Networks whose tokens repel each other."""
    grid: int = 720
    """Angles on which the minimiser of the repulsive energy is sought."""
    gentle: float = 0.03
    """Their weights are smaller by this factor: repulsion is of size 1/(2 beta), beyond it tokens stay in valleys."""


QUICK = Parameters(networks=4, until=100.0, repelling=2, grid=240, tokens=40, exception_tokens=40)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Tokens of all networks from even starts and around the highest peak; the exception; repelling tokens."""
    network, n = networks(parameters), parameters.tokens
    even = np.broadcast_to(2 * np.pi * (np.arange(n) + 0.37) / n, (parameters.networks, n))
    around = highest(network)[:, None] + np.linspace(-ARC, ARC, n)
    few = [part[: parameters.repelling] for part in (*network[:2], parameters.gentle * network[2])]
    found = study.parts({"minimum": (_minimise, parameters, study, few), "exception": (_rest, parameters)})
    starts = {
        "even": (network, 1.0, even, None),
        "peak": (network, 1.0, around, None),
        "repel": (few, -1.0, even[: parameters.repelling], None),
        "rest": (few, -1.0, found["minimum"]["site"].values, found["minimum"]["mass"].values),
    }
    flows = study.parts({name: _follow(parameters, *start) for name, start in starts.items()})
    return found | {name: _seen(parameters, starts[name][0], one) for name, one in flows.items()}


def networks(parameters: Parameters) -> list[np.ndarray]:
    """Directions, biases and weights of every network: one unit per fifth of the turn.

    Unit j is awake where cos(angle to a_j) > -b_j, at least 72.5 degrees to both sides for b_j >= -0.3, and neighbours
    are at most 144 degrees apart: U has no flat part. As |b_j| < 1 its kinks lie on the circle.
    """
    rng = parameters.rng(0)
    shape = (parameters.networks, UNITS)
    turn = 2 * np.pi * (np.arange(UNITS) + rng.uniform(size=shape)) / UNITS
    return [circle_points(turn), rng.uniform(-0.3, 0.6, size=shape), rng.standard_normal(shape)]


def highest(network: list[np.ndarray]) -> np.ndarray:
    """Per network the angle at which U is largest."""
    return np.array(
        [theory.landscape.largest_potential(theory.landscape.Landscape(*one))[1] for one in zip(*network, strict=True)]
    )


def flow(beta: float, network: list[np.ndarray], sign: float = 1.0) -> AbstractField:
    """Attention and potential of one network, or of a batch along "network"; sign -1 repels and descends."""
    parts: list[Any] = [network[0], network[1], sign * network[2]]
    if network[0].ndim == 3:
        parts = [Along("network", part) for part in parts]
    return Attention(beta, normaliser="USA0", value=sign * np.eye(2)) + Potential(*parts)


def _follow(
    parameters: Parameters, network: list[np.ndarray], sign: float, angles: np.ndarray, masses: np.ndarray | None
) -> Solve:
    """Tokens along the flow of each network."""
    tokens, field = Tokens(circle_points(angles), masses, dims=("network",)), flow(parameters.beta, network, sign)
    method, legs = Fixed(parameters.step), int(np.ceil(parameters.until / (LEG * parameters.step)))
    return Solve(field, tokens, legs * LEG * parameters.step, legs, method, keep=("positions", "speed"))


def _seen(parameters: Parameters, network: list[np.ndarray], found: xr.Dataset) -> xr.Dataset:
    """Positions and energies on the way, the largest speed at the end, and the network."""
    found = found.transpose("time", "network", ...)
    frames = (Tokens(x, found["masses"].values, dims=("network",)) for x in found["positions"].values)
    columns: dict[str, Any] = {
        "energy": (("time", "network"), [total_energy(parameters, network, tokens) for tokens in frames]),
        "speed": found["speed"].isel(time=-1, drop=True),
        "directions": (("network", "unit", "dim"), network[0]),
        "biases": (("network", "unit"), network[1]),
        "weights": (("network", "unit"), network[2]),
    }
    return found[["positions"]].assign(columns)


def total_energy(parameters: Parameters, network: list[np.ndarray], tokens: Tokens) -> np.ndarray:
    """E of every network: the energy of attention, and U written out."""
    slopes = np.einsum("ktd,kud->ktu", np.asarray(tokens.positions), network[0]) + network[1][:, None]
    heights = np.einsum("ktu,ku->kt", np.maximum(slopes, 0.0) ** 2 / 2, network[2])
    pairs = np.asarray(energy(tokens, parameters.beta)) + 1 / (2 * parameters.beta)
    return np.asarray(pairs + np.sum(np.asarray(tokens.masses) * heights, axis=1))


def _rest(parameters: Parameters) -> xr.Dataset:
    """Speeds of equispaced tokens whose masses are the exceptional density; beyond the threshold, the density there."""
    n = parameters.exception_tokens
    angles = 2 * np.pi * np.arange(n) / n
    limit = float(theory.landscape.non_atomic_threshold(parameters.beta))
    network = [np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([BIAS, BIAS])]
    speeds, masses = [], []
    for share in parameters.shares:
        mass = np.asarray(theory.landscape.non_atomic_density(angles, min(share, 1.0) * limit, parameters.beta))
        masses.append(mass / mass.sum())
        weights = np.array([1.0, -1.0]) * share * limit / (2 * BIAS)
        tokens = Tokens(circle_points(angles), masses[-1])
        field = flow(parameters.beta, [*network, weights])
        speeds.append(np.linalg.norm(np.asarray(field.velocity(tokens)), axis=-1))
    return xr.Dataset(
        {
            "speed": (("share", "token"), np.array(speeds)),
            "mass": (("share", "token"), np.array(masses)),
            "angle": (("token",), angles),
            "share": (("share",), np.array(parameters.shares)),
        },
        attrs={"limit": limit},
    )


def _height(landscape: theory.landscape.Landscape, angles: np.ndarray) -> np.ndarray:
    return landscape.potential(circle_points(angles))


def _minimise(parameters: Parameters, study: Study, network: list[np.ndarray]) -> xr.Dataset:
    """The minimiser of the repulsive energy of each network and its certificate, from theory.

    As tokens for the simulation: one per atom, and the heaviest atom is divided among those that are left.
    """
    found, rows = [], []
    for k in range(len(network[0])):
        study.progress("minimising", k / len(network[0]))
        height = functools.partial(_height, theory.landscape.Landscape(*(part[k] for part in network)))
        found.append(theory.landscape.repulsive_minimiser(height, parameters.beta, points=parameters.grid))
    n = max(parameters.tokens, *(len(best.weights) for best in found))
    for best in found:
        heavy, spare = int(np.argmax(best.weights)), n - len(best.weights)
        site = np.append(best.angles, np.full(spare, best.angles[heavy]))
        mass = np.append(best.weights, np.zeros(spare))
        shared = site == best.angles[heavy]
        mass[shared] = best.weights[heavy] / np.sum(shared)
        one = {"site": ("token", site), "mass": ("token", mass), "atoms": len(best.weights)}
        rows.append(xr.Dataset(one | {name: getattr(best, name) for name in ("constant", "energy", "circle_gap")}))
    return xr.concat(rows, dim="network")
