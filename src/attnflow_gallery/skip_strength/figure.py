"""Deficits layer by layer, two clusters, layers to merge, modes."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, panels
from attnflow.plots.style import GREY
from attnflow_gallery.skip_strength.compare import deficits
from attnflow_gallery.skip_strength.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Layers x <- N(alpha x + attention); marks: tokens, lines: theory.

    (a) 1 - overlap of orthonormal tokens; below 1e-30 tokens coincide to rounding. (b) One layer from tokens near
    consensus: the slope is 3 for alpha = 0 and 1 else. (c) Angle of two clusters against the layer over 1 + alpha;
    line: the flow. (d) Growth of modes of a ring per layer.
    """
    titles = "orthonormal tokens", "one layer near consensus", "two clusters", "growth from the uniform measure"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_deficits(page[0], parameters, data["equiangular"])
        _draw_near(page[1], parameters, data["near"])
        _draw_pairs(page[2], parameters, data["pairs"])
        _draw_modes(page[3], parameters, data["rings"])
    return page.figure


def _draw_deficits(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    beta = parameters.betas[0]
    for (j, skip), colour, mark in looks(enumerate(parameters.skips)):
        axes.plot(np.maximum(deficits(parameters, beta, skip), 1e-60), color=colour, lw=1.0)
        found = part["deficit"].values[0, j]
        axes.plot(np.where(found > 1e-31, found, np.nan), mark, ms=4, color=colour, label=rf"$\alpha = {skip:g}$")
    axes.set(yscale="log", ylim=(1e-31, 10), xlabel="layer", ylabel=rf"$1 -$ overlap   ($\beta = {beta:g}$)")
    axes.legend(loc="lower left", fontsize=6.5)


def _draw_near(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    beta, start = parameters.betas[-1], np.array(parameters.deficits)
    for (j, skip), colour, mark in looks(enumerate(parameters.skips)):
        known = (beta / parameters.n) ** 2 * start**3 if skip == 0 else (skip / (1 + skip)) ** 2 * start
        axes.plot(start, known, color=colour, lw=1.0)
        axes.plot(start, part["deficit"].values[-1, j], mark, ms=4, color=colour, label=rf"$\alpha = {skip:g}$")
    axes.set(xscale="log", yscale="log", xlabel="$1 -$ overlap before", ylabel="$1 -$ overlap after")
    axes.legend(loc="lower right", fontsize=6.5)


def _draw_pairs(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    beta, start = parameters.pair
    angles = np.linspace(parameters.until * 1.01, start * 0.9999, 200)
    whole = float(theory.merging.merge_time(start, beta, until=parameters.until))
    left = np.array([float(theory.merging.merge_time(a, beta, until=parameters.until)) for a in angles])
    axes.plot(whole - left, angles, color=GREY, lw=3.0, zorder=0, label="flow")
    for (j, skip), colour, mark in looks(enumerate(parameters.skips)):
        found = part["angle"].values[j]
        look = {"ms": 3, "lw": 0.8, "color": colour, "markevery": max(len(found) // 24, 1)}
        axes.plot(np.arange(len(found)) / (1 + skip), found, f"-{mark}", label=rf"$\alpha = {skip:g}$", **look)
    axes.set(xlim=(0, 1.15 * whole), xlabel=r"layer$/(1 + \alpha)$", ylabel=rf"angle   ($\beta = {beta:g}$)")
    axes.legend(loc="lower left", fontsize=6.5)


def _draw_modes(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    degrees = np.arange(1, max(parameters.degrees) + 3)
    for (j, skip), colour, mark in looks(enumerate(parameters.skips)):
        known = theory.uniform.layer_growth(parameters.ring_beta, 2, k=degrees, skip=skip)
        axes.plot(degrees, known, color=colour, lw=1.0)
        axes.plot(parameters.degrees, part["factor"].values[j], mark, ms=4, color=colour, label=rf"$\alpha = {skip:g}$")
    axes.set(xlabel="degree $k$", ylabel=rf"factor per layer   ($\beta = {parameters.ring_beta:g}$)")
    axes.legend(loc="upper right", fontsize=6.5)
