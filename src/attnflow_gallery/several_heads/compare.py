"""Merge times against integrals, rates and thresholds against closed forms, ends of random starts against bounds."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import binom

from attnflow import theory
from attnflow.experiments import Claim, consequence, observed
from attnflow.experiments.kit import EPS, LEVEL, Rows, counted
from attnflow_gallery.several_heads.simulate import MODELS, TOKENS, Parameters, cases

PAIR = consequence("Two clusters under heads of different beta")
AXES = consequence("Clusters on the axes")
ENDS = observed("Where random tokens end")
SEVERAL = 0.95
"""Share of random starts that are expected to end in several clusters under USA axis heads."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Two heads, then axis heads."""
    return [*_merging(parameters, data), *_states(parameters, data), *_ends(parameters, data)]


def alone(parameters: Parameters, betas: tuple[float, float], angle: float, model: str) -> tuple[float, float]:
    """The merge time of the flat head alone, and a bound of the share of it that the other head takes off, w = 1/2.

    Where u = 1 - cos is above u_0/2 the other head adds at most 2 (w_2/w_1) e^(-(beta_2 - beta_1) u_0/2) of the speed;
    the rest of the way takes the time of a start at u_0/2.
    """
    u = 1 - np.cos(angle)
    half = float(np.arccos(1 - u / 2))
    flat: dict[str, Any] = {"until": parameters.until, "model": model}
    whole, rest = (float(theory.merging.merge_time(a, betas[0], **flat)) for a in (angle, half))
    return whole, 2 * np.exp(-(betas[1] - betas[0]) * u / 2) + rest / whole


def _merging(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    times, shares = Rows(), Rows()
    for model in MODELS:
        part = data[f"merging-{model}"]
        for k, (betas, weight, angle) in enumerate(cases(parameters)):
            found, off = float(part["time"][k]), float(part["off"][k])
            label = f"{model}, beta {betas[0]:g} and {betas[1]:g}, weight {weight:g}, angle {angle:g}"
            heads = betas, (weight, 1 - weight)
            expected = theory.merging.merge_time_of_heads(angle, *heads, until=parameters.until, model=model)
            times.add(expected, found, off, label)
            whole, lost = alone(parameters, betas, angle, model)
            if weight >= 0.1 and lost * (1 - weight) / weight < 0.5:
                lost *= max((1 - weight) / weight, 1.0)
                shares.add(1 - lost / 2, found * weight / whole, lost / 2 + off * weight / whole, label)
    return [
        times.equal(
            "two clusters under two heads, SA and USA0: merge time",
            "every step off by at most 2√d (rtol + atol), over the closing speed; round-off",
            origin=PAIR,
        ),
        shares.equal(
            "merge time over that of the flattest head alone, times its weight: 1, less what the other head adds",
            "bounds of what the other head adds, from half the height on and before",
            origin=PAIR,
        ),
    ]


def predicted_rates(parameters: Parameters, model: str) -> np.ndarray:
    """The largest rate by state and beta: pairs of mass 1/2 and 0.7, crosses."""
    room, betas = theory.landscape, parameters.betas
    pairs = [[room.axis_pair_rates(b, mass=m, model=model)[0] for b in betas] for m in (0.5, 0.7)]
    crosses = [[max(room.axis_cross_rates(b, d, model=model)) for b in betas] for d in parameters.dims]
    return np.array(pairs + crosses)


def rounding(beta: Any) -> Any:
    """Of a rate: entries up to e^beta in matrices of up to 24 rows, whose eigenvectors have a condition below 4."""
    return 200 * EPS * np.exp(beta)


def _states(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rates, thresholds = Rows(), Rows()
    states = ["pair", "pair of mass 0.7", *(f"cross in d = {d}" for d in parameters.dims)]
    betas = np.array(parameters.betas)
    off = rounding(betas)
    for k, model in enumerate(("USA", "SA")):
        labels = [f"{model}, {state}, β = {beta:g}" for state in states for beta in betas]
        rates.add(predicted_rates(parameters, model), data["rates"]["rate"].values[k], off, labels)
    room, found = theory.landscape, data["thresholds"]
    known = [room.axis_pair_threshold(), room.axis_pair_threshold(0.7)]
    known += [room.axis_cross_threshold(d) for d in parameters.dims]
    # slopes of the largest rate at the threshold are above 1/d; brentq stops at 1e-13 (1 + root)
    thresholds.add(known, found["in_beta"].values, 4e3 * EPS * np.exp(known) + 4e-13, [f"USA, {s}" for s in states])
    thresholds.add(np.tanh(betas), found["in_weight"].values, 2 * off + 4e-13, [f"SA, β = {b:g}" for b in betas])
    return [
        rates.equal(
            "largest rate of pair and cross under axis heads, USA and SA", "rounding of the Jacobian", origin=AXES
        ),
        thresholds.equal(
            "where it changes sign: USA at asinh 1 (pair) and sinh β = β + d - 1 (cross), SA at w₂ = w₁ tanh β",
            "rounding of the Jacobian over the slope; the end of bisection",
            origin=AXES,
        ),
    ]


def _ends(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    usa, sa = data["usa"], data["sa"]
    draws, several = usa.sizes["start"], usa["count"].values > 1.5
    least = float(binom.isf(LEVEL, draws, 0.5) + 1)
    missed = float(binom.cdf(least - 1, draws, SEVERAL))
    two_to_four = np.bincount(usa["count"].values.astype(int), minlength=5)[1:5]
    where = f"{TOKENS} random tokens on the circle, β = {parameters.beta:g}"
    return [
        Claim.at_least(
            f"{where}, USA axis heads: starts that end in several clusters",
            least,
            float(several.sum()),
            0.0,
            f"exact binomial test, level {LEVEL:g}: so many if half of all starts did so, or fewer; chance fails it "
            f"with probability {missed:.0e} if a share of {SEVERAL:g} does, as other starts did",
            origin=ENDS,
            level=missed,
            detail=f"1, 2, 3, 4 clusters: {', '.join(map(str, two_to_four))}",
        ),
        Claim.at_most(
            f"{where}, USA axis heads: every end is stable, largest rate",
            -rounding(parameters.beta),
            usa["rate"].values,
            0.0,
            "below 0 by more than rounding of the Jacobian",
            origin=ENDS,
        ),
        Claim.at_most(
            f"{where}, softmax axis heads: starts that end in several clusters",
            0.0,
            float(np.sum(sa["count"].values > 1.5)),
            0.0,
            "the slowest rate, 1 - tanh β, times the end is 12 or more: e^-12 of the starts are slower",
            origin=ENDS,
            detail=counted(sa["count"].values < 1.5),
        ),
    ]
