"""Leading coordinates, tokens in the plane, pairs, and the departure from the middle plane."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.hyperplanes.simulate import ANGLES, Parameters, dual, exact

SHOWN = 3.0
"""Time at which (b) shows tokens."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Rescaled tokens z = e^(-tV) x; (a) and (b) show the example V = [[1, 0.3], [0, -0.4]].

    (a) The leading coordinate of every token in time, and its two limits (dashed). (b) The same tokens in the plane at
    t = 0 (dots), their paths (grey) and positions at t = 3 (squares and triangles). Dashed: lines on which the leading
    coordinate has its limits; tokens approach the lines like e^(-t), and at t = 3 some are still on their way. (c)
    Clusters at +-x: the factor by which the leading coordinate has shrunk in the end, in simulations without (full
    marks) and with tokens at 0 of half the mass of the clusters (open marks), and by the integral (lines). (d) Distance
    of a token of no mass from the middle plane in simulations (marks) and by the formula (lines).
    """
    first, plane = data[f"R{parameters.dims[0]}"], f"the same tokens at $t = {SHOWN:g}$"
    with panels(2, 2, 5.0, "two limits", plane, "clusters at $\\pm x$", "leaving the middle plane") as page:
        _draw_coordinates(page[0], first)
        _draw_plane(page[1], first)
        _draw_pairs(page[2], parameters, first)
        _draw_departures(page[3], parameters, first)
    return page.figure


def _draw_coordinates(axes: Any, part: xr.Dataset) -> None:
    y = part["coordinate"].values[:, 0]
    axes.plot(part["time"], y, color=GREY, lw=0.6)
    for limit, colour in zip((y[-1].min(), y[-1].max()), COLOURS, strict=False):
        axes.axhline(limit, color=colour, lw=1.2, ls="--")
        up = limit > 0
        at = {"xytext": (0, -3 if up else 3), "textcoords": "offset points", "va": "top" if up else "bottom"}
        axes.annotate(f"{limit:.4f}", (part["time"].values[-1], limit), color=colour, ha="right", fontsize=7, **at)
    axes.axhline(0.0, color=INK, lw=0.6, ls=":")
    axes.set(xlabel="time $t$", ylabel=r"leading coordinate $\varphi^*(z_i)$")


def _draw_plane(axes: Any, part: xr.Dataset) -> None:
    last = int(np.searchsorted(part["time"].values, SHOWN))
    z, value = part["positions"].values[: last + 1, 0, :, :2], part["value"].values[0]
    for token in range(z.shape[1]):
        axes.plot(*z[:, token].T, color=GREY, lw=0.5)
    axes.plot(*z[0].T, "o", ms=2.5, color=INK, mew=0, label="$t = 0$")
    low, high = 1.1 * z[..., 1].min(), 1.1 * z[..., 1].max()
    normal = dual(value) if len(value) == 2 else np.array([1.0, 0.0])
    y = part["coordinate"].values[-1, 0]
    for limit, colour, mark in zip((y.min(), y.max()), COLOURS, "s^", strict=False):
        axes.plot([(limit - normal[1] * h) / normal[0] for h in (low, high)], [low, high], "--", color=colour, lw=1.2)
        axes.plot(*z[-1][np.abs(y - limit) < 0.1].T, mark, ms=3.5, color=colour, mew=0)
    axes.plot([], [], "s", ms=3.5, color=INK, mew=0, label=f"$t = {SHOWN:g}$")
    axes.plot([], [], "--", color=INK, lw=1.2, label=r"$t \to \infty$")
    axes.set(ylim=(low, high), xlabel="$z_1$", ylabel="$z_2$")
    axes.legend(loc="upper center", handlelength=1.6)


def _draw_pairs(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    y, known = part["coordinate"].values[:, :, 0], exact(parameters)
    radii = np.linspace(0.8 * min(parameters.pairs), 1.1 * max(parameters.pairs), 60)
    for angle, colour, mark in looks(ANGLES):
        for mass, face, line in zip(parameters.middles, (colour, "white"), ("-", "--"), strict=False):
            chosen = [parameters.starts + k for k, one in enumerate(known) if one[1:] == (angle, mass)]
            direction = part["positions"].values[0, chosen[0], 0] / parameters.pairs[0]
            value = part["value"].values[chosen[0]]
            left = [math.exp(-theory.landscape.pair_delay(value, r * direction, middle=mass)) for r in radii]
            axes.plot(radii, left, line, color=colour, lw=1.0)
            axes.plot(parameters.pairs, y[-1, chosen] / y[0, chosen], mark, ms=4, mec=colour, mfc=face, mew=0.9)
        axes.plot([], [], mark, ms=4, color=colour, label=rf"$\alpha = {angle:g}$")
    axes.plot([], [], color=INK, lw=1.0, label="nothing at 0")
    axes.plot([], [], "--", color=INK, lw=1.0, label="tokens at 0")
    axes.set(ylim=(0, 1.03), xlabel=r"$|x(0)|$, $x(0) \propto \cos\alpha\,\varphi + \sin\alpha\,w$")
    axes.set(ylabel=r"$\varphi^*(z(\infty)) / \varphi^*(z(0))$")
    axes.legend(loc="lower right")


def _draw_departures(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    time, token = part["time"].values, parameters.tokens // 2 - 1
    dense = np.linspace(0.0, 4.0, 120)
    for k, (radius, colour, mark) in enumerate(looks(parameters.departures)):
        growth = np.asarray(theory.landscape.pair_departure(radius, dense)[0])
        away = np.log10(parameters.offset) + growth / math.log(10)
        axes.plot(dense[away < -1], 10 ** away[away < -1], color=colour, lw=1.0)
        start = part.sizes["start"] - len(parameters.departures) + k
        early = np.flatnonzero(time <= 4.0)[:: max(1, int(np.sum(time <= 4.0)) // 16)]
        measured = np.abs(part["coordinate"].values[early, start, token])
        look = {"ms": 4, "mfc": "white", "mec": colour, "mew": 0.9, "label": f"$X(0) = {radius:g}$"}
        axes.plot(time[early], measured, mark, **look)
    axes.set(yscale="log", xlabel="time $t$", ylabel=r"$|\varphi^*(z)|$ of a token near 0")
    axes.legend(loc="lower right")
