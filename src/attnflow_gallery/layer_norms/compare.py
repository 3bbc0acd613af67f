"""Paths against two scalar equations, and exponents at late times."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.layer_norms.simulate import NAMES, STARTS, STEPS, Parameters, decay

RATES = published("karagodin2025normalization")
TOLD_APART = 0.25
"""A quarter of the distance of the exponents 1 and 2: what does not settle is no power of t."""
PATH = consequence("Equal overlaps stay equal")


def exponents(parameters: Parameters, placement: str, part: xr.Dataset, start: str) -> tuple[np.ndarray, float]:
    """The last three local exponents, over a factor of four in t or two units of time, and their rounding error."""
    log_gap, time = np.log(part["gap"].sel(start=start).values), part["time"].values
    clock, lag = (time, 4) if decay(parameters, placement)[0] == "exponential" else (np.log(np.maximum(time, EPS)), 4)
    picked = [-1 - 3 * lag, -1 - 2 * lag, -1 - lag, -1]
    found = -np.diff(log_gap[picked]) / np.diff(clock[picked])
    # distances are off by a few units in the last place of 1, relative to sqrt(2 gap)
    rounding = 2 * rounding_error(parameters, np.exp(log_gap[-1])) / (clock[-1] - clock[-1 - lag])
    return np.asarray(found), float(rounding)


def rounding_error(parameters: Parameters, gap: Any) -> Any:
    """Of log gap: coordinates are off by eps per step at random, n coordinates, relative to the distance of a pair."""
    gap = np.where(np.asarray(gap) > 0, gap, np.nan)  # tokens that have met have no rounding error, and no claim holds
    return 2 * EPS * np.sqrt(parameters.n * 40 * STEPS) / np.sqrt(2 * gap)


def path(parameters: Parameters, placement: str, times: np.ndarray) -> Any:
    """Log gap and radius of orthonormal tokens, by the two scalar equations."""
    options: dict[str, Any] = {"alpha": parameters.alpha, "switch": parameters.switch}
    return theory.uniform.norm_overlap(times, parameters.beta, parameters.n, placement=placement, **options)  # type: ignore[arg-type]


def compare(parameters: Parameters, placement: str, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log gap - theory, log radius - theory, tolerance) at the frames of orthonormal tokens."""
    own = part.sel(start="orthonormal")
    known = path(parameters, placement, part["time"].values)
    gap = own["gap"].values
    halving = np.maximum.accumulate(np.abs(np.log(own["coarse"].values / gap)))
    # the scalar equations are integrated to 1e-11
    tolerance = halving + rounding_error(parameters, gap) + 1e-9
    return np.log(gap) - known.log_gap, np.log(own["radius"].values / known.radius), tolerance


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Per placement the exponent from both starts, and the whole path of orthonormal tokens."""
    made = [_exponent(parameters, placement, data[placement]) for placement in parameters.placements]
    return made + [_path(parameters, placement, data[placement]) for placement in parameters.placements]


def _exponent(parameters: Parameters, placement: str, part: xr.Dataset) -> Claim:
    kind, predicted = decay(parameters, placement)
    what = "rate of e^(-ct)" if kind == "exponential" else "exponent of t^-p"
    rows = Rows()
    for start in STARTS:
        (first, before, last), rounding = exponents(parameters, placement, part, start)
        # LN-scaling lives on the clock sqrt(t): over a factor of four its correction halves, others fall faster; the
        # change before the last is larger where a correction changes its sign and the last change is small by chance
        change = max(2 * abs(last - before), abs(before - first))
        rows.add(predicted, last, min(change + rounding, TOLD_APART), start)
    says = f"{NAMES[placement]}: {what} at late times, orthonormal tokens and iid ones in a cone"
    reason = "the last change of the local exponent, twice, or the one before it; rounding; at most 1/4"
    return rows.equal(says, reason, origin=RATES)


def _path(parameters: Parameters, placement: str, part: xr.Dataset) -> Claim:
    gap, radius, tolerance = compare(parameters, placement, part)
    rows, times = Rows(), [f"t = {t:.3g}" for t in part["time"].values]
    rows.add(0.0, gap, tolerance, [f"log gap at {t}" for t in times])
    rows.add(0.0, radius, tolerance, [f"log r at {t}" for t in times])
    says = "orthonormal tokens: log gap and log r minus the solution of two scalar equations"
    reason = "change of log gap when the step is halved, rounding, and 1e-9 for the integration of the equations"
    return rows.equal(f"{NAMES[placement]}, {says}", reason, origin=PATH)
