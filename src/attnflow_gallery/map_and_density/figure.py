"""A map and its density by cells, and their errors."""

from typing import Any

import matplotlib.colors
import numpy as np
import xarray as xr

from attnflow.experiments.kit import draw_points, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.map_and_density.simulate import Parameters, phi


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """A map of the unit square and its density, approximated by ReLU flows.

    (a) Uniform points of the square, coloured by where they start; (b) where the map takes them; (c) where the schedule
    with most elements takes them. (d) Mean error of the map and root mean square error of the log-density against the
    number of elements; line: elements^(-1/2).
    """
    part = data["errors"]
    start = part["start"].values[:4000]
    ends = part["end"].values[-1][: len(start)]
    shade = [0.75 * start[:, 0], np.full(len(start), 0.8), 0.35 + 0.6 * start[:, 1]]
    colour = matplotlib.colors.hsv_to_rgb(np.stack(shade, axis=1))
    square, wide = (-0.05, 1.05, 1.05), (-0.05, 1.3, 1.45)
    units = f"{int(part['elements'].values[-1]):,} units"
    with panels(1, 4, 2.2, "", "", "", "errors", gridspec_kw={"width_ratios": [1, 1.2, 1.2, 1.3]}) as page:
        draw_points(page[0], start, colour, square, "a", "start")
        draw_points(page[1], phi(start), colour, wide, "b", r"map $\varphi$")
        draw_points(page[2], ends, colour, wide, "c", units)
        _draw_errors(page[3], part)
    return page.figure


def _draw_errors(axes: Any, part: xr.Dataset) -> None:
    count, error = part["elements"].values.astype(float), part["map"].mean("batch").values
    density = np.sqrt(part["log_density"].mean("batch").values)
    axes.loglog(count, error, "o", ms=3.6, color=COLOURS[0], label="map")
    axes.loglog(count, density, "s", ms=3.6, color=COLOURS[1], label="log-density")
    axes.loglog(count, error[0] * (count / count[0]) ** -0.5, color=GREY, lw=0.8)
    axes.set(xlabel="elements", ylabel="error")
    axes.legend(loc="lower left")
