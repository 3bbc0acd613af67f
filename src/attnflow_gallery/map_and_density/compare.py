"""Orders of the errors of the map and of the log-density."""

import numpy as np
import xarray as xr
from scipy.stats import linregress, t

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, averaged, student
from attnflow_gallery.map_and_density.simulate import BATCHES, Parameters

ORDER = consequence("Orders")
SCATTER = 1e-2
"""Level of Student's bound for the scatter of sizes about a line. The sizes are given, so this scatter is no chance."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The orders of the map and of the log-density in the number of elements."""
    part, count = data["errors"], len(parameters.sizes)
    reason = (
        f"Student's bound of a line through {count} sizes, level {SCATTER:g}; chance of the points, level {LEVEL:g}; "
        "elements are 16 n^4 (1 + O(1/n^2)), not n^4"
    )
    found = []
    for name, power, words in (
        ("map", 2, "order of the map in L^1 in the number of elements"),
        ("log_density", 1, "order of the log-density in L^2 in the number of elements"),
    ):
        slope, error, noise = order(part, name)
        off = float(t.isf(SCATTER / 2, count - 2)) * error + student(LEVEL, BATCHES) * noise
        off += left_out(parameters, part, power)
        found.append(Claim.equal(words, -power / 4, slope, off, reason, origin=ORDER, level=LEVEL))
    return found


def order(part: xr.Dataset, name: str) -> tuple[float, float, float]:
    """Slope of log(error) against log(elements), its standard error from the scatter about the line and from points."""
    x = np.log(part["elements"].values.astype(float))
    line = linregress(x, _log(part[name].values.mean(axis=1), name))
    noise = averaged([linregress(x, _log(batch, name)).slope for batch in part[name].values.T])[1]
    return float(line.slope), float(line.stderr), float(noise)


def _log(mean: np.ndarray, name: str) -> np.ndarray:
    return np.asarray(np.log(mean) / (2 if name == "log_density" else 1))


def left_out(parameters: Parameters, part: xr.Dataset, power: int) -> float:
    """How far the slope of log n^(-power) against log(elements) is from -power/4."""
    n = np.array([n for n, _ in parameters.sizes], float)
    return float(abs(np.polyfit(np.log(part["elements"].values.astype(float)), -power * np.log(n), 1)[0] + power / 4))
