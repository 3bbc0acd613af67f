"""Merge times and meeting points against integrals, and large beta against the expansion."""

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


def compare(parameters: Parameters, pairs: xr.Dataset) -> xr.Dataset:
    """Predictions and tolerances beside the measurements."""
    time, travelled = [], []
    for k in range(pairs.sizes["pair"]):
        row = {str(name): pairs[name].values[k].item() for name in pairs}
        masses, model = (row["mass"], 1 - row["mass"]), row["model"]
        time.append(theory.merging.merge_time(row["angle"], row["beta"], masses, parameters.until, model))
        travelled.append(theory.merging.meeting_point(row["angle"], row["beta"], masses, model))
    # every coordinate of a token is off by at most rtol + atol per step, and going back to the sphere may double that
    step = 2 * np.sqrt(pairs["dim"]) * (parameters.rtol + parameters.atol)
    late = pairs["slowness"] * (2 * step * pairs["steps_to_time"] + 2 * pairs["floor"] * pairs["time"])
    # where a pair meets moves by at most what a token is moved: both derivatives are in [0, 1] and add to 1
    off = step * pairs["steps"] + pairs["floor"] * (pairs["time"] + AFTER)
    return pairs.assign(
        predicted_time=("pair", np.array(time)),
        predicted_travelled=("pair", np.array(travelled)),
        time_tolerance=late,
        travelled_tolerance=off + pairs["rest"],
    )


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The exponential growth, the closed forms, the first correction."""
    pairs = compare(parameters, data["pairs"])
    return [
        _growth(parameters, data["large"]),
        *(_pairs(pairs.isel(pair=pairs["model"].values == model), model, name) for name in SOURCES for model in MODELS),
        _correction(parameters, data["large"]),
    ]


def _pairs(pairs: xr.Dataset, model: str, name: str) -> Claim:
    def label(at: tuple[int, ...]) -> str:
        row = pairs.isel(pair=at[0])
        parts = ", ".join(f"{key} {row[key].item():g}" for key in ("beta", "angle", "mass"))
        return f"S^{int(row['dim']) - 1}, {parts}"

    words, source = SOURCES[name]
    return Claim.equal(
        f"{model}: {words}", pairs[f"predicted_{name}"].values, pairs[name].values, pairs[f"{name}_tolerance"].values,
        source, origin=PAIR, labels=label,
    )  # fmt: skip


def _labels(large: xr.Dataset) -> list[str]:
    return [
        f"{model}, angle {angle:g}" for model, angle in zip(large["model"].values, large["angle"].values, strict=True)
    ]


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
    return Claim.equal(
        f"β from {low:g} to {high:g}: growth rate of log(β T) with β is 1 - cos θ₀", 2 * np.sin(angle / 2) ** 2, found,
        off / (high - low), "twice the first correction c₁/β; estimated errors of the steps", origin=GROWTH,
        labels=_labels(first),
    )  # fmt: skip


def _correction(parameters: Parameters, large: xr.Dataset) -> Claim:
    beta = parameters.large_betas[0]
    chosen = large.isel(pair=large["beta"].values == beta)
    leading = [
        float(theory.merging.log_merge_time_expansion(angle, beta, (mass, 1 - mass), str(model), terms=1))
        for angle, mass, model in zip(*(chosen[name].values for name in ("angle", "mass", "model")), strict=True)
    ]
    first, second = correction(chosen["angle"].values)
    return Claim.equal(
        f"β = {beta:g}: β (T/T_leading - 1) is 2 cos θ₀/sin² θ₀", first,
        beta * np.expm1(chosen["log_time"].values - leading), 2 * np.abs(second) / beta + beta * chosen["off"].values,
        "twice the next term; estimated errors of the steps", origin=LARGE, labels=_labels(chosen),
    )  # fmt: skip
