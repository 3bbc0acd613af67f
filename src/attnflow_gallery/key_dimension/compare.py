"""Pair exponents, their zeros, mean cosines and drifts of cold pairs against closed forms and quadratures."""

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, Rows, averaged, fit, student
from attnflow_gallery.key_dimension.simulate import BATCHES, IID, Parameters

PAIRS = consequence("The pair exponent")
COLD = consequence("Zero temperature")
WARM = consequence("Finite temperature")
COSINE = consequence("The cosine of two images")
DRIFT = consequence("The drift of cold pairs")
NONLINEAR = 1e-4
"""Of an exponent: steps h = 1e-6 and angles 1e-4 in place of 0, with h E|dm|^4 where |dm|^2 is of order 10."""
FINITE = f"{NONLINEAR:g} for finite steps and angles"
SPOKEN = f"Student's test on means of {BATCHES} batches, level {LEVEL:g} for all together"


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Exponents at zero temperature and their sign change; at finite b, b_c; cosines; the drift constant."""
    exponents = [*_cold(parameters, data["cold"]), *_warm(parameters, data["warm"])]
    return [*exponents, _cosines(parameters, data["cosines"]), _drift(parameters, data["drift"])]


def mean_of(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over batches and its standard error."""
    return averaged(values.transpose("batch", ...))


def keys_of(keys: int) -> int | None:
    """d_k as theory wants it."""
    return None if keys == IID else int(keys)


def _words(keys: int) -> str:
    return "independent entries" if keys == IID else f"d_k = {keys}"


def sign_change(parameters: Parameters, part: xr.Dataset) -> tuple[float, float]:
    """d_k at which a straight line in 1/(d_k - 2) through the exponents vanishes, and its standard error."""
    found, error = mean_of(part["exponent"])
    x = np.array([0.0 if keys == IID else 1 / (keys - 2) for keys in part["keys"].values])
    design = [np.ones_like(x), x]
    line, _ = fit(design, found, error)
    matrix = np.stack(design, axis=1) / error[:, None]
    covariance = np.linalg.inv(matrix.T @ matrix)
    # the zero is at d_k - 2 = -slope/level
    slope = np.array([line[1] / line[0] ** 2, -1 / line[0]])
    return float(2 - line[1] / line[0]), float(np.sqrt(slope @ covariance @ slope))


def _cold(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    d, keys = parameters.d, part["keys"].values
    found, error = mean_of(part["exponent"])
    predicted = [theory.random_layers.zero_temperature_exponent(d, keys_of(one)) for one in keys]
    allowed, labels = student(LEVEL, BATCHES, len(keys)) * error + NONLINEAR, [_words(one) for one in keys]
    says, spread = f"b = ∞, d = {d}: pair exponent Λ", f"standard errors {error.min():.4f} to {error.max():.4f}"
    reason = f"{SPOKEN}; {FINITE}"
    exponents = Claim.equal(
        says, predicted, found, allowed, reason, origin=COLD, level=LEVEL, labels=labels, detail=spread
    )
    place, place_error = sign_change(parameters, part)
    room = student(LEVEL, BATCHES) * place_error + 0.01
    says = f"b = ∞, d = {d}: Λ vanishes at d_k = d - 1"
    reason = (
        f"Student's level {LEVEL:g} of the zero of a straight line in 1/(d_k - 2); 0.01 for finite steps and angles"
    )
    return [exponents, Claim.equal(says, d - 1, place, room, reason, origin=COLD, level=LEVEL)]


def zero(scales: np.ndarray, exponents: np.ndarray) -> float:
    """The zero, in b, of the polynomial in log b through these exponents; no number unless they change sign."""
    if not exponents[0] < 0 < exponents[-1]:
        return math.nan
    x = np.log(scales)
    polynomial = np.polynomial.Polynomial.fit(x, exponents, len(x) - 1)
    return math.exp(brentq(polynomial, x[0], x[-1]))


def warm_exponents(d: int, keys: int, scales: Any) -> np.ndarray:
    """Lambda by quadrature."""
    moments = [theory.random_layers.attention_moments(float(b), d=d, d_k=keys_of(keys)) for b in scales]
    return np.array([float(theory.random_layers.pair_exponent(*one, d)) for one in moments])


def crossing(parameters: Parameters, part: xr.Dataset) -> tuple[float, float, float]:
    """b_c by interpolation, its standard error (jackknife over batches), and what interpolation misses in theory."""
    keys = parameters.warm_keys[0]
    scales = np.array(parameters.crossing)
    rows = part["exponent"].sel(keys=keys, scale=list(scales)).values
    found = zero(scales, rows.mean(axis=0))
    others = [zero(scales, np.delete(rows, k, axis=0).mean(axis=0)) for k in range(len(rows))]
    error = math.sqrt((len(rows) - 1) * np.var(others))
    known = theory.random_layers.critical_logit_scale(parameters.d, keys)
    assert known is not None
    return found, error, abs(zero(scales, warm_exponents(parameters.d, keys, scales)) - known)


def _warm(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    d, scales = parameters.d, part["scale"].values
    found, error = mean_of(part["exponent"])
    rows, room = Rows(), student(LEVEL, BATCHES, found.size) * error + NONLINEAR
    for k, keys in enumerate(part["keys"].values):
        labels = [f"{_words(keys)}, b = {b:g}" for b in scales]
        rows.add(warm_exponents(d, keys, scales), found[k], room[k], labels)
    place, place_error, missed = crossing(parameters, part)
    known, allowed = (
        theory.random_layers.critical_logit_scale(d, parameters.warm_keys[0]),
        student(LEVEL, BATCHES) * place_error,
    )
    says = f"d = {d}, d_k = {parameters.warm_keys[0]}: critical logit scale b_c"
    reason = f"Student's level {LEVEL:g}, standard error by jackknife over batches; what interpolation misses in theory"
    return [
        rows.equal(
            f"d = {d}: pair exponent Λ at finite logit scale b", f"{SPOKEN}; {FINITE}", origin=WARM, level=LEVEL
        ),
        Claim.equal(says, known, place, allowed + missed, reason, origin=WARM, level=LEVEL),
    ]


def _cosines(parameters: Parameters, part: xr.Dataset) -> Claim:
    r, dims = parameters.cosine_overlap, part["d"].values
    found, error = mean_of(part["cosine"])
    rows, room = Rows(), student(LEVEL, BATCHES, found.size) * error
    for k, kind in enumerate(part["kind"].values):
        predicted = [
            float(theory.random_layers.mean_cosine(r, int(d), d_k=int(d) if kind == "product" else None)) for d in dims
        ]
        rows.add(predicted, found[k], room[k], [f"{kind}, d = {d}" for d in dims])
    scale = dims[-1] / (r - r**3)
    ours = f"{(r - found[0, -1]) * scale:.3f} ± {error[0, -1] * scale:.3f}"
    detail = f"product, d = {dims[-1]}: d (R - E cos)/(R - R³) = {ours}, not the 1/2 of one matrix"
    return rows.equal(f"R = {r:g}: mean cosine of Ax and Ay", SPOKEN, origin=COSINE, level=LEVEL, detail=detail)


def cold_constants(parameters: Parameters, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c of every overlap, its standard error, and c of the exact drift at this d."""
    r, d = part["overlap"].values, parameters.cold_d
    found, error = mean_of(part["drift"])
    scale = -d / (r - r**3)
    return found * scale, np.abs(error * scale), exact_constant(r, d)


def exact_constant(r: np.ndarray, d: int) -> np.ndarray:
    """-d D/(R - R^3) for the exact drift D of R at zero temperature, A = Q^T K with d_k = d."""
    drift = theory.random_layers.overlap_drift(r, theory.random_layers.mean_cosine(r, d, d_k=d), 1.0, 1.0, d=d)
    return np.asarray(-d * np.asarray(drift) / (r - r**3))


def pooled(parameters: Parameters, part: xr.Dataset) -> tuple[float, float, float]:
    """c over all overlaps with its standard error, and the exact one with the same weights."""
    found, error, exact = cold_constants(parameters, part)
    weights = error**-2.0 / np.sum(error**-2.0)
    return float(weights @ found), float(np.sqrt(weights**2 @ error**2)), float(weights @ exact)


def _drift(parameters: Parameters, part: xr.Dataset) -> Claim:
    d, overlaps = parameters.cold_d, part["overlap"].values
    found, error, exact = cold_constants(parameters, part)
    mean, mean_error, _ = pooled(parameters, part)
    says = f"two tokens at b = ∞, d_k = d = {d}: drift constant c"
    allowed, labels = student(LEVEL, BATCHES, len(overlaps)) * error, [f"R = {r:g}" for r in overlaps]
    away = " and ".join(f"{abs(mean - c) / mean_error:.0f} from {c:g}" for c in (1.5, 1.0))
    detail = f"all overlaps together c = {mean:.3f} ± {mean_error:.3f}: in standard errors {away}"
    return Claim.equal(says, exact, found, allowed, SPOKEN, origin=DRIFT, level=LEVEL, labels=labels, detail=detail)
