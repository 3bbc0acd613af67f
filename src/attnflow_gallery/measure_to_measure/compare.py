"""Distances from targets, the bound without attention, and the growth of errors backwards."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.measure_to_measure.simulate import Parameters

THEOREM = published("geshkovski2024measure", "Theorem 1.1")
SHARED = consequence("Shared mass")
BACKWARDS = consequence("Attention backwards")
TOL = 1e-3


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """All measures at their targets; the bound; errors backwards."""
    after = data["matched"]["after"].values
    there = np.isfinite(after)
    there[~there.any(axis=1)] = True  # a case without any distance fails
    labels = [f"d = {d}, N = {count}, M = {each}" for d, count, each in parameters.cases]
    cases = np.nonzero(there)[0]
    part, back = data["shared"], data["backwards"]
    slope = np.polyfit(back["time"].values[-3:], np.log(back["error"].values[-3:]), 1)[0]
    return [
        Claim.at_most(
            f"{len(parameters.cases)} schedules: W_2 of every measure, followed alone, from its target", TOL,
            after[there], 0.0, "the tolerance that was asked for", origin=THEOREM,
            labels=lambda at: labels[cases[at[0]]],
        ),
        Claim.at_least(
            "without attention: W_1 + W_1' over shared mass times the distance of targets", 1.0,
            float(part["w1"].sel(plan="blind").sum() / part["bound"]), 1e-9, "a theorem; rounding", origin=SHARED,
        ),
        Claim.at_most(
            "with attention: the same ratio", 0.01, float(part["w1"].sel(plan="attention").sum() / part["bound"]), 0.0,
            "W_1 is below the tolerance 1e-3 of each measure", origin=SHARED,
        ),
        Claim.equal(
            "rate at which errors grow while attention runs backwards", 1.0, float(slope), 0.1,
            "the rate is |m| -> 1; at t = 6 the clouds have a radius of 0.01; the noise is the same at every time",
            origin=BACKWARDS,
        ),
    ]  # fmt: skip
