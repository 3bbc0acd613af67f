"""Two measures that share half of their mass, at five stages of one schedule; distances of all cases."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.measure_to_measure.simulate import Parameters

STAGES = ("start", "boosted away", "attention", "spread", "cut and carried")
SMALL = 0.35
"""Clouds smaller than this are drawn again, larger, in an inset."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """One schedule for several measures.

    (a to e) Two measures on the sphere that share half of their tokens (both colours at one place), each followed alone
    under one schedule: at the start, after the first boost, after attention, after the second boost, and at the end.
    Crosses: the targets, antipodal points. Open marks are on the far side. Insets show small clouds enlarged, with the
    width of the inset; at the end every token is within 10⁻⁴ of its target, in the middle of its cross. (f) W₂ of every
    measure from its target, before (grey) and after (colour), followed by an adaptive solver; line: the tolerance.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 3.9))
        grid = fig.add_gridspec(2, 5, height_ratios=[1, 1.1])
        for k, title in enumerate(STAGES):
            axes = fig.add_subplot(grid[0, k])
            _draw_stage(axes, data["shared"], k)
            panel(axes, "abcde"[k], title)
        _draw_distances(fig.add_subplot(grid[1, :]), parameters, data["matched"])
        return fig


def _draw_stage(axes: Any, part: xr.Dataset, stage: int) -> None:
    pole = part["pole"].values
    side = np.cross(pole, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    basis = np.stack([pole, side, np.cross(pole, side)])
    circle = np.linspace(0, 2 * np.pi, 100)
    axes.plot(np.cos(circle), np.sin(circle), color=GREY, lw=0.6)
    both = part["frame"].values[:, stage] @ basis.T
    last = stage == len(STAGES) - 1
    for i in range(2):
        axes.plot(1 - 2 * i, 0, "x", ms=7, mew=1.2, color=COLOURS[i], alpha=0.5 if last else 1.0)
    _draw_tokens(axes, both, 2.4 if last else 2.0)
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    middle = both.reshape(-1, 3).mean(axis=0)[:2]
    size = 1.1 * float(np.abs(both[..., :2] - middle).max())
    if size < SMALL:
        inset = axes.inset_axes((-0.02, -0.06, 0.5, 0.5))
        _draw_tokens(inset, both, 2.0)
        inset.set(aspect="equal", xticks=[], yticks=[])
        inset.set(xlim=(middle[0] - size, middle[0] + size), ylim=(middle[1] - size, middle[1] + size))
        inset.set_title(f"{2 * size:.2g}", fontsize=6, pad=1)
        for spine in inset.spines.values():
            spine.set(visible=True, lw=0.5, color=INK)


def _draw_tokens(axes: Any, both: np.ndarray, size: float) -> None:
    for i, x in enumerate(both):
        near = x[:, 2] >= 0
        axes.plot(*x[near, :2].T, "o", ms=size, mew=0, color=COLOURS[i], alpha=0.8)
        axes.plot(*x[~near, :2].T, "o", ms=size, mew=0.4, mfc="none", color=COLOURS[i], alpha=0.8)


def _draw_distances(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    names = [f"$S^{{{d - 1}}}$\n{count}, {each}" for d, count, each in parameters.cases]
    for name, colour in (("before", GREY), ("after", COLOURS[0])):
        for k, (_, count, _) in enumerate(parameters.cases):
            x, label = k + np.linspace(-0.25, 0.25, count), None if k else name
            axes.semilogy(x, part[name].values[k, :count], ".", ms=4, color=colour, label=label)
    axes.axhline(1e-3, color=INK, lw=0.7, ls=":")
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="$W_2$", xlabel="sphere; measures, atoms of each target")
    axes.legend(loc="center right", bbox_to_anchor=(1.0, 0.72))
    panel(axes, "f", "every measure, followed alone")
