"""Samples of a conditional density, divergences against units, mean squares, and skew parts."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

from attnflow.experiments.kit import looks, panels, powers_of_two
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.conditional_sampling.compare import composed_square, scale_divergence, sheared_divergence
from attnflow_gallery.conditional_sampling.simulate import Parameters, sampler

SHOWN = 6
"""Slabs in panel a."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Conditional samplers and random units: marks are schedules, lines are formulas.

    (a) Quantiles of y given x that a sampler of six slabs makes (steps) and those of the target (lines). (b) Divergence
    against the number of units: sheared target, conditional scale in two and three dimensions. (c) Mean square error of
    random compositions against K. (d) Skew part of the Jacobian against the number of units, one after the other
    (circles); side by side it is at rounding.
    """
    titles = "a conditional sampler", "divergence", "random compositions", "skew part of the Jacobian"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_sampler(page[0], parameters)
        _draw_divergences(page[1], parameters, data)
        _draw_composed(page[2], parameters, data)
        part = data["skew"]
        page[3].loglog(part["m"], part["sweep"], "o", ms=4, color=COLOURS[0], label="one after the other")
        page[3].loglog(part["m"], np.maximum(part["layer"], 1e-12), "s", ms=4, color=COLOURS[4], label="side by side")
        page[3].set(xlabel="units $m$", ylabel="root mean square", ylim=(1e-13, 3))
        powers_of_two(page[3])
        page[3].legend(loc="center right")
    return page.figure


def _draw_sampler(axes: Any, parameters: Parameters) -> None:
    x = np.linspace(-0.999, 0.999, 400)
    schedule = sampler(parameters, 2, SHOWN)
    for level in (0.1, 0.25, 0.5, 0.75, 0.9):
        z = norm.ppf(level)
        end, _ = schedule.push(np.stack([x, np.full(len(x), z)], axis=1))
        axes.plot(x, np.exp(parameters.scale * x) * z, color=GREY, lw=1.0)
        axes.plot(x, end[:, 1], color=COLOURS[0], lw=1.0)
    axes.set(xlabel="$x$", ylabel="quantiles of $y$ given $x$")


def _draw_divergences(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    part = data["sheared"]
    known = [sheared_divergence(*case) for case in parameters.shears]
    axes.loglog(part["units"], known, color=INK, lw=0.8)
    axes.loglog(part["units"], part["divergence"], "^", ms=4, color=INK, label="sheared, $d = 2$")
    for (d, slabs), colour, mark in looks(parameters.slabs):
        part = data[f"scales-{d}"]
        known = [scale_divergence(parameters.scale, j, d) for j in slabs]
        axes.loglog(part["units"], known, color=colour, lw=0.8)
        axes.loglog(part["units"], part["divergence"], mark, ms=4, color=colour, label=f"scale, $d = {d}$")
    axes.set(xlabel="units", ylabel="KL(target | reached)")
    axes.legend(loc="upper right")


def _draw_composed(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts = np.unique(np.geomspace(2, 2 * max(parameters.counts), 40).astype(int))
    for d, colour, mark in looks(parameters.dims):
        axes.loglog(counts, [composed_square(parameters.growth, k, d) for k in counts], color=colour, lw=0.8)
        part = data[f"composed-{d}"]
        axes.errorbar(part["count"], part["mean"], part["error"], fmt=mark, ms=4, color=colour, label=f"$d = {d}$")
    axes.set(xlabel="units $K$", ylabel=r"E $|x_K - e^{c/2d}x_0|^2/|x_0|^2$")
    powers_of_two(axes)
    axes.legend(loc="lower left")
