"""Errors of maps and of log-determinants against the number of elements."""

from typing import Any

import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.splitting_orders.compare import WANTED
from attnflow_gallery.splitting_orders.simulate import ORDERS, Parameters

LINES = ("-", "--", ":")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Root mean square errors of four splittings of a field of 64 units, over random fields and orders.

    (a) The map; (b) the log-determinant, in which no order is better than 1. Lines connect the marks; they are solid,
    dashed and dotted for growing dimensions. Grey: the orders 1/2, 1, 3/2 and 2 in (a), and 1 in (b).
    """
    with panels(1, 2, 2.9, "map", "log-determinant") as page:
        _draw(page[0], data["errors"]["map"], WANTED)
        _draw(page[1], data["errors"]["log_det"], {"trotter": 1.0})
        page[0].set_ylabel("error")
    return page.figure


def _draw(axes: Any, squares: xr.DataArray, powers: dict[str, float]) -> None:
    """Errors of all splittings, and lines of these powers above the errors of some."""
    count, rms = squares["elements"].values.astype(float), squares.mean("field") ** 0.5
    for order, colour, mark in zip(ORDERS, COLOURS, "os^D", strict=False):
        for d, line in zip(squares["d"].values, LINES, strict=False):
            label = order if line == LINES[0] else None
            axes.loglog(count, rms.sel(order=order, d=d), mark, ls=line, ms=3.2, lw=0.8, color=colour, label=label)
    for order, power in powers.items():
        top = 2 * float(rms.sel(order=order).isel(elements=0).max())
        axes.loglog(count, top * (count / count[0]) ** -power, color=GREY, lw=0.7)
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set_xlabel("elements $K$")
    axes.legend(loc="lower left")
