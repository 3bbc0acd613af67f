"""Distances from targets, the bound without attention, and the growth of errors backwards."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows
from attnflow_gallery.measure_to_measure.simulate import Parameters

THEOREM = published("geshkovski2024measure", "Theorem 1.1")
SHARED = consequence("Shared mass")
BACKWARDS = consequence("Attention backwards")
TOL = 1e-3


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """All measures at their targets; the bound; errors backwards."""
    rows = Rows()
    for (d, count, each), after in zip(parameters.cases, data["matched"]["after"].values, strict=True):
        rows.add(TOL, after[:count], 0.0, f"d = {d}, N = {count}, M = {each}")
    part, back = data["shared"], data["backwards"]
    seeing, without = (float(part["w1"].sel(plan=plan).sum() / part["bound"]) for plan in ("attention", "blind"))
    slope = float(np.polyfit(back["time"].values[-3:], np.log(back["error"].values[-3:]), 1)[0])
    goal = f"{len(parameters.cases)} schedules: W_2 of every measure, followed alone, from its target"
    bound = "without attention: W_1 + W_1' over shared mass times the distance of targets"
    below = "W_1 is below the tolerance 1e-3 of each measure"
    growth = "rate at which errors grow while attention runs backwards"
    rate = "the rate is |m| -> 1; at t = 6 the clouds have a radius of 0.01; the noise is the same at every time"
    return [
        rows.at_most(goal, "the tolerance that was asked for", origin=THEOREM),
        Claim.at_least(bound, 1.0, without, 1e-9, "a theorem; rounding", origin=SHARED),
        Claim.at_most("with attention: the same ratio", 0.01, seeing, 0.0, below, origin=SHARED),
        Claim.equal(growth, 1.0, slope, 0.1, rate, origin=BACKWARDS),
    ]
