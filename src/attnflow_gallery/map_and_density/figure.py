"""A map and its density by cells, and their errors."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import draw_board, draw_errors_at, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.map_and_density.simulate import Parameters, phi


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """A map of the unit square and its density, approximated by ReLU flows.

    (a) Where the map takes uniform points of the square, which start on a board of light and dark cells; (b) where the
    schedule with most elements takes them; (c) how far it is from the map, at the places where points start. (d) Mean
    error of the map and root mean square error of the log-density against the number of elements, with 95 % intervals
    of 20 batches; lines: elements^(-1/2) and elements^(-1/4).
    """
    part = data["errors"]
    start = part["start"].values[:6000]
    ends, wide = part["end"].values[-1][: len(start)], (-0.05, 1.3, 1.45)
    error = np.linalg.norm(ends - phi(start), axis=1)
    titles = r"map $\varphi$", f"{int(part['elements'].values[-1]):,} units", "error of the map", "orders"
    with panels(1, 4, 2.1, *titles, width_ratios=(1, 1, 1.25, 1.35)) as page:
        draw_board(page[0], start, phi(start), wide)
        draw_board(page[1], start, ends, wide)
        draw_errors_at(page[2], start, error, float(np.quantile(error, 0.99)))
        _draw_orders(page[3], part)
    return page.figure


def _draw_orders(axes: Any, part: xr.Dataset) -> None:
    count = part["elements"].values.astype(float)
    names = (("map", "map", 0.5, "o"), ("log_density", "log-density", 0.25, "s"))
    for (name, label, power, mark), colour in zip(names, COLOURS, strict=False):
        rows = part[name].values
        mean, off = rows.mean(axis=1), 2.09 * rows.std(axis=1, ddof=1) / np.sqrt(rows.shape[1])
        if name == "log_density":
            mean, off = np.sqrt(mean), off / (2 * np.sqrt(mean))
        axes.errorbar(count, mean, off, fmt=mark, ms=3.6, color=colour, label=label, lw=0.8)
        axes.plot(count, np.exp(np.mean(np.log(mean * count**power))) * count**-power, color=GREY, lw=0.8)
        axes.annotate(f"$-{power:g}$", (count[-1], 1.2 * mean[-1]), fontsize=7, color=GREY, ha="center")
    axes.set(xlabel="elements", ylabel="error", xscale="log", yscale="log")
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.yaxis.set_minor_formatter(lambda y, _: "")
    axes.legend(loc="lower left")
