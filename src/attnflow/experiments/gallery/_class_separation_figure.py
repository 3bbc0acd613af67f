"""The figure of `class_separation`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled

CLASSES = (COLOURS[0], COLOURS[1])
Task = dict[str, xr.Dataset]
Side = Callable[[xr.Dataset, np.ndarray], np.ndarray]


def draw_figure(tasks: Sequence[tuple[str, int]], data: dict[str, Task], side: Side, lines: int) -> Any:
    """The first task in three panels, residual networks in one, and circles in one for each dimension."""
    first = data["{}-{}".format(*tasks[0])]
    circles = [(dim, data[f"circles-{dim}"]) for kind, dim in tasks if kind == "circles"][:2]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.7))
        axes = fig.subplots(2, 3).ravel()
        _start(axes[0], first, side, lines)
        _way(axes[1], first)
        _end(axes[2], first, lines)
        _networks(axes[3], first)
        for one, (dim, task) in zip(axes[4:], circles, strict=False):
            _circles(one, dim, task, side)
        for one in axes[4 + len(circles) :]:
            one.set_visible(False)
        for letter, one in zip("abcdef", axes, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _dots(axes: Any, x: np.ndarray, labels: np.ndarray, size: float = 2.0) -> None:
    for value, colour in enumerate(CLASSES):
        chosen = x[labels == value]
        axes.plot(chosen[:, 0], chosen[:, 1], ".", ms=size, mew=0, color=colour)


def _start(axes: Any, task: Task, side: Side, lines: int) -> None:
    seen = task["flow"]
    grid = seen["grid"].values[0].reshape(lines, lines, -1)
    score = side(task["fit"], seen["grid"].values[-1]).reshape(lines, lines)
    at = grid[:, 0, 0], grid[0, :, 1]
    axes.contourf(*at, score.T, levels=[-np.inf, 0, np.inf], colors=CLASSES, alpha=0.15)
    axes.contour(*at, score.T, levels=[0], colors=[INK], linewidths=0.8, linestyles="--")
    _dots(axes, seen["held"].values[0, :1500], seen["label"].values[:1500], 3.0)
    _square(axes, "$x_1$", "$x_2$")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)


def _turned(task: Task, x: np.ndarray) -> np.ndarray:
    """(along, across) the line of the plane on which the read-out is undecided."""
    readout, offset = task["fit"]["readout"].values, task["fit"]["offset"].values
    normal = readout[1] - readout[0]
    size = np.linalg.norm(normal)
    across = (x @ normal + offset[1] - offset[0]) / size
    return np.stack([x @ np.array([normal[1], -normal[0]]) / size, across], axis=-1)


def _way(axes: Any, task: Task) -> None:
    paths = _turned(task, task["flow"]["path"].values)
    labels = task["flow"]["label"].values[: paths.shape[1]]
    for value, colour in enumerate(CLASSES):
        chosen = paths[:, labels == value]
        axes.plot(chosen[..., 0], chosen[..., 1], color=colour, lw=0.4, alpha=0.7)
        axes.plot(chosen[-1, :, 0], chosen[-1, :, 1], ".", ms=3.5, mew=0, color=colour)
        axes.plot(chosen[0, :, 0], chosen[0, :, 1], ".", ms=2, mew=0, color=GREY)
    axes.axhline(0, color=INK, lw=0.8, ls="--")
    axes.set_xlabel("along the undecided line")
    axes.set_ylabel("distance from it, on the way")


def _end(axes: Any, task: Task, lines: int) -> None:
    seen = task["flow"]
    grid = _turned(task, seen["grid"].values[-1]).reshape(lines, lines, -1)
    near = np.abs(seen["grid"].values[0].reshape(lines, lines, -1)[..., :2]).max(axis=-1) <= 1.15
    shown = np.where(near[..., None], grid, np.nan)
    for mesh in (shown, shown.transpose(1, 0, 2)):
        axes.plot(mesh[..., 0].T, mesh[..., 1].T, color=GREY, lw=0.3)
    _dots(axes, _turned(task, seen["held"].values[-1, :1500]), seen["label"].values[:1500], 3.0)
    axes.axhline(0, color=INK, lw=0.8, ls="--")
    axes.set_xlabel("along the undecided line")
    axes.set_ylabel("distance from it, at the end")


def _undecided(axes: Any, task: Task, x: np.ndarray) -> None:
    """The line on which both classes have the same score, in the first two coordinates."""
    readout, offset = task["fit"]["readout"].values, task["fit"]["offset"].values
    normal, shift = readout[1] - readout[0], float(offset[1] - offset[0])
    foot = -shift * normal / (normal @ normal)
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    limits = axes.get_xlim(), axes.get_ylim()
    reach = 2 * np.abs(x).max()
    ends = foot + np.array([[-reach], [reach]]) * along
    axes.plot(ends[:, 0], ends[:, 1], "--", color=INK, lw=0.8)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])


def _networks(axes: Any, task: Task) -> None:
    seen = task["flow"]
    layers, gap = seen["layers"].values, seen["gap"].values
    axes.plot(layers, gap[-1] * layers[-1] / layers, "--", color=GREY, lw=0.9, label="order 1")
    axes.plot(layers, gap, "o", ms=4, color=COLOURS[4], label="residual networks")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(layers, [str(count) for count in layers])
    marks = [a * 10.0**b for b in range(-9, 3) for a in (1, 2, 5)]
    axes.set_yticks([y for y in marks if gap.min() / 1.5 < y < 1.5 * gap.max()])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_xlabel("layers")
    axes.set_ylabel("largest distance to the flow")
    axes.legend(loc="upper right")


def _circles(axes: Any, dim: int, task: Task, side: Side) -> None:
    seen = task["flow"]
    if dim == 2:
        for name, colour in zip(("outer", "inner"), CLASSES, strict=True):
            curve = seen[name].values[-1]
            axes.fill(curve[:, 0], curve[:, 1], color=colour, alpha=0.12, lw=0)
            axes.plot(*np.vstack([curve, curve[:1]]).T, color=colour, lw=0.9)
        _undecided(axes, task, seen["outer"].values[-1])
        _square(axes, "$x_1(T)$", "$x_2(T)$")
        return
    normal = task["fit"]["readout"].values[1] - task["fit"]["readout"].values[0]
    size = np.linalg.norm(normal)
    middle = np.concatenate([seen[name].values[-1] for name in ("outer", "inner")])
    free = middle - middle.mean(axis=0)
    free -= np.outer(free @ normal, normal) / size**2
    other = np.linalg.svd(free, full_matrices=False)[2][0]  # across the read-out, where the circles are widest
    for name, colour in zip(("outer", "inner"), CLASSES, strict=True):
        curve = seen[name].values[-1]
        curve = np.vstack([curve, curve[:1]])
        axes.plot(curve @ other, side(task["fit"], curve) / size, color=colour, lw=0.9)
    axes.axhline(0, color=INK, lw=0.8, ls="--")
    axes.set_xlabel("along the undecided plane")
    axes.set_ylabel("distance from it")


def _square(axes: Any, x: str, y: str) -> None:
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
