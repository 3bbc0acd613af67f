"""Merge times against the weight of a flat head, rates against beta, and ends of random starts."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import LINES, looks, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.several_heads.simulate import MODELS, Parameters, cases

SHOWN = 40
"""Random starts whose ends are drawn."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Two heads of different beta, and heads that read and write one coordinate each.

    (a) Merge time of two clusters against the weight of the flat head; lines: integral, dots: the flat head alone.
    (b) Largest rate at the pair and at the cross against beta; lines: closed forms, marks: the derivative of the field.
    Below 0 the state is stable. (c) Share of random starts on the circle by the number of clusters at the end. (d)
    Where they end: every column is a start of USA; grey: the axes.
    """
    titles = "a flat head ends plateaus", "states on the axes", "random starts: clusters", "ends of random starts (USA)"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_times(page[0], parameters, data)
        _draw_rates(page[1], parameters, data)
        _draw_counts(page[2], data)
        _draw_ends(page[3], data["usa"])
    return page.figure


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    betas, angle = parameters.pairs[0], parameters.angles[-1]
    weights = np.geomspace(min([*parameters.weights, *parameters.weak]) / 3, 0.99, 60)
    for model, colour in zip(MODELS, (COLOURS[0], COLOURS[4]), strict=True):
        found = [
            theory.merging.merge_time_of_heads(angle, betas, (w, 1 - w), until=parameters.until, model=model)
            for w in weights
        ]
        flat = float(theory.merging.merge_time(angle, betas[0], until=parameters.until, model=model))
        axes.plot(weights, found, LINES[model], color=colour, lw=1.0, label=model)
        axes.plot(weights, flat / weights, ":", color=colour, lw=0.9)
        for k, (pair, weight, one) in enumerate(cases(parameters)):
            if (pair, one) == (betas, angle):
                axes.plot(weight, data[f"merging-{model}"]["time"][k], "o", ms=4, color=colour)
    axes.set(xscale="log", yscale="log", xlabel=rf"weight of the head with $\beta = {betas[0]:g}$")
    axes.set(ylabel=rf"merge time from {angle:g} rad", ylim=(None, 30 * float(np.max(found))))
    axes.annotate(rf"other head: $\beta = {betas[1]:g}$", (0.03, 0.06), xycoords="axes fraction", fontsize=7)
    axes.legend(loc="upper right")


def _draw_rates(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    room, betas = theory.landscape, np.linspace(0.02, max(parameters.betas), 120)
    d = parameters.dims[0]
    for (model, line), fill in zip((("USA", "--"), ("SA", "-")), ("white", None), strict=True):
        k = ("USA", "SA").index(model)
        curves = (
            ("pair", [room.axis_pair_rates(b, model=model)[0] for b in betas], 0, COLOURS[0], "o"),
            (f"cross, $d = {d}$", [room.axis_cross_rates(b, d, model=model)[0] for b in betas], 2, COLOURS[4], "D"),
        )
        for name, values, state, colour, mark in curves:
            axes.plot(betas, values, line, color=colour, lw=1.0, label=f"{name}, {model}")
            found = data["rates"]["rate"].values[k, state]
            axes.plot(parameters.betas, found, mark, ms=4, mec=colour, mfc=fill or colour)
    axes.axhline(0.0, color=GREY, lw=0.8)
    axes.set(ylim=(-2.0, 1.3), xlabel=r"inverse temperature $\beta$", ylabel="largest rate")
    axes.legend(loc="lower left", fontsize=6.5)


def _draw_counts(axes: Any, data: dict[str, xr.Dataset]) -> None:
    for k, (name, colour) in enumerate((("usa", COLOURS[0]), ("sa", COLOURS[4]))):
        counts = data[name]["count"].values.astype(int)
        shares = np.bincount(counts, minlength=6)[1:6] / len(counts)
        label = f"{ {'usa': 'USA', 'sa': 'SA'}[name] }, {len(counts)} starts"
        axes.bar(np.arange(1, 6) + 0.4 * k - 0.2, shares, 0.38, color=colour, label=label)
    axes.set(xlabel="clusters at the end", ylabel="share of starts", xticks=range(1, 6), ylim=(0, 1.05))
    axes.legend(loc="upper right")


def _draw_ends(axes: Any, usa: xr.Dataset) -> None:
    for angle in (-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi):
        axes.axhline(angle, color=GREY, lw=0.6, zorder=0)
    angles = usa["angle"].values[:SHOWN]
    for count, colour, mark in looks(range(1, 5)):
        chosen = np.flatnonzero(usa["count"].values[:SHOWN] == count)
        axes.plot(
            np.repeat(chosen, angles.shape[1]), angles[chosen].ravel(), mark, ms=3, color=colour, label=f"{count}"
        )
    axes.set(xlabel="start", ylabel="angle of tokens", yticks=[-np.pi, 0, np.pi], ylim=(-3.4, 5.2))
    axes.set_yticklabels([r"$-\pi$", "0", r"$\pi$"], color=INK)
    axes.legend(loc="upper center", ncols=4, title="clusters", fontsize=6.5, title_fontsize=6.5, handletextpad=0.1)
