"""A schedule that was found: where it carries the measures, and how close to their targets."""

from typing import Any

import numpy as np

from attnflow.control import Matching
from attnflow.control.search import replay
from attnflow.plots.observables import draw_rows
from attnflow.plots.schedule import can_show_gates, draw_elements, draw_gates, gates
from attnflow.plots.snapshots import MOST_TOKENS, draw_axes, graticule, name_view, views_of
from attnflow.plots.style import COLUMN, GREY, INK, PAGE, blank, colours, styled

MOST_MEASURES = 24
"""Measures whose tokens are drawn."""


def draw_carried(match: Matching) -> Any:
    """Tokens of every measure in a colour of its own, before and after the schedule; crosses are the targets."""
    if not can_be_carried(match):
        return blank("no schedule was found" if not match.is_found else "the measures are not known")
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE * 2 / 3, PAGE / 3 + 0.25))
        draw_carrying(fig.subplots(1, 2), match)
        return fig


def draw_distances(match: Matching) -> Any:
    """W_2 of every measure from its target, before and after the schedule."""
    if not match.is_found:
        return blank("no schedule was found")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.3))
        draw_w2(fig.subplots(), match)
        return fig


def plot_matching(match: Matching) -> Any:
    """Tokens before, between and after, with their targets; gates, elements and distances.

    Where no try has succeeded, the tries.
    """
    if not match.is_found:
        return draw_rows(match)
    if not can_be_carried(match):
        return draw_distances(match)
    gated = can_show_gates(match.schedule)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.7))
        upper, lower = fig.subfigures(2, 1, height_ratios=(2.5, 2.2))
        panels = upper.subplots(1, 3)
        view = draw_carrying(panels, match, _between(match))
        below = lower.subplots(1, 2 + gated, width_ratios=(1.25, 1.4, 1)[-2 - gated :])
        if gated:
            draw_gates(below[0], match.schedule, view)
        else:
            name_view(panels[0], view)
        draw_elements(below[-2], match.schedule)
        draw_w2(below[-1], match)
        return fig


def summarise_matching(match: Matching) -> dict[str, Any]:
    """The numbers of the closing table."""
    found = match.is_found
    return {
        "kind": "matching",
        "measures": int(match.dataset.sizes["measure"]),
        "tries": match.tries,
        "elements": len(match.schedule) if found else None,
        "w2_before": float(match.before.max()) if found else None,
        "w2_at_end": float(match.w2.max()) if found else None,
        "attention": match.attention if found else None,
    }


def can_be_carried(match: Matching) -> bool:
    """Whether there are a schedule and measures to be carried by it."""
    return match.is_found and match.work is not None and None not in (match.work.inputs, match.work.targets)


def _between(match: Matching) -> int:
    """How many elements act before the gates; the first half of them where that is not known."""
    number = gates(match.schedule)[0]
    return int(number[0]) if len(number) and number[0] else max(len(match.schedule) // 2, 1)


def draw_carrying(panels: Any, match: Matching, between: int | None = None) -> Any:
    """Tokens before and after in two axes, in three with those after the elements `between`; gives back the view."""
    inputs, targets = (list(group)[:MOST_MEASURES] for group in (match.work.inputs, match.work.targets))
    paint, space = colours(np.arange(len(inputs))), inputs[0].space
    states = {"before": inputs}
    if between is not None:
        part = match.schedule.first(between)
        states[f"after {between} of {len(match.schedule)} elements"] = [replay(part, match.layer, x) for x in inputs]
    states["after"] = [match(one) for one in inputs]
    shown = {title: [np.asarray(one.positions, float) for one in group] for title, group in states.items()}
    goals = [np.asarray(one.positions, float) for one in targets]
    view = views_of(space, np.concatenate([*shown["before"], *shown["after"]]))[0]
    for axes, (title, clouds) in zip(panels, shown.items(), strict=True):
        draw_axes(axes, view)
        graticule(axes, view)
        step = max(1, sum(map(len, clouds)) // MOST_TOKENS)
        for points, places, colour in zip(clouds, goals, paint, strict=True):
            for x, look in (
                (points[::step], {"s": 6, "lw": 0, "zorder": 3}),
                (places, {"s": 30, "marker": "x", "lw": 0.9, "zorder": 4}),
            ):
                seen = view.seen(space, x)
                near = seen[:, 2] >= 0 if seen.shape[1] > 2 else np.ones(len(seen), bool)
                for side, alpha in ((~near, 0.3), (near, 1.0)):
                    axes.scatter(*seen[side, :2].T, c=colour, alpha=alpha, **look)
        axes.set_title(title)
    panels[-1].scatter([], [], c=INK, s=30, marker="x", lw=0.9, label="target")
    panels[-1].legend(loc="lower right", bbox_to_anchor=(1.05, -0.06))
    return view


def draw_w2(axes: Any, match: Matching) -> None:
    """Distances on a logarithmic axis, by measure."""
    number = np.arange(1, len(match.w2) + 1)
    smallest = np.finfo(float).tiny
    axes.plot(number, np.maximum(match.before, smallest), "o", ms=3, color=GREY, label="before")
    axes.plot(number, np.maximum(match.w2, smallest), "o", ms=3, color=INK, label="after")
    if match.work is not None:
        axes.axhline(match.work.tol, color=INK, lw=0.6, ls=":", label="tol")
    axes.set(yscale="log", xlim=(0.5, len(number) + 0.5))
    axes.locator_params(axis="x", integer=True)
    axes.set(xlabel="measure", ylabel="W₂ from the target")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.1, 1.0), ncols=3, handlelength=1.2, columnspacing=0.8)
