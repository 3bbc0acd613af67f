"""Distances and lengths against the closed form; rates of separation against max W''."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.geodesics.simulate import MODELS, NEAR, SHORT, Parameters, extremal_angle, pull

GEODESIC = consequence("Equiangular tokens")
EXPANSION = consequence("Separation on the circle")


def to_mean(gamma: np.ndarray, n: int) -> np.ndarray:
    """The angle of n tokens with the common overlap gamma to their mean."""
    return np.asarray(np.arccos(np.minimum(np.sqrt((1 + (n - 1) * gamma) / n), 1.0)))


def travelled(parameters: Parameters, times: np.ndarray, n: int, overlap: float, model: str) -> np.ndarray:
    """How far every token has gone."""
    ahead = theory.uniform.equiangular_time(overlap, parameters.beta, n, model=model) if overlap else 0.0
    gamma = theory.uniform.equiangular_overlap(times + ahead, parameters.beta, n, model=model)
    return to_mean(np.array([overlap]), n) - to_mean(np.asarray(gamma), n)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Geodesics, then separation."""
    return [*_straight(parameters, data), *_separation(parameters, data)]


def _straight(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    distances, lengths = Rows(), Rows()
    for n, overlap in zip(parameters.tokens, parameters.overlaps, strict=True):
        for model in MODELS:
            part = data[f"{model}-{n}"]
            times = part["time"].values
            exact = travelled(parameters, times, n, overlap, model)
            step = 2 * float(part["positions_error"].values.max()) * np.sqrt(n)
            names = [f"{model}, n = {n}, t = {t:.3g}" for t in times]
            # W_2^2 is a mean of squares of angles that arccos gives to sqrt(eps) near 0
            distances.add(exact, part["apart"], step + 1e-9, names)
            lengths.add(exact[::4], part["length"], step + part["length_error"].values + 1e-9, names[::4])
    return [
        distances.equal(
            "equiangular tokens, SA and USA0: W₂ from the start, the angle that every token has gone",
            "twice the error of order 4, from halving the step; 1e-9 for linear programming",
            origin=GEODESIC,
        ),
        lengths.equal(
            "equiangular tokens, SA and USA0: length of the path in W₂, the same angle",
            "the same, and what Simpson's rule changes with every second frame",
            origin=GEODESIC,
        ),
    ]


def largest_rate(beta: float) -> float:
    """Lambda = max W''."""
    return pull(extremal_angle(beta), beta)


def _separation(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    equal, below = Rows(), Rows()
    for beta, rate in zip(parameters.betas, data["extremal"]["rate"].values, strict=True):
        angle = extremal_angle(beta)
        speed = np.sin(angle) * np.exp(beta * (np.cos(angle) - 1))
        reach = np.linspace(-1, 1, 41) * (NEAR + SHORT * speed)
        room = largest_rate(beta) - min(pull(angle + one, beta) for one in reach)
        equal.add(largest_rate(beta), rate, room + 8 * EPS / (NEAR * SHORT), f"β = {beta:g}")
    part = data["random"]
    times, apart = part["time"].values[1:], part["apart"].values
    rates = np.log(apart[:, 1:] / apart[:, :1]) / times
    most = largest_rate(parameters.random_beta)
    below.add(most, rates, 1e-6, f"β = {parameters.random_beta:g}")
    return [
        equal.equal(
            "USA0 on the circle, two tokens at the extremal angle: rate at which W₂ to a near pair grows, max W''",
            "how much W'' changes over the angles that are passed; rounding",
            origin=EXPANSION,
        ),
        below.at_most(
            "USA0 on the circle, pairs of random starts: log of the growth of W₂ over t, at most max W''",
            "1e-6 for steps",
            origin=EXPANSION,
            detail=f"the largest is {np.max(rates):.3f}",
        ),
    ]
