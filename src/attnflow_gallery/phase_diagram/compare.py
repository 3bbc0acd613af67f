"""Measured times of the transition against the curve and its spread."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, fit, log_rms, student
from attnflow_gallery.phase_diagram.simulate import Parameters

FARTHEST = 6.0
"""Standard deviations that one draw may be off: 2e-9 for each of some hundred independent draws."""
FIRST_ORDER = consequence("The time of one draw")


def compare(parameters: Parameters, part: xr.Dataset) -> xr.Dataset:
    """Predictions beside measured times: from orthogonality, from the measured mean overlap, and the spread."""
    n, level, beta = parameters.n, parameters.level, part["beta"].values
    started = theory.uniform.equiangular_time(level, beta[:, None, None], n, overlap0=part["start"].values)
    return part.assign(
        predicted=(("beta",), theory.uniform.equiangular_time(level, beta, n)),
        started=(("beta", "d", "seed"), started),
        spread=(("beta", "d"), theory.uniform.collapse_time_spread(beta[:, None], n=n, d=part["d"].values[None, :])),
    )


def relative(pairs: xr.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Per d: log of the root mean square, over draws and beta, of (time - prediction)/prediction, and its error."""
    off = (pairs["time"] - pairs[name]) / pairs["predicted"]
    return log_rms((off**2).mean("beta", skipna=False).transpose("d", "seed").values)


def constant(pairs: xr.Dataset) -> tuple[float, float]:
    """Root mean square of (time - prediction)/(its spread of first order) as d grows, with its standard error."""
    off, d = (pairs["time"] - pairs["predicted"]) / pairs["spread"], pairs["d"].values.astype(float)
    square = (off**2).mean("beta", skipna=False).transpose("d", "seed").values
    found, error = fit([np.ones_like(d), 1 / d], *log_rms(square))
    return float(np.exp(found[0])), float(np.exp(found[0]) * error[0])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The curve at the largest d, the constant of first order, and the exponent of what is left."""
    pairs = compare(parameters, data["times"])
    largest, curve, d = pairs.isel(d=-1), Rows(), pairs["d"].values.astype(float)
    for beta in pairs["beta"].values:
        one = largest.sel(beta=beta)
        curve.add(one["predicted"], one["time"], FARTHEST * one["spread"], f"β = {beta:g}")
    share, error = constant(pairs)
    found, errors = fit([np.ones_like(d), np.log(d), 1 / d], *relative(pairs, "started"))
    every = f"d = {int(d[-1])}: time of the transition of every draw, against the curve"
    first_order = f"{FARTHEST:g} standard deviations of first order: the mean overlap at the start over γ'(0)"
    allowed = student(LEVEL, parameters.draws)
    test = f"Student's test, level {LEVEL:g}"
    reason = f"{test}, {parameters.draws} draws per d; finite d is fitted by a term in 1/d"
    size = "root mean square deviation from the curve over its value of first order, all β, d → ∞"
    power = "exponent of d in the deviation from theory started at the measured mean overlap, all β"
    return [
        curve.equal(every, first_order, origin=published("geshkovski2025perspective", "section 6"), level=LEVEL),
        Claim.equal(size, 1.0, share, allowed * error, reason, origin=FIRST_ORDER, level=LEVEL),
        Claim.equal(power, -1.0, float(found[1]), allowed * float(errors[1]), reason, origin=FIRST_ORDER, level=LEVEL),
    ]
