"""The balance at every frame and in the integral, against plain formulas at the stored positions."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import cumulative_simpson, simpson

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.energy_dissipation.simulate import Parameters, cases

BALANCE = published("geshkovski2025perspective", "section 3")
GAP = consequence("The gap of softmax")
METRIC = consequence("The metric of softmax")


def formulas(positions: np.ndarray, beta: float) -> dict[str, np.ndarray]:
    """Of softmax with equal masses: dE/dt, the gap, and the cosine, at positions (..., n, d)."""
    n = positions.shape[-2]
    weights = np.exp(beta * (positions @ np.swapaxes(positions, -1, -2) - 1)) / n
    seen, pull = weights.sum(axis=-1), weights @ positions
    gradient = pull - np.sum(pull * positions, axis=-1, keepdims=True) * positions
    steep = np.sum(gradient**2, axis=-1)
    fast = steep / seen**2
    rate = np.mean(seen * fast, axis=-1)
    return {
        "rate": rate,
        "gap": np.mean((1 - seen) ** 2 * fast, axis=-1) / 2,
        "cosine": rate / np.sqrt(np.mean(fast, axis=-1) * np.mean(steep, axis=-1)),
    }


def rounding(parameters: Parameters, beta: float) -> float:
    """Relative: logits err by a few eps beta, sums of n terms by n eps, and gradients cancel by at most 1e3 here."""
    return 1e3 * (4 * beta + parameters.n) * EPS


def integral(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Over all times by Simpson's rule, and its error: what every second frame changes."""
    fine, coarse = simpson(values, x=times), simpson(values[..., ::2], x=times[::2])
    return np.asarray(fine), np.abs(fine - coarse)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """At every frame; integrated; the cosine."""
    return [*_frames(parameters, data), *_integrals(parameters, data)]


def side(part: xr.Dataset) -> np.ndarray:
    """|mu'|^2/2 + |dE|^2/2."""
    return np.asarray((part["pace"] ** 2 + part["slope"] ** 2) / 2)


def _frames(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    closed, missed, cosines = Rows(), Rows(), Rows()
    for model, beta in cases(parameters):
        part, allowed = data[f"{model}-{beta:g}"], rounding(parameters, beta)
        positions = part["positions"].values
        rate = theory.landscape.energy_rate_of_tokens(positions, beta, model=model)
        if model == "USA0":
            closed.add(0.0, side(part) / rate - 1, allowed, f"β = {beta:g}")
            continue
        exact = formulas(positions, beta)
        for name, found in (("difference", side(part) - rate), ("balance_gap", part["gap"].values)):
            missed.add(0.0, (found - exact["gap"]) / side(part), allowed, f"β = {beta:g}, {name}")
        cosines.add(exact["cosine"], part["cosine"], allowed, f"β = {beta:g}")
    reason = "rounding of logits and sums, times 1000 for cancellation in gradients"
    return [
        closed.equal("USA0, every frame: (|μ'|² + |∂E|²)/2 over dE/dt, less 1", reason, origin=BALANCE),
        missed.equal(
            "SA, every frame: what the balance misses less ½ Σ m (1 - Z)² |v|², over (|μ'|² + |∂E|²)/2",
            reason,
            origin=GAP,
        ),
        cosines.equal("SA, every frame: cosine of velocity and gradient in W₂, formula", reason, origin=GAP),
    ]


def _integrals(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rise, gap, own = Rows(), Rows(), Rows()
    for model, beta in cases(parameters):
        part = data[f"{model}-{beta:g}"]
        times, level = part["time"].values, part["level"].values
        risen = level[:, -1] - level[:, 0]
        whole, error = integral(times, side(part))
        names = [f"β = {beta:g}, draw {k}" for k in range(len(risen))]
        if model == "USA0":
            rise.add(0.0, whole / risen - 1, error / risen + 1e-9, names)
            continue
        missing, other = integral(times, formulas(part["positions"].values, beta)["gap"])
        gap.add(0.0, (whole - risen) / missing - 1, (error + other) / missing + 1e-9, names)
        mine, error = integral(times, part["own"].values)
        own.add(0.0, mine / risen - 1, error / risen + 1e-9, names)
    reason = "what Simpson's rule changes with every second frame; 1e-9 for steps"
    return [
        rise.equal("USA0: ∫ (|μ'|² + |∂E|²)/2 dt over the rise of the energy, less 1", reason, origin=BALANCE),
        gap.equal(
            "SA: the same integral less the rise of the energy, over ½ ∫∫ (1 - Z)² |v|², less 1", reason, origin=GAP
        ),
        own.equal(
            "SA in the metric weighted by Z: its integral over the rise of the energy, less 1", reason, origin=METRIC
        ),
    ]


def efficiency(part: xr.Dataset) -> np.ndarray:
    """W_2 between the ends over the length of the path, of every draw."""
    return np.asarray(part["apart"].values / simpson(part["pace"].values, x=part["time"].values))


def running(part: xr.Dataset, values: Any) -> np.ndarray:
    """The integral from 0 to every frame, of the first draw."""
    return np.asarray(cumulative_simpson(np.asarray(values)[0], x=part["time"].values, initial=0.0))
