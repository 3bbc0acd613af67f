"""The speed of Poisson kernels, and a plan that reorders measures."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.circle_reordering.simulate import Parameters

NAMES = {"Drift": "boost", "Skew": "skew", "MeanAttention": "$V = I$", "ReluUnit": "gate"}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Measures on the circle.

    (a) Speed at which a Poisson kernel turns under skew attention, against the length r of its mean (marks: tokens;
    line: (1 + r²)/2). (b) Angles of the tokens of three measures under one schedule, each measure followed alone; marks
    at the right: targets. Every element has the same width; within it time is even. Skew attention turns the measures
    until their order is that of the targets, attention with V = I contracts them, and gates carry them home. Angles are
    continuous, so that two that differ by 2π are one place of the circle.
    """
    with panels(1, 2, 2.9, "skew attention", "one schedule, three measures", width_ratios=(1, 2.2)) as page:
        _draw_speeds(page[0], data["speeds"])
        if "path" in data["plans"]:
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
    at, kinds = part["frame"].values, [str(kind) for kind in part["kind"].values]
    for i in range(part.sizes["input"]):
        x = part["path"].values[i]
        mean = x.mean(axis=1)
        centre = np.unwrap(np.arctan2(mean[:, 1], mean[:, 0]))
        aside = np.arctan2(x[..., 1], x[..., 0]) - centre[:, None]
        start = (aside[0] + np.pi) % (2 * np.pi) - np.pi
        angle = centre[:, None] + np.unwrap(aside, axis=0) - aside[0] + start
        axes.plot(at, angle[:, ::2], color=COLOURS[i], lw=0.4, alpha=0.7)
        goal = np.arctan2(*part["goal"].values[i][::-1])
        goal += 2 * np.pi * np.round((np.median(angle[-1]) - goal) / (2 * np.pi))
        axes.plot(at[-1] * 1.02, goal, "<", ms=6, color=COLOURS[i], label=f"measure {i + 1}", clip_on=False)
    for k, kind in enumerate(kinds):
        axes.axvline(k + 1, color=GREY, lw=0.3)
        if kind != "ReluUnit" or kinds[k - 1] != "ReluUnit":
            many = kind == "ReluUnit" and kinds.count(kind) > 1
            axes.annotate(NAMES[kind] + "s" * many, (k + 0.08, 0.02), xycoords=("data", "axes fraction"), fontsize=6)
    low, high = np.array(axes.get_ylim()) / np.pi
    ticks = np.arange(np.ceil(low), np.floor(high) + 1)
    axes.set_yticks(ticks * np.pi, [{0: "0", 1: r"$\pi$", -1: r"$-\pi$"}.get(t, rf"${t:g}\pi$") for t in ticks])
    axes.set(xlabel="element", ylabel="angle", xlim=(0, at[-1]))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
