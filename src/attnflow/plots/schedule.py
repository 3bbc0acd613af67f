"""A schedule: its elements in their order, and its gates on the space."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.control import LineMatch, PolarMatch, Schedule, VelocityMatch
from attnflow.fields import ReluUnit
from attnflow.fields.exact.base import constant
from attnflow.plots.snapshots import Projection, draw_axes, graticule, name_view, views_of
from attnflow.plots.style import COLOURS, COLUMN, GREY, INK, PAGE, shades, styled
from attnflow.spaces import AbstractSpace, Euclidean, Sphere

MOST_GATES = 60
"""Gates that are drawn; of more, so many evenly picked."""
MANY = 150
"""More elements than this are lines instead of bars."""
ROOM = 0.55
"""How much higher than the bars the panel of elements is, for its legend, as a share of their decades."""
LONGEST = 0.35
"""The longest arrow of a gate, in units of half the width of the picture."""
NAMES = {"ReluUnit": "ReLU unit", "Drift": "drift", "MeanAttention": "mean attention", "Affine": "linear map"}


def plot_schedule(given: Schedule | LineMatch | PolarMatch | VelocityMatch) -> Any:
    """The gates on the space, where it can be drawn, and how much every element does."""
    schedule = given if isinstance(given, Schedule) else given.schedule
    drawn = can_show_gates(schedule)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE if drawn else COLUMN, 2.6))
        panels = np.atleast_1d(fig.subplots(1, 1 + drawn, width_ratios=(1, 1.4)[-1 - drawn :]))
        if drawn:
            draw_gates(panels[0], schedule, _view(schedule))
        draw_elements(panels[-1], schedule)
        return fig


def can_show_gates(schedule: Schedule) -> bool:
    """Whether there are gates, in the plane, on the circle or on S^2."""
    flat = isinstance(schedule.space, Euclidean) and schedule.space.dim == 2
    round_ = isinstance(schedule.space, Sphere) and schedule.space.dim in (2, 3)
    return bool((flat or round_) and len(gates(schedule)[0]))


def gates(schedule: Schedule) -> tuple[np.ndarray, ...]:
    """(numbers of the elements, w, a, b) of all gates w (<a, x> + b)_+, in their order."""
    field, found = schedule.field, []
    for k, kind in enumerate(field.kinds):
        if isinstance(kind, ReluUnit):
            at = np.flatnonzero(np.asarray(field.which) == k)
            rows = np.asarray(field.row)[at]
            w, a = (np.reshape(constant(one), (-1, schedule.space.dim)) for one in (kind.outer, kind.inner))
            b = np.reshape(constant(kind.bias), -1)
            found += [(int(i), w[r % len(w)], a[r % len(a)], b[r % len(b)]) for i, r in zip(at, rows, strict=True)]
    found.sort(key=lambda one: one[0])
    columns = list(zip(*found, strict=True)) or [()] * 4
    return tuple(np.asarray(column, float if k else int) for k, column in enumerate(columns))


def draw_elements(axes: Any, schedule: Schedule) -> None:
    """How much every element does, in the order in which they act, in a colour for each kind: its share of `budget`.

    Where a Lipschitz constant is not known, the duration.
    """
    number, size = np.arange(1, len(schedule) + 1), schedule.budgets
    known = bool(np.isfinite(size).all() and (size > 0).all())
    size = size if known else schedule.durations
    names = NAMES | ({"Drift": "boost", "ReluUnit": "gate"} if isinstance(schedule.space, Sphere) else {})
    kinds = np.array([type(schedule.field.kinds[k]).__name__ for k in np.asarray(schedule.field.which)])
    low, top = 0.5 * float(size.min()), float(size.max())
    for colour, kind in zip(COLOURS, dict.fromkeys(kinds.tolist()), strict=False):
        own = kinds == kind
        label = f"{names.get(kind, kind)} ({own.sum()})"
        if len(schedule) > MANY:
            axes.vlines(number[own], low, size[own], color=colour, lw=0.5, label=label)
        else:
            axes.bar(number[own], size[own] - low, 0.8, bottom=low, color=colour, label=label)
    axes.set(yscale="log", xlabel="element", ylabel="Lipschitz constant × time" if known else "duration")
    axes.set(xlim=(0.3, len(schedule) + 0.7), ylim=(low, top * (top / low) ** ROOM))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="upper left", handlelength=1.0)


def draw_gates(axes: Any, schedule: Schedule, view: Projection) -> None:
    """The border of every gate, early ones dark, late ones light, and an arrow along w from the middle of its cap."""
    number, w, a, b = gates(schedule)
    pick = np.unique(np.linspace(0, len(number) - 1, min(len(number), MOST_GATES)).round().astype(int))
    draw_axes(axes, view)
    graticule(axes, view)
    length = np.linalg.norm(a, axis=1)
    keep = [k for k in pick if length[k] > 0]
    for k, colour in zip(keep, shades(len(keep)), strict=True):
        middle, cosine = a[k] / length[k], -b[k] / length[k]
        if isinstance(schedule.space, Euclidean):
            _line(axes, view, cosine * middle, middle, colour)
            start = cosine * middle
        elif abs(cosine) < 1:
            _rim(axes, schedule.space, view, middle, cosine, colour)
            start = middle
        else:
            start = middle  # the gate holds all of the sphere
        _arrow(axes, schedule.space, view, start, w[k], colour)
    shown = f"{len(keep)} of {len(number)}" if len(keep) < len(number) else str(len(number))
    axes.set_title(f"{shown} gates, the first ones dark")
    axes.set_ylabel(view.labels[1] if len(view.labels) > 1 else "")
    name_view(axes, view)


def _view(schedule: Schedule) -> Projection:
    """The view of the space alone; in the plane wide enough for all gates."""
    if isinstance(schedule.space, Sphere):
        return views_of(schedule.space, np.eye(schedule.space.dim))[0]
    _, _, a, b = gates(schedule)
    near = -b[:, None] * a / np.maximum(np.sum(a**2, axis=1, keepdims=True), np.finfo(float).tiny)
    reach = 1.2 * max(float(np.abs(near).max()), 1.0)
    corners = reach * np.array([[-1.0, -1.0], [1.0, 1.0]])
    return dataclasses.replace(views_of(schedule.space, corners)[0], limits=(-reach, reach))


def _rim(axes: Any, space: AbstractSpace, view: Projection, middle: np.ndarray, cosine: float, colour: Any) -> None:
    sine = np.sqrt(1 - cosine**2)
    if space.dim == 2:
        angle = np.arctan2(middle[1], middle[0]) + np.arccos(cosine) * np.linspace(-1, 1, 100)
        axes.plot(1.06 * np.cos(angle), 1.06 * np.sin(angle), color=colour, lw=0.9, zorder=3, clip_on=False)
        return
    across = np.linalg.svd(middle[None])[2][1:]
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = cosine * middle + sine * (np.cos(turn)[:, None] * across[0] + np.sin(turn)[:, None] * across[1])
    seen = view.seen(space, circle)
    for side, look in ((seen[:, 2:] >= 0, {"lw": 0.9}), (seen[:, 2:] < 0, {"lw": 0.5, "ls": ":"})):
        axes.plot(*np.where(side, seen[:, :2], np.nan).T, color=colour, zorder=3, **look)


def _line(axes: Any, view: Projection, point: np.ndarray, normal: np.ndarray, colour: Any) -> None:
    along = np.array([-normal[1], normal[0]])
    reach = 4 * (view.limits[1] if view.limits else 1.0)
    axes.plot(*np.stack([point - reach * along, point + reach * along]).T, color=colour, lw=0.8, zorder=3)


def _arrow(axes: Any, space: AbstractSpace, view: Projection, start: np.ndarray, w: np.ndarray, colour: Any) -> None:
    push = w if isinstance(space, Euclidean) else w - np.dot(w, start) * start
    size = float(np.linalg.norm(push))
    if not size:
        return
    width = view.limits[1] if view.limits else 1.0
    at, end = (view.seen(space, one[None])[0] for one in (start, start + LONGEST * width * push / size))
    behind = len(at) > 2 and at[2] < 0
    axes.annotate(
        "",
        end[:2],
        at[:2],
        arrowprops={"arrowstyle": "->", "color": GREY if behind else colour, "lw": 0.5 if behind else 1.0},
        zorder=4,
    )
    axes.plot(*at[:2], "o", ms=2, color=GREY if behind else INK, zorder=4)
