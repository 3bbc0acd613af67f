"""Orthonormal tokens over time, errors, and deviations of iid tokens."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.statistics import log_rms
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.equiangular.compare import ERRORS, amplitudes, compare
from attnflow_gallery.equiangular.simulate import MODELS, SUBSTEPS, Parameters

LINES = {"SA": "-", "USA0": "--"}
FILLS = {"SA": None, "USA0": "white"}
MARKS = "osD^v"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens with one common overlap, and iid tokens; full marks and solid lines: SA, open and dashed: USA0.

    (a) The overlap of orthonormal tokens against time; lines: closed form. (b) Largest error over time, and largest
    tolerance, of the overlap and of the difference of two overlaps. (c) Root mean square of overlap minus gamma for iid
    tokens, at the time at which gamma is 1/2, SA; lines: linear response. (d) The same times sqrt(d), extrapolated to
    infinite d, against beta. Bars: 4 standard errors.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        _draw_overlaps(axes[0, 0], parameters, data)
        _draw_errors(axes[0, 1], parameters, data)
        _draw_deviations(axes[1, 0], parameters, data)
        _draw_amplitudes(axes[1, 1], parameters, data)
        titles = "orthonormal tokens", "errors, orthonormal tokens", "iid tokens (SA)", r"iid tokens, $d \to \infty$"
        for letter, title, one in zip("abcd", titles, axes.flat, strict=True):
            panel(one, letter, title)
        return fig


def _draw_overlaps(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for beta, colour, mark in zip(parameters.betas, COLOURS, MARKS, strict=False):
        for model, line in LINES.items():
            part = data[f"orthonormal-{model}"]
            part = part.isel(frame=part["beta"].values == beta)
            last = float(part["time"].max())
            times = np.geomspace(0.2, last, 300)
            path = theory.uniform.equiangular_overlap(times, beta, parameters.n, model=model)
            axes.plot(times, path, line, color=colour, lw=0.9)
            wanted = np.geomspace(parameters.step * SUBSTEPS, last, 8)
            pick = np.unique(np.searchsorted(part["time"].values, wanted * 0.999))
            pick = pick[pick < part.sizes["frame"]]
            face = FILLS[model] or colour
            axes.plot(part["time"][pick], part["overlap"][pick], mark, ms=3, mec=colour, mfc=face, mew=0.8)
        axes.plot([], [], f"-{mark}", ms=3, lw=0.9, color=colour, label=rf"$\beta = {beta:g}$")
    axes.plot([], [], "-o", color=INK, ms=3, lw=0.9, label="SA")
    axes.plot([], [], "--o", color=INK, ms=3, lw=0.9, mfc="white", label="USA0")
    axes.set_xscale("log")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("time $t$")
    axes.set_ylabel(rf"common overlap $\gamma$   ($n = {parameters.n}$)")
    axes.legend(loc="upper left", handlelength=2.4)


def _draw_errors(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    kinds = (("error", "tolerance", "s", 0, "overlap"), ("spread", "rounding", "^", 4, "difference of two overlaps"))
    for model in MODELS:
        every = compare(parameters, data[f"orthonormal-{model}"], model)
        here = {beta: every.isel(frame=every["beta"].values == beta) for beta in parameters.betas}
        shift = 0.06 if model == "USA0" else -0.06
        for name, allowed, marker, colour, words in kinds:
            place, ink = np.array(parameters.betas) + shift, COLOURS[colour]
            most = {key: [float(abs(part[key]).max()) for part in here.values()] for key in (name, allowed)}
            axes.plot(place, most[allowed], "_", ms=8, mew=0.9, color=ink)
            axes.plot(place, np.maximum(most[name], 1e-17), marker, ms=4, mec=ink, mfc=FILLS[model] or ink, mew=0.8,
                      label=words if model == "SA" else None)  # fmt: skip
    axes.plot([], [], "_", ms=8, mew=0.9, color=INK, label="tolerance")
    axes.set_yscale("log")
    axes.set_ylim(1e-16, 1e-4)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel("|measured $-$ predicted|")
    axes.legend(loc="upper left", ncols=2, columnspacing=1.0, handletextpad=0.2)


def _draw_deviations(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    model = parameters.iid_models[0]
    part = data[f"iid-{model}"]
    d = np.geomspace(min(parameters.dims) / 1.3, max(parameters.dims) * 1.3, 2)
    for beta, colour, mark in zip(parameters.iid_betas, COLOURS, MARKS, strict=False):
        value, error = log_rms(part["square"].sel(beta=beta).values)
        size = theory.uniform.overlap_spread(parameters.overlap, beta, parameters.n, model)
        axes.plot(d, size / np.sqrt(d), LINES[model], color=colour, lw=0.9)
        bars = np.exp(value) * np.expm1(ERRORS * error)
        axes.errorbar(part["d"], np.exp(value), bars, fmt=mark, ms=3.5, color=colour, elinewidth=0.7,
                      label=rf"$\beta = {beta:g}$")  # fmt: skip
    axes.plot([], [], color=GREY, lw=0.9, label="linear response")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.008, 1.0)
    axes.set_xlabel("dimension $d$")
    axes.set_ylabel(rf"rms of $\langle x_i, x_j\rangle - \gamma$   ($\gamma = {parameters.overlap:g}$)")
    axes.legend(loc="lower left")


def _draw_amplitudes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    betas, level, n = np.linspace(0, max(parameters.iid_betas) + 0.5, 60), parameters.overlap, parameters.n
    for model, colour in zip(parameters.iid_models, (COLOURS[0], COLOURS[4]), strict=False):
        sizes = [theory.uniform.overlap_spread(level, float(beta), n, model) for beta in betas]
        axes.plot(betas, sizes, LINES[model], color=colour, lw=1.0)
        table = amplitudes(parameters, data[f"iid-{model}"], model)
        unit = np.array([theory.uniform.overlap_spread(level, float(b), n, model) for b in table["beta"].values])
        axes.errorbar(
            table["beta"], unit * table["ratio"], ERRORS * unit * table["ratio_error"], fmt="o", ms=4, color=colour,
            mfc=FILLS[model] or colour, elinewidth=0.8, label=model,
        )  # fmt: skip
    axes.plot([], [], color=GREY, lw=1.0, label="linear response")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(r"$\sqrt{d}\ \times$ rms")
    axes.legend(loc="upper left")
