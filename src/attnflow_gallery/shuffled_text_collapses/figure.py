"""Centred rank and overlap through depth, on text and on shuffled text, beside a null."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import NETWORK, averaged, panels, part_name
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.shuffled_text_collapses.simulate import ORDERS, Parameters

LINES = {"text": "-", "shuffled": "--"}
LOOKS = {NETWORK: COLOURS[0], "permuted": GREY, "init": COLOURS[2]}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on text (solid) and on shuffled text (dashed) through depth: means over texts and two standard errors.

    Upper row: centred effective rank. Lower row: mean overlap without the ten largest coordinates. One column a
    network, with its nulls, in which the two lines of a colour lie on each other.
    """
    many = parameters.networks
    titles = [*(f"{which}: centred rank" for which in many), *(f"{which}: overlap" for which in many)]
    with panels(2, len(many), 4.4, *titles) as page:
        for k, which in enumerate(many):
            for case, number in parameters.cases(which):
                part = data[part_name(which, case, number)]
                states = np.arange(part.sizes["state"])
                for order in ORDERS:
                    for axes, quantity in ((page[k], "rank_centred"), (page[len(many) + k], "overlap_few")):
                        mean, error = averaged(part[quantity].sel(order=order).values)
                        look = {"color": LOOKS[case], "ls": LINES[order], "lw": 1.1, "label": f"{case}, {order}"}
                        axes.errorbar(states, mean, 2 * error, elinewidth=0.6, **look)
            page[k].set(ylim=(0, None))
            page[len(many) + k].set(xlabel="state", ylim=(0, 1.04))
        page[0].set(ylabel="centred rank")
        page[len(many)].set(ylabel="overlap, top 10 removed")
        page[0].legend(loc="best", fontsize=5)
    return page.figure
