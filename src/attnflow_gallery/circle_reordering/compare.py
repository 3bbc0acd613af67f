"""Speeds of Poisson kernels, and distances of plans."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows
from attnflow_gallery.circle_reordering.simulate import Parameters

SPEED = consequence("The speed of a Poisson kernel")
PLANS = consequence("Plans")
FAMILY = published("lipton2019kuramoto")
TOL = 1e-3


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Speed and length of the mean; every measure of every plan at its target."""
    speed, length = Rows(), Rows()
    for r in data["speeds"]["r"].values:
        part, words = data["speeds"].sel(r=r), f"r = {r:g}"
        allowed = 1e-11 + 10 * r**parameters.tokens  # quantiles have the mean r (1 + O(r^n))
        turned = part["angle"].values[1:] - part["angle"].values[0]
        speed.add((1 + r**2) / 2, turned / part["time"].values[1:], allowed, words)
        length.add(r, part["length"], allowed, words)
    found = data["plans"]["w2"].values
    words = f"{len(parameters.measures)} plans for inputs in the wrong order: W_2 of every measure"
    asked = "the tolerance that was asked for"
    rounding = "rounding, and r^n for n quantiles in place of the density"
    return [
        speed.equal("speed at which a Poisson kernel turns", rounding, origin=SPEED),
        length.equal("length of its mean", "as above", origin=FAMILY),
        Claim.at_most(words, TOL, found[np.isfinite(found)], 0.0, asked, origin=PLANS),
    ]
