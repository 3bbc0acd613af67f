"""Profiles against both clocks, the approach to the limit, and the change of order."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import LINES, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.staircase.compare import arcs, balance, limit
from attnflow_gallery.staircase.simulate import MODELS, Parameters

DASHES = ((0, (1, 1)), "--", "-.", "-")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Clusters that merge one pair at a time, at several inverse temperatures, and the limit of large ones.

    (a) The level 2 beta E0 against (log t)/beta; grey, the limit. (b) The same against the length of the path. (c) The
    largest distance of a merge from its value in the limit: flows (marks, up to beta = 10,000) and the expansion
    (lines: solid SA, dashed USA0; beyond the marks they are theory alone). (d) Four clusters at 0, 0.9, 2.3, 3.9 on a
    circle, softmax attention: which pair merges second (marks), the angle a of the merged pair and cluster 3, and the
    angle at which the pulls on cluster 3 balance.
    """
    kind, model = parameters.kinds[-1], "SA"
    shown, words = data[f"{kind}-{model}"], f"{model}, {kind} masses"
    stairs, _ = limit(parameters, kind, model)
    betas = np.geomspace(0.75 * parameters.order_betas[0], 1.3 * parameters.order_betas[1], 200)
    found = [balance(parameters, float(beta)) for beta in betas]
    angles, needed = np.array([a for a, _ in found]), np.array([most.angle for _, most in found])
    cases = {(k, m): (data[f"{k}-{m}"], limit(parameters, k, m)[1]) for k in parameters.kinds for m in MODELS}
    clocks = rf"clock $(\log t)/\beta$: {words}", f"arc length: {words}"
    with panels(2, 2, 5.0, *clocks, "approach to the limit", "change of order, SA") as page:
        draw_profiles(page[0], shown, stairs)
        draw_arcs(page[1], shown, stairs.levels, arcs(parameters, kind, model))
        draw_approach(page[2], cases, parameters.fit_from / 4)
        draw_order(page[3], data["order"], betas, angles, needed)
    return page.figure


def chosen(data: xr.Dataset) -> list[tuple[float, str, Any]]:
    """A few beta, preferably small ones, and the largest, with their colours and line styles."""
    betas = data["beta"].values
    picked = betas[np.unique([0, len(betas) // 5, 2 * len(betas) // 5, len(betas) - 1])]
    return [(float(beta), COLOURS[k], line) for beta, k, line in zip(picked, (1, 2, 0, 3), DASHES, strict=False)]


def draw_profiles(axes: Any, data: xr.Dataset, limit: theory.merging.LimitStaircase) -> None:
    """Level against (log t)/beta."""
    for beta, colour, line in chosen(data):
        one = data.sel(beta=beta)
        s = np.maximum(one["stair_log_time"].values / beta, -1.0)
        axes.plot(s, one["stair_level"], color=colour, ls=line, lw=1.1, label=rf"$\beta = {beta:g}$")
    _draw_limit(axes, np.array([-1.0, *limit.s, 3.0]), limit.levels)
    axes.set(xlim=(-0.05, 1.08 * limit.s[-1]), xlabel=r"$s = (\log t)/\beta$")
    axes.legend(loc="upper left", handlelength=1.8)


def draw_arcs(axes: Any, data: xr.Dataset, levels: np.ndarray, arcs: np.ndarray) -> None:
    """Level against arc length."""
    for beta, colour, line in chosen(data):
        one = data.sel(beta=beta)
        axes.plot(one["stair_arc"], one["stair_level"], color=colour, ls=line, lw=1.1, label=rf"$\beta = {beta:g}$")
    _draw_limit(axes, np.array([0.0, *arcs, 2 * arcs[-1]]), levels)
    axes.set(xlim=(0, 1.04 * arcs[-1]), xlabel="arc length of the path")


def _draw_limit(axes: Any, at: np.ndarray, levels: np.ndarray) -> None:
    axes.step(at, [*levels, levels[-1]], where="post", color=GREY, lw=2.5, alpha=0.6, zorder=0, label="limit")
    axes.set(ylim=(0, 1.04), ylabel=r"level $2\beta E_0$")


def draw_approach(
    axes: Any, cases: dict[tuple[str, str], tuple[xr.Dataset, theory.merging.StaircaseExpansion]], start: float
) -> None:
    """Largest distance of a merge from its value in the limit, against beta."""
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
    guide, text = {"color": GREY, "lw": 0.8, "ls": ":"}, {"color": GREY, "ha": "right", "textcoords": "offset points"}
    root, log = 5 * height / np.sqrt(tail), np.log(tail) / tail
    axes.plot(tail, root, **guide)
    axes.annotate(r"$\beta^{-1/2}$", (tail[-1], root[-1]), (0, 6), va="bottom", **text)
    axes.plot(tail, 0.4 * log, **guide)
    axes.annotate(r"$(\log\beta)/\beta$", (tail[0], 0.3 * log[0]), (0, 0), va="top", **text)
    axes.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$", ylabel=r"$\max_k\,|s_k(\beta) - s_k|$")
    axes.legend(loc="lower left", handletextpad=0.2)


def draw_order(axes: Any, data: xr.Dataset, betas: np.ndarray, angles: np.ndarray, needed: np.ndarray) -> None:
    """Angle of the merged pair to the third cluster, and the angle below which it goes to that one."""
    axes.plot(betas, angles, color=INK, lw=1.0, label="angle $a$ of the merged pair and cluster 3")
    axes.plot(betas, needed, color=INK, lw=0.9, ls="--", label="balance of the pulls on cluster 3")
    tried, first = data["tried"].values, data["first"].values
    kinds = ((2, COLOURS[4], "o", "3 merges with 4"), (0, COLOURS[0], "s", "3 merges with 1 and 2"))
    for name, colour, shape, words in kinds:
        mine = tried[first == name]
        axes.plot(mine, np.interp(mine, betas, angles), shape, color=colour, ms=3.5, label=words)
    axes.set(xscale="log", xlabel=r"inverse temperature $\beta$", ylabel=r"angle")
    axes.set_ylim(top=angles[0] + 0.3 * (angles[0] - angles[-1]))
    ticks = [b for b in (20, 50, 100, 200, 500, 1000) if betas[0] <= b <= betas[-1]]
    axes.set_xticks(ticks, [str(b) for b in ticks])
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.legend(loc="upper right")
