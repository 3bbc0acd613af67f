"""Consensus over time, hemispheres, and where consensus ends on the circle."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import CONFIDENCE, looks, panels, share_interval
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.consensus.compare import THRESHOLD, simulated_rates, together
from attnflow_gallery.consensus.simulate import SPAN, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Consensus and where it ends.

    (a) Share of draws of iid tokens that are not yet in consensus; a curve that falls to the lower edge has no draw
    left. (b) Share of draws that lie in an open hemisphere, and Wendel's formula. (c) Growth rate of a displacement of
    three tokens at 120 degrees on the circle, SA: closed form (line), linearised simulator (crosses), displaced ring
    (circles). (d) Share of draws of n tokens on the circle that reach consensus, SA; dotted: the threshold below which
    three clusters of n tokens have a stable equilibrium (marks are moved sideways a little to keep them apart). Bars
    in (b) and (d): exact binomial intervals of confidence 99.9 %.
    """
    titles = "iid tokens", "start in a hemisphere", "ring of three tokens", r"circle, $\beta$ of either sign"
    with panels(2, 2, 4.8, *titles) as page:
        _draw_times(page[0], parameters, data)
        _draw_hemispheres(page[1], parameters, data["hemisphere"])
        _draw_rates(page[2], data["ring"])
        _draw_shares(page[3], parameters, data)
    return page.figure


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    times, floor, last = np.arange(0, parameters.until + SPAN, SPAN), 0.6 / parameters.draws, SPAN
    widths = list(zip(parameters.dims, COLOURS, (1.6, 1.1, 0.7), strict=False))
    styles = list(zip(parameters.models, ("-", "--"), strict=False))
    for (model, line), (d, colour, width) in itertools.product(styles, widths):
        met = data[f"{model}-S{d - 1}"]["met"].isel(beta=-1).values
        left = np.maximum([np.mean(met > t) for t in times], floor / 10)
        axes.step(times, left, line, where="post", color=colour, lw=width)
        last = np.max(met, where=np.isfinite(met), initial=last)
    for d, colour, width in widths:
        axes.plot([], [], color=colour, lw=width, label=rf"$d = {d}$")
    for model, line in styles:
        axes.plot([], [], line, color=INK, lw=1.0, label=model)
    axes.set(xlim=(0, last + 2 * SPAN), yscale="log", ylim=(floor, 1.3), ylabel="share not in consensus")
    axes.set(xlabel=rf"time $t$   ($n = {parameters.n}$, $\beta = {parameters.betas[-1]:g}$)")
    axes.legend(loc="upper right")


def _draw_hemispheres(axes: Any, parameters: Parameters, seen: xr.Dataset) -> None:
    d = seen["d"].values
    for n, colour, mark in looks(seen["n"].values):
        axes.plot(d, theory.landscape.hemisphere_probability(int(n), d), color=colour, lw=1.0)
        hits = seen["hits"].sel(n=n).values
        _draw_counts(axes, d, hits, parameters.hemisphere_draws, fmt=mark, color=colour, label=f"$n = {int(n)}$")
    axes.plot([], [], color=GREY, lw=1.0, label="Wendel")
    axes.set(ylim=(-0.03, 1.05), xlabel="dimension $d$", ylabel="share in a hemisphere")
    axes.legend(loc="lower right")


def _draw_rates(axes: Any, part: xr.Dataset) -> None:
    betas = part["beta"].values
    fine = np.linspace(betas[0] - 0.2, betas[-1] + 0.2, 200)
    axes.plot(fine, theory.landscape.ring_growth_rates(fine, 3, k=1), color=COLOURS[0], lw=1.0, label="closed form")
    axes.plot(betas, part["rate_SA"].isel(mode=0), "x", ms=6, color=INK, mew=0.9, label="linearised flow")
    rates, _ = simulated_rates(part)
    axes.plot(betas, rates, "o", ms=4.5, mfc="none", mec=COLOURS[4], mew=0.9, label="displaced ring")
    axes.axhline(0, color=GREY, lw=0.6)
    axes.axvline(THRESHOLD, color=GREY, lw=0.8, ls=":")
    axes.annotate(r"$-2/3$", (THRESHOLD, axes.get_ylim()[0]), xytext=(3, 2), textcoords="offset points", fontsize=7)
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"growth rate $\lambda$ (SA)")
    axes.legend(loc="upper left")


def _draw_shares(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts, text = parameters.circle_counts, {"rotation": 90, "fontsize": 6, "ha": "right", "va": "bottom"}
    for place, (n, colour, mark) in enumerate(looks(counts)):
        part, shift = data[f"circle-{n}"], 0.05 * (place - (len(counts) - 1) / 2)
        hits, draws, label = together(part).sum(axis=1), parameters.circle_draws, f"$n = {n}$"
        _draw_counts(axes, part["beta"] + shift, hits, draws, fmt=mark, color=colour, label=label)
        threshold = theory.merging.three_cluster_threshold(n)
        axes.axvline(threshold, color=colour, lw=1.0, ls=":")
        axes.annotate(label, (threshold, 0.02), xycoords=("data", "axes fraction"), color=INK, **text)
    axes.plot([], [], ":", color=GREY, lw=1.0, label="threshold")
    axes.set(ylim=(0.42, 1.03), xlabel=r"inverse temperature $\beta$", ylabel="share that reaches consensus")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.05))


def _draw_counts(axes: Any, x: Any, hits: np.ndarray, draws: int, **more: Any) -> None:
    """Shares of draws, with exact binomial intervals."""
    share, (low, high) = hits / draws, share_interval(hits, draws, CONFIDENCE)
    axes.errorbar(x, share, np.maximum([share - low, high - share], 0), ms=3.5, elinewidth=0.8, **more)
