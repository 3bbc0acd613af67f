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
    return [
        Claim.at_most(
            "3-cycles of cells: largest error on cores", 0.0, cycles["error"].values, 1e-12,
            f"16 shears by up to 3 cells over rims of {CORE:g}: rounding times 3/{CORE:g} each", origin=CYCLE,
        ),
        Claim.at_most(
            "3-cycles of cells: log-determinant", 0.0, cycles["log_det"].values, 0.0, "every shear has <a, w> = 0",
            origin=CYCLE,
        ),
        Claim.at_most(
            "random permutations: largest error at centres", 0.0, random["error"].values, 1e-10,
            "rounding of up to 1,600 shears with slopes up to 500", origin=PLACING,
            labels=[f"{n} x {n}" for n in random["n"].values],
        ),
        Claim.at_most(
            "random permutations: elements over 16 times the number of cells", 1.0,
            random["elements"].values / (16.0 * random["n"].values ** 2), 0.0, "one 3-cycle places one cell",
            origin=PLACING, labels=[f"{n} x {n}" for n in random["n"].values],
        ),
        Claim.equal(
            "order of the swirl in the number of cells", -0.5, order(swirl, 0), 0.06,
            "points by chance: 2 % of an error of size h/2, and small n; -1/d in d dimensions", origin=ORDER,
        ),
        Claim.at_least(
            f"error of the swirl with rims {parameters.wide:g} over that with {parameters.ramp:g}, most cells", 1.4,
            float(swirl["error"].values[1, -1] / swirl["error"].values[0, -1]), 0.0,
            "points in rims, a share of 4 times the rim for every shear of their row, are displaced by whole cells",
            origin=ORDER,
        ),
    ]  # fmt: skip


def order(part: xr.Dataset, row: int) -> float:
    """Slope of log(error) against log(n^2)."""
    n = part["n"].values.astype(float)
    return float(np.polyfit(2 * np.log(n), np.log(part["error"].values[row]), 1)[0])
