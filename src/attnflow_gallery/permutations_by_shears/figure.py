"""A swirl by cells, and its error."""

from typing import Any

import matplotlib.colors
import numpy as np
import xarray as xr

from attnflow.experiments.kit import draw_points
from attnflow.plots.style import COLOURS, GREY, PAGE, panel, styled
from attnflow_gallery.permutations_by_shears.simulate import Parameters, swirl


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """A swirl that preserves areas, approximated by permutations of cells, each a composition of ReLU shears.

    (a) Random points, coloured by where they start; (b) where the swirl takes them; (c) where the schedule with most
    cells takes them. (d) Root mean square error against the number of cells for two widths of rims; line: N^(-1/2).
    """
    part = data["swirl"]
    start = part["start"].values
    colour = matplotlib.colors.hsv_to_rgb(
        np.stack([(np.arctan2(*(start - 0.5).T) / (2 * np.pi)) % 1, np.full(len(start), 0.75),
                  0.45 + 0.5 * np.linalg.norm(start - 0.5, axis=1) / 0.71], axis=1)
    )  # fmt: skip
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.0))
        axes = fig.subplots(1, 4, gridspec_kw={"width_ratios": [1, 1, 1, 1.25]})
        shown = (start, swirl(start), part["end"].values[-1])
        titles = ("start", "swirl", f"{int(part['elements'].values[-1]):,} units")
        for one, points, letter, title in zip(axes, shown, "abc", titles, strict=False):
            draw_points(one, points, colour, (0.0, 1.0, 1.0), letter, title)
        _draw_errors(axes[3], part)
        return fig


def _draw_errors(axes: Any, part: xr.Dataset) -> None:
    cells = part["n"].values.astype(float) ** 2
    for row, ramp in enumerate(part["ramp"].values):
        label = f"rims {ramp:g}"
        axes.loglog(cells, part["error"].values[row], "os"[row], ms=3.6, color=COLOURS[row], label=label)
    axes.loglog(cells, part["error"].values[0, -1] * (cells / cells[-1]) ** -0.5, color=GREY, lw=0.8)
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set(xlabel="cells $N$", ylabel="error")
    axes.legend(loc="lower left")
    panel(axes, "d", "order 1/2")
