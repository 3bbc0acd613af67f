"""The panels of `staircase`."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.gallery._pairs import Expansion
from attnflow.plots.style import COLOURS, GREY, INK

LINES = {"SA": "-", "USA0": "--"}


def chosen(data: xr.Dataset) -> list[tuple[float, str]]:
    """A few beta, small ones for choice, and the largest, with their colours."""
    betas = data["beta"].values
    picked = betas[np.unique([0, len(betas) // 5, 2 * len(betas) // 5, len(betas) - 1])]
    return [(float(beta), COLOURS[k]) for beta, k in zip(picked, (1, 2, 0, 3), strict=False)]


def draw_profiles(axes: Any, data: xr.Dataset, limit: Any, label: str) -> None:
    """Level against (log t)/beta."""
    for beta, colour in chosen(data):
        one = data.sel(beta=beta)
        s = np.maximum(one["stair_log_time"].values / beta, -1.0)
        axes.plot(s, one["stair_level"], color=colour, lw=1.1, label=rf"$\beta = {beta:g}$")
    s = np.concatenate([[-1.0], limit.s, [3.0]])
    axes.step(s, limit.levels[[*range(len(limit.levels)), -1]], where="post", color=INK, lw=0.8, ls=":", label="limit")
    axes.set(xlim=(-0.05, 1.08 * limit.s[-1]), ylim=(0, 1.04))
    axes.set(xlabel=r"$s = (\log t)/\beta$", ylabel=rf"level $2\beta E_0$   ({label})")
    axes.legend(loc="upper left", handlelength=1.6)


def draw_arcs(axes: Any, data: xr.Dataset, levels: np.ndarray, arcs: np.ndarray, label: str) -> None:
    """Level against arc length."""
    for beta, colour in chosen(data):
        one = data.sel(beta=beta)
        axes.plot(one["stair_arc"], one["stair_level"], color=colour, lw=1.1, label=rf"$\beta = {beta:g}$")
    axes.step(
        np.concatenate([[0.0], arcs, [2 * arcs[-1]]]), levels[[*range(len(levels)), -1]], where="post", color=INK,
        lw=0.8, ls=":",
    )  # fmt: skip
    axes.set(xlim=(0, 1.04 * arcs[-1]), ylim=(0, 1.04))
    axes.set(xlabel="arc length of the path", ylabel=rf"level $2\beta E_0$   ({label})")


def draw_approach(axes: Any, cases: dict[tuple[str, str], tuple[xr.Dataset, Expansion]], start: float) -> None:
    """Largest distance of a merge from its place in the limit, against beta."""
    last = max(float(data["beta"].max()) for data, _ in cases.values())
    betas = np.geomspace(start, 1e3 * last, 60)
    for (kind, model), (data, form) in cases.items():
        colour = COLOURS[0] if model == "SA" else COLOURS[4]
        far = [float(np.max(np.abs(form.at(beta) - form.s))) for beta in betas]
        axes.plot(betas, far, LINES[model], color=colour, lw=0.9)
        found = np.abs(data["log_time"].values / data["beta"].values[:, None] - form.s).max(axis=1)
        face = "white" if kind == "equal" else colour
        marks = {"marker": "o" if model == "SA" else "s", "mec": colour, "mfc": face, "mew": 0.9, "ms": 3.5}
        axes.plot(data["beta"], found, ls="none", label=f"{model}, {kind}", **marks)
    tail = betas[betas > last]
    height = 0.3 * np.max(np.abs(next(iter(cases.values()))[1].root)) or 0.1
    axes.plot(tail, 5 * height / np.sqrt(tail), color=GREY, lw=0.8, ls=":")
    axes.annotate(
        r"$\beta^{-1/2}$",
        (tail[-1], 5 * height / math.sqrt(tail[-1])),
        xytext=(0, 6),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=GREY,
    )
    axes.plot(tail, 0.4 * np.log(tail) / tail, color=GREY, lw=0.8, ls=":")
    axes.annotate(
        r"$(\log\beta)/\beta$", (tail[0], 0.3 * math.log(tail[0]) / tail[0]), ha="right", va="top", color=GREY
    )
    axes.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$", ylabel=r"$\max_k\,|s_k(\beta) - s_k|$")
    axes.legend(loc="lower left", handletextpad=0.2)


def draw_order(axes: Any, data: xr.Dataset, betas: np.ndarray, angles: np.ndarray, needed: np.ndarray) -> None:
    """Angle of the merged pair to the third cluster, and the angle below which it goes to that one."""
    axes.plot(betas, angles, color=INK, lw=1.0, label="angle $a$ of the merged pair and cluster 3")
    axes.plot(betas, needed, color=INK, lw=0.9, ls="--", label="balance of the pulls on cluster 3")
    tried = np.concatenate([data["tried"].values, data["beta"].values])
    first = np.concatenate([data["tried_first"].values, data["first"].values[:, 1]])
    for name, colour, words in ((2, COLOURS[4], "3 merges with 4"), (0, COLOURS[0], "3 merges with 1 and 2")):
        mine = tried[first == name]
        axes.plot(mine, np.interp(mine, betas, angles), "o", color=colour, ms=3.5, label=words)
    axes.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel="angle")
    axes.set_ylim(top=angles[0] + 0.3 * (angles[0] - angles[-1]))
    ticks = [b for b in (20, 50, 100, 200, 500, 1000) if betas[0] <= b <= betas[-1]]
    axes.set_xticks(ticks, [str(b) for b in ticks])
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.legend(loc="upper right")
