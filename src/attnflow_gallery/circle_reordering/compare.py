"""Speeds of Poisson kernels, and distances of plans."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.circle_reordering.simulate import Parameters

SPEED = consequence("The speed of a Poisson kernel")
PLANS = consequence("Plans")
FAMILY = published("lipton2019kuramoto")
TOL = 1e-3


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Speed and length of the mean; every measure of every plan at its target."""
    part, plans = data["speeds"], data["plans"]
    r = part["r"].values
    start = r[:, None] ** parameters.tokens  # quantiles have the mean r (1 + O(r^n))
    speed = (part["angle"] - part["angle"].isel(time=0)).values[:, 1:] / part["time"].values[1:]
    labels = [f"r = {one:g}" for one in r]
    return [
        Claim.equal(
            "speed at which a Poisson kernel turns", np.repeat((1 + r**2)[:, None] / 2, speed.shape[1], axis=1), speed,
            1e-11 + 10 * start, "rounding, and r^n for n quantiles in place of the density", origin=SPEED,
            labels=lambda at: labels[at[0]],
        ),
        Claim.equal(
            "length of its mean", np.repeat(r[:, None], len(part["time"]), axis=1), part["length"].values,
            1e-11 + 10 * start, "as above", origin=FAMILY, labels=lambda at: labels[at[0]],
        ),
        Claim.at_most(
            f"{len(parameters.measures)} plans for inputs in the wrong order: W_2 of every measure", TOL,
            plans["w2"].values[np.isfinite(plans["w2"].values)], 0.0, "the tolerance that was asked for", origin=PLANS,
        ),
    ]  # fmt: skip
