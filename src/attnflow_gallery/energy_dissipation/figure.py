"""Energy and both sides of its balance, errors, and how far velocity and gradient point apart."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.energy_dissipation.compare import efficiency, formulas, running, side
from attnflow_gallery.energy_dissipation.simulate import MODELS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """The energy balance of unnormalised attention and of softmax, first beta.

    (a) USA0 and (b) softmax, first draw: rise of the energy (marks) and the integral of (|mu'|^2 + |dE|^2)/2 (line);
    for softmax also the gap (dotted) and the integral in its own metric (dashed). (c) Relative error of the balance at
    every frame. (d) Cosine of velocity and gradient, SA, all draws; the legend has W_2 between the ends over the
    length.
    """
    titles = "USA0", "softmax", "relative errors at every frame", "cosine of velocity and gradient"
    beta = parameters.betas[0]
    parts = {model: data[f"{model}-{beta:g}"] for model in MODELS}
    with panels(2, 2, 5.0, *titles) as page:
        for axes, model in zip(page, ("USA0", "SA"), strict=False):
            _draw_sides(axes, parts[model], model, beta)
        _draw_errors(page[2], parts, beta)
        _draw_cosines(page[3], parameters, data)
    return page.figure


def _draw_sides(axes: Any, part: xr.Dataset, model: str, beta: float) -> None:
    time, level = part["time"].values, part["level"].values[0]
    every = max(1, len(time) // 16)
    axes.plot(time, running(part, side(part)), color=COLOURS[0], label=r"$\int (|\mu'|^2 + |\partial E|^2)/2$")
    if model == "SA":
        axes.plot(time, running(part, part["own"].values), "--", color=COLOURS[4], label="in its own metric")
        gap = formulas(part["positions"].values[:1], beta)["gap"]
        axes.plot(time, running(part, gap), ":", color=GREY, label=r"$\frac{1}{2}\int\!\int (1 - Z)^2 |v|^2$")
    axes.plot(time[::every], (level - level[0])[::every], "o", ms=4, mfc="white", mec=INK, label="rise of $E$")
    axes.set(xlabel="time $t$", ylabel=f"energy   ($\\beta = {beta:g}$)")
    place = {"loc": "upper left"} if model == "USA0" else {"loc": "center right", "bbox_to_anchor": (1.0, 0.52)}
    axes.legend(**place)


def _draw_errors(axes: Any, parts: dict[str, xr.Dataset], beta: float) -> None:
    for model, colour, mark in (("USA0", COLOURS[0], "o"), ("SA", COLOURS[4], "s")):
        part = parts[model]
        rate = theory.landscape.energy_rate_of_tokens(part["positions"].values, beta, model=model)
        exact = rate + (formulas(part["positions"].values, beta)["gap"] if model == "SA" else 0)
        off = np.max(np.abs(side(part) / exact - 1), axis=0)
        words = "USA0" if model == "USA0" else "SA, with the gap"
        axes.plot(part["time"][::4], np.maximum(off, 1e-17)[::4], mark, ms=3, color=colour, label=words)
    axes.set(yscale="log", ylim=(1e-17, 1e-10), xlabel="time $t$", ylabel="largest over draws")
    axes.legend(loc="upper right")


def _draw_cosines(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for k, beta in enumerate(parameters.betas):
        part, other = data[f"SA-{beta:g}"], data[f"USA0-{beta:g}"]
        words = rf"$\beta = {beta:g}$: {np.mean(efficiency(part)):.3f}, USA0 {np.mean(efficiency(other)):.3f}"
        colour, line = COLOURS[(0, 4, 2)[k % 3]], ("-", "--", ":")[k % 3]
        for draw, row in enumerate(part["cosine"].values):
            axes.plot(part["time"], row, line, color=colour, lw=1.0, label="" if draw else words)
    axes.set(ylim=(None, 1.005), xlabel="time $t$", ylabel="cosine, SA")
    axes.legend(loc="lower left", title="straightness of the path, SA", title_fontsize=7)
