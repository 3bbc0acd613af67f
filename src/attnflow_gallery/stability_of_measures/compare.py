"""Constants of expansion, curves of caps, and the law of the spread."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.stability_of_measures.simulate import MODELS, SPREAD_BETA, STEP, Parameters

APART = consequence("How fast two measures drift apart")
CAPS = consequence("Caps")
SPREAD = consequence("The spread of a cloud")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Expansion, caps, spread."""
    return [*_expansion(parameters, data["expansion"]), *_caps(parameters, data), _spread(parameters, data["cloud"])]


def _expansion(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    sharp, most, softmax = Rows(), Rows(), Rows()
    for k, beta in enumerate(parameters.betas):
        omega = float(theory.landscape.expansion_rate(beta))
        sharp.add(omega, part["pair"][k], 1e2 * EPS, f"β = {beta:g}")
        most.add(omega, part["random"][k], 1e2 * EPS, f"β = {beta:g}")
        softmax.add(
            float(theory.landscape.softmax_lipschitz(beta)), part["softmax"][k], 1e3 * EPS * (1 + beta), f"β = {beta:g}"
        )
    return [
        sharp.equal("circle, USA0: largest expansion of two tokens at the steepest angle, ω", "rounding", origin=APART),
        most.at_most(f"circle, USA0: largest expansion of {parameters.tokens} random tokens", "rounding", origin=APART),
        softmax.equal(
            "circle, softmax: derivative of the velocity at a massless token between two half masses, β + 1/(4β)",
            "rounding",
            origin=APART,
        ),
    ]


def curves(parameters: Parameters, part: xr.Dataset, d: int) -> np.ndarray:
    """The upper curve of every case, (case, time)."""
    time, found = part["time"].values, part["diameter"].values
    return np.array(
        [
            theory.landscape.cap_diameter(time, float(beta), d=d, start=float(row[0]))
            for beta, row in zip(part["beta"].values, found, strict=True)
        ]
    )


def _caps(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    low, high, equal = Rows(), Rows(), Rows()
    steps = 2**5 * STEP**4 / 120 * parameters.until  # of rates up to 2
    for d in (2, 3):
        for model in MODELS:
            part = data[f"cap-{d}-{model}"]
            found, time, upper = part["diameter"].values, part["time"].values, curves(parameters, part, d)
            each = parameters.caps + (d == 2)
            for k, beta in enumerate(part["beta"].values):
                label = f"S^{d - 1}, {model}, β = {beta:g}, measure {k % each}"
                low.add(1.0, found[k] * np.exp(time) / found[k, 0], steps, label)
                high.add(1.0, found[k] / upper[k], steps, label)
                if d == 2 and model == "USA0" and k % each == parameters.caps:
                    equal.add(1.0, found[k] / upper[k], steps, f"β = {beta:g}")
    return [
        low.at_least(
            "measures in caps: diameter over e^(−t) D(0)",
            "steps of RK4, rate⁵ h⁴ t/120 with rates up to 2",
            origin=CAPS,
        ),
        high.at_most(
            "measures in caps: diameter over the upper curve",
            "steps of RK4, rate⁵ h⁴ t/120 with rates up to 2",
            origin=CAPS,
        ),
        equal.equal(
            "circle, USA0: diameter of two atoms over the upper curve",
            "steps of RK4, rate⁵ h⁴ t/120 with rates up to 2",
            origin=CAPS,
        ),
    ]


def _spread(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows, time = Rows(), part["time"].values[1:]
    for k, spread in enumerate(parameters.spreads):
        law = SPREAD_BETA * theory.landscape.softmax_spread(time, SPREAD_BETA, spread / SPREAD_BETA)
        rows.add(0.0, part["spread"].values[k, 1:] / law - 1, (1 + spread) / SPREAD_BETA, f"βv = {spread:g} at t = 0")
    return rows.equal(
        f"softmax, β = {SPREAD_BETA:g}: variance of a narrow cloud over that of Lambert's function, less 1",
        "terms of order 1/β, (1 + βv)/β with βv of the start",
        origin=SPREAD,
    )
