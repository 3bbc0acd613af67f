"""The merge tree of a long flow, as a dendrogram over time."""

from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import FEW, FigureData, Gathering
from attnflow.plots.names import cluster_name
from attnflow.plots.staircase import long_data
from attnflow.plots.style import COLUMN, GREY, INK, literal, styled

MOST_WORDS = 60
"""Tokens with labels that are all leaves of a tree of their own."""

ALERT = "#c00000"
"""Colour of a merge that rounding could have changed."""


def draw_tree(flow: AbstractTrajectory | FigureData) -> Any:
    """Who merged with whom and when; branches are as thick as clusters are heavy and have the colours of snapshots.

    Leaves are the tokens, or, of many tokens, the clusters that give the colours, with the number of their tokens (or
    their mass, or their labels; up to 60 tokens with labels are all leaves). A merge that an error of rounding size
    could have changed is red and dashed.
    """
    data = long_data(flow)
    most = FEW if data.names is None else MOST_WORDS
    leaves = len(data.labels) if len(data.labels) <= most else FEW
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, max(2.6, 0.11 * leaves + 0.5)))
        draw_branches(fig.subplots(), data, most)
        return fig


def draw_branches(axes: Any, data: FigureData, most: int = FEW) -> None:
    """The dendrogram on given axes, time to the right; leaves are tokens if there are at most so many."""
    assert data.tree is not None
    assert data.leaves is not None
    leaves = data.gathered(0) if len(data.labels) <= most else data.leaves
    axis = data.axis
    merges, masses = data.tree.merges, data.flow.dataset["masses"].values
    pairs = [(int(p), int(q)) for p, q in zip(merges["first"].values, merges["second"].values, strict=True)]
    times, doubtful = merges["log_time"].values, merges["undetermined"].values
    rows = _order(leaves, pairs)
    height = {name: float(len(rows) - 1 - row) for row, name in enumerate(rows)}
    tokens = {name: leaves.labels == name for name in rows}
    born = dict.fromkeys(rows, -np.inf)
    for k in range(leaves.merges):
        born[int(leaves.labels[pairs[k][0]])] = times[k]
    axes.set_yticks([height[name] for name in rows], _names(leaves, rows, masses, data.names))
    if data.names is not None:
        axes.tick_params(axis="y", labelsize=5.5 if len(rows) > FEW else 6)
    if leaves.merges:  # a cluster that was made late has a short branch: a line leads to it, a dot marks its beginning
        for name in rows:
            axes.plot(axis.at([-np.inf, born[name]]), [height[name]] * 2, color=GREY, lw=0.4, ls=":", zorder=1)
            size = 8 + 60 * float(masses[tokens[name]].sum())
            axes.scatter(
                axis.at(born[name]),
                height[name],
                s=size,
                color=data.colour(tokens[name]),
                lw=0,
                zorder=2.5,
                clip_on=False,
            )

    def branch(name: int, end: float) -> None:
        axes.plot(
            axis.at([born[name], end]),
            [height[name]] * 2,
            color=data.colour(tokens[name]),
            lw=0.8 + 4 * float(masses[tokens[name]].sum()),
            solid_capstyle="butt",
            zorder=2,
        )

    warned = False
    for k in range(leaves.merges, len(pairs)):
        p, q = pairs[k]
        branch(p, times[k])
        branch(q, times[k])
        look = {"color": ALERT, "ls": "--", "lw": 1.4} if doubtful[k] else {"color": INK, "ls": "-", "lw": 0.8}
        words = "undetermined by rounding" if doubtful[k] and not warned else None
        warned |= bool(doubtful[k])
        axes.plot(axis.at([times[k]] * 2), [height[p], height[q]], zorder=3, label=words, **look)
        height[p], born[p], tokens[p] = (height[p] + height.pop(q)) / 2, times[k], tokens[p] | tokens[q]
    for name in height:
        branch(name, axis.last)
    axis.draw(axes)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if data.names is None:
        axes.set_ylabel(_title(leaves, masses))
    if warned:
        axes.legend(loc="lower right")


def _order(leaves: Gathering, pairs: list[tuple[int, int]]) -> list[int]:
    """Leaves in an order in which no branches cross."""
    order = {name: [name] for name in leaves.names.tolist()}
    for p, q in pairs[leaves.merges :]:
        order[p] += order.pop(q)
    return [name for root in order.values() for name in root]


def _names(leaves: Gathering, rows: list[int], masses: np.ndarray, words: list[str] | None) -> list[str]:
    if words is not None:
        return [literal(cluster_name([words[k] for k in np.flatnonzero(leaves.labels == name)])) for name in rows]
    if leaves.merges == 0:
        return [str(name) for name in rows]
    if np.all(masses == masses[0]):
        return [str(int(np.sum(leaves.labels == name))) for name in rows]
    return [f"{masses[leaves.labels == name].sum():.2g}" for name in rows]


def _title(leaves: Gathering, masses: np.ndarray) -> str:
    if leaves.merges == 0:
        return "token"
    return "tokens in cluster" if np.all(masses == masses[0]) else "mass of cluster"
