"""A swirl by cells, and its error."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import draw_board, draw_errors_at, looks, panels
from attnflow.plots.style import GREY
from attnflow_gallery.permutations_by_shears.simulate import Parameters, swirl


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """A swirl that preserves areas, approximated by permutations of cells, each a composition of ReLU shears.

    (a) Where the swirl takes random points, which start on a board of light and dark cells; (b) where the schedule with
    most cells takes them; (c) how far it is from the swirl, at the places where points start. (d) Root mean square
    error against the number of cells for two widths of rims, with 95 % intervals of 20 batches; line: N^(-1/2).
    """
    part = data["swirl"]
    start, ends = part["start"].values, part["end"].values[-1]
    error = np.linalg.norm(ends - swirl(start), axis=1)
    titles = "swirl", f"{int(part['elements'].values[-1]):,} units", "error", "orders"
    with panels(1, 4, 2.1, *titles, width_ratios=(1, 1, 1.25, 1.35)) as page:
        draw_board(page[0], start, swirl(start), (-0.02, 1.02, 1.02))
        draw_board(page[1], start, ends, (-0.02, 1.02, 1.02))
        draw_errors_at(page[2], start, error, float(np.quantile(error, 0.99)))
        _draw_orders(page[3], part)
    return page.figure


def _draw_orders(axes: Any, part: xr.Dataset) -> None:
    cells, squares = part["n"].values.astype(float) ** 2, part["square"].values
    mean, off = squares.mean(axis=-1), 2.09 * squares.std(axis=-1, ddof=1) / np.sqrt(squares.shape[-1])
    error = np.sqrt(mean)
    for k, (ramp, colour, mark) in enumerate(looks(part["ramp"].values)):
        axes.errorbar(
            cells, error[:, k], off[:, k] / (2 * error[:, k]), fmt=mark, ms=3.6, lw=0.8, color=colour,
            label=f"rims {ramp:g}",
        )  # fmt: skip
    line = np.exp(np.mean(np.log(error[:, 0] * cells**0.5))) * cells**-0.5
    axes.plot(cells, line, color=GREY, lw=0.8)
    axes.set(xlabel="cells $N$", ylabel="error", xscale="log", yscale="log")
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set_yticks([0.03, 0.1], ["0.03", "0.1"])
    axes.yaxis.set_minor_formatter(lambda y, _: "")
    axes.legend(loc="lower left")
