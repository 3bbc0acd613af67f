"""Proved and simulated lifetimes, tubes, and balls of starts."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.certified_plateaus.compare import SHARE
from attnflow_gallery.certified_plateaus.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Proved lower bounds and simulations.

    (a) Planted groups: time of the first merge between groups (marks; full SA, open USA0; discs two groups, squares
    three) and the proved bound (dashes of the same colour). (b) Ends of the plateaus of iid starts against the proved
    bound, by number of clusters; the grey line is equality. (c) Two point masses: how far the share of the simulated
    time that is proved is from 0.98, and the error of the simulated time (dashes). (d) Flows on the circle: distance of
    the flow in floats from the proved centre (crosses), and the proved radius (dashes).
    """
    titles = "planted groups", "plateaus of iid starts", "two point masses", "tubes"
    with panels(2, 2, 4.9, *titles) as page:
        _draw_planted(page[0], parameters, data["planted"])
        _draw_plateaus(page[1], data["iid"])
        _draw_points(page[2], data["points"])
        _draw_tubes(page[3], data["flows"])
    return page.figure


def _draw_planted(axes: Any, parameters: Parameters, planted: xr.Dataset) -> None:
    for k, model in enumerate(parameters.models):
        for groups in np.unique(planted["groups"]):
            rows = (planted["model"] == model) & (planted["groups"] == groups) & (planted["proved"] == 1)
            some = planted.isel(case=rows.values)
            face = COLOURS[k] if model == "SA" else "white"
            shape, label = MARKS[int(groups) - 2], f"{model}, {groups} groups"
            axes.plot(some["beta"], some["log_time"], shape, ms=4, mec=COLOURS[k], mfc=face, mew=0.9, label=label)
            axes.plot(some["beta"], some["log_proved"], "_", ms=8, mew=1.2, color=COLOURS[k])
    axes.plot([], [], "_", ms=8, mew=1.2, color=INK, label="proved")
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$\log T$")
    axes.legend(loc="upper left", handletextpad=0.3)


def _draw_plateaus(axes: Any, iid: xr.Dataset) -> None:
    most = max(float(iid["log_end"].max()), 1.0)
    axes.plot([0, most], [0, most], "-", lw=0.8, color=GREY)
    counts = iid["clusters"].values
    for k, lot in enumerate((counts == 2, counts == 3, counts > 3)):
        some, label = iid.isel(plateau=lot), ("2 clusters", "3 clusters", "more")[k]
        axes.plot(some["log_proved"], some["log_end"], MARKS[k], ms=3.6, mfc="none", mec=COLOURS[k], label=label)
    axes.set(xlabel=r"proved: $\log t \geq$", ylabel=r"$\log t$ at the end of the plateau")
    axes.legend(loc="lower right")


def _draw_points(axes: Any, points: xr.Dataset) -> None:
    off = np.abs(np.exp(points["log_proved"].values - points["log_time"].values) / SHARE - 1)
    for k, angle in enumerate(np.unique(points["angle"])):
        rows = points["angle"].values == angle
        axes.plot(
            points["beta"].values[rows],
            off[rows] + 1e-17,
            MARKS[k],
            ms=4,
            mfc="none",
            mec=COLOURS[k],
            label=rf"$\theta_0 = {angle:g}$",
        )
        axes.plot(points["beta"].values[rows], points["error"].values[rows], "_", ms=7, color=COLOURS[k])
    axes.plot([], [], "_", ms=7, color=INK, label="error of the simulated time")
    axes.set(yscale="log", xlabel=r"inverse temperature $\beta$", ylabel="|share/0.98 $-$ 1|")
    axes.set_ylim(bottom=max(float(off.min()), 1e-14) * 1e-3)  # room for the legend below the marks
    axes.legend(loc="lower center", ncols=2, columnspacing=1.0, handletextpad=0.3)


def _draw_tubes(axes: Any, flows: xr.Dataset) -> None:
    at = np.arange(flows.sizes["flow"])
    axes.plot(at, np.maximum(flows["off"], 1e-18), "x", ms=4, color=COLOURS[0], label="flow in floats")
    axes.plot(at, flows["radius"], "_", ms=8, mew=1.2, color=INK, label="proved radius")
    axes.set(yscale="log", xlabel="start", ylabel="angle")
    axes.legend(loc="best")
