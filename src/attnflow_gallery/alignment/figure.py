"""Alignment of layers and what it explains, beside nulls."""

from typing import Any

import xarray as xr

from attnflow.experiments.kit import draw_beside_nulls, panels
from attnflow.plots.style import GREY
from attnflow_gallery.alignment.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Updates by attention against the velocity of theory, layer by layer: means over texts.

    Upper row: mean cosine of updates and velocity. Lower row: the share of the squared updates that the velocity
    explains when every layer has a time of its own. One column a network. Bars of the trained network are two standard
    errors over texts; bands are the range over draws of a null.
    """
    many = parameters.networks
    titles = [*(f"{which}: alignment" for which in many), *(f"{which}: explained" for which in many)]
    with panels(2, len(many), 4.4, *titles) as page:
        for k, which in enumerate(many):
            for axes, quantity in ((page[k], "alignment"), (page[len(many) + k], "r2")):
                draw_beside_nulls(axes, parameters, data, which, lambda part, name=quantity: part[name].values)
            page[k].axhline(0.0, color=GREY, lw=0.6)
            page[len(many) + k].set(xlabel="layer", ylim=(0, None))
        page[0].set(ylabel="mean cosine")
        page[len(many)].set(ylabel="$R^2$")
        low, high = page[0].get_ylim()
        page[0].set_ylim(low, high + 0.2 * (high - low))  # room for the legend
        page[0].legend(loc="upper left", ncols=3)
    return page.figure
