"""Tokens in R^d under V of both signs, and tokens that repel each other on the sphere."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention
from attnflow.flows import Adaptive, At, solve
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, uniform

POINTS = 12
"""Tokens of prisms and of random clouds: one program serves both."""
NODES = 64
"""Of the Gauss-Hermite rule."""
FIRST = 1.0, 0.4
"""Variance and mean of the Gaussian at the start."""
BETAS = (4.0, 6.5, 7.2, 10.0)
"""At which the energies of the two pyramids are looked at."""
METHOD = Adaptive(1e-11, 1e-13)


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    prisms: tuple[tuple[float, float, float, float], ...] = (
        (0.8, 0.6, 0.6, -0.5),
        (0.8, 1.2, 0.6, 0.5),
        (1.0, 0.5, 0.7, -1.0),
        (1.5, 0.9, 0.4, 0.0),
    )
    """Tokens at (-a, 0, a) x (-b, b) x (-c, c) and the third eigenvalue of V = diag(1, 1, v): a, b, c, v."""
    until: float = 5.0
    gaussians: tuple[tuple[float, float], ...] = ((-1.0, 2.0), (-1.0, 0.5), (0.5, 0.05), (0.5, 0.1))
    """V and the time."""
    clouds: int = 6
    late: float = 1000.0
    """When random tokens under V = -I are looked at, and at half of it."""
    six: int = 24
    """Random starts of six tokens that repel each other."""
    rest: float = 60.0


QUICK = Parameters(prisms=((0.8, 0.6, 0.6, -0.5),), gaussians=((-1.0, 2.0), (0.5, 0.1)), clouds=1, six=2)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Ends of prisms, moments, covariances, energies."""
    return study.parts(
        {
            "prisms": (_prisms, parameters),
            "gaussians": (_gaussians, parameters),
            "clouds": (_clouds, parameters),
            "six": (_six, parameters),
            "five": (_five, parameters),
        }
    )


def attention(value: np.ndarray, logits: np.ndarray) -> AbstractField:
    """Softmax attention with these V and Q^T K."""
    return Attention(1.0, key=logits, value=value)


def repelling(beta: float) -> AbstractField:
    """V = -I on the sphere, with weights e^(beta <x, y>)."""
    return Attention(beta, value=-np.eye(3), normaliser="USA")


def frames(field: AbstractField, tokens: Tokens, until: float) -> np.ndarray:
    """Positions at half of the time and at its end."""
    flow = solve(field, tokens, until, save=At([until / 2, until]), method=METHOD, keep=["positions"])
    return np.asarray(flow.positions.values[-2:])


def _prisms(parameters: Parameters) -> xr.Dataset:
    """e^(-t) times the first two coordinates of an outer corner."""
    found = []
    for a, b, c, v in parameters.prisms:
        x = np.array(list(itertools.product((-a, 0.0, a), (-b, b), (-c, c))))
        last = frames(attention(np.diag([1, 1, v]), np.eye(3)), Tokens(x, space=Euclidean(3)), parameters.until)[-1]
        found.append(np.exp(-parameters.until) * last[-1, :2])
    return xr.Dataset({"end": (("prism", "coordinate"), np.array(found))})


def _gaussians(parameters: Parameters) -> xr.Dataset:
    """Means and variances of tokens on the line, at the nodes of a quadrature of a Gaussian."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    tokens = Tokens((np.sqrt(FIRST[0]) * nodes + FIRST[1])[:, None], weights, space=Euclidean(1))
    masses, found = np.asarray(tokens.masses), []
    for value, t in parameters.gaussians:
        y = frames(attention(np.array([[value]]), np.eye(1)), tokens, t)[-1, :, 0]
        found.append([masses @ y, masses @ (y - masses @ y) ** 2])
    return xr.Dataset({"moments": (("case", "moment"), np.array(found))})


def logits(k: int) -> np.ndarray:
    """Q^T K of the k-th cloud: I, then a matrix that is not symmetric."""
    return np.eye(3) if k == 0 else np.array([[1.0, 0.5, 0.0], [-0.5, 2.0, 0.0], [0.0, 0.0, 4.0]])


def _clouds(parameters: Parameters) -> xr.Dataset:
    """Inverse covariances of random tokens under V = -I at half of the time and at its end."""
    found = []
    for k, which in itertools.product(range(parameters.clouds), range(2)):
        tokens = Tokens(parameters.rng(0, k).standard_normal((POINTS, 3)), space=Euclidean(3))
        both = frames(attention(-np.eye(3), logits(which)), tokens, parameters.late)
        found.append([np.linalg.inv(np.cov(y.T, bias=True)) for y in both])
    shape = parameters.clouds, 2, 2, 3, 3
    return xr.Dataset({"inverse": (("cloud", "logits", "time", "row", "column"), np.reshape(found, shape))})


def pair_sum(x: np.ndarray, beta: float) -> float:
    """Sum of e^(beta <x, y>) over pairs of different tokens."""
    first, second = np.triu_indices(len(x), 1)
    return float(np.sum(np.exp(beta * np.sum(x[first] * x[second], axis=-1))))


def _six(parameters: Parameters) -> xr.Dataset:
    """Energies of random starts of six tokens at rest, beta = 2."""
    starts = [uniform(Sphere(3), n=6, seed=seed) for seed in parameters.seeds(range(parameters.six))]
    ends = [frames(repelling(2.0), tokens, parameters.rest)[-1] for tokens in starts]
    return xr.Dataset({"energy": ("start", np.array([pair_sum(x, 2.0) for x in ends]))})


def five(square: bool) -> Tokens:
    """A square pyramid, or a bipyramid over a triangle; a sixth token has no mass: the program of six serves."""
    turn = 2 * np.pi * np.arange(4) / 4 if square else 2 * np.pi * np.arange(3) / 3
    ring = np.stack([np.cos(turn), np.sin(turn), np.full(len(turn), -0.15 if square else 0.0)], axis=1)
    ends: Any = [[0, 0, 1]] if square else [[0, 0, 1], [0, 0, -1]]
    x = np.concatenate([ring / np.linalg.norm(ring, axis=1, keepdims=True), ends, [[0.6, 0.0, -0.8]]])
    return Tokens(x, [1.0] * 5 + [0.0])


def _five(parameters: Parameters) -> xr.Dataset:
    """Energies of both pyramids at rest, and the beta at which they are equal."""

    def energy(beta: float, square: bool) -> float:
        return pair_sum(frames(repelling(beta), five(square), parameters.rest)[-1, :5], beta)

    energies = [[energy(beta, square) for square in (False, True)] for beta in BETAS]
    try:
        flip = brentq(lambda beta: energy(beta, False) - energy(beta, True), 6.0, 8.0, xtol=1e-9)
    except ValueError:  # no change of sign: other physics
        flip = 0.0
    return xr.Dataset({"energy": (("beta", "solid"), np.array(energies)), "flip": float(flip)})
