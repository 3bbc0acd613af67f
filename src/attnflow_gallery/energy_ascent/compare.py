"""The gain of energy against an integral, signs of rates, and a flow that descends."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.energy_ascent.simulate import MODELS, Parameters, cases

EPS = float(np.finfo(float).eps)
ASCENT = published("geshkovski2025perspective", "section 3")
HEADS = consequence("Heads add their energies")


def simpson(values: np.ndarray, span: float) -> np.ndarray:
    """Simpson's rule on the last axis from the first frame to every second one, frames `span` apart."""
    pairs = span / 3 * (values[..., :-2:2] + 4 * values[..., 1:-1:2] + values[..., 2::2])
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(pairs, axis=-1)], axis=-1)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Identities along flows, rates of random states, a descent."""
    rates = {(model, heads): data[f"{model}-{heads}"] for model, heads in cases(parameters)}
    return [*_flows(parameters, data), _formula(rates), _never(rates), _descent(parameters, data["descent"])]


def _flows(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The gain of energy is the integral of the right-hand side; the energy never falls."""
    span, rounding = parameters.until / parameters.frames, 8 * EPS * parameters.n
    gains, integrals, tolerances, falls, steps = [], [], [], [], []
    for model in MODELS:
        values, rate = data[model]["energy"].values, data[model]["rate"].values
        fine, rough = simpson(rate, span)[..., ::2], simpson(rate[..., ::2], 2 * span)
        # Simpson's rule of half the step is 15 times better, RK4 too; sums of n^2 weights of size at most 1
        stepping = np.abs(values - data[model]["coarse"].values)
        steps.append(stepping.max(axis=-1)[..., None] + rounding)
        gains.append((values - values[..., :1])[..., 4::4])
        integrals.append(fine[..., 1:])
        tolerances.append(np.maximum.accumulate(np.abs(fine - rough)[..., 1:], axis=-1) + steps[-1])
        falls.append(values[..., :-1] - values[..., 1:])

    def label(at: tuple[int, ...]) -> str:
        return f"{list(MODELS)[at[0]]}, β = {parameters.betas[at[1]]:g}"

    return [
        Claim.equal(
            "energy gained along a flow is the integral of Σ m|v|² (USA0), Σ mZ|v|² (SA)", integrals, gains, tolerances,
            "change of Simpson's rule and of the energy when their steps are halved; rounding", origin=ASCENT,
            labels=lambda at: f"{label(at)}, t = {4 * span * (at[3] + 1):.3g}",
        ),
        Claim.at_most(
            "largest fall of the energy between two frames, SA and USA0", 0.0, falls, np.array(steps),
            "change of the energy when the step is halved; rounding", origin=ASCENT, labels=label,
        ),
    ]  # fmt: skip


def _formula(parts: dict[tuple[str, int], xr.Dataset]) -> Claim:
    names = [f"{heads} {model} head{'s' * (heads > 1)}" for model, heads in parts]
    columns = {key: [part[key].values for part in parts.values()] for key in ("rate", "formula", "rounding")}
    return Claim.equal(
        "dE/dt of heads at random states, by automatic differentiation, minus the formula", 0.0,
        np.array(columns["rate"]) - np.array(columns["formula"]), columns["rounding"],
        "eps (10 + 8 |logits|) of the sum of all products of gradients without their signs", origin=HEADS,
        labels=lambda at: names[at[0]],
    )  # fmt: skip


def _never(parts: dict[tuple[str, int], xr.Dataset]) -> Claim:
    climbing = {key: part for key, part in parts.items() if key[0] == "USA0" or key[1] == 1}
    falling = [int(np.sum(part["rate"].values < -part["rounding"].values)) for part in climbing.values()]
    return Claim.at_most(
        "random states at which one softmax head, or USA heads, descend", 0.0, falling, 0.0,
        "a gradient, or one with positive denominators; rates within rounding are not counted", origin=HEADS,
        labels=[f"{heads} {model}" for model, heads in climbing],
        detail=f"{sum(part['rate'].size for part in climbing.values())} states",
    )  # fmt: skip


def _descent(parameters: Parameters, part: xr.Dataset) -> Claim:
    values, coarse, heads = part["energy_SA"].values, part["coarse_SA"].values, parameters.heads[0]
    off = float(np.max(np.abs(values - coarse))) + 100 * EPS * float(values[0])
    low = int(np.argmin(values))
    return Claim.at_most(
        f"{heads} softmax heads: least E/E(0) - 1 along the flow from the steepest random state is negative", 0.0,
        float((values[low] - values[0] + 2 * off) / values[0]), 0.0,
        "what halving the step changes, and rounding, added twice to the measured value", origin=HEADS,
        detail=f"lowest at t = {float(part['time_SA'][low]):.2g}",
    )  # fmt: skip
