"""Alignment of layers and what it explains, beside nulls."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import averaged, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.alignment.simulate import NETWORK, Parameters, name

LOOKS = ((COLOURS[0], "-", "o"), (COLOURS[1], "--", "s"), (COLOURS[2], ":", "^"))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Updates by attention against the velocity of theory, layer by layer: means over texts and two standard errors.

    Upper row: mean cosine of updates and velocity. Lower row: the share of the squared updates that the velocity
    explains when every layer has a time of its own. One column a network, with the null networks beside.
    """
    many = parameters.networks
    titles = [*(f"{which}: alignment" for which in many), *(f"{which}: explained" for which in many)]
    with panels(2, len(many), 4.4, *titles) as page:
        for k, which in enumerate(many):
            for (colour, line, mark), case in zip(LOOKS, (NETWORK, *parameters.nulls), strict=False):
                part = data[name(which, case)]
                layers = np.arange(part.sizes["layer"])
                look = {"color": colour, "ls": line, "marker": mark, "ms": 2.6, "lw": 0.9, "label": case}
                for axes, quantity in ((page[k], "alignment"), (page[len(many) + k], "r2")):
                    mean, error = averaged(part[quantity].values)
                    axes.errorbar(layers, mean, 2 * error, **look)
            page[k].axhline(0.0, color=GREY, lw=0.6)
            page[len(many) + k].set(xlabel="layer", ylim=(0, None))
        page[0].set(ylabel="mean cosine")
        page[len(many)].set(ylabel="$R^2$")
        page[0].legend(loc="best")
    return page.figure
