"""Correlations and inverse temperatures of layers, beside those of nulls."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import averaged, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.trained_beta.compare import COLLAPSED
from attnflow_gallery.trained_beta.simulate import NETWORK, Parameters, name

LOOKS = ((COLOURS[0], "-", "o"), (COLOURS[1], "--", "s"), (COLOURS[2], ":", "^"))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Log-attention against cosines, layer by layer: means over texts and two standard errors.

    Upper row: correlation of the median head. Lower row: its slope, the inverse temperature beta, where tokens have not
    collapsed (mean overlap below 0.99). One column a network; layers are those of the network, with the null networks
    beside.
    """
    many = parameters.networks
    titles = [*(f"{which}: correlation" for which in many), *(f"{which}: slope" for which in many)]
    with panels(2, len(many), 4.4, *titles) as page:
        for k, which in enumerate(many):
            for (colour, line, mark), case in zip(LOOKS, (NETWORK, *parameters.nulls), strict=False):
                part = data[name(which, case)]
                layers = np.arange(part.sizes["layer"])
                there = part["overlap"].values.mean(axis=0) < COLLAPSED
                for axes, quantity, shown in (
                    (page[k], "correlation", layers >= 0),
                    (page[len(many) + k], "beta", there),
                ):
                    mean, error = averaged(part[quantity].values)
                    look = {"color": colour, "ls": line, "marker": mark, "ms": 2.6, "lw": 0.9, "label": case}
                    axes.errorbar(layers[shown], mean[shown], 2 * error[shown], **look)
            for axes in (page[k], page[len(many) + k]):
                axes.axhline(0.0, color=GREY, lw=0.6)
                axes.set(xlabel="layer")
        page[0].set(ylabel=r"sign($\beta$) $R$")
        page[len(many)].set(ylabel=r"$\beta$")
        page[0].legend(loc="best")
    return page.figure
