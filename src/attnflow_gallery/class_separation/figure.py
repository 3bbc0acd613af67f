"""Held-out points on their way, the image of a grid, residual networks, and nested circles."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.class_separation.simulate import REACH, Parameters, best, side

CLASSES = (COLOURS[0], COLOURS[1])
CURVES = ("outer", CLASSES[0], "-"), ("inner", CLASSES[1], ":")
SHOWN = 1500
"""Held-out points in a panel."""
Task = dict[str, xr.Dataset]


def draw(parameters: Parameters, data: dict[str, Task]) -> Any:
    """Held-out points of class 0 (blue, dark) and class 1 (orange, light); dashed: where the read-out is undecided.

    (a) Spirals at t = 0; shaded: the decision of the read-out after the flow, as a function of the start. (b) 120 of
    them from t = 0 (grey) to t = 1 (coloured); v is the distance from the dashed line, u the coordinate along it. (c)
    Points at t = 1, and the image of a square grid of spacing 0.1: it is stretched, but not folded. (d) Root
    mean square distance of residual networks from the flow at t = 1, best fit of every task; lines fall like 1/L.
    (e) Images of the circles of radius 1 (solid) and 1/2 (dotted) in R^2: the first surrounds the second, and crosses
    the dashed line. (f) The same circles with a third coordinate, seen along the plane v = 0, which separates them.
    Of all fits the one with the smallest loss is drawn.
    """
    kind, dim = parameters.tasks[0]
    first, times = data[f"{kind}-{dim}"], ("$t = 0$", r"$0 \leq t \leq 1$", "$t = 1$")
    below = "residual networks", *(rf"circles in $\mathbb{{R}}^{dim}$, $t = 1$" for dim in (2, 3))
    with panels(2, 3, 4.9, *(f"{kind}, {time}" for time in times), *below) as page:
        _start(page[0], first)
        _way(page[1], first)
        _end(page[2], first)
        _networks(page[3], parameters, data)
        _flat(page[4], data["circles-2"])
        _deep(page[5], data["circles-3"])
    return page.figure


def _dots(axes: Any, x: np.ndarray, labels: np.ndarray) -> None:
    for value, colour in enumerate(CLASSES):
        axes.plot(*x[labels == value].T, ".", ms=3.0, mew=0, color=colour)


def _start(axes: Any, task: Task) -> None:
    seen = task["flow"]
    score = side(task["fit"], best(task["fit"]), seen["map"].values)
    at = np.linspace(-REACH, REACH, len(score))
    axes.contourf(at, at, score.T, levels=[-np.inf, 0, np.inf], colors=CLASSES, alpha=0.15)
    axes.contour(at, at, score.T, levels=[0], colors=[INK], linewidths=0.8, linestyles="--")
    _dots(axes, seen["held"].values[:SHOWN], seen["label"].values[:SHOWN])
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$", labelpad=0)


def _turned(task: Task, x: np.ndarray) -> np.ndarray:
    """Coordinates (u, v): along the line of the plane on which the read-out is undecided, and distance from it."""
    chosen = best(task["fit"])
    readout = task["fit"]["readout"].values[chosen]
    normal = readout[1] - readout[0]
    along = np.array([normal[1], -normal[0]]) / np.linalg.norm(normal)
    return np.stack([x @ along, side(task["fit"], chosen, x)], axis=-1)


def _decided(axes: Any) -> None:
    axes.axhline(0, color=INK, lw=0.8, ls="--")
    axes.set_xlabel("$u$")
    axes.set_ylabel("$v$", labelpad=0)


def _way(axes: Any, task: Task) -> None:
    paths = _turned(task, task["flow"]["path"].values)
    labels = task["flow"]["label"].values[: paths.shape[1]]
    for value, colour in enumerate(CLASSES):
        chosen = paths[:, labels == value]
        axes.plot(chosen[..., 0], chosen[..., 1], color=colour, lw=0.4, alpha=0.7)
        axes.plot(*chosen[-1].T, ".", ms=3.5, mew=0, color=colour)
        axes.plot(*chosen[0].T, ".", ms=2, mew=0, color=GREY)
    _decided(axes)


def _end(axes: Any, task: Task) -> None:
    seen = task["flow"]
    mesh = _turned(task, seen["mesh"].values)
    for lines in mesh:
        axes.plot(lines[..., 0].T, lines[..., 1].T, color=GREY, lw=0.25)
    _dots(axes, _turned(task, seen["end"].values[best(task["fit"])][:SHOWN]), seen["label"].values[:SHOWN])
    _decided(axes)


def _networks(axes: Any, parameters: Parameters, data: dict[str, Task]) -> None:
    layers = np.array(parameters.layers)
    for (kind, dim), mark, colour in zip(parameters.tasks, "os^D", COLOURS, strict=False):
        gap = data[f"{kind}-{dim}"]["flow"]["gap"].values
        axes.plot(layers, gap[-1] * layers[-1] / layers, color=GREY, lw=0.7)
        axes.plot(layers, gap, mark, ms=3.8, color=colour, mec=INK, mew=0.3, label=rf"{kind}, $\mathbb{{R}}^{dim}$")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", ylim=(None, 6 * axes.get_ylim()[1]))
    axes.set_xticks(layers, [str(count) for count in layers])
    axes.minorticks_off()
    axes.set(xlabel="layers $L$", ylabel=r"rms $|x_L - x(1)|$")
    axes.legend(loc="upper right", ncols=2, handletextpad=0.1, columnspacing=0.8, borderaxespad=0.1)


def _closed(curve: np.ndarray) -> np.ndarray:
    return np.vstack([curve, curve[:1]])


def _flat(axes: Any, task: Task) -> None:
    chosen = best(task["fit"])
    for name, colour, style in CURVES:
        curve = _closed(_turned(task, task["flow"][name].values[chosen]))
        axes.fill(*curve.T, color=colour, alpha=0.15, lw=0)
        axes.plot(*curve.T, style, color=colour, lw=1.1, label=f"{name} circle")
    _room(axes)


def _deep(axes: Any, task: Task) -> None:
    chosen = best(task["fit"])
    readout = task["fit"]["readout"].values[chosen]
    normal = (readout[1] - readout[0]) / np.linalg.norm(readout[1] - readout[0])
    free = np.concatenate([task["flow"][name].values[chosen] for name in ("outer", "inner")])
    free = free - free.mean(axis=0)
    along = np.linalg.svd(free - np.outer(free @ normal, normal), full_matrices=False)[2][0]  # where they are widest
    for name, colour, style in CURVES:
        curve = _closed(task["flow"][name].values[chosen])
        axes.plot(curve @ along, side(task["fit"], chosen, curve), style, color=colour, lw=1.1, label=f"{name} circle")
    _room(axes)


def _room(axes: Any) -> None:
    _decided(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.3 * (high - low))
    axes.legend(loc="upper right", borderaxespad=0.1, handlelength=1.8)
