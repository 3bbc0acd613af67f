"""The gain of energy against an integral, signs of rates, and a flow that descends."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.energy_ascent.simulate import Parameters, cases, flow_name, flows

ASCENT = published("geshkovski2025perspective", "section 3")
HEADS = consequence("Heads add their energies")


def simpson(values: np.ndarray, span: float) -> np.ndarray:
    """Simpson's rule on the last axis from the first frame to every second one, frames `span` apart."""
    pairs = span / 3 * (values[..., :-2:2] + 4 * values[..., 1:-1:2] + values[..., 2::2])
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(pairs, axis=-1)], axis=-1)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Identities along flows, rates of random states, a descent."""
    rates = {(model, heads): data[f"{model}-{heads}"] for model, heads in cases(parameters)}
    return [*_flows(parameters, data), _formula(rates), _never(rates), _descent(parameters, data["descent-SA"])]


def halved(part: xr.Dataset) -> np.ndarray:
    """What halving the step changes of the energy: 15 times its error, by a method of order 4."""
    return np.asarray(15 * part["level_error"].values)


def _flows(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The gain of energy is the integral of the right-hand side; the energy never falls."""
    span, gains, falls = parameters.until / parameters.frames, Rows(), Rows()
    for model, beta in flows(parameters):
        part, label = data[flow_name(model, beta)], f"{model}, β = {beta:g}"
        values, rate = part["level"].values, part["rate"].values
        # Simpson's rule of half the step is 15 times better, RK4 too; sums of n^2 weights of size at most 1
        fine, rough = simpson(rate, span)[..., ::2], simpson(rate[..., ::2], 2 * span)
        step = halved(part).max(axis=-1, keepdims=True) + 8 * EPS * parameters.n
        allowed = np.maximum.accumulate(np.abs(fine - rough)[..., 1:], axis=-1) + step
        labels = [f"{label}, t = {t:.3g}" for t in part["time"].values[4::4]] * part.sizes["seed"]
        gains.add(fine[..., 1:], (values - values[..., :1])[..., 4::4], allowed, labels)
        falls.add(0.0, values[..., :-1] - values[..., 1:], step, label)
    gain = "energy gained along a flow is the integral of Σ m|v|² (USA0), Σ mZ|v|² (SA)"
    simpsons = "change of Simpson's rule and of the energy when their steps are halved; rounding"
    fall = "largest fall of the energy between two frames, SA and USA0"
    return [
        gains.equal(gain, simpsons, origin=ASCENT),
        falls.at_most(fall, "change of the energy when the step is halved; rounding", origin=ASCENT),
    ]


def _formula(parts: dict[tuple[str, int], xr.Dataset]) -> Claim:
    rows = Rows()
    for (model, heads), part in parts.items():
        rows.add(0.0, part["rate"] - part["formula"], part["rounding"], f"{heads} {model} head{'s' * (heads > 1)}")
    says = "dE/dt of heads at random states, by automatic differentiation, minus the formula"
    reason = "eps (10 + 8 |logits|) of the sum of all products of gradients without their signs"
    return rows.equal(says, reason, origin=HEADS)


def _never(parts: dict[tuple[str, int], xr.Dataset]) -> Claim:
    rows, count = Rows(), 0
    for (model, heads), part in parts.items():
        if model == "USA0" or heads == 1:
            rows.add(0.0, np.sum(part["rate"].values < -part["rounding"].values), 0.0, f"{heads} {model}")
            count += part["rate"].size
    says = "random states at which one softmax head, or USA heads, descend"
    reason = "a gradient, or one with positive denominators; rates within rounding are not counted"
    return rows.at_most(says, reason, origin=HEADS, detail=f"{count} states")


def _descent(parameters: Parameters, part: xr.Dataset) -> Claim:
    values, heads = part["level"].values, parameters.heads[0]
    off = float(np.max(halved(part))) + 100 * EPS * float(values[0])
    low = int(np.argmin(values))
    says = f"{heads} softmax heads: least E/E(0) - 1 along the flow from the steepest random state is negative"
    reason = "what halving the step changes, and rounding, added twice to the measured value"
    least = float((values[low] - values[0] + 2 * off) / values[0])
    detail = f"lowest at t = {float(part['time'][low]):.2g}"
    return Claim.at_most(says, 0.0, least, 0.0, reason, origin=HEADS, detail=detail)
