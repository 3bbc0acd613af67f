"""Overlaps through depth, depths of collapse, differences between networks, and the first layer."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, INK, PAGE, panel, styled
from attnflow_gallery.collapse_at_initialisation.compare import (
    HALF,
    collapse,
    differences,
    spread,
    straightened,
)
from attnflow_gallery.collapse_at_initialisation.simulate import Parameters, name

SHADES = (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[7])
MARKS = "os^D"
CONTEXTS = (4, 8, 16, 32, 64, 128)


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Orthonormal tokens behind random layers (marks: layers, bars: two standard errors; lines: theory).

    (a) Mean overlap against depth τ for logit scales b > 0, the bias of the steps removed (filled, solid: the smallest
    context n; open, dashed: the largest); lines: the ODE at this d. (b) Depth at which the overlap passes 1/2 against
    n; for b = 0 (open discs) it is ln(n + 1). (c) Standard deviation of the mean overlap over networks at b = 0 against
    the dimension; line: theory, slope -1/2. (d) Mean overlap behind the first layer, times n over η²/H, against b.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 2)
        _draw_paths(axes[0, 0], parameters, data)
        _draw_times(axes[0, 1], parameters, data)
        _draw_networks(axes[1, 0], parameters, data)
        _draw_first(axes[1, 1], parameters, data["first"])
        return fig


def _scales(parameters: Parameters) -> list[float]:
    return sorted({b for _, b in parameters.cases})


def _draw_paths(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    contexts, scales = sorted({n for n, _ in parameters.cases}), _scales(parameters)
    line = np.linspace(0.0, parameters.until, 120)
    for n, b in ((n, b) for n, b in parameters.cases if b > 0):
        row = scales.index(b)
        few = n == contexts[0]
        axes.plot(
            line,
            theory.random_layers.simplex_path(n, b, line, d=parameters.d),
            color=SHADES[row],
            lw=0.9,
            ls="-" if few else "--",
        )
        mean, error, _ = straightened(data[name(n, b)])
        tau = data[name(n, b)]["tau"].values
        axes.errorbar(tau[1:], mean[1:], 2 * error[1:], fmt=MARKS[row], ms=3.6, lw=0.9, color=SHADES[row],
                      mfc=SHADES[row] if few else "white", label=f"$b = {b:g}$" if few else None)  # fmt: skip
    axes.set(xlabel=r"depth $\tau = \eta^2 L/H$", ylabel="mean overlap")
    axes.legend(loc="lower right")
    panel(axes, "a", f"$d = {parameters.d}$, $n = {' , '.join(map(str, contexts))}$")


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for row, b in enumerate(_scales(parameters)):
        times = [float(theory.random_layers.collapse_time(n, b, HALF, d=parameters.d)) for n in CONTEXTS]
        axes.plot(CONTEXTS, times, color=SHADES[row], lw=0.9)
        for n in (n for n, other in parameters.cases if other == b):
            found, error, _ = collapse(parameters, data, n, b)
            axes.errorbar(n, found, 2 * error, fmt=MARKS[row], ms=3.6 if b else 6.5, lw=0.9, color=SHADES[row],
                          mfc=SHADES[row] if b else "none",
                          label=f"$b = {b:g}$" if n == parameters.cases[0][0] else None)  # fmt: skip
    axes.annotate(r"$\ln(n + 1)$", (CONTEXTS[-1], math.log(CONTEXTS[-1] + 1)), xytext=(0, -16), fontsize=7,
                  textcoords="offset points", ha="right", color=SHADES[0])  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set(xlabel="context $n$", ylabel=r"depth $\tau$ of collapse")
    axes.legend(loc="upper left")
    panel(axes, "b", "overlap passes 1/2")


def _draw_networks(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    dims = np.array(parameters.dims, dtype=float)
    found, errors = differences(parameters, data)
    line = np.geomspace(dims[0] / 1.5, 1.5 * dims[-1], 30)
    axes.plot(line, spread(parameters, parameters.mark) / np.sqrt(line), color=INK, lw=0.9)
    axes.errorbar(dims, found / np.sqrt(dims), 2 * errors / np.sqrt(dims), fmt="o", ms=3.6, lw=0.9, color=SHADES[0])
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set(xlabel="dimension $d$", ylabel="standard deviation")
    panel(axes, "c", rf"differences between networks, $b = 0$, $\tau = {parameters.mark}$")


def _draw_first(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    n = parameters.cases[0][0]
    values = n * part["overlap"].values / parameters.first_step
    errors = values.std(axis=1, ddof=1) / math.sqrt(values.shape[1])
    axes.axhline(1.0, color=INK, lw=0.9)
    axes.errorbar(part["scale"].values, values.mean(axis=1), 2 * errors, fmt="o", ms=3.6, lw=0.9, color=SHADES[0])
    axes.set_ylim(0.9, 1.1)
    axes.set_xscale("symlog", base=2, linthresh=1.0)
    axes.set_xlim(-0.8, 22)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set(xlabel="logit scale $b$", ylabel=r"$n\,\gamma H/\eta^2$")
    panel(axes, "d", f"first layer, $n = {n}$")
