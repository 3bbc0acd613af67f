"""Growth rates, times to condensation, and tokens against the density."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.zonal.simulate import RTOL, SMALL, TICK, Parameters

RATES = published("bruno2024emergence")
TIMES = consequence("Time to condensation")
NOISE = consequence("Sampling noise")
ERRORS = 4.0
"""Standard errors that are allowed: beyond them lie 6e-5 of the values of a normal distribution."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Rates, times, tokens."""
    return [_rates(parameters, data["rates"]), _times(parameters, data["condensation"]), _tokens(parameters, data)]


def predicted_rates(parameters: Parameters, degrees: np.ndarray) -> np.ndarray:
    """lambda_k of SA, (dimension, degree)."""
    return np.array([theory.uniform.growth_rates(parameters.rate_beta, d, degrees) for d in parameters.dims])


def _rates(parameters: Parameters, part: xr.Dataset) -> Claim:
    degrees = part["degree"].values
    # the largest value of the perturbation: harmonics of norm 1 have the maximum sqrt(multiplicity)
    top = np.array([SMALL * np.sum(np.sqrt(theory.uniform.multiplicity(degrees, d))) for d in parameters.dims])
    expected = predicted_rates(parameters, degrees)
    third = top[:, None] ** 2 * np.max(expected, axis=1, keepdims=True)
    steps = 4 * RTOL * part["steps"].values[:, None] / SMALL / parameters.rate_until
    return Claim.equal(
        f"harmonics of degree 1 to {parameters.degrees} of a density with an axis grow at the rates λ_k", expected,
        part["rate"].values, third + steps, "the third order of the perturbation; 1e-10 for every step", origin=RATES,
        labels=lambda at: f"d = {parameters.dims[at[0]]}, k = {degrees[at[1]]}",
    )  # fmt: skip


def _times(parameters: Parameters, part: xr.Dataset) -> Claim:
    gaps = np.diff(part["time"].values, axis=1)
    first = np.array([float(theory.uniform.growth_rates(parameters.beta, d, 1)) for d in parameters.dims])
    factor = parameters.overlaps[-2] / parameters.overlaps[-1]
    return Claim.equal(
        f"time to condensation is longer by log {factor:.3g}/λ_1 if the mean overlap of the start is "
        f"{parameters.overlaps[-1]:g} instead of {parameters.overlaps[-2]:g}", np.log(factor) / first, gaps[:, -1],
        np.abs(gaps[:, -1] - gaps[:, -2]) + 5 / 384 * TICK**4,
        "the change since larger overlaps, which falls geometrically; the spline", origin=TIMES,
        labels=[f"d = {d}" for d in parameters.dims],
    )  # fmt: skip


def _tokens(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part = data["tokens"]
    slower = float(part["own"]) * np.abs(part["density"].values - part["density"].values[0])
    return Claim.equal(
        f"{parameters.n} iid tokens on S^{parameters.token_dim - 1}: mean overlap with the axis is the density's",
        part["density"].values, part["overlap"].values, ERRORS * part["noise"].values + slower,
        "4 standard errors that the linearised flow carries; the weight of a token to itself", origin=NOISE,
        labels=lambda at: f"sample {at[0]}, t = {part['time'].values[at[1]]:.3g}",
    )  # fmt: skip
