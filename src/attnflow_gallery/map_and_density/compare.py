"""Orders of the errors of the map and of the log-density."""

import numpy as np
import xarray as xr
from scipy.stats import t

from attnflow.experiments import Claim, consequence
from attnflow_gallery.map_and_density.simulate import Parameters

ORDER = consequence("Orders")
LEVEL = 1e-2
"""The probability with which chance makes a claim fail."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The orders of the map and of the log-density in the number of elements."""
    part, count = data["errors"], len(parameters.sizes)
    reason = (
        f"Student's bound of a line through {count} sizes, level {LEVEL:g}; elements are 16 n^4 (1 + O(1/n^2)), not n^4"
    )
    found = []
    for name, power, words in (
        ("map", 2, "order of the map in L^1 in the number of elements"),
        ("log_density", 1, "order of the log-density in L^2 in the number of elements"),
    ):
        slope, error = order(part, name)
        off = float(t.isf(LEVEL / 2, count - 2)) * error + left_out(parameters, part, power)
        found.append(Claim.equal(words, -power / 4, slope, off, reason, origin=ORDER, level=LEVEL))
    return found


def order(part: xr.Dataset, name: str) -> tuple[float, float]:
    """Slope of log(error) against log(elements), and its standard error from the scatter about the line."""
    mean = part[name].values.mean(axis=1)
    error = np.log(mean) / (2 if name == "log_density" else 1)
    x = np.log(part["elements"].values.astype(float))
    line = np.polyfit(x, error, 1)
    rest = error - np.polyval(line, x)
    return float(line[0]), float(np.sqrt(rest @ rest / (len(x) - 2)) / np.sqrt(np.sum((x - x.mean()) ** 2)))


def left_out(parameters: Parameters, part: xr.Dataset, power: int) -> float:
    """How far the slope of log n^(-power) against log(elements) is from -power/4."""
    n = np.array([n for n, _ in parameters.sizes], float)
    return float(abs(np.polyfit(np.log(part["elements"].values.astype(float)), -power * np.log(n), 1)[0] + power / 4))
