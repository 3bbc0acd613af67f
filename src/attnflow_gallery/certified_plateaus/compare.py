"""Proved bounds against simulated times, tubes against flows in floats."""

import math

import numpy as np
import xarray as xr

from attnflow.experiments import NUMERICS, Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.certified_plateaus.simulate import Parameters

CAPS = consequence("Comparison of caps")
SHARP = consequence("Two point masses")
TUBE = consequence("Tubes")
HALF = consequence("Half circles")
SHARE = 0.98
"""Of the time that the theorem gives, a certificate claims this share, so that the checker has room for its sums."""
STEPS = 10.0
"""Steps of the flow in floats err by 1e-12, as the defects of the tube do, and grow alike; there may be more."""
LONG = 1e-3
"""Error of log t of `solve_long` at its tolerance, and of the last merge at a finite chord: both are below this."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Lifetimes, sharpness, tubes, balls and the checker."""
    planted, points, iid, flows, balls = (data[key] for key in ("planted", "points", "iid", "flows", "balls"))
    lifetimes, plateaus = Rows(), Rows()
    some = planted.isel(case=planted["proved"].values == 1)
    labels = [
        f"{model}, {k} groups on S^{d - 1}, β = {beta:g}"
        for model, k, d, beta in zip(*(some[key].values for key in ("model", "groups", "d", "beta")), strict=True)
    ]
    lifetimes.add(some["log_proved"].values, some["log_time"].values, LONG, labels)
    plateaus.add(
        iid["log_proved"].values, iid["log_end"].values, LONG, [f"{k} clusters" for k in iid["clusters"].values]
    )
    log_share = points["log_proved"].values - points["log_time"].values
    allowed = points["error"].values + 64 * EPS * np.abs(points["log_time"].values)
    pairs = zip(*(points[key].values for key in ("angle", "mass", "beta")), strict=True)
    sharp = Rows()
    sharp.add(math.log(SHARE), log_share, allowed, [f"angle {a:g}, mass {m:g}, β = {b:g}" for a, m, b in pairs])
    tubes, half = Rows(), Rows()
    tubes.add(
        flows["radius"].values,
        flows["off"].values,
        STEPS * flows["radius"].values,
        [f"start {k}" for k in range(flows.sizes["flow"])],
    )
    proved = balls.isel(ball=balls["proved"].values == 1)
    half.add(math.pi, proved["gap"].values, 0.0, [f"t = {t:g}" for t in proved["time"].values])
    confirmed = [*some["confirmed"].values, *flows["confirmed"].values, *balls["confirmed"].values]
    detail = f"{int(np.sum(confirmed))} of {len(confirmed)} certificates"
    return [
        lifetimes.at_least(
            "planted groups: log time of the first merge between groups, above the proved bound",
            "tolerance of solve_long",
            origin=CAPS,
        ),
        plateaus.at_least(
            "iid starts: log time of the end of every plateau, above the proved bound",
            "tolerance of solve_long",
            origin=CAPS,
        ),
        sharp.equal(
            "two point masses: log of the proved time over the simulated one",
            "estimated errors of the steps, and tol",
            origin=SHARP,
        ),
        tubes.at_most(
            "flows on the circle: distance from the proved centre, below the radius",
            "ten times the radius: steps err like the defects of the tube",
            origin=TUBE,
        ),
        half.at_least(
            "balls of starts: largest gap of random starts when a half circle is proved", "no tolerance", origin=HALF
        ),
        Claim.true("the checker confirms every certificate", all(confirmed), detail, "counted", origin=NUMERICS),
    ]
