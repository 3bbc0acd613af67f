"""Changes of the mean overlap by attention, layer by layer, and their sums, beside the prediction."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import averaged, panels
from attnflow.plots.style import COLOURS, INK
from attnflow_gallery.fresh_networks.simulate import OWN, SHARED, Parameters, name

LOOKS = {OWN: (COLOURS[0], "o", "weights of its own"), SHARED: (COLOURS[1], "s", "one layer repeated")}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Change of the mean overlap by attention, summed over layers: fresh networks (marks) and theory (lines).

    Means over fresh networks and two standard errors; the dashed line is the prediction for one layer that is repeated,
    from the tokens that enter each of its applications. One panel a shape.
    """
    with panels(1, len(parameters.shapes), 4.4, *parameters.shapes) as page:
        for axes, which in zip(page, parameters.shapes, strict=True):
            for way, (colour, mark, words) in LOOKS.items():
                if name(which, way) not in data:
                    continue
                part = data[name(which, way)]
                layers = 1 + np.arange(part.sizes["layer"])
                mean, error = averaged(np.cumsum(part["measured"].values, axis=1))
                axes.errorbar(layers, mean, 2 * error, color=colour, ls="", marker=mark, ms=3, label=words)
                line = np.cumsum(part["predicted"].values, axis=1).mean(axis=0)
                dash = "-" if way == OWN else "--"
                axes.plot(layers, line, dash, color=INK, lw=0.9, label=f"theory, {words}")
            axes.set(xlabel="layers", yscale="log")
            axes.legend(loc="best", fontsize=6)
        page[0].set(ylabel="sum of changes of the overlap")
    return page.figure
