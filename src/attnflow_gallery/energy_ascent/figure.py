"""Energies along flows, a flow that descends, and how often random states descend."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import looks, panels, share_interval
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.energy_ascent.compare import simpson
from attnflow_gallery.energy_ascent.simulate import Parameters, flow_name

ERRORS = 4.0
LINES = {"SA": "-", "USA0": "--"}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Who climbs the energy.

    (a) Energy along flows with Q = K = V = I, one draw; marks: energy at the start plus the integral of the squared
    speeds (full SA, open USA0). (b) Energy of heads with V = B = B^T from one state, softmax heads and USA heads, in
    time units of E(0)/|E'(0)|. Inset: the tokens on the circle, and the path of each under softmax heads from open to
    full marks. (c) Share of random states that descend against the size of the matrices;
    bars: intervals of four standard errors. One softmax head and USA heads: no state of all.
    """
    titles = "one head, $B = I$", f"{parameters.heads[0]} heads, one state", "random states of heads"
    with panels(1, 3, 2.9, *titles) as page:
        _draw_flows(page[0], parameters, data)
        _draw_descent(page[1], {model: data[f"descent-{model}"] for model in LINES})
        _draw_shares(page[2], parameters, data)
    return page.figure


def _draw_flows(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    span = parameters.until / parameters.frames
    every = max(parameters.frames // 20 * 2, 2)
    for model, line in LINES.items():
        for beta, colour, mark in looks(parameters.betas):
            one = data[flow_name(model, beta)].isel(seed=0)
            axes.plot(one["time"], 2 * beta * one["level"], line, color=colour, lw=0.9)
            level = 2 * beta * (float(one["level"][0]) + simpson(one["rate"].values, span))
            face, label = (colour, rf"$\beta = {beta:g}$") if model == "SA" else ("white", None)
            look = {"ms": 3, "mec": colour, "mfc": face, "mew": 0.7, "label": label}
            axes.plot(one["time"][::2][:: every // 2], level[:: every // 2], mark, **look)
    for model, line in LINES.items():
        axes.plot([], [], line, color=INK, lw=0.9, label=model)
    axes.set(xlabel=rf"time $t$   ($n = {parameters.n}$, $d = {parameters.d}$)", ylabel=r"energy $2\beta E$")
    axes.legend(loc="upper left", handlelength=1.8, ncols=2, columnspacing=1.0)
    axes.set_ylim(top=0.35)


def _draw_descent(axes: Any, parts: dict[str, xr.Dataset]) -> None:
    for model, colour, word in (("SA", COLOURS[4], "softmax heads"), ("USA0", COLOURS[0], "USA heads")):
        part = parts[model]
        time, level = part["time"] / part.attrs["unit"], part["level"] / part["level"][0]
        axes.plot(time, level, LINES[model], color=colour, label=word)
    axes.axhline(1.0, color=GREY, lw=0.7)
    low, high = axes.get_ylim()
    last = min(float(part["time"][-1]) / part.attrs["unit"] for part in parts.values())
    axes.set(xlim=(0, last), ylim=(low, high + 0.35 * (high - low)))
    axes.set(xlabel=r"time $t\,|E'(0)|/E(0)$", ylabel="$E(t)/E(0)$")
    axes.legend(loc="upper left")
    inset = axes.inset_axes((0.52, 0.16, 0.46, 0.46))
    turn = np.linspace(0, 2 * np.pi, 100)
    inset.plot(np.cos(turn), np.sin(turn), color=GREY, lw=0.6)
    path = parts["SA"]["positions"].values
    for k in range(path.shape[1]):
        inset.plot(*path[:, k].T, color=COLOURS[4], lw=2.0)
        inset.plot(*path[0, k], "o", ms=4, mec=INK, mfc="white", mew=0.8)
        inset.plot(*path[-1, k], "o", ms=3, color=INK)
    inset.set_aspect("equal")
    inset.axis("off")


def _draw_shares(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    sizes = np.array(parameters.sizes)
    for heads, colour, mark in looks(parameters.heads):
        part = data[f"SA-{heads}"]
        down = np.sum(part["rate"].values < -part["rounding"].values, axis=1)
        ends = share_interval(down, parameters.states, math.erf(ERRORS / math.sqrt(2)), "wilson")
        share = down / parameters.states
        bars, label = np.abs(np.array(ends) - share), f"{heads} softmax heads"
        axes.errorbar(sizes, share, bars, fmt=f"{mark}-", ms=3.5, color=colour, lw=0.7, label=label)
    axes.axhline(0.0, color=GREY, lw=0.9, label="1 softmax head, USA heads")
    axes.set(xlabel="size $s$ of the matrices", ylabel="share of descending states", ylim=(-0.01, 0.55))
    axes.legend(loc="upper left")
