"""Limits of prisms, moments of Gaussians, whitening, and the energies of two pyramids."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.mixed_values.compare import growth
from attnflow_gallery.mixed_values.simulate import BETAS, FIRST, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Marks: tokens, lines: closed forms.

    (a) Limits of rescaled coordinates of prisms. (b) Variance of a Gaussian measure; dots: where it blows up. (c) Half
    of the growth rate of the inverse covariance of random tokens under V = -I: eigenvalues over the prediction.
    (d) Energy of the square pyramid minus that of the bipyramid.
    """
    with panels(2, 2, 5.2, "limits of prisms", "Gaussian measures", r"$V = -I$ whitens", "five tokens repel") as page:
        _draw_limits(page[0], parameters, data["prisms"])
        _draw_gaussians(page[1], parameters, data["gaussians"])
        _draw_clouds(page[2], parameters, data["clouds"])
        _draw_five(page[3], data["five"])
    return page.figure


def _draw_limits(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    a = np.linspace(0.3, 1.6, 60)
    for (column, middle), colour, mark in looks(((1, False), (0, True))):
        name = "$-a, 0, a$" if middle else "$-a, a$"
        axes.plot(a, theory.landscape.pair_limit(a, middle=middle), color=colour, lw=1.0)
        at = [prism[0 if middle else 1] for prism in parameters.prisms]
        axes.plot(at, part["end"].values[:, column], mark, ms=4, color=colour, label=name)
    axes.plot(a, a, ":", color=GREY, lw=0.9)
    axes.set(xlabel="initial coordinate $a$", ylabel="limit of $e^{-t} x$")
    axes.legend(loc="upper left", title="coordinates")


def _draw_gaussians(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    for value, colour, mark in looks(sorted({value for value, _ in parameters.gaussians})):
        pole = 1 / (2 * value * FIRST[0]) if value > 0 else 3.0
        t = np.linspace(0, min(0.95 * pole, 2.2), 80)
        known = [float(theory.landscape.gaussian_moments(one, value, FIRST[0]).covariance) for one in t]
        axes.plot(t, known, color=colour, lw=1.0, label=rf"$V = {value:g}$")
        if value > 0:
            axes.axvline(pole, color=colour, lw=0.9, ls=":")
        for k, (one, time) in enumerate(parameters.gaussians):
            if one == value:
                axes.plot(time, part["moments"].values[k, 1], mark, ms=4, color=colour)
    axes.set(yscale="log", xlabel="time $t$", ylabel="variance")
    axes.legend(loc="upper right")


def _draw_clouds(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    found = growth(parameters, part)
    for which, colour, mark in looks(range(2)):
        values = found[which]
        where = np.repeat(np.arange(len(values)), 3)
        label = "$Q^TK = I$" if which == 0 else "$Q^TK$ not symmetric"
        axes.plot(where + 0.2 * which - 0.1, values.ravel(), mark, ms=4, color=colour, label=label)
    axes.axhline(1.0, color=GREY, lw=0.9)
    axes.set(xlabel="random start", ylabel="measured over predicted", ylim=(0.9995, 1.0015))
    axes.legend(loc="upper left")


def _draw_five(axes: Any, part: xr.Dataset) -> None:
    betas = np.linspace(3.5, 10.5, 80)
    known = np.array([theory.landscape.five_point_energies(b) for b in betas])
    axes.plot(betas, known[:, 1] - known[:, 0], color=COLOURS[0], lw=1.0)
    axes.plot(BETAS, part["energy"].values[:, 1] - part["energy"].values[:, 0], "o", ms=4, color=COLOURS[0])
    axes.axhline(0.0, color=GREY, lw=0.8)
    axes.plot(float(part["flip"]), 0.0, "D", ms=5, color=COLOURS[4], label="crossing")
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel="square pyramid $-$ bipyramid")
    axes.legend(loc="upper right")
