"""Errors of maps and of log-determinants against the number of elements."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.plots.style import COLOURS, GREY, PAGE, panel, styled
from attnflow_gallery.splitting_orders.compare import WANTED
from attnflow_gallery.splitting_orders.simulate import ORDERS, Parameters

MARKS = dict(zip(ORDERS, ("o", "s", "^", "D"), strict=True))
LINES = ("-", "--", ":")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Root mean square errors of four splittings of a field of 64 units, over random fields and orders.

    (a) The map; (b) the log-determinant, in which no order is better than 1. Lines connect the marks; they are solid,
    dashed and dotted for growing dimensions. Grey: the orders 1/2, 1, 3/2 and 2 in (a), and 1 in (b).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.9))
        axes = fig.subplots(1, 2)
        for one, name, title in zip(axes, ("map", "log_det"), ("map", "log-determinant"), strict=True):
            _draw(one, data["errors"], name)
            panel(one, "ab"[name == "log_det"], title)
        axes[0].set_ylabel("error")
        return fig


def _draw(axes: Any, part: xr.Dataset, name: str) -> None:
    count = part["elements"].values.astype(float)
    for k, order in enumerate(ORDERS):
        for d, line in zip(part["d"].values, LINES, strict=False):
            rms = np.sqrt(part[name].sel(order=order, d=d).mean("field").values)
            label = order if d == part["d"].values[0] else None
            axes.loglog(count, rms, MARKS[order], ls=line, ms=3.2, lw=0.8, color=COLOURS[k], label=label)
    for k, (order, slope) in enumerate(WANTED.items()):
        top = np.sqrt(part[name].sel(order=order).mean("field").values)[:, 0].max() * 2
        power = slope if name == "map" else 1.0
        if name == "map" or k == 1:
            axes.loglog(count, top * (count / count[0]) ** -power, color=GREY, lw=0.7)
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set_xlabel("elements $K$")
    axes.legend(loc="lower left")
