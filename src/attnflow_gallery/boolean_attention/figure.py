"""Attention matrices, paths, the decay of weights, and exact starts."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, INK, PAGE, panel, styled
from attnflow_gallery.boolean_attention.compare import exponents
from attnflow_gallery.boolean_attention.simulate import Parameters, exact

SHAPES = "osD^vP"
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on the line without layer norm; (a) to (c) show the six tokens of the example, V = QK = 1.

    (a) Their attention matrix at four times: white is 0, dark is 1; tokens are sorted by position. (b) Rescaled
    positions; numbers count tokens from the left. (c) -log of the weight that a row gives to others than its leader, in
    the simulation (marks) and from gaps frozen at t = 2 (lines). (d) Tokens at -a, 0 and a: factor by which z of the
    outer tokens shrinks, for several V and QK, in simulations (marks) and by the integral (full line: no mass at 0,
    dashed: mass at 0); the factor depends on QK a^2 alone, so marks of different V lie in each other.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.6))
        top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.45))
        first, times = data[f"n{parameters.sizes[0]}"], (0.0, 0.5, 1.0, 8.0)
        shades, (left, middle, right) = top.subplots(1, 4), bottom.subplots(1, 3)
        for axes, time in zip(shades, times, strict=True):
            frame = int(np.argmin(np.abs(first["time"].values[: first.sizes["early"]] - time)))
            edges, look = np.arange(first.sizes["query"] + 1), {"cmap": "Blues", "vmin": 0, "vmax": 1}
            image = axes.pcolormesh(edges, edges, first["story"].values[frame], rasterized=True, **look)
            axes.set(ylim=axes.get_ylim()[::-1], aspect="equal", xlabel="key", xticks=[], yticks=[])
            axes.set_title(f"$t = {first['time'].values[frame]:g}$", loc="right")
        shades[0].set_ylabel("query")
        top.colorbar(image, ax=list(shades), label="weight $A_{ij}$", shrink=0.8)
        _draw_paths(left, first)
        _draw_decay(middle, first)
        _draw_exact(right, parameters, data["exact"])
        titles = "", "positions", "weights on others", "tokens at $-a$, 0, $a$"
        for letter, one, title in zip("abcd", (shades[0], left, middle, right), titles, strict=True):
            panel(one, letter, title)
        return fig


def _draw_paths(axes: Any, part: xr.Dataset) -> None:
    shown = part["time"].values <= 5.0
    z = part["z"].values[shown, 1]
    for k, path in enumerate(z.T):
        axes.plot(part["time"].values[shown], path, ls=STYLES[k % 6], color=COLOURS[k % len(COLOURS)], lw=1.2)
        side = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 7}
        axes.annotate(str(k + 1), (0.0, path[0]), xytext=(-4, 0), **side)
    axes.axhline(0.0, color=INK, lw=0.6, ls=":")
    axes.set(xlim=(-0.5, None), xlabel="time $t$", ylabel="position $z_i = e^{-t} x_i$")


def _draw_decay(axes: Any, part: xr.Dataset) -> None:
    times, story = part["time"].values[: part.sizes["early"]], part["story"].values
    begin = int(np.argmin(np.abs(times - 2.0)))
    x, followed = np.exp(times[begin]) * part["z"].values[begin, 1], np.argmax(story[-1], axis=1)
    some = np.arange(0, len(times), max(1, round(0.5 / (times[1] - times[0]))))
    for k, leader in enumerate(followed):
        left = np.delete(story[:, k], leader, axis=1).sum(axis=1)
        seen = [frame for frame in some if left[frame] > 1e-280]
        colour = COLOURS[k % len(COLOURS)]
        style = {"ms": 3.5, "mfc": "white", "mec": colour, "mew": 0.9, "label": str(k + 1)}
        axes.plot(times[seen], -np.log(left[seen]), SHAPES[k % 6], **style)
        side = np.flatnonzero(np.sign(x) == np.sign(x[leader]))
        if k in side and len(side) > 1:
            at, later = int(np.flatnonzero(side == k)[0]), np.linspace(times[begin], 6.0, 50)
            line = [exponents(np.abs(x[side]), math.exp(t - times[begin]))[at] for t in later]
            axes.plot(later, line, color=colour, lw=1.0)
    axes.set(yscale="log", ylim=(0.1, 900), xlim=(0, 6.0), xlabel="time $t$")
    axes.set(ylabel=r"$-\log\sum_{j \neq \mathrm{leader}} A_{ij}$")
    axes.legend(title="token", ncols=2, loc="lower right", columnspacing=0.6, handletextpad=0.1)


def _draw_exact(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    squares = np.geomspace(0.05, 5.0, 60)
    marks = dict(zip(parameters.values, "os^Dv", strict=False))
    for mass, line, colour in zip(parameters.middles, ("-", "--"), (COLOURS[0], COLOURS[4]), strict=False):
        left = [math.exp(-theory.landscape.pair_delay([[1.0]], [math.sqrt(q)], middle=mass)) for q in squares]
        axes.plot(squares, left, line, color=colour, lw=1.0, label=f"mass at 0: {mass:g}")
    for k, (radius, value, product, mass) in enumerate(exact(parameters)):
        end, colour = part["z"].values[int(part["look"][k]), k, -1], COLOURS[0 if mass == 0 else 4]
        size = 7.5 - 2 * parameters.values.index(value)
        axes.plot(product * radius**2, end / radius, marks[value], ms=size, mfc="none", mec=colour, mew=0.8)
    for value, mark in marks.items():
        axes.plot([], [], mark, ms=4, mfc="none", mec=INK, mew=0.9, label=f"$V = {value:g}$")
    axes.set(xscale="log", ylim=(0, 1.03), xlabel="$QK a^2$", ylabel="$z(\\infty) / a$", xlim=(0.05, 60))
    axes.legend(loc="lower right", handlelength=1.4)
