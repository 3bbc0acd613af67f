"""Amplitudes against exponentials, and against what second and third order add."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.uniform_unstable.simulate import Parameters

RATES = published("bruno2024emergence")
SECOND = consequence("One start alone: second order")
THIRD = consequence("The bend on the circle: third order")
SMALL = 0.1
"""Amplitudes up to which the bend is compared: there it is a hundred times a^4."""


def lines(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per pair of starts: times, odd amplitude, deviations of log a (odd and even in the start), tolerances."""
    rows = []
    for part in data.values():
        model, beta, d, space = (part.attrs[key] for key in ("model", "beta", "d", "space"))
        for k in part["degree"].values.tolist() if space != "bend" else ():
            plus, minus = part["amplitude"].sel(degree=k).values
            odd, t = (plus - minus) / 2, part["frame"].values * float(part["interval"].sel(degree=k))
            rate = float(theory.uniform.growth_rates(beta, d, k=k, model=model))
            with np.errstate(invalid="ignore", divide="ignore"):
                gap = np.log(odd / odd[0]) - rate * t
                even = np.log(plus / plus[0] * minus[0] / minus) / 2
            step, rounding = _steps(rate, t), 32 * EPS * np.sqrt(6.0 * len(t)) * (1 + rate * t)
            bend = (
                theory.uniform.quadratic_growth(beta, d, k, model=model) * (odd - odd[0]) if space == "zonal" else 0 * t
            )
            rows.append(
                {"space": space, "d": d, "model": model, "beta": beta, "k": k, "t": t, "rate": rate}
                | {"odd": odd, "gap": gap, "tolerance": step + odd**2 + rounding, "measured": rate + gap[-1] / t[-1]}
                | {"even": even, "bend": bend, "even_tolerance": np.abs(odd) ** 3 + np.abs(bend) * step + rounding}
            )
    return rows


def bends(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per mode that is followed to its end: a, log a - log a(0) - lambda t, and what theory says."""
    rows = []
    for part in data.values():
        model, beta = part.attrs["model"], part.attrs["beta"]
        for k in part["degree"].values.tolist() if part.attrs["space"] == "bend" else ():
            count = int(part["amplitude_counts"].sel(degree=k))
            found = part["amplitude"].sel(degree=k).values[:count]
            t = part["frame"].values[:count] * float(part["interval"].sel(degree=k))
            rate = float(theory.uniform.growth_rates(beta, 2, k=k, model=model))
            with np.errstate(invalid="ignore", divide="ignore"):
                gap = np.log(found / found[0]) - rate * t
            rows.append(
                {"space": "circle", "d": 2, "model": model, "beta": beta, "k": k, "t": t, "a": found, "gap": gap}
                | {"rate": rate, "bend": theory.uniform.cubic_growth(t, float(found[0]), beta, k=k, model=model)}
                | {"tolerance": found**4 + _steps(rate, t) + 1e-9}
            )
    return rows


def _steps(rate: float, t: np.ndarray) -> np.ndarray:
    """Of log a: DOPRI5 multiplies by e^z - z^6/3600 in a step of length z/rate; 20 % for terms of higher order."""
    return np.asarray(1.2 * rate * t * (rate * t[1]) ** 5 / 3600)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Exponential growth of every harmonic, then what second and third order add."""
    growth, second, third = Rows(), Rows(), Rows()
    for row in lines(data):
        names = [f"{_where(row)}, a = {a:.1e}" for a in row["odd"]]
        growth.add(0.0, row["gap"], row["tolerance"], names)
        if row["space"] == "zonal" and row["k"] % 2 == 0:
            second.add(0.0, row["even"] - row["bend"], row["even_tolerance"], names)
    for row in bends(data):
        end = int(np.argmax(row["a"] > SMALL)) or len(row["a"])
        names = [f"{_where(row)}, a = {a:.1e}" for a in row["a"][:end]]
        third.add(row["bend"][:end], row["gap"][:end], row["tolerance"][:end], names)
    steps = "(λh)⁵/3600 of λt for steps of length h"
    words = (
        "A harmonic of degree k grows like e^(λ_k t): log a(t) − log a(0) − λ_k t",
        "Zonal, even degree, starts ±a: (log a₊ − log a₋)/2 − c(a − a(0)), second order",
        f"Circle, up to a = {SMALL:g}: log a(t) − log a(0) − λ_k t is the bend of third order",
    )
    return [
        growth.equal(words[0], f"{steps}; a², which a pair of starts leaves; round-off", origin=RATES),
        second.equal(words[1], f"a³ of the terms of fourth order; {steps}; round-off", origin=SECOND),
        third.equal(words[2], f"a⁴ of the terms of fifth order; {steps}", origin=THIRD),
    ]


def _where(row: dict[str, Any]) -> str:
    where = {"circle": "circle", "sphere": "S²"}.get(row["space"], f"S^{row['d'] - 1}")
    return f"{where}, {row['model']}, β = {row['beta']:g}, k = {row['k']}"
