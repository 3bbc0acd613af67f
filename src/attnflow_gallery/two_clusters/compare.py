"""Merge times and meeting points against integrals, and large beta against the expansion."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.two_clusters.simulate import AFTER, MODELS, Parameters

GROWTH = published("geshkovski2024metastability")
PAIR = consequence("Time and meeting point of two clusters")
LARGE = consequence("Large beta")
STEPS = "every step off by at most 2√d (rtol + atol)"
SOURCES = {
    "time": ("merge time of two clusters", f"{STEPS}, over the closing speed; round-off"),
    "travelled": ("angle that cluster 1 travels to the meeting point", f"{STEPS}; round-off; the angle left"),
}
"""What is claimed of pairs, and where the tolerance comes from."""


def columns(table: xr.Dataset, *names: str) -> Iterator[tuple[Any, ...]]:
    """These entries of every pair."""
    return zip(*(table[name].values.tolist() for name in names), strict=True)


def compare(parameters: Parameters, pairs: xr.Dataset) -> xr.Dataset:
    """Predictions and tolerances beside the measurements."""
    time, travelled = [], []
    for angle, beta, mass, model in columns(pairs, "angle", "beta", "mass", "model"):
        time.append(
            theory.merging.merge_time(angle, beta, masses=(mass, 1 - mass), until=parameters.until, model=model)
        )
        travelled.append(theory.merging.meeting_point(angle, beta, masses=(mass, 1 - mass), model=model))
    # every coordinate of a token is off by at most rtol + atol per step, and going back to the sphere may double that
    step = 2 * np.sqrt(pairs["dim"]) * (parameters.rtol + parameters.atol)
    late = pairs["slowness"] * (2 * step * pairs["steps_to_time"] + 2 * pairs["floor"] * pairs["time"])
    # where a pair meets moves by at most what a token is moved: both derivatives are in [0, 1] and add to 1
    off = step * pairs["steps"] + pairs["floor"] * (pairs["time"] + AFTER)
    found = {"predicted_time": ("pair", np.array(time)), "predicted_travelled": ("pair", np.array(travelled))}
    return pairs.assign(found | {"time_tolerance": late, "travelled_tolerance": off + pairs["rest"]})


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The exponential growth, the closed forms, the first correction."""
    pairs = compare(parameters, data["pairs"])
    by_model = {model: pairs.isel(pair=pairs["model"].values == model) for model in MODELS}
    found = [_pairs(some, model, name) for name in SOURCES for model, some in by_model.items()]
    return [_growth(parameters, data["large"]), *found, _correction(parameters, data["large"])]


def _pairs(pairs: xr.Dataset, model: str, name: str) -> Claim:
    words, source = SOURCES[name]
    entries = columns(pairs, "dim", "beta", "angle", "mass")
    labels = [f"S^{dim - 1}, beta {beta:g}, angle {angle:g}, mass {mass:g}" for dim, beta, angle, mass in entries]
    three = pairs[f"predicted_{name}"], pairs[name], pairs[f"{name}_tolerance"]
    return Claim.equal(f"{model}: {words}", *three, source, origin=PAIR, labels=labels)


def _labels(large: xr.Dataset) -> list[str]:
    return [f"{model}, angle {angle:g}" for model, angle in columns(large, "model", "angle")]


def correction(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c1, c2 of T/T_leading = 1 + c1/beta + c2/beta^2."""
    f, cos = 1 / np.sin(angle) ** 2, np.cos(angle)
    return 2 * cos * f, 2 * f + 8 * cos**2 * f**2


def _growth(parameters: Parameters, large: xr.Dataset) -> Claim:
    low, high = parameters.large_betas
    first, last = (large.isel(pair=large["beta"].values == beta) for beta in (low, high))
    angle = first["angle"].values
    # log T = beta u - log beta + const + c1/beta + O(1/beta^2)
    found = ((last["log_time"].values - first["log_time"].values) + np.log(high / low)) / (high - low)
    off = 2 * np.abs(correction(angle)[0]) * (1 / low - 1 / high) + last["off"].values + first["off"].values
    words = f"β from {low:g} to {high:g}: growth rate of log(β T) with β is 1 - cos θ₀"
    reason, predicted = "twice the first correction c₁/β; estimated errors of the steps", 2 * np.sin(angle / 2) ** 2
    return Claim.equal(words, predicted, found, off / (high - low), reason, origin=GROWTH, labels=_labels(first))


def _correction(parameters: Parameters, large: xr.Dataset) -> Claim:
    beta = parameters.large_betas[0]
    chosen = large.isel(pair=large["beta"].values == beta)
    leading = [
        float(theory.merging.log_merge_time_expansion(angle, beta, masses=(mass, 1 - mass), model=model, terms=1))
        for angle, mass, model in columns(chosen, "angle", "mass", "model")
    ]
    first, second = correction(chosen["angle"].values)
    found = beta * np.expm1(chosen["log_time"].values - leading)
    allowed = 2 * np.abs(second) / beta + beta * chosen["off"].values
    words = f"β = {beta:g}: β (T/T_leading - 1) is 2 cos θ₀/sin² θ₀"
    reason = "twice the next term; estimated errors of the steps"
    return Claim.equal(words, first, found, allowed, reason, origin=LARGE, labels=_labels(chosen))
