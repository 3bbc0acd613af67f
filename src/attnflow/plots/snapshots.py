"""Tokens on the circle and on the sphere at chosen times."""

from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import FigureData
from attnflow.plots.style import GREY, INK, PAGE, colours, styled
from attnflow.spaces import Sphere

MOST_TOKENS = 4000


def draw_snapshots(flow: AbstractTrajectory | FigureData, frames: list[int] | None = None) -> Any:
    """A row of pictures, one per frame; tokens keep the colour of their cluster on one plateau.

    On S^2 the view is orthographic and the far side pale; in higher dimension the first principal components of all
    frames together are shown.
    """
    data = FigureData.of(flow)
    frames = data.moments() if frames is None else frames
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, PAGE / max(len(frames), 3) + 0.25))
        panels = np.atleast_1d(fig.subplots(1, len(frames)))
        view = projection(data)
        paint = np.array(colours(data.labels))
        for axes, k in zip(panels, frames, strict=True):
            draw_frame(axes, data, k, view, paint)
            axes.set_title(data.axis.title(data.log_time[k]))
        return fig


def draw_frame(axes: Any, data: FigureData, frame: int, view: np.ndarray, paint: np.ndarray) -> None:
    """One frame on one pair of axes; `view` is the (dim, 3) or (dim, 2) projection."""
    x = data.flow.positions.isel(time=frame).values
    step = max(1, len(x) // MOST_TOKENS)
    seen, paint = (x @ view)[::step], paint[::step]
    size = float(np.clip(1500 / len(seen), 1.0, 14.0))
    apart = np.unique(np.round(seen, 3), axis=0, return_index=True)[1]  # tokens that have met are drawn once
    seen, paint = seen[apart], paint[apart]
    axes.set_aspect("equal")
    axes.axis("off")
    on_sphere = isinstance(data.flow.space, Sphere)
    if on_sphere:
        angle = np.linspace(0, 2 * np.pi, 200)
        axes.plot(np.cos(angle), np.sin(angle), color=GREY, lw=0.6)
        axes.set_xlim(-1.12, 1.12)
        axes.set_ylim(-1.12, 1.12)
    if view.shape[1] == 2 or not on_sphere:
        axes.scatter(seen[:, 0], seen[:, 1], s=size, c=paint, lw=0, zorder=3)
        draw_masses(axes, data, frame, view)
        return
    for tilt in np.deg2rad([-60, -30, 0, 30, 60]):  # parallels of the view, for depth
        angle = np.linspace(0, 2 * np.pi, 200)
        circle = np.stack([np.cos(tilt) * np.cos(angle), np.full(200, np.sin(tilt)), np.cos(tilt) * np.sin(angle)])
        flat = _tilted() @ circle
        axes.plot(*np.where(flat[2] > 0, flat[:2], np.nan), color=GREY, lw=0.3, alpha=0.6)
    far = seen[:, 2] < 0
    axes.scatter(seen[far, 0], seen[far, 1], s=size, c=paint[far], lw=0, alpha=0.25, zorder=2)
    axes.scatter(seen[~far, 0], seen[~far, 1], s=size, c=paint[~far], lw=0.2, edgecolors=INK, zorder=3)
    draw_masses(axes, data, frame, view)


def draw_masses(axes: Any, data: FigureData, frame: int, view: np.ndarray) -> None:
    """Condensed clusters as discs whose area is their mass, in the colour of most of it."""
    found = data.clusters.isel(time=frame)
    if not bool(found["condensed"]) or not isinstance(data.flow.space, Sphere):
        return
    labels = found["label"].values
    for k in range(int(found["count"])):
        place = found["centre"].values[k] @ view
        behind = len(place) > 2 and place[2] < 0
        axes.scatter(
            place[0], place[1], s=260 * found["mass"].values[k], c=data.colour(labels == k), edgecolors=INK, lw=0.5,
            alpha=0.35 if behind else 1.0, zorder=4, clip_on=False,
        )  # fmt: skip


def projection(data: FigureData) -> np.ndarray:
    """(dim, 2) on the circle, (dim, 3) on S^2 (a fixed view) and beyond (principal components)."""
    x = data.flow.positions
    d = x.sizes["dim"]
    if d <= 2:
        return np.eye(max(d, 1), 2)
    if d == 3:
        return _tilted().T
    cloud = x.isel(time=slice(None, None, max(1, x.sizes["time"] // 20))).values.reshape(-1, d)
    _, _, directions = np.linalg.svd(cloud[:: max(1, len(cloud) // 20000)], full_matrices=False)
    return directions[:3].T


def _tilted() -> np.ndarray:
    """A rotation that looks at the sphere slightly from above."""
    a = np.deg2rad(20)
    return np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
