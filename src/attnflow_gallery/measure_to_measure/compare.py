"""Distances from targets, refusals, the bound without attention, and the growth of errors backwards."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows, refusal_bound
from attnflow_gallery.measure_to_measure.simulate import Parameters

THEOREM = published("geshkovski2024measure", "Theorem 1.1")
REFUSALS = consequence("Refusals")
SHARED = consequence("Shared mass")
BACKWARDS = consequence("Attention backwards")
TOL = 1e-3


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """All measures at their targets; refusals; the bound; errors backwards."""
    rows, cases = Rows(), data["matched"]
    for k, (d, count, each) in enumerate(parameters.cases):
        if cases["found"].values[k] != 0:
            rows.add(TOL, cases["after"].values[k, :count], 0.0, f"d = {d}, N = {count}, M = {each}")
    refused = float(np.sum(data["small"]["refused"].values) + np.sum(1 - cases["found"].values))
    part, back = data["shared"], data["backwards"].isel(time=slice(-3, None))
    seeing, without = (float(part["w1"].sel(plan=plan).sum(skipna=False)) for plan in ("attention", "blind"))
    slope = float(np.polyfit(back["time"].values, np.log(back["error"].values), 1)[0])
    n, most = parameters.instances + len(parameters.cases), parameters.refusals
    goal = "W_2 of every measure from its target, followed alone by an adaptive solver"
    bound = "without attention: W_1 + W_1' over shared mass times the distance of targets"
    growth = "rate at which errors grow while attention runs backwards"
    first, last = back["time"].values[[0, -1]]
    off = 1 - back["rate"].values[0] + 2**0.5 / (back["error"].values[0] * (last - first))
    rate = (
        f"1 - |m| cos(largest angle) at t = {first:g}, and the neutral direction of the mean, √2 of the noise at most"
    )
    return [
        rows.at_most(goal, "the tolerance that was asked for; the solver has rtol 1e-9", origin=THEOREM),
        Claim.at_most(
            f"refused schedules of {n} random instances", most, refused, 0.0, refusal_bound(most, n), origin=REFUSALS
        ),
        Claim.at_least(bound, 1.0, without / float(part["bound"]), 1e-6, "a theorem; the solver", origin=SHARED),
        Claim.at_most(
            "with attention: W_1 + W_1'", 2 * TOL, seeing, 0.0, "W_1 <= W_2, and 1e-3 was asked for", origin=SHARED
        ),
        Claim.equal(growth, 1.0, slope, off, rate, origin=BACKWARDS),
    ]
