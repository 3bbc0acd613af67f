"""Exactness of cycles, cost of permutations, and the order of the swirl."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow_gallery.permutations_by_shears.simulate import CORE, Parameters

CYCLE = consequence("Commutators")
PLACING = consequence("Placing cells")
ORDER = consequence("The order of the swirl")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """3-cycles, permutations, the swirl."""
    cycles, random, swirl = data["cycles"], data["random"], data["swirl"]
    names = [f"{n} x {n}" for n in random["n"].values]
    on_cores = f"16 shears by up to 3 cells over rims of {CORE:g}: rounding times 3/{CORE:g} each"
    at_centres = "rounding of up to 1,600 shears with slopes up to 500"
    cost = random["elements"] / (16.0 * random["n"] ** 2)
    by_chance = "points by chance: 2 % of an error of size h/2, and small n; -1/d in d dimensions"
    words = f"error of the swirl with rims {parameters.wide:g} over that with {parameters.ramp:g}, most cells"
    in_rims = "points in rims, a share of 4 times the rim for every shear of their row, are displaced by whole cells"
    fine, wide = swirl["error"].values[-1]
    return [
        Claim.at_most("3-cycles of cells: largest error on cores", 0.0, cycles["error"], 1e-12, on_cores, origin=CYCLE),
        Claim.at_most(
            "3-cycles of cells: log-determinant",
            0.0,
            cycles["log_det"],
            0.0,
            "every shear has <a, w> = 0",
            origin=CYCLE,
        ),
        Claim.at_most(
            "random permutations: largest error at centres",
            0.0,
            random["error"],
            1e-10,
            at_centres,
            origin=PLACING,
            labels=names,
        ),
        Claim.at_most(
            "random permutations: elements over 16 times the number of cells",
            1.0,
            cost,
            0.0,
            "one 3-cycle places one cell",
            origin=PLACING,
            labels=names,
        ),
        Claim.equal("order of the swirl in the number of cells", -0.5, order(swirl), 0.06, by_chance, origin=ORDER),
        Claim.at_least(words, 1.4, wide / fine, 0.0, in_rims, origin=ORDER),
    ]


def order(part: xr.Dataset) -> float:
    """Slope of log(error) against log(n^2), for the first width of rims."""
    n = part["n"].values.astype(float)
    return float(np.polyfit(2 * np.log(n), np.log(part["error"].values[:, 0]), 1)[0])
