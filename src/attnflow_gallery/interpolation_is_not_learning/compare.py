"""Given tokens arrive; fresh ones do for one atom, and not for four."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import fit, log_rms
from attnflow_gallery.interpolation_is_not_learning.simulate import Parameters

GIVEN = consequence("Given tokens")
FRESH = consequence("Fresh tokens")
TOL = 1e-3
FAR = 0.3
"""W_2 that counts as failed, rad; atoms at random are 1.6 apart."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Distances of given and fresh tokens, and shifts of clouds."""
    part = data["samples"]
    sizes = [f"n = {n}" for n in part["n"].values]
    one, four = (part["fresh"].sel(atoms=each).median(("repeat", "measure")).values for each in part["atoms"].values)
    level = log_rms(data["shifts"]["shift"].values ** 2)
    slope, error = fit([np.ones(len(level[0])), np.log(data["shifts"]["n"].values)], *level)
    arrive, asked = "given tokens: largest W_2", "the tolerance that was asked for"
    near, shifted = "fresh tokens, one atom: median of W_2", "clouds are shifted by less than their distance"
    far, wrong = "fresh tokens, four atoms: median of W_2", "a share of order 1 of the tokens goes to a wrong atom"
    power, reason = float(slope[1]), "four standard errors of the fit; 0.02 for terms of order 1/n"
    off = 4 * float(error[1]) + 0.02
    return [
        Claim.at_most(arrive, TOL, part["given"].values, 0.0, asked, origin=GIVEN),
        Claim.at_most(near, FAR, one, 0.0, shifted, origin=FRESH, labels=sizes),
        Claim.at_least(far, FAR, four, 0.0, wrong, origin=FRESH, labels=sizes),
        Claim.equal("power of n in the shift of clouds", -0.5, power, off, reason, origin=FRESH),
    ]
