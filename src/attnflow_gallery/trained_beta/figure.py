"""Correlations and inverse temperatures of layers, beside those of nulls."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import draw_beside_nulls, panels
from attnflow.plots.style import GREY
from attnflow_gallery.trained_beta.compare import COLLAPSED
from attnflow_gallery.trained_beta.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Log-attention against cosines, layer by layer: means over texts.

    Upper row: correlation of the median head. Lower row: its slope, the inverse temperature beta, where tokens have not
    collapsed (mean overlap below 0.99). One column a network. Bars of the trained network are two standard errors over
    texts; bands are the range over draws of a null.
    """
    many = parameters.networks
    titles = [*(f"{which}: correlation" for which in many), *(f"{which}: slope" for which in many)]
    with panels(2, len(many), 4.4, *titles) as page:
        for k, which in enumerate(many):
            draw_beside_nulls(page[k], parameters, data, which, lambda part: part["correlation"].values)
            draw_beside_nulls(page[len(many) + k], parameters, data, which, _slopes)
            for axes in (page[k], page[len(many) + k]):
                axes.axhline(0.0, color=GREY, lw=0.6)
                axes.set(xlabel="layer")
        page[0].set(ylabel=r"sign($\beta$) $R$")
        page[len(many)].set(ylabel=r"$\beta$")
        low, high = page[0].get_ylim()
        page[0].set_ylim(low, high + 0.2 * (high - low))  # room for the legend
        page[0].legend(loc="upper left", ncols=3)
    return page.figure


def _slopes(part: xr.Dataset) -> np.ndarray:
    """(text, layer) slopes; nothing where tokens have collapsed in the mean over texts."""
    gone = part["overlap"].values.mean(axis=0) >= COLLAPSED
    return np.where(gone, np.nan, part["beta"].values)
