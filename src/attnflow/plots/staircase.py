"""The staircase of a long flow: levels against log time, and how long each plateau lasts."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.fields import Softmax
from attnflow.flows import AbstractTrajectory
from attnflow.flows.longtime.method import log_faster
from attnflow.plots.figure_data import FEW, FigureData
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.plots.times import BEYOND
from attnflow.precision import full_precision


def draw_staircase(flow: AbstractTrajectory | FigureData) -> Any:
    """2 beta E0 against (log t)/beta and against arc length, with the limit beta -> infinity; lifetimes of plateaus.

    The limit (`theory.merging.limit_staircase`) is that of the clusters on the plateau that gives the colours.
    Lifetimes stand against u = 1 - cos(angle) of the closest pair, with the lifetime that two bodies have
    (`theory.merging.log_merge_time`) and the lower bound T_2 of arXiv:2410.06833 (`theory.merging.log_plateau_bound`),
    where its conditions hold.
    """
    data = long_data(flow)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.5))
        left, middle, right = fig.subplots(1, 3, width_ratios=[1.15, 0.85, 1])
        draw_levels(left, data)
        draw_path(middle, data)
        middle.sharey(left)
        middle.tick_params(labelleft=False)
        middle.set_ylabel("")
        draw_lifetimes(right, data)
        return fig


def long_data(flow: AbstractTrajectory | FigureData) -> FigureData:
    """The data of a flow of `solve_long`; others are refused."""
    data = FigureData.of(flow)
    if data.tree is None:
        raise InvalidInput("this flow was not followed through merges; use solve_long(field, tokens).")
    return data


def draw_levels(axes: Any, data: FigureData) -> None:
    """The level 2 beta E0 against (log t)/beta, for beta <= 1 against log t."""
    assert data.tree is not None
    stairs, scale = data.tree.staircase, _scale(data)
    clock = np.append(np.maximum(stairs["log_time"].values, data.axis.first), data.axis.last) / scale
    level = np.append(stairs["level"].values, stairs["level"].values[-1])
    axes.plot(clock, level, color=COLOURS[0], zorder=3, label=rf"measured, $\beta = {data.beta:g}$")
    end, limit = clock[-1], _limit(data)
    if limit is not None:
        s, levels, words = limit
        end = max(end, s[-1] + BEYOND * (s[-1] - clock[0]))
        axes.plot(
            np.append(s, end),
            np.append(levels, levels[-1]),
            color=COLOURS[4],
            ls="--",
            lw=1.0,
            zorder=4,
            drawstyle="steps-post",
            label=words,
        )
    axes.set(xlim=(clock[0], end), xlabel=r"$(\log t)/\beta$" if scale != 1 else r"$\log t$")
    _level_axis(axes, level)
    axes.legend(loc="upper left")


def draw_path(axes: Any, data: FigureData) -> None:
    """The level against the length of the path, on which the whole flow takes a finite time."""
    assert data.tree is not None
    stairs = data.tree.staircase
    axes.plot(stairs["arc"].values, stairs["level"].values, color=COLOURS[0])
    axes.set(xlabel="arc length of the path", xlim=(0, None))
    _level_axis(axes, stairs["level"].values)


def draw_lifetimes(axes: Any, data: FigureData) -> None:
    """(log lifetime)/beta of each plateau against 1 - cos(angle) of its closest pair, measured and predicted."""
    table = lifetimes(data)
    scale, u = _scale(data), 2 * np.sin(table["angle"] / 2) ** 2
    top = max(2.0 if len(u) == 0 else 1.1 * u.max(), 0.1)
    if scale != 1:
        line = np.array([0.0, top])
        axes.plot(line, line - _faster(data) / scale, color=GREY, lw=0.8, label=r"limit $\beta\to\infty$")
    over = table["over"] > 0
    axes.plot(u[over], table["measured"][over] / scale, "o", ms=4, color=COLOURS[0], label="measured")
    if not over.all():
        open_ = {"ms": 4, "color": COLOURS[0], "mfc": "none", "label": "so far"}
        axes.plot(u[~over], table["measured"][~over] / scale, "o", **open_)
    if len(u) == 0:
        axes.text(0.5, 0.5, "no plateau", transform=axes.transAxes, ha="center", color=GREY)
        axes.set_yticks([])
    axes.plot(u, table["two bodies"] / scale, "+", ms=7, color=INK, mew=0.9, label="two bodies")
    if np.isfinite(table["bound"]).any():
        axes.plot(u, table["bound"] / scale, "^", ms=5, color=COLOURS[4], mfc="none", label=r"lower bound $T_2$")
    axes.set_xlim(0, top)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # for the legend
    axes.set_xlabel(r"$1-\cos\theta$ of the closest pair")
    axes.set_ylabel(r"(log lifetime)$/\beta$" if scale != 1 else "log lifetime")
    axes.legend(loc="upper left")


def lifetimes(data: FigureData) -> dict[str, np.ndarray]:
    """Of each plateau the angle of its closest pair, and log lifetimes: measured, of two bodies, at least (T_2).

    T_2 is for equal masses; NaN where there is no statement. `over` is 0 where the flow ended before the plateau.
    """
    table, beta, faster = data.stretches, _beta(data), _faster(data)
    masses, made = data.flow.dataset["masses"].values, data.flow.dataset.sizes["merge"]
    near = 1e-3 / max(beta, 1.0)  # where LongTime calls two clusters one, by default
    rows = []
    for start, end, merges in zip(*(table[name].values for name in ("log_start", "log_end", "merges")), strict=True):
        found = data.gathered(int(merges))
        apart = np.linalg.norm(found.centres[:, None] - found.centres, axis=2) + 4 * np.eye(len(found.names))
        pair = np.unravel_index(np.argmin(apart), apart.shape)
        angle = 2 * np.arcsin(min(apart[pair] / 2, 1.0))
        bound = two = np.nan
        if angle < np.pi:
            weights = float(found.masses[pair[0]]), float(found.masses[pair[1]])
            two = (
                float(theory.merging.log_merge_time(angle, beta, masses=weights, until=near, model=_model(data)))
                - faster
            )
        if np.all(masses == masses[0]):
            bound = float(theory.merging.log_plateau_bound(beta, angle, len(masses))) - faster
        rows.append((angle, end + np.log1p(-np.exp(start - end)), two, bound, merges < made))
    columns = np.array(rows, dtype=float).reshape(-1, 5).T
    return dict(zip(("angle", "measured", "two bodies", "bound", "over"), columns, strict=True))


def _limit(data: FigureData) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Clock, level and name of the limit staircase; none without a plateau to begin with, or if undetermined."""
    leaves = data.leaves
    assert leaves is not None
    lingering = leaves.merges in data.stretches["merges"].values
    if not lingering or len(leaves.names) > FEW or _scale(data) == 1:
        return None
    try:
        limit = theory.merging.limit_staircase(leaves.centres, leaves.masses, model=_model(data))
    except ValueError:  # two pairs are equally close
        return None
    s = limit.s - _faster(data) / _scale(data)
    start = min(max(leaves.log_time, data.axis.first) / _scale(data), s[0])
    when = data.axis.title(leaves.log_time)
    return np.append(start, s), limit.levels, f"$\\beta\\to\\infty$, of the {len(leaves.names)} clusters\nat {when}"


def _level_axis(axes: Any, level: np.ndarray) -> None:
    axes.set(ylim=(min(0.0, float(level.min())), 1.3), yticks=[0, 0.25, 0.5, 0.75, 1], ylabel=r"level $2\beta E_0$")


def _model(data: FigureData) -> str:
    assert data.tree is not None
    return "SA" if isinstance(data.tree.field.normaliser, Softmax) else "USA0"


def _beta(data: FigureData) -> float:
    assert data.tree is not None
    return float(data.tree.field.beta)


def _scale(data: FigureData) -> float:
    """What log t is divided by: beta, where that is large enough to make a staircase."""
    return max(_beta(data), 1.0)


def _faster(data: FigureData) -> float:
    """How much faster the clock of the field is than SA or USA0, as a logarithm."""
    assert data.tree is not None
    with full_precision():
        return float(log_faster(data.tree.field))
