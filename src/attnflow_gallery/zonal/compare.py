"""Growth rates, times to condensation, and tokens against the density."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, student
from attnflow_gallery.zonal.simulate import RTOL, SMALL, TICK, Parameters

RATES = published("bruno2024emergence")
TIMES = consequence("Time to condensation")
NOISE = consequence("Sampling noise")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Rates, times, tokens."""
    return [_rates(parameters, data["rates"]), _times(parameters, data["condensation"]), _tokens(parameters, data)]


def predicted_rates(parameters: Parameters, degrees: np.ndarray) -> np.ndarray:
    """lambda_k of SA, (dimension, degree)."""
    return np.array([theory.uniform.growth_rates(parameters.rate_beta, d, k=degrees) for d in parameters.dims])


def _rates(parameters: Parameters, part: xr.Dataset) -> Claim:
    degrees = part["degree"].values
    # the largest value of the perturbation: harmonics of norm 1 have the maximum sqrt(multiplicity)
    top = np.array([SMALL * np.sum(np.sqrt(theory.uniform.multiplicity(degrees, d))) for d in parameters.dims])
    expected = predicted_rates(parameters, degrees)
    third = top[:, None] ** 2 * np.max(expected, axis=1, keepdims=True)
    steps = 4 * RTOL * part["steps"].values[:, None] / SMALL / parameters.rate_until
    rows, labels = Rows(), [f"d = {d}, k = {k}" for d in parameters.dims for k in degrees]
    rows.add(expected, part["rate"], third + steps, labels)
    says = f"harmonics of degree 1 to {parameters.degrees} of a density with an axis grow at the rates λ_k"
    return rows.equal(says, "the third order of the perturbation; 1e-10 for every step", origin=RATES)


def _times(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows, (*_, large, small) = Rows(), parameters.overlaps
    factor = large / small
    for d, (*_, before, last) in zip(parameters.dims, np.diff(part["time"].values, axis=1), strict=True):
        expected = np.log(factor) / float(theory.uniform.growth_rates(parameters.beta, d, k=1))
        rows.add(expected, last, np.abs(last - before) + 5 / 384 * TICK**4, f"d = {d}")
    overlaps = f"if the mean overlap of the start is {small:g} instead of {large:g}"
    says = f"time to condensation is longer by log {factor:.3g}/λ_1 {overlaps}"
    return rows.equal(says, "the change since larger overlaps, which falls geometrically; the spline", origin=TIMES)


def _tokens(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part, rows = data["tokens"], Rows()
    density = part["density"].values
    allowed = student(LEVEL, 10**9, part["overlap"].size)
    room = allowed * part["noise"].values + float(part["own"]) * np.abs(density - density[0])
    for k, overlap in enumerate(part["overlap"].values):
        rows.add(0.0, overlap - density, room, [f"sample {k}, t = {t:.3g}" for t in part["time"].values])
    where = f"{parameters.n} iid tokens on S^{parameters.token_dim - 1}"
    reason = (
        f"normal test with the noise that the linearised flow carries, level {LEVEL:g} for all; a token's own weight"
    )
    return rows.equal(f"{where}: mean overlap with the axis less the density's", reason, origin=NOISE, level=LEVEL)
