"""The closed form, and the first-order shift of the border by clusters that move."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.bank.simulate import Parameters

FORMULA = consequence("Where the word stands still")
SHIFT = consequence("Clusters that move")
FAR = 0.1
"""How far the logarithm of the ratio is from the formula at the low beta, at least."""


def threshold(beta: float, angle: float) -> float:
    """cot(phi) e^(beta (sin phi - cos phi))."""
    return float(np.exp(beta * (np.sin(angle) - np.cos(angle))) / np.tan(angle))


def first_order(beta: float, angle: float) -> tuple[float, float]:
    """(shift of log(M_1/M_2), size of the next order)."""
    ratio, cos, sin = threshold(beta, angle), np.cos(angle), np.sin(angle)
    a, b = ratio * np.exp(beta * (cos - 1)), np.exp(beta * (sin - 1))
    # drift (b cos - a sin)/(a + b) and its derivatives where it is 0
    by_first = -a * (beta * sin**2 - cos) / (a + b)
    by_second = b * (sin - beta * cos**2) / (a + b)
    growth = -(by_first + by_second)
    by_ratio = -a * sin / (a + b)
    e = np.exp(-beta)
    speeds = e / (ratio + e), -ratio * e / (1 + ratio * e)
    shift = -(by_first * speeds[0] + by_second * speeds[1]) / (growth * by_ratio)
    return float(shift), float((beta * max(map(abs, speeds)) / growth) ** 2 / abs(by_ratio))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The formula; the shift; where the formula fails."""
    roots, shifts = Rows(), Rows()
    for angle in parameters.angles:
        for beta in parameters.betas:
            name = f"φ = {angle:g}, β = {beta:g}"
            still = float(data["still"]["ratio"].sel(angle=angle, beta=beta))
            roots.add(0.0, still / threshold(beta, angle) - 1, 100 * (1 + beta) * EPS, name)
            flow = data["flow"].sel(angle=angle, beta=beta)
            shift, rest = first_order(beta, angle)
            moved = float(flow["border"]) - np.log(threshold(beta, angle))
            shifts.add(shift, moved, rest + float(flow["half"]) + 1e-8, name)
    far = float(data["warm"]["border"]) - np.log(threshold(parameters.warm, parameters.warm_angle))
    return [
        roots.equal(
            "still clusters: ratio of masses at which the word stands still, over cot φ e^(β (sin φ - cos φ)), less 1",
            "rounding of the drift, of logits of size β, and of the root",
            origin=FORMULA,
        ),
        shifts.equal(
            "flows: how far log(M₁/M₂) at the border is from the formula, first-order perturbation theory",
            "the next order, (β times speed over growth)² over the derivative of the drift; half the last interval; "
            "1e-8 for steps",
            origin=SHIFT,
        ),
        Claim.at_least(
            f"flows at β = {parameters.warm:g}, φ = {parameters.warm_angle:g}: distance of the border from the "
            "formula, in log(M₁/M₂)",
            FAR,
            abs(far),
            0.0,
            "a tenth: the next order is larger than that",
            origin=SHIFT,
            detail=f"{far:+.3f}; first order {first_order(parameters.warm, parameters.warm_angle)[0]:+.3f}",
        ),
    ]
