"""A swirl by cells, and its error."""

from typing import Any

import matplotlib.colors
import numpy as np
import xarray as xr

from attnflow.experiments.kit import draw_points, looks, panels
from attnflow.plots.style import GREY
from attnflow_gallery.permutations_by_shears.simulate import Parameters, swirl


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """A swirl that preserves areas, approximated by permutations of cells, each a composition of ReLU shears.

    (a) Random points, coloured by where they start; (b) where the swirl takes them; (c) where the schedule with most
    cells takes them. (d) Root mean square error against the number of cells for two widths of rims; line: N^(-1/2).
    """
    part = data["swirl"]
    start, elements = part["start"].values, int(part["elements"].values[-1])
    x, y = (start - 0.5).T
    hue, lightness = (np.arctan2(x, y) / (2 * np.pi)) % 1, 0.45 + 0.5 * np.hypot(x, y) / 0.71
    colour = matplotlib.colors.hsv_to_rgb(np.stack([hue, np.full(len(start), 0.75), lightness], axis=1))
    titles = "start", "swirl", f"{elements:,} units", "order 1/2"
    with panels(1, 4, 2.0, *titles, width_ratios=(1, 1, 1, 1.25)) as page:
        for axes, points in zip(page, (start, swirl(start), part["end"].values[-1]), strict=False):
            draw_points(axes, points, colour, (0.0, 1.0, 1.0))
        _draw_errors(page[3], part)
    return page.figure


def _draw_errors(axes: Any, part: xr.Dataset) -> None:
    cells = part["n"].values.astype(float) ** 2
    for ramp, colour, mark in looks(part["ramp"].values):
        axes.loglog(cells, part["error"].sel(ramp=ramp), mark, ms=3.6, color=colour, label=f"rims {ramp:g}")
    axes.loglog(cells, part["error"].values[-1, 0] * (cells / cells[-1]) ** -0.5, color=GREY, lw=0.8)
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set(xlabel="cells $N$", ylabel="error")
    axes.legend(loc="lower left")
