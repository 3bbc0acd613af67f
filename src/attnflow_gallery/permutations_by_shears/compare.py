"""Exactness of cycles and permutations, and orders of the swirl."""

import numpy as np
import xarray as xr
from scipy.stats import linregress, t

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, averaged, student
from attnflow_gallery.permutations_by_shears.simulate import BATCHES, CORE, Parameters

CYCLE = consequence("Commutators")
PLACING = consequence("Placing cells")
ORDER = consequence("The order of the swirl")
RIMS = consequence("Rims")
SCATTER = 1e-2
"""Level of Student's bound for the scatter of sizes about a line. The sizes are given, so this scatter is no chance."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """3-cycles, permutations, the swirl."""
    cycles, random, swirl = data["cycles"], data["random"], data["swirl"]
    names = [f"{n} x {n}" for n in random["n"].values]
    on_cores = f"16 shears by up to 3 cells over rims of {CORE:g}: rounding times 3/{CORE:g} each"
    at_centres = "rounding of up to 1,600 shears with slopes up to 500"
    slope, error, chance = order(swirl)
    count = len(parameters.sizes)
    off = float(t.isf(SCATTER / 2, count - 2)) * error + student(LEVEL, BATCHES) * chance
    line = f"Student's bound of a line through {count} sizes, level {SCATTER:g}; chance of the points, level {LEVEL:g}"
    rise, noise = averaged(excess(swirl))
    words = f"order in the number of cells of what rims of {parameters.wide:g} add to the squared error"
    batches = f"Student's bound of {BATCHES} batches of points, level {LEVEL:g}"
    found = "3-cycles of cells: largest error on cores"
    placed = "random permutations: largest error at centres"
    return [
        Claim.at_most(found, 0.0, cycles["error"].values, 1e-12, on_cores, origin=CYCLE),
        Claim.at_most(placed, 0.0, random["error"].values, 1e-10, at_centres, origin=PLACING, labels=names),
        Claim.equal("order of the swirl in the number of cells", -0.5, slope, off, line, origin=ORDER, level=LEVEL),
        Claim.at_least(words, 0.0, rise, student(LEVEL, BATCHES) * noise, batches, origin=RIMS, level=LEVEL),
    ]


def order(part: xr.Dataset) -> tuple[float, float, float]:
    """Slope of log(error) against log(n^2) for the first rims; its standard error from the scatter, and from points."""
    x, square = 2 * np.log(part["n"].values.astype(float)), part["square"].values[:, 0]
    line = linregress(x, np.log(square.mean(axis=-1)) / 2)
    noise = averaged([linregress(x, np.log(batch) / 2).slope for batch in square.T])[1]
    return float(line.slope), float(line.stderr), float(noise)


def excess(part: xr.Dataset) -> np.ndarray:
    """Slope of the log of what wide rims add to the squared error against log(n^2), leaving out each batch in turn.

    Pseudo-values of the jackknife: their mean and standard error are those of the slope.
    """
    x = 2 * np.log(part["n"].values.astype(float))
    added = part["square"].values[:, 1] - part["square"].values[:, 0]
    total, count = added.sum(axis=1, keepdims=True), added.shape[1]
    with np.errstate(invalid="ignore"):
        whole, others = (np.log(rows) for rows in (total / count, (total - added) / (count - 1)))
    x = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    return np.asarray(count * (x @ whole) - (count - 1) * (x @ others))
