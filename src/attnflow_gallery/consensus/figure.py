"""Consensus over time, hemispheres, and where consensus ends on the circle."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import CONFIDENCE, share_interval
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.consensus.compare import THRESHOLD, simulated_rates, together
from attnflow_gallery.consensus.simulate import SPAN, Parameters

MARKS = "osD^"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Consensus and where it ends.

    (a) Share of draws of iid tokens that are not yet in consensus; a curve that falls to the lower edge has no draw
    left. (b) Share of draws that lie in an open hemisphere, and Wendel's formula. (c) Growth rate of a displacement of
    three tokens at 120 degrees on the circle, SA: closed form (line), linearised simulator (crosses), displaced ring
    (circles). (d) Share of draws of n tokens on the circle that reach consensus, SA; dotted: the threshold below which
    three clusters of n tokens have a stable equilibrium (marks are moved sideways a little to keep them apart). Bars
    in (b) and (d): exact binomial intervals of confidence 99.9 %.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 2)
        _draw_times(axes[0, 0], parameters, data)
        _draw_hemispheres(axes[0, 1], parameters, data["hemisphere"])
        _draw_rates(axes[1, 0], data["ring"])
        _draw_shares(axes[1, 1], parameters, data)
        titles = "iid tokens", "start in a hemisphere", "ring of three tokens", r"circle, $\beta$ of either sign"
        for letter, title, one in zip("abcd", titles, axes.flat, strict=True):
            panel(one, letter, title)
        return fig


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    times, floor = np.arange(0, parameters.until + SPAN, SPAN), 0.6 / parameters.draws
    looks = list(zip(parameters.dims, COLOURS, (1.6, 1.1, 0.7), strict=False))
    for model, line in zip(parameters.models, ("-", "--"), strict=False):
        for d, colour, width in looks:
            met = data[f"{model}-S{d - 1}"]["met"].isel(beta=-1).values
            left = np.maximum([np.mean(met > t) for t in times], floor / 10)
            axes.step(times, left, line, where="post", color=colour, lw=width)
    for d, colour, width in looks:
        axes.plot([], [], color=colour, lw=width, label=rf"$d = {d}$")
    for model, line in zip(parameters.models, ("-", "--"), strict=False):
        axes.plot([], [], line, color=INK, lw=1.0, label=model)
    late = [
        data[f"{model}-S{d - 1}"]["met"].isel(beta=-1).values for model in parameters.models for d in parameters.dims
    ]
    axes.set(xlim=(0, np.max(late, where=np.isfinite(late), initial=SPAN) + 2 * SPAN), yscale="log", ylim=(floor, 1.3))
    axes.set(xlabel=rf"time $t$   ($n = {parameters.n}$, $\beta = {parameters.betas[-1]:g}$)")
    axes.set(ylabel="share not in consensus")
    axes.legend(loc="upper right")


def _draw_hemispheres(axes: Any, parameters: Parameters, seen: xr.Dataset) -> None:
    d = seen["d"].values
    for n, colour, mark in zip(seen["n"].values, COLOURS, MARKS, strict=False):
        hits = seen["hits"].sel(n=n).values
        share = hits / parameters.hemisphere_draws
        axes.plot(d, theory.landscape.hemisphere_probability(int(n), d), color=colour, lw=1.0)
        bars = _bars(share, hits, parameters.hemisphere_draws)
        axes.errorbar(d, share, bars, fmt=mark, ms=3.5, color=colour, elinewidth=0.8, label=f"$n = {int(n)}$")
    axes.plot([], [], color=GREY, lw=1.0, label="Wendel")
    axes.set(ylim=(-0.03, 1.05), xlabel="dimension $d$", ylabel="share in a hemisphere")
    axes.legend(loc="lower right")


def _draw_rates(axes: Any, part: xr.Dataset) -> None:
    betas = part["beta"].values
    fine = np.linspace(betas[0] - 0.2, betas[-1] + 0.2, 200)
    axes.plot(fine, theory.landscape.ring_growth_rates(fine, 3, 1), color=COLOURS[0], lw=1.0, label="closed form")
    axes.plot(betas, part["rate_SA"].isel(mode=0), "x", ms=6, color=INK, mew=0.9, label="linearised flow")
    rates, _ = simulated_rates(part)
    axes.plot(betas, rates, "o", ms=4.5, mfc="none", mec=COLOURS[4], mew=0.9, label="displaced ring")
    axes.axhline(0, color=GREY, lw=0.6)
    axes.axvline(THRESHOLD, color=GREY, lw=0.8, ls=":")
    axes.annotate(r"$-2/3$", (THRESHOLD, axes.get_ylim()[0]), xytext=(3, 2), textcoords="offset points", fontsize=7)
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"growth rate $\lambda$ (SA)")
    axes.legend(loc="upper left")


def _draw_shares(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts = parameters.circle_counts
    for place, (n, colour, mark) in enumerate(zip(counts, COLOURS, MARKS, strict=False)):
        part, shift = data[f"circle-{n}"], 0.05 * (place - (len(counts) - 1) / 2)
        hits = together(part).sum(axis=1)
        share = hits / parameters.circle_draws
        bars = _bars(share, hits, parameters.circle_draws)
        axes.errorbar(part["beta"] + shift, share, bars, fmt=mark, ms=3.5, color=colour, elinewidth=0.8,
                      label=f"$n = {n}$")  # fmt: skip
        threshold = theory.merging.three_cluster_threshold(n)
        axes.axvline(threshold, color=colour, lw=1.0, ls=":")
        axes.annotate(f"$n = {n}$", (threshold, 0.02), xycoords=("data", "axes fraction"), rotation=90, fontsize=6,
                      ha="right", va="bottom", color=INK)  # fmt: skip
    axes.plot([], [], ":", color=GREY, lw=1.0, label="threshold")
    axes.set(ylim=(0.42, 1.03), xlabel=r"inverse temperature $\beta$", ylabel="share that reaches consensus")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.05))


def _bars(share: np.ndarray, hits: np.ndarray, draws: int) -> np.ndarray:
    low, high = share_interval(hits, draws, CONFIDENCE)
    return np.maximum([share - low, high - share], 0)
