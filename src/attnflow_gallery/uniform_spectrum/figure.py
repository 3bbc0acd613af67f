"""Rates of modes, their growth, and what is missed."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.uniform_spectrum.compare import growing, linear
from attnflow_gallery.uniform_spectrum.simulate import Parameters, typical

MARKERS = "osD^vP"
STYLES = ("-", "--", "-.", ":", "-", "--")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Growth of modes of the uniform measure: tokens (marks) and theory (lines).

    (a) Rates of the linearised field at tokens, SA; dotted: 2/e. (b) Means of cos(kθ) along the flow on the circle;
    lines: e^(λ_k t); vertical line: where rates are read off. (c) Rates of growing modes on S^(d-1) over the mean
    weight (1 for SA); small full marks: SA, large open circles: USA0. (d) How much of its tolerance each rate uses, as
    a cumulative share of the rates: all of a curve left of 1 means that all rates agree.
    """
    still, grown, beta = linear(parameters, data), growing(parameters, data), typical(parameters)
    kind = "circle" if "circle" in data else "sphere"
    titles = (
        f"linearised field at tokens on {'the circle' if kind == 'circle' else '$S^2$'}",
        rf"growth on the circle, SA, $\beta = {beta:g}$",
        rf"growing modes on $S^{{d-1}}$, $\beta = {beta:g}$",
        "errors of all rates",
    )
    with panels(2, 2, 5.2, *titles) as page:
        _draw_linear(page[0], still, kind)
        _draw_growth(page[1], parameters, beta, data)
        _draw_dimensions(page[2], parameters, beta, grown)
        _draw_errors(page[3], still + grown)
    return page.figure


def _draw_linear(axes: Any, rows: list[dict[str, Any]], kind: str) -> None:
    betas = sorted({r["beta"] for r in rows if r["kind"] == kind})
    for beta, colour, marker, style in zip(betas, COLOURS, MARKERS, STYLES, strict=False):
        some = [r for r in rows if (r["kind"], r["model"], r["beta"]) == (kind, "SA", beta) and r["predicted"] > 1e-3]
        k = np.array([r["k"] for r in some])
        axes.plot(k, [r["predicted"] for r in some], style, color=colour, lw=1.0)
        shown = np.unique(np.round(np.geomspace(1, len(k), 16)).astype(int)) - 1
        label = rf"$\beta = {beta:g}$"
        axes.plot(k[shown], [some[j]["measured"] for j in shown], marker, ms=3.2, color=colour, label=label)
    axes.axhline(2 / np.e, color=INK, lw=0.8, ls=":")
    axes.annotate("$2/e$", (1.0, 2 / np.e), xycoords=("axes fraction", "data"), fontsize=7, va="bottom", ha="right")
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="degree $k$", ylabel=r"rate $\lambda_k$")
    axes.legend(loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.1)


def _draw_growth(axes: Any, parameters: Parameters, beta: float, data: dict[str, xr.Dataset]) -> None:
    flow = data["saturation"] if "saturation" in data else data["growth"].isel(flow=0)
    times, root = flow["time"].values, np.sqrt(2.0)
    for k, colour, marker in zip(parameters.degrees, COLOURS, MARKERS, strict=False):
        amplitude = flow["amplitude"].sel(degree=k).values / root
        line = amplitude[0] * np.exp(float(theory.uniform.growth_rates(beta, 2, k=k)) * times)
        axes.plot(times[line < 1], line[line < 1], color=colour, lw=0.9)
        axes.plot(times, np.abs(amplitude), marker, ms=2.6, color=colour, label=f"$k = {k}$")
    axes.axvline(parameters.until, color=GREY, lw=0.8, ls=":")
    axes.set(yscale="log", ylim=(parameters.size / 3, 30), xlabel="time $t$", ylabel=r"$|\langle\cos k\theta\rangle|$")
    axes.legend(loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.1)


def _draw_dimensions(axes: Any, parameters: Parameters, beta: float, rows: list[dict[str, Any]]) -> None:
    for d, colour, marker, style in zip(parameters.dims, COLOURS, MARKERS, STYLES, strict=False):
        k = np.arange(1, max(parameters.degrees) + 1)
        axes.plot(k, theory.uniform.growth_rates(beta, d, k=k), style, color=colour, lw=1.0)
        looks = {"USA0": ("o", 7.0, "none", None), "SA": (marker, 3.4, colour, f"SA, $d = {d}$")}
        for model, (mark, size, face, label) in looks.items():
            some = [r for r in rows if (r["d"], r["model"], r["beta"]) == (d, model, beta)]
            places, rates = [r["k"] for r in some], [r["measured"] for r in some]
            axes.plot(places, rates, mark, ms=size, lw=0, mec=colour, mfc=face, mew=0.8, label=label)
    axes.plot([], [], "o", ms=7.0, mec=INK, mfc="none", mew=0.8, label="USA0")
    axes.set(ylim=(0, 1.2), xlabel="degree $k$", ylabel=r"rate $\lambda_k$ / mean weight")
    axes.legend(loc="upper right", ncols=3, columnspacing=0.8, handletextpad=0.1)


def _draw_errors(axes: Any, rows: list[dict[str, Any]]) -> None:
    kinds = (
        (("circle", "steps"), "linearised, circle", "-"),
        (("sphere",), "linearised, $S^2$", "--"),
        (("growth",), "growing modes", "-."),
    )
    for (kind, words, style), colour in zip(kinds, (COLOURS[0], COLOURS[2], COLOURS[4]), strict=True):
        some = [row for row in rows if row["kind"] in kind]
        used = np.sort([abs(row["measured"] - row["predicted"]) / row["tolerance"] for row in some])
        share, label = np.arange(1, len(used) + 1) / len(used), f"{words} ({len(used)})"
        axes.step(np.maximum(used, 1e-5), share, style, where="post", color=colour, lw=1.4, label=label)
    axes.axvline(1, color=INK, lw=1.0)
    axes.set(xscale="log", xlim=(1e-4, 3), ylim=(0, 1.4), yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set(xlabel=r"|measured $-$ predicted| / tolerance", ylabel="share of the rates")
    axes.legend(loc="upper left")
