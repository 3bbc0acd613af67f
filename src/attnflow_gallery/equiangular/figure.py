"""Orthonormal tokens over time, errors, and deviations of iid tokens."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import averaged, looks, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.equiangular.compare import amplitudes, tolerances
from attnflow_gallery.equiangular.simulate import SUBSTEPS, Parameters, cases, part_name

ERRORS = 4.0
"""Length of a bar, in standard errors."""
LINES = {"SA": "-", "USA0": "--"}
FILLS = {"SA": None, "USA0": "white"}
INKS = COLOURS[0], COLOURS[4]
"""Of overlaps, and of the difference of two overlaps."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens with one common overlap, and iid tokens; full marks and solid lines: SA, open and dashed: USA0.

    (a) The overlap of orthonormal tokens against time; lines: closed form. (b) Largest error over time, and largest
    tolerance, of the overlap and of the difference of two overlaps. (c) Root mean square of overlap minus gamma for iid
    tokens, at the time at which gamma is 1/2, SA; lines: linear response. (d) The same times sqrt(d), extrapolated to
    infinite d, against beta. Bars: 4 standard errors.
    """
    titles = "orthonormal tokens", "errors, orthonormal tokens", "iid tokens (SA)", r"iid tokens, $d \to \infty$"
    with panels(2, 2, 5.0, *titles) as page:
        _draw_overlaps(page[0], parameters, data)
        _draw_errors(page[1], parameters, data)
        _draw_deviations(page[2], parameters, data)
        _draw_amplitudes(page[3], parameters, data)
    return page.figure


def _draw_overlaps(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for beta, colour, mark in looks(parameters.betas):
        for model, line in LINES.items():
            flow = data[part_name(model, beta)]
            last = float(flow["time"].max())
            times = np.geomspace(0.2, last, 300)
            axes.plot(
                times,
                theory.uniform.equiangular_overlap(times, beta, parameters.n, model=model),
                line,
                color=colour,
                lw=0.9,
            )
            shown = flow.sel(time=np.geomspace(parameters.step * SUBSTEPS, last, 8), method="nearest")
            face = FILLS[model] or colour
            axes.plot(shown["time"], shown["overlap"], mark, ms=3, mec=colour, mfc=face, mew=0.8)
        axes.plot([], [], f"-{mark}", ms=3, lw=0.9, color=colour, label=rf"$\beta = {beta:g}$")
    axes.plot([], [], "-o", color=INK, ms=3, lw=0.9, label="SA")
    axes.plot([], [], "--o", color=INK, ms=3, lw=0.9, mfc="white", label="USA0")
    axes.set(xscale="log", ylim=(-0.03, 1.03), xlabel="time $t$")
    axes.set(ylabel=rf"common overlap $\gamma$   ($n = {parameters.n}$)")
    axes.legend(loc="upper left", handlelength=2.4)


def _draw_errors(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for model, beta in cases(parameters):
        flow = data[part_name(model, beta)]
        gamma = theory.uniform.equiangular_overlap(flow["time"].values, beta, parameters.n, model=model)
        off = abs(flow["overlap"] - gamma), flow["spread"]
        place = beta + (0.06 if model == "USA0" else -0.06)
        for error, allowed, mark, ink in zip(off, tolerances(parameters, flow, model, beta), "s^", INKS, strict=True):
            axes.plot(place, allowed, "_", ms=8, mew=0.9, color=ink)
            axes.plot(place, max(float(error.max()), 1e-17), mark, ms=4, mec=ink, mfc=FILLS[model] or ink, mew=0.8)
    for words, mark, ink in (("overlap", "s", INKS[0]), ("difference of two overlaps", "^", INKS[1])):
        axes.plot([], [], mark, ms=4, color=ink, label=words)
    axes.plot([], [], "_", ms=8, mew=0.9, color=INK, label="tolerance")
    axes.set(yscale="log", ylim=(1e-16, 1e-4), xlabel=r"inverse temperature $\beta$", ylabel="|measured $-$ predicted|")
    axes.legend(loc="upper left", ncols=2, columnspacing=1.0, handletextpad=0.2)


def _draw_deviations(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    model = parameters.iid_models[0]
    part = data[f"iid-{model}"]
    d = np.geomspace(min(parameters.dims) / 1.3, max(parameters.dims) * 1.3, 2)
    for beta, colour, mark in looks(parameters.iid_betas):
        mean, error = averaged(part["square"].sel(beta=beta).values, axis=1)
        value, bars = np.sqrt(mean), ERRORS * error / np.sqrt(mean) / 2
        size = theory.uniform.overlap_spread(parameters.overlap, beta, parameters.n, model=model)
        axes.plot(d, size / np.sqrt(d), LINES[model], color=colour, lw=0.9)
        axes.errorbar(
            part["d"], value, bars, fmt=mark, ms=3.5, color=colour, elinewidth=0.7, label=rf"$\beta = {beta:g}$"
        )
    axes.plot([], [], color=GREY, lw=0.9, label="linear response")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", ylim=(0.008, 1.0), xlabel="dimension $d$")
    axes.set(ylabel=rf"rms of $\langle x_i, x_j\rangle - \gamma$   ($\gamma = {parameters.overlap:g}$)")
    axes.legend(loc="lower left")


def _draw_amplitudes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    betas, level, n = np.linspace(0, max(parameters.iid_betas) + 0.5, 60), parameters.overlap, parameters.n
    for model, colour in zip(parameters.iid_models, (COLOURS[0], COLOURS[4]), strict=False):
        sizes = [theory.uniform.overlap_spread(level, float(beta), n, model=model) for beta in betas]
        axes.plot(betas, sizes, LINES[model], color=colour, lw=1.0)
        table = amplitudes(parameters, data[f"iid-{model}"], model)
        unit = np.array([theory.uniform.overlap_spread(level, float(b), n, model=model) for b in table["beta"].values])
        axes.errorbar(
            table["beta"],
            unit * table["ratio"],
            ERRORS * unit * table["ratio_error"],
            fmt="o",
            ms=4,
            color=colour,
            mfc=FILLS[model] or colour,
            elinewidth=0.8,
            label=model,
        )
    axes.plot([], [], color=GREY, lw=1.0, label="linear response")
    axes.set(ylim=(0, None), xlabel=r"inverse temperature $\beta$", ylabel=r"$\sqrt{d}\ \times$ rms")
    axes.legend(loc="upper left")
