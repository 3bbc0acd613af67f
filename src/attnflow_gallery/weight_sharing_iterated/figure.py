"""Overlap, rank, glued pairs and clusters against depth, for the full layer and its ablations."""

from typing import Any

import xarray as xr

from attnflow.experiments.kit import averaged, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.weight_sharing_iterated.simulate import NETWORK, Parameters, name

SHADES = (INK, COLOURS[1], COLOURS[2], COLOURS[3], COLOURS[5], GREY, COLOURS[7])
MARKS = "osD^v<>"
LINES = ("-", "--", ":", "-.", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 2)))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """One trained layer applied again and again: means over reactions and two standard errors.

    (a) Mean overlap of pairs of tokens. (b) Effective rank. (c) Share of pairs with a cosine above 0.999. (d) Clusters
    of such tokens. The network was trained to apply the layer 12 times.
    """
    titles = "mean overlap", "effective rank", "glued pairs", "clusters"
    with panels(2, 2, 4.8, *titles) as page:
        for k, case in enumerate((NETWORK, *parameters.cases)):
            look = {"color": SHADES[k], "marker": MARKS[k], "ls": LINES[k], "ms": 3.4, "lw": 0.9}
            for axes, quantity in zip(page, ("overlap", "rank", "glued", "clusters"), strict=True):
                mean, error = averaged(data[name(case)][quantity].values)
                label = "full layer" if case == NETWORK else case
                axes.errorbar(data[name(case)]["depth"].values, mean, 2 * error, label=label, **look)
        for axes in page:
            axes.set_xscale("log", base=2)
            axes.set(xlabel="depth")
        page[1].set_yscale("log", base=2)
        page[3].set_yscale("log", base=2)
        for axes in (page[1], page[3]):
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        lines, names = page[0].get_legend_handles_labels()
        page.figure.legend(lines, names, loc="outside lower center", ncols=4)
    return page.figure
