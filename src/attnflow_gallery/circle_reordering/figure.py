"""The speed of Poisson kernels, and a plan that reorders measures."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, INK
from attnflow_gallery.circle_reordering.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Measures on the circle.

    (a) Speed at which a Poisson kernel turns under skew attention, against the length r of its mean (marks: tokens;
    line: (1 + r²)/2). (b) Angles of the tokens of three measures under one schedule, each measure followed alone; marks
    at the right: targets. Skew attention turns the measures until their order is that of the targets, attention with
    V = I contracts them, and gates carry them home. Vertical lines: switches. Time is the square root of depth.
    """
    with panels(1, 2, 2.7, "skew attention", "one schedule, three measures", width_ratios=(1, 2)) as page:
        _draw_speeds(page[0], data["speeds"])
        _draw_plan(page[1], data["plans"])
    return page.figure


def _draw_speeds(axes: Any, part: xr.Dataset) -> None:
    r = np.linspace(0, 1, 100)
    axes.plot(r, (1 + r**2) / 2, color=INK, lw=1.0, label="theory")
    turned = part["angle"].values[:, -1] - part["angle"].values[:, 0]
    axes.plot(part["r"], turned / part["time"].values[-1], "o", ms=4, color=COLOURS[0], label="tokens")
    axes.set(xlabel="length $r$ of the mean", ylabel="speed", ylim=(0.45, 1.05))
    axes.legend(loc="upper left")


def _draw_plan(axes: Any, part: xr.Dataset) -> None:
    time = np.sqrt(part["time"].values)
    for i in range(part.sizes["input"]):
        angle = np.arctan2(part["path"].values[i, :, :, 1], part["path"].values[i, :, :, 0])
        for token in range(0, angle.shape[1], 4):
            line = angle[:, token].copy()
            line[1:][np.abs(np.diff(line)) > np.pi] = np.nan
            axes.plot(time, line, color=COLOURS[i], lw=0.5, alpha=0.8)
        goal = np.arctan2(*part["goal"].values[i][::-1])
        axes.plot(1.02 * time[-1], goal, "<", ms=6, color=COLOURS[i], label=f"measure {i + 1}")
    for turn in part["turn"].values:
        axes.axvline(np.sqrt(turn), color=INK, lw=0.3, alpha=0.6)
    axes.set_yticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    axes.set(xlabel=r"$\sqrt{t}$", ylabel="angle", ylim=(-np.pi, np.pi))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3)
