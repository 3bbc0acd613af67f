"""Clusters held by two neurons, and softmax with three neurons on the circle."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import pair_angle
from attnflow.fields import AbstractField, Attention, Potential
from attnflow.flows import Adaptive, solve
from attnflow.stability import jacobian
from attnflow.tokens import Tokens

MODELS = "USA0", "SA"
METHOD = Adaptive(1e-9, 1e-11)
TOKENS = 12
CYCLE = np.array([0.0, 1.9, 4.1]), np.array([1.0, 1.2, 0.9]), np.array([0.5, 0.3, 0.2])
"""Angles and weights of three neurons on the circle, and masses of three tokens."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    openings: tuple[float, ...] = (2.1, 2.5)
    """Angles between the two neurons."""
    beta: float = 3.0
    shares: tuple[float, ...] = (0.3, 0.6, 0.9)
    """kappa over its threshold, for tokens at rest."""
    until: float = 60.0
    betas: tuple[float, ...] = (2.0, 3.0, 4.0)
    """At which the fold is searched for, at the first opening."""
    halvings: int = 7
    long: float = 300.0
    kappas: tuple[float, ...] = (0.5, 1.0)
    """Of softmax with three neurons."""


QUICK = Parameters(openings=(2.1,), shares=(0.6,), betas=(3.0,), halvings=4, kappas=(1.0,))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Separations at rest, folds, spectra, cycle products."""
    return study.parts(
        {
            "held": (_held, parameters),
            "folds": (_folds, parameters),
            "rates": (_rates, parameters),
            "cycles": (_cycles, parameters),
        }
    )


def attention(beta: float, model: str) -> AbstractField:
    """Attention with Q = K = V = I."""
    return Attention(beta, normaliser=model)


def neurons(directions: np.ndarray, weights: np.ndarray) -> AbstractField:
    """The gradient of U = sum_j (omega_j/2) (a_j . x)_+^2."""
    return Potential(directions, np.zeros(len(directions)), weights)


def two_neurons(opening: float) -> AbstractField:
    """Two neurons on the equator at the angles +-opening/2."""
    half = opening / 2 * np.array([1.0, -1.0])
    return neurons(np.stack([np.cos(half), np.sin(half), 0 * half], axis=1), np.ones(2))


def rested(field: AbstractField, tokens: Tokens, until: float) -> np.ndarray:
    """Positions at the end."""
    flow = solve(field, tokens, until, save=1, method=METHOD, keep=["positions"])
    return np.asarray(flow.positions.values[-1])


def guesses(parameters: Parameters) -> dict[tuple[float, float, str], float]:
    """Strengths of attention that are tried: shares of the threshold."""
    from attnflow import theory

    return {
        (opening, share, model): share * theory.landscape.hold_threshold(parameters.beta, opening, model=model).kappa
        for opening, share, model in itertools.product(parameters.openings, parameters.shares, MODELS)
    }


def _held(parameters: Parameters) -> xr.Dataset:
    """Separation at rest of random tokens near two neurons on S^2, and how far tokens of a cluster are apart."""
    rows = []
    for (opening, _, model), kappa in guesses(parameters).items():
        half = np.where(np.arange(TOKENS) < TOKENS // 2, 0.5, -0.5) * opening
        x = np.stack([np.cos(half), np.sin(half), 0 * half], axis=1)
        x = x + 0.1 * parameters.rng(0).standard_normal(x.shape)
        tokens = Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
        last = rested(kappa * attention(parameters.beta, model) + two_neurons(opening), tokens, parameters.until)
        ends = last[: TOKENS // 2], last[TOKENS // 2 :]
        centres = np.array([one.mean(axis=0) for one in ends])
        size = max(np.abs(one - centre).max() for one, centre in zip(ends, centres, strict=True))
        rows.append((pair_angle(centres), size))
    return xr.Dataset({"angle": ("case", np.array(rows)[:, 0]), "size": ("case", np.array(rows)[:, 1])})


def couple(angle: float, lean: float = 0.0) -> Tokens:
    """Two tokens on the equator of S^2 at this separation, turned by `lean`."""
    half = angle / 2 * np.array([1.0, -1.0]) + lean
    return Tokens(np.stack([np.cos(half), np.sin(half), 0 * half], axis=1))


def _folds(parameters: Parameters) -> xr.Dataset:
    """The largest kappa at which two tokens stay apart, by bisection in log kappa; a pair that lasts is taken on."""
    opening, found = parameters.openings[0], []
    for model, beta in itertools.product(MODELS, parameters.betas):
        low, high = 0.0, beta * 2 + 1
        start = np.asarray(couple(opening, 1e-3).positions)
        for _ in range(parameters.halvings + 6):
            middle = (low + high) / 2
            field = np.exp(middle) * attention(beta, model) + two_neurons(opening)
            last = rested(field, Tokens(start), parameters.long)
            low, high = (middle, high) if pair_angle(last) > 0.1 else (low, middle)
        found.append((low, high))
    shape = len(MODELS), len(parameters.betas), 2
    return xr.Dataset({"log_kappa": (("model", "beta", "end"), np.reshape(found, shape))})


def _rates(parameters: Parameters) -> xr.Dataset:
    """Eigenvalues of the Jacobian at the held pair, USA0, sorted."""
    rows = []
    for opening, share in itertools.product(parameters.openings, parameters.shares):
        kappa = guesses(parameters)[opening, share, "USA0"]
        field = kappa * attention(parameters.beta, "USA0") + two_neurons(opening)
        last = rested(field, couple(opening), 2 * parameters.until)
        rows.append(np.sort(np.linalg.eigvals(jacobian(field, Tokens(last))).real))
    return xr.Dataset({"rate": (("case", "mode"), np.array(rows))})


def _cycles(parameters: Parameters) -> xr.Dataset:
    """J_12 J_23 J_31/(J_13 J_32 J_21) at the equilibrium of three tokens, three neurons on the circle, beta = 1.5."""
    angles, weights, masses = CYCLE
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rows: list[Any] = []
    for model, kappa in itertools.product(MODELS, parameters.kappas):
        field = kappa * attention(1.5, model) + neurons(circle, weights)
        matrix = jacobian(field, Tokens(rested(field, Tokens(circle, masses), 200.0), masses))
        rows.append(matrix[0, 1] * matrix[1, 2] * matrix[2, 0] / (matrix[0, 2] * matrix[2, 1] * matrix[1, 0]))
    return xr.Dataset({"cycle": (("model", "kappa"), np.reshape(rows, (len(MODELS), len(parameters.kappas))))})
