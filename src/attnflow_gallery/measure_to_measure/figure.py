"""Two measures that share half of their mass, at five stages of one schedule; distances of all cases."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.measure_to_measure.simulate import Parameters

STAGES = ("start", "boosted away", "attention", "spread", "cut and carried")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """One schedule for several measures.

    (a to e) Two measures on the sphere that share half of their tokens (both colours at one place), each followed alone
    under one schedule: at the start, after the first boost, after attention, after the second boost, and at the end.
    Crosses: the targets, antipodal points. Open marks are on the far side. (f) W₂ of every measure from its target,
    before (grey) and after (colour), against the number of measures; line: the tolerance. (g) W₁ + W₁′ of the two
    measures with attention and without it, over the bound that holds without attention (line).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 3.7))
        grid = fig.add_gridspec(2, 10, height_ratios=[1, 1.15])
        for k, title in enumerate(STAGES):
            axes = fig.add_subplot(grid[0, 2 * k : 2 * k + 2])
            _draw_stage(axes, data["shared"], k)
            panel(axes, "abcde"[k], title)
        _draw_distances(fig.add_subplot(grid[1, :6]), parameters, data["matched"])
        _draw_bound(fig.add_subplot(grid[1, 6:]), data["shared"])
        return fig


def _draw_stage(axes: Any, part: xr.Dataset, stage: int) -> None:
    pole = part["pole"].values
    side = np.cross(pole, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    basis = np.stack([pole, side, np.cross(pole, side)])
    circle = np.linspace(0, 2 * np.pi, 100)
    axes.plot(np.cos(circle), np.sin(circle), color=GREY, lw=0.6)
    for i in range(2):
        x = part["frame"].values[i, stage] @ basis.T
        near = x[:, 2] >= 0
        axes.plot(*x[near, :2].T, "o", ms=2.0, mew=0, color=COLOURS[i], alpha=0.8)
        axes.plot(*x[~near, :2].T, "o", ms=2.0, mew=0.4, mfc="none", color=COLOURS[i], alpha=0.8)
        axes.plot(1 - 2 * i, 0, "x", ms=6, mew=1.5, color=COLOURS[i])
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))


def _draw_distances(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    names = [f"$S^{{{d - 1}}}$\n{count}, {each}" for d, count, each in parameters.cases]
    for name, colour in (("before", GREY), ("after", COLOURS[0])):
        for k, (_, count, _) in enumerate(parameters.cases):
            x, label = k + np.linspace(-0.25, 0.25, count), None if k else name
            axes.semilogy(x, part[name].values[k, :count], ".", ms=3, color=colour, label=label)
    axes.axhline(1e-3, color=INK, lw=0.7, ls=":")
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="$W_2$", xlabel="sphere; measures, atoms of each target")
    axes.legend(loc="center right")
    panel(axes, "f", "every measure, followed alone")


def _draw_bound(axes: Any, part: xr.Dataset) -> None:
    values = part["w1"].sum("measure").values / float(part["bound"])
    axes.bar([0, 1], values, width=0.5, color=[COLOURS[0], COLOURS[1]])
    axes.axhline(1, color=INK, lw=0.8, ls=":")
    for k, value in enumerate(values):
        axes.annotate(f"{value:.2g}", (k, value), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.set_xticks([0, 1], ["with attention", "without"])
    axes.set(ylabel=r"$(W_1 + W_1')$ / bound", ylim=(0, 1.2 * max(1.0, float(values.max()))))
    panel(axes, "g", "shared mass")
