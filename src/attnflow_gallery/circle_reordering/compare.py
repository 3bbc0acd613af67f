"""Speeds of Poisson kernels, and distances of plans."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows, refusal_bound
from attnflow_gallery.circle_reordering.simulate import Parameters

SPEED = consequence("The speed of a Poisson kernel")
PLANS = consequence("Plans")
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
    part, goals, most, n = data["plans"], Rows(), parameters.refusals, len(parameters.measures)
    for k, count in enumerate(parameters.measures):
        if part["elements"].values[k] != 0:
            goals.add(TOL, part["w2"].values[k, :count], 0.0, f"plan {k + 1}, N = {count}")
    refused = float(n - np.sum(np.sign(part["elements"].values)))
    words = "inputs in the wrong order: W_2 of every measure from its target, followed alone by an adaptive solver"
    asked = "the tolerance that was asked for; the solver has rtol 1e-9"
    rounding = "rounding, and r^n for n quantiles in place of the density"
    refusals = f"refused plans of {n} random inputs in the wrong order"
    return [
        speed.equal("speed at which a Poisson kernel turns", rounding, origin=SPEED),
        length.equal("length of its mean", "as above", origin=SPEED),
        goals.at_most(words, asked, origin=PLANS),
        Claim.at_most(refusals, most, refused, 0.0, refusal_bound(most, n), origin=PLANS),
    ]
