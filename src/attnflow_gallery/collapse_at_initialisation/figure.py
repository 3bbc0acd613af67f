"""Overlaps through depth, depths of collapse, differences between networks, and the first layer."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, INK
from attnflow_gallery.collapse_at_initialisation import compare
from attnflow_gallery.collapse_at_initialisation.simulate import Parameters, name

SHADES = (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[7])
MARKS = "os^D"
CONTEXTS = (4, 8, 16, 32, 64, 128)


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Orthonormal tokens after random layers (marks: layers, bars: two standard errors; lines: theory).

    (a) Mean overlap against depth τ for logit scales b > 0, the bias of the steps removed (filled, solid: the smallest
    context n; open, dashed: the largest); lines: the ODE at this d. (b) Depth at which the overlap passes 1/2 against
    n; for b = 0 (open discs) it is ln(n + 1). (c) Standard deviation of the mean overlap over networks at b = 0 against
    the dimension; line: theory, slope -1/2. (d) Mean overlap after the first layer, times n over η²/H, against b.
    """
    contexts = " , ".join(map(str, _sorted(n for n, _ in parameters.cases)))
    networks = rf"differences between networks, $b = 0$, $\tau = {parameters.mark}$"
    titles = f"$d = {parameters.d}$, $n = {contexts}$", "overlap passes 1/2", networks
    with panels(2, 2, 4.8, *titles, f"first layer, $n = {parameters.cases[0][0]}$") as page:
        _draw_paths(page[0], parameters, data)
        _draw_times(page[1], parameters, data)
        _draw_networks(page[2], parameters, data)
        _draw_first(page[3], parameters, data["first"])
        for axes in page[1:]:
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    return page.figure


def _sorted(values: Iterable[Any]) -> list[Any]:
    return sorted(set(values))


def _draw_paths(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    scales = _sorted(b for _, b in parameters.cases)
    line = np.linspace(0.0, parameters.until, 120)
    for n, b in ((n, b) for n, b in parameters.cases if b > 0):
        colour, mark = SHADES[scales.index(b)], MARKS[scales.index(b)]
        few = n == min(n for n, _ in parameters.cases)
        style, face, label = ("-", colour, f"$b = {b:g}$") if few else ("--", "white", None)
        axes.plot(line, theory.random_layers.simplex_path(n, b, line, d=parameters.d), color=colour, lw=0.9, ls=style)
        part = data[name(n, b)].isel(tau=slice(1, None))
        mean, error, _ = compare.straightened(part)
        axes.errorbar(part["tau"], mean, 2 * error, fmt=mark, ms=3.6, lw=0.9, color=colour, mfc=face, label=label)
    axes.set(xlabel=r"depth $\tau = \eta^2 L/H$", ylabel="mean overlap")
    axes.legend(loc="lower right")


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for b, colour, mark in zip(_sorted(b for _, b in parameters.cases), SHADES, MARKS, strict=False):
        times = [float(theory.random_layers.collapse_time(n, b, compare.HALF, d=parameters.d)) for n in CONTEXTS]
        axes.plot(CONTEXTS, times, color=colour, lw=0.9)
        look = {"ms": 3.6} if b else {"ms": 6.5, "mfc": "none"}
        for n in (n for n, other in parameters.cases if other == b):
            found, error, _ = compare.collapse(parameters, data, n, b)
            label = f"$b = {b:g}$" if n == parameters.cases[0][0] else None
            axes.errorbar(n, found, 2 * error, fmt=mark, lw=0.9, color=colour, label=label, **look)
    place = {"xytext": (0, -30), "textcoords": "offset points", "ha": "right"}
    end = CONTEXTS[-1], math.log(CONTEXTS[-1] + 1)
    axes.annotate(r"$\ln(n + 1)$", end, fontsize=7, color=SHADES[0], **place)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="context $n$", ylabel=r"depth $\tau$ of collapse")
    axes.legend(loc="upper left")


def _draw_networks(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    dims = np.array(parameters.dims, dtype=float)
    found, errors = compare.differences(parameters, data)
    line = np.geomspace(dims[0] / 1.5, 1.5 * dims[-1], 30)
    axes.plot(line, compare.spread(parameters, parameters.mark) / np.sqrt(line), color=INK, lw=0.9)
    axes.errorbar(dims, found / np.sqrt(dims), 2 * errors / np.sqrt(dims), fmt="o", ms=3.6, lw=0.9, color=SHADES[0])
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="dimension $d$", ylabel="standard deviation")


def _draw_first(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    mean, error = compare.first_layer(parameters, part)
    axes.axhline(1.0, color=INK, lw=0.9)
    axes.errorbar(part["scale"], mean, 2 * error, fmt="o", ms=3.6, lw=0.9, color=SHADES[0])
    axes.set_xscale("symlog", base=2, linthresh=1.0)
    axes.set(xlim=(-0.8, 22), ylim=(0.97, 1.03), xlabel="logit scale $b$", ylabel=r"$n\,\gamma H/\eta^2$")
