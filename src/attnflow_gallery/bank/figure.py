"""The border in the plane of angle and ratio, and its shift against beta."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import looks, panels
from attnflow_gallery.bank.compare import first_order, threshold
from attnflow_gallery.bank.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Which topic an ambiguous word joins.

    (a) Ratio of the masses of the topics at the border, against the angle of the word to topic 1; above a line the word
    joins topic 1: closed form (lines), flows (marks). (b) How far the border of flows is from the closed form, against
    beta: measured (marks), first order (lines).
    """
    with panels(1, 2, 2.8, "the border", "its shift by moving clusters") as page:
        fine = np.linspace(0.2, 1.3, 200)
        for beta, colour, mark in looks(parameters.betas):
            page[0].plot(
                fine, [threshold(beta, one) for one in fine], color=colour, lw=1.0, label=rf"$\beta = {beta:g}$"
            )
            some = data["flow"].sel(beta=beta)
            page[0].plot(some["angle"], np.exp(some["border"]), mark, ms=4.5, mfc="white", mec=colour, mew=1.0)
        page[0].set(yscale="log", xlabel=r"angle $\varphi$ to topic 1", ylabel="$M_1/M_2$ at the border")
        page[0].legend(loc="upper left")
        betas = np.linspace(min(parameters.betas) - 0.5, max(parameters.betas) + 0.5, 60)
        for angle, colour, mark in looks(parameters.angles):
            curve = [abs(first_order(float(beta), angle)[0]) for beta in betas]
            page[1].plot(betas, curve, color=colour, lw=1.0, label=rf"$\varphi = {angle:g}$")
            exact = np.log([threshold(beta, angle) for beta in parameters.betas])
            found = np.abs(data["flow"]["border"].sel(angle=angle).values - exact)
            page[1].plot(parameters.betas, found, mark, ms=4.5, mfc="white", mec=colour, mew=1.0)
        page[1].set(yscale="log", xlabel=r"inverse temperature $\beta$", ylabel=r"|shift| of $\log (M_1/M_2)$")
        page[1].legend(loc="upper right")
    return page.figure
