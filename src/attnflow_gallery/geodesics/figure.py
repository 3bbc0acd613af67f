"""Lengths of equiangular paths, the extremal rate against beta, and distances between random flows."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import LINES, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.geodesics.compare import largest_rate, to_mean, travelled
from attnflow_gallery.geodesics.simulate import MODELS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Geodesics of W_2, and how fast two flows may separate.

    (a) W_2 from the start (marks), length of the path (crosses) and closed form (lines; solid SA, dashed USA0); dotted:
    the angle to the mean. (b) Rate of separation of two pairs at the extremal angle (marks) and max W'' (line); dotted:
    its limit 2 e^(-3/2). (c) W_2 between two flows from random starts, over its first value, and the bound (dashed).
    """
    last = rf"random pairs, $\beta = {parameters.random_beta:g}$"
    titles = "equiangular tokens", "extremal pairs", last
    with panels(1, 3, 2.7, *titles) as page:
        _draw_straight(page[0], parameters, data)
        _draw_rates(page[1], data["extremal"])
        _draw_random(page[2], parameters, data["random"])
    return page.figure


def _draw_straight(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    fine = np.linspace(0, parameters.until, 200)
    for k, (n, overlap) in enumerate(zip(parameters.tokens, parameters.overlaps, strict=True)):
        colour = COLOURS[(0, 4)[k % 2]]
        axes.axhline(float(to_mean(np.array([overlap]), n)[0]), color=GREY, ls=":", lw=0.8)
        for model in MODELS:
            part = data[f"{model}-{n}"]
            every = max(1, part.sizes["time"] // 10)
            axes.plot(fine, travelled(parameters, fine, n, overlap, model), LINES[model], color=colour, lw=1.0)
            some = part.isel(time=slice(None, None, every))
            axes.plot(some["time"], some["apart"], "o", ms=4, mfc="white", mec=colour, mew=0.9)
            axes.plot(part["quarter"], part["length"], "x", ms=3, color=colour, mew=0.9)
        axes.plot([], [], "o", ms=4, mfc="white", mec=colour, label=rf"$n = {n}$, $\gamma_0 = {overlap:g}$")
    axes.plot([], [], "x", ms=3, color=INK, label="length")
    axes.set(xlabel="time $t$", ylabel=r"$W_2(\mu_0, \mu_t)$", ylim=(0, 1.95))
    axes.legend(loc="upper left")


def _draw_rates(axes: Any, part: xr.Dataset) -> None:
    betas = np.geomspace(0.3, 150, 60)
    axes.plot(betas, [largest_rate(float(beta)) for beta in betas], color=COLOURS[0], lw=1.0, label="max $W''$")
    axes.plot(part["beta"], part["rate"], "o", ms=4.5, mfc="white", mec=INK, label="measured")
    axes.axhline(2 * np.exp(-1.5), color=GREY, ls=":", lw=0.8)
    axes.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel="rate", ylim=(0.33, 0.5))
    axes.legend(loc="upper left")


def _draw_random(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    time, apart = part["time"].values, part["apart"].values
    axes.plot(time, (apart / apart[:, :1]).T, color=COLOURS[0], lw=0.5, alpha=0.6)
    axes.plot([], [], color=COLOURS[0], lw=0.8, label="random pairs")
    axes.plot(
        time, np.exp(largest_rate(parameters.random_beta) * time), "--", color=COLOURS[4], label=r"$e^{\Lambda t}$"
    )
    axes.set(xlabel="time $t$", ylabel="$W_2$ over its first value", yscale="log")
    axes.legend(loc="upper left")
