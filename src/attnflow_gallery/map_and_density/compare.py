"""Orders of the errors of the map and of the log-density."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.map_and_density.simulate import Parameters

TOGETHER = published("geshkovski2026constructive", "abstract: map and push-forward together")
ORDER = consequence("Orders")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The order of the map, and that both errors fall."""
    part = data["errors"]
    density = np.sqrt(part["log_density"].mean("batch").values)
    ratio, last = float(density[-1] / density[0]), float(density[-1])
    words = "log-density: error of the largest over that of the smallest size"
    sizes = "three to six sizes; Jacobians are rounded, and small grids have their own shape"
    cells = "the Jacobian is constant in a cell and rounded to 1/m: the error is of order 1/n + 1/m"
    spread = "the spread of the log-Jacobian in a cell of side 1/6 (0.07) and rounding to 1/6 (0.05)"
    return [
        Claim.equal("order of the map in L^1 in the number of elements", -0.5, order(part), 0.08, sizes, origin=ORDER),
        Claim.at_most(words, 0.6, ratio, 0.0, cells, origin=TOGETHER),
        Claim.at_most("log-density: error at the largest size", 0.11, last, 0.0, spread, origin=TOGETHER),
    ]


def order(part: xr.Dataset) -> float:
    """Slope of log(error of the map) against log(elements)."""
    error = part["map"].mean("batch").values
    return float(np.polyfit(np.log(part["elements"].values.astype(float)), np.log(error), 1)[0])
