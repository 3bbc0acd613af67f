"""Errors on fresh prompts against the number of heads, and averages of heads."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import looks, panels, powers_of_two
from attnflow.plots.style import GREY
from attnflow_gallery.many_heads.simulate import TARGETS, Parameters

WORDS = {
    "softmax": r"one head, $\beta = 3$",
    "flow": "flow map",
    "product": r"$|\bar x|^2\bar x$",
    "even": "$e_1$",
    "sum": "$e_1$ + flow map",
}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Relative errors of one layer on fresh prompts against its number H of random heads, values by least squares.

    One panel for each number n of tokens and dimension d. Even targets have the error 1 for every H, and e₁ with a flow
    map at least 1/√2 (dotted). Last panel: root mean square error of averages of H independent heads, over the root of
    the variance of one head; line: H^(−1/2).
    """
    titles = [f"n = {n}, d = {d}" for n, d in parameters.sizes]
    with panels(1, len(titles) + 1, 2.7, *titles, "averages") as page:
        for axes, (n, d) in zip(page, parameters.sizes, strict=False):
            part = data[f"fits-{n}-{d}"]
            for name, colour, mark in looks(TARGETS):
                error = np.maximum(part["error"].sel(target=name), 1e-9)
                axes.plot(part["heads"], error, f"{mark}-", color=colour, lw=1.0, ms=3, label=WORDS[name])
            axes.axhline(np.sqrt(0.5), color=GREY, lw=0.7, ls=":")
            axes.set(yscale="log", xlabel="heads $H$")
            powers_of_two(axes)
        page[0].set_ylabel("relative error")
        page[0].legend(loc="lower left", fontsize=6)
        average = data["averages"]
        heads, square = average["heads"].values, average["square"].values.mean(axis=1)
        size = float(average["variance"].mean())
        page[-1].plot(heads, np.sqrt(square / heads / size), "o", ms=4)
        page[-1].plot(heads, heads**-0.5, color=GREY, lw=0.9)
        page[-1].set(yscale="log", xlabel="heads $H$")
        powers_of_two(page[-1])
    return page.figure
