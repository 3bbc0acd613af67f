"""Constants against beta, diameters between their curves, and the spread of a cloud."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import LINES, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.stability_of_measures.compare import curves
from attnflow_gallery.stability_of_measures.simulate import MODELS, SPREAD_BETA, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Stability of measures under softmax (SA) and unnormalised attention (USA0).

    (a) Largest expansion against β: two tokens of USA0 (circles) and ω (line), random tokens of USA0 (dots), and a
    massless token under softmax (squares) with β + 1/(4β) (dashed). (b, c) Diameters of measures in caps on the circle
    and S², largest β, over e^(−t) D(0), for SA (full) and USA0 (dashed); dotted: the upper curves, grey: the lower
    bound. (d) Variance of a narrow cloud (marks) and Lambert's function (lines).
    """
    titles = "largest expansion", "caps on the circle", "caps on S²", "spread of a cloud, softmax"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_expansion(page[0], parameters, data["expansion"])
        for axes, d in zip(page[1:3], (2, 3), strict=True):
            _draw_caps(axes, parameters, data, d)
        _draw_cloud(page[3], parameters, data["cloud"])
    return page.figure


def _draw_expansion(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    beta, grid = part["beta"].values, np.geomspace(0.1, 20, 200)
    axes.plot(grid, theory.landscape.expansion_rate(grid), color=COLOURS[0], label=r"USA0, $\omega$")
    axes.plot(
        grid, theory.landscape.softmax_lipschitz(grid), "--", color=COLOURS[4], label=r"softmax, $\beta + 1/4\beta$"
    )
    axes.plot(beta, part["pair"], "o", ms=5, mec=COLOURS[0], mfc="white")
    axes.plot(beta, part["softmax"], "s", ms=5, mec=COLOURS[4], mfc="white")
    axes.plot(np.repeat(beta, part.sizes["draw"]), part["random"].values.ravel(), ".", ms=3, color=GREY)
    axes.set(xscale="log", yscale="log", ylim=(0.05, 30), xlabel=r"$\beta$", ylabel="rate")
    axes.legend(loc="upper left")


def _draw_caps(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset], d: int) -> None:
    for model, colour in zip(MODELS, (COLOURS[0], COLOURS[4]), strict=True):
        part = data[f"cap-{d}-{model}"]
        time, upper = part["time"].values, curves(parameters, part, d)
        chosen = np.flatnonzero(part["beta"].values == max(parameters.cap_betas))[: parameters.caps]
        for k in chosen:
            row = part["diameter"].values[k]
            grown = np.exp(time) / row[0]
            axes.plot(time, row * grown, LINES[model], color=colour, lw=1.0, label=model if k == chosen[0] else "")
            if model == "USA0":
                axes.plot(time, upper[k] * grown, ":", color=INK, lw=0.7)
    axes.axhline(1, color=GREY, lw=1.0)
    axes.set(yscale="log", xlabel="time $t$", ylabel=rf"$D(t)\,e^t/D(0)$,  $\beta = {max(parameters.cap_betas):g}$")
    axes.legend(loc="upper left")


def _draw_cloud(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    fine = np.linspace(0, 4, 200)
    for k, spread in enumerate(parameters.spreads):
        law = SPREAD_BETA * theory.landscape.softmax_spread(fine, SPREAD_BETA, spread / SPREAD_BETA)
        axes.plot(fine, law, color=COLOURS[(0, 4)[k % 2]], lw=1.0)
        axes.plot(part["time"], part["spread"][k], "o", ms=5, mec=COLOURS[(0, 4)[k % 2]], mfc="white")
    axes.set(yscale="log", xlabel="time $t$", ylabel=rf"$\beta v$,  $\beta = {SPREAD_BETA:g}$")
