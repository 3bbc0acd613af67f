"""Rates of the linearised field and of growing modes against the spectrum."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.uniform_spectrum.simulate import MODELS, NEAR, Parameters, thresholds

SPECTRUM = published("bruno2024emergence")
SPACES = (("circle", 2), ("sphere", 3), ("steps", 2))


def linear(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per eigenvector of the linearised field, on the clock of SA: kind, d, model, beta, k, rates, rest."""
    rows = []
    for kind, d in SPACES:
        n, sees = parameters.ring, parameters.ring - 1
        if kind == "sphere":
            n, sees = 2 * parameters.latitudes**2, 2 * parameters.latitudes - 1
        for model, beta in itertools.product(MODELS, data[kind]["beta"].values if kind in data else ()):
            found = data[kind].sel(model=model, beta=beta)
            k = found["degree"].values
            unit = 1.0 if model == "SA" else 1 / float(theory.uniform.degree_weights(beta, d, 1)[0])
            # weights are off by beta eps, sums of n by (4 + sqrt(n)) eps; a derivative has a factor beta
            tolerance = EPS * (4 + np.sqrt(n) + beta) * (1 + beta) * found["peak"].values + _beyond(beta, d, sees - k)
            columns = {"k": k, "measured": found["rate"].values * unit, "rest": found["rest"].values * unit}
            columns |= {
                "predicted": theory.uniform.growth_rates(beta, d, k=k, model=model) * unit,
                "tolerance": tolerance,
            }
            rows += _rows({"kind": kind, "d": d, "model": model, "beta": float(beta)}, columns)
    return rows


def growing(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per growing mode, on the clock of SA."""
    rows = []
    for _, flow in data["growth"].groupby("flow"):
        one = flow.squeeze("flow")
        model, beta, d = str(one["model"].values), float(one["beta"]), int(one["dimension"])
        k, amplitude, until = one["degree"].values, one["amplitude"].values, float(one["time"][-1])
        predicted = theory.uniform.growth_rates(beta, d, k=k, model=model) * float(one["unit"])
        slope = np.sqrt(k * (k + d - 2.0))  # root mean square of the gradient
        tolerance = 2 * predicted**5 * parameters.step**4 / 120
        tolerance += 4 * EPS * slope * np.sqrt(until / parameters.step) / (parameters.size * until)
        tolerance += amplitude[:, -1] ** 2 * one["fourth"].values / until
        tolerance += _beyond(beta, d, 2 * min(parameters.meridian, parameters.sides) - 1 - k)
        with np.errstate(invalid="ignore", divide="ignore"):  # a mode that is gone has no rate, and its claim fails
            measured = np.log(amplitude[:, -1] / amplitude[:, 0]) / until
        columns = {"k": k, "measured": measured, "predicted": predicted, "tolerance": tolerance}
        rows += _rows({"kind": "growth", "d": d, "model": model, "beta": beta}, columns)
    return rows


def _rows(labels: dict[str, Any], columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    return [labels | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _beyond(beta: float, d: int, degrees: np.ndarray) -> np.ndarray:
    """Rate that kernel degrees above these may feign: sum of j (j+d-2) p_j/(beta p_0), p_j the kernel's weights."""
    weights = theory.uniform.degree_weights(beta, d, int(max(degrees)) + 200)
    j = np.arange(len(weights))
    terms = j * (j + d - 2) * weights / (beta * weights[0])
    return np.array([terms[int(k) + 1 :].sum() for k in degrees])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The linearised field, the degree that grows fastest, and modes that grow by decades."""
    still, grown = Rows(), Rows()
    for row in linear(parameters, data):
        where = _where(row)
        still.add(0.0, row["measured"] - row["predicted"], row["tolerance"], f"⟨v, DF v⟩ − λ_k, {where}")
        still.add(0.0, row["rest"], row["tolerance"], f"rest of DF v, {where}")
    rows = growing(parameters, data)
    for row in rows:
        grown.add(row["predicted"], row["measured"], row["tolerance"], _where(row))
    decades = max(row["measured"] for row in rows) * parameters.until / np.log(10)
    return [
        still.equal(
            "Tokens on the circle and S²: DF v = λ_k v for gradients v of harmonics of degree k",
            "round-off, and degrees of the kernel beyond the exactness of the quadrature that the tokens form",
            origin=SPECTRUM,
        ),
        _fastest(parameters, data["steps"]),
        grown.equal(
            "Tokens on S^(d−1), several d: a seeded mode of degree k grows at the rate λ_k",
            "2λ⁵h⁴/120 of RK4, round-off over the seed, mean fourth power of the density reached, quadrature",
            origin=SPECTRUM,
            detail=f"by up to {decades:.1f} decades",
        ),
    ]


def _fastest(parameters: Parameters, steps: xr.Dataset) -> Claim:
    """Just below and just above every threshold."""
    rows = Rows()
    expected = [k + side for k in parameters.thresholds for side in (0, 1)]
    names = [f"{sign} β = {b:.6g}" for b in thresholds(parameters) for sign in ("below", "above")]
    for model in MODELS:
        found = steps["degree"].values[steps["rate"].sel(model=model).values.argmax(axis=-1)]
        rows.add(expected, found, 0.0, [f"{model}, {name}" for name in names])
    near = f"{100 * NEAR:g} % below and above the β of λ_k = λ_(k+1)"
    return rows.equal(
        f"Circle, {near}: the fastest degree is k, then k + 1",
        "whole numbers; at this distance the rates of k and k + 1 differ by 1e8 times round-off",
        origin=SPECTRUM,
    )


def _where(row: dict[str, Any]) -> str:
    return f"S^{row['d'] - 1}, {row['model']}, β = {row['beta']:.6g}, k = {row['k']}"
