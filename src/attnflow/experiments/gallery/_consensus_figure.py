"""The panels of `consensus`."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import share_interval
from attnflow.experiments.gallery.consensus import CONFIDENCE, SPAN, THRESHOLD, Parameters, simulated_rates
from attnflow.plots.style import COLOURS, GREY, INK


def draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    """Draws that have not come together yet."""
    times = np.arange(0, parameters.until + SPAN, SPAN)
    for model, line in zip(parameters.models, ("-", "--"), strict=False):
        for d, colour in zip(parameters.dims, COLOURS, strict=False):
            met = data[f"{model}-S{d - 1}"]["met"].isel(beta=-1).values
            left = np.array([np.mean(met > t) for t in times])
            axes.step(times[left > 0], left[left > 0], line, where="post", color=colour, lw=1.0)
    for d, colour in zip(parameters.dims, COLOURS, strict=False):
        axes.plot([], [], color=colour, label=rf"$d = {d}$")
    for model, line in zip(parameters.models, ("-", "--"), strict=False):
        axes.plot([], [], line, color=INK, lw=1.0, label=model)
    axes.set_yscale("log")
    axes.set_ylim(0.6 / parameters.seeds, 1.3)
    axes.set_xlabel("time $t$")
    axes.set_ylabel(rf"share not together   ($n = {parameters.n}$, $\beta = {parameters.betas[-1]:g}$)")
    axes.legend(loc="upper right")


def draw_hemispheres(axes: Any, parameters: Parameters, seen: xr.Dataset) -> None:
    """Draws that lie in a hemisphere, and Wendel."""
    d = seen["d"].values
    for n, colour in zip(seen["n"].values, COLOURS, strict=False):
        hits = seen["hits"].sel(n=n).values
        low, high = share_interval(hits, parameters.draws, CONFIDENCE)
        share = hits / parameters.draws
        axes.plot(d, theory.hemisphere_probability(int(n), d), color=colour, lw=1.0)
        bars = np.maximum([share - low, high - share], 0)
        axes.errorbar(d, share, bars, fmt="o", ms=3, color=colour, elinewidth=0.8, label=f"$n = {int(n)}$")
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlabel("dimension $d$")
    axes.set_ylabel("share in a hemisphere")
    axes.legend(loc="lower right")


def draw_rates(axes: Any, data: dict[str, xr.Dataset]) -> None:
    """The ring of three: closed form, linearised, simulated."""
    betas = data["circle"]["beta"].values
    fine = np.linspace(betas[0] - 0.2, betas[-1] + 0.2, 200)
    axes.plot(fine, theory.ring_growth_rates(fine, 3, 1), color=COLOURS[0], lw=1.0, label="closed form")
    axes.plot(betas, data["ring"]["rate_SA"].isel(mode=0), "x", ms=6, color=INK, mew=0.9, label="linearised")
    rates, _ = simulated_rates(data["circle"])
    axes.plot(betas, rates, "o", ms=4, mfc="none", mec=COLOURS[4], mew=0.9, label="displaced ring")
    axes.axhline(0, color=GREY, lw=0.6)
    axes.axvline(THRESHOLD, color=GREY, lw=0.8, ls=":")
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel("growth rate at the ring of three")
    axes.legend(loc="lower center")


def draw_shares(axes: Any, parameters: Parameters, circle: xr.Dataset) -> None:
    """Three tokens on the circle on both sides of -2/3."""
    hits = circle["together"].sum("seed").values
    low, high = share_interval(hits, parameters.circle_seeds, CONFIDENCE)
    share = hits / parameters.circle_seeds
    axes.axvline(THRESHOLD, color=GREY, lw=0.8, ls=":")
    axes.axhline(float(theory.hemisphere_probability(3, 2)), color=GREY, lw=0.8, ls=":")
    bars = np.maximum([share - low, high - share], 0)
    axes.errorbar(circle["beta"], share, bars, fmt="o", ms=3.5, color=COLOURS[0], elinewidth=0.8)
    axes.set_ylim(0.65, 1.03)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel("share that reaches consensus")
