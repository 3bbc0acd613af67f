"""Errors of maps and of log-determinants against the number of elements."""

from typing import Any

import xarray as xr

from attnflow.experiments.kit import panels, powers_of_two
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.splitting_orders.compare import WANTED
from attnflow_gallery.splitting_orders.simulate import ORDERS, Parameters

LINES = ("-", "--", ":")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Root mean square errors of four splittings of a field of 64 units, over random fields and orders.

    (a) The map; (b) the log-determinant, in which no order is better than 1. Colours and marks: splittings; styles of
    lines: dimensions. Grey lines have the slopes that stand beside them.
    """
    with panels(1, 2, 3.2, "map", "log-determinant") as page:
        _draw(page[0], data["errors"]["map"], WANTED)
        _draw(page[1], data["errors"]["log_det"], {"maurey": 0.5, "strang": 1.0})
        page[0].set_ylabel("error")
        handles, labels = page[0].get_legend_handles_labels()
        page[0].legend(handles[: len(ORDERS)], labels[: len(ORDERS)], loc="lower left")
        page[1].legend(handles[len(ORDERS) :], labels[len(ORDERS) :], loc="lower left")
    return page.figure


def _draw(axes: Any, squares: xr.DataArray, powers: dict[str, float]) -> None:
    """Errors of all splittings, and lines of these powers above the errors of some."""
    count, rms = squares["elements"].values.astype(float), squares.mean("field", skipna=False) ** 0.5
    for order, colour, mark in zip(ORDERS, COLOURS, "os^D", strict=False):
        for d, line in zip(squares["d"].values, LINES, strict=False):
            axes.loglog(count, rms.sel(order=order, d=d), mark, ls=line, ms=3.2, lw=0.8, color=colour)
        axes.plot([], [], mark, ls="-", ms=3.2, lw=0.8, color=colour, label=order)
    for d, line in zip(squares["d"].values, LINES, strict=False):
        axes.plot([], [], ls=line, lw=0.8, color=INK, label=f"$d = {d}$")
    for order, power in powers.items():
        top = 1.6 * float(rms.sel(order=order).isel(elements=0).max()) * (count / count[0]) ** -power
        axes.loglog(count, top, color=GREY, lw=0.7)
        axes.annotate(f"$-{power:g}$", (count[-1], top[-1]), xytext=(3, -2), textcoords="offset points", fontsize=7,
                      color=GREY, annotation_clip=False)  # fmt: skip
    powers_of_two(axes)
    axes.set(xlabel="elements $K$", xticks=count)
