"""Tokens on their space at chosen times."""

import dataclasses
import math
from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import FigureData
from attnflow.plots.names import cluster_name, draw_words
from attnflow.plots.style import GREY, INK, PAGE, colours, styled
from attnflow.spaces import AbstractSpace

MOST_TOKENS = 4000
MOST_VIEWS = 3
DISC = 260.0
"""Area of the disc of a cluster that holds all mass, square points."""
TILT = 20
"""Degrees from which S^2 is seen above its equator."""
FEW_WORDS, WORD = 8, 5.0
"""Tokens or clusters that are named in a small picture, and the size of the words, points."""
MOST_BEHIND = 1000
"""Of more tokens than this, those on the far side of S^2 are left out: so many would hide the near side."""


@dataclasses.dataclass(frozen=True)
class Projection:
    """How one of the pictures of a space is put on the page."""

    part: int
    """The number of the picture."""
    projection: np.ndarray
    """(coordinates, 2 or 3); the third coordinate is the depth."""
    labels: tuple[str, ...]
    limits: tuple[float, float] | None
    unit: bool
    name: str = ""
    """What is across and up, where the axes do not say it."""
    box: tuple[tuple[float, float], tuple[float, float]] | None = None
    """The range across and up of principal components."""

    def points(self, data: FigureData, x: np.ndarray) -> np.ndarray:
        """Positions of a flow as they are seen: two coordinates, and the depth where there is one."""
        return self.seen(data.flow.space, x)

    def seen(self, space: AbstractSpace, x: np.ndarray) -> np.ndarray:
        """The same, of any positions on the space."""
        return space.pictures(x)[self.part].points @ self.projection


def draw_snapshots(flow: AbstractTrajectory | FigureData, frames: list[int] | None = None) -> Any:
    """A row of pictures, one per frame; tokens keep the colour of their cluster on one plateau.

    S^2 is seen from afar, its far side pale (of more than MOST_BEHIND tokens it is left out); a torus is shown as
    squares of angles, a product as a row for each factor. In higher dimension the first principal components of all
    frames together are shown.
    """
    data = FigureData.of(flow)
    frames = data.moments() if frames is None else frames
    rows = len(views(data))
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, rows * PAGE / max(len(frames), 3) + 0.25))
        draw_frames(fig.subplots(rows, len(frames), squeeze=False), data, frames)
        return fig


def draw_frames(panels: Any, data: FigureData, frames: list[int]) -> None:
    """Frames in the columns of an array of axes, the views of the space in its rows."""
    paint = np.array(colours(data.labels))
    for row, view in zip(panels, views(data), strict=True):
        for axes, k in zip(row, frames, strict=True):
            _draw_frame(axes, data, k, view, paint)
        if view.labels:
            row[0].set_ylabel(view.labels[1] if len(view.labels) > 1 else "", labelpad=0)
        name_view(row[0], view)
    for axes, k in zip(panels[0], frames, strict=True):
        axes.set_title(data.axis.title(data.log_time[k]))


def views(data: FigureData) -> list[Projection]:
    """The views of the space of a flow, for all of its frames."""
    x = data.flow.positions
    cloud = x.isel(time=slice(None, None, max(1, x.sizes["time"] // 20))).values.reshape(-1, x.sizes["dim"])
    return views_of(data.flow.space, cloud)


def views_of(space: AbstractSpace, cloud: np.ndarray) -> list[Projection]:
    """The views of a space: plane pictures as they are, S^2 from a fixed place, others by principal components."""
    found = []
    for k, picture in enumerate(space.pictures(cloud[:: max(1, len(cloud) // 20000)])[:MOST_VIEWS]):
        size = picture.points.shape[-1]
        if size <= 2:
            found.append(Projection(k, np.eye(size, 2), picture.labels, picture.limits, picture.unit))
            continue
        # with rows of zeros there are three directions for fewer than three points, too
        rows = np.pad(picture.points, ((0, 3), (0, 0)))
        turn, name = _tilted(), f"$x_1$ across, $x_2$ up, seen from {TILT}° above"
        if size > 3:
            _, sizes, axes = np.linalg.svd(rows, full_matrices=False)
            found.append(_principal(k, picture.points, axes[:3], sizes))
            continue
        found.append(Projection(k, turn.T, (), None, picture.unit, name))
    return found


def _principal(part: int, points: np.ndarray, axes: np.ndarray, sizes: np.ndarray) -> Projection:
    """The first two principal components, named with their shares of the squares, in a square around the points."""
    shares = 100 * sizes**2 / max(float(np.sum(sizes**2)), np.finfo(float).tiny)
    labels = tuple(f"PC {k + 1} ({shares[k]:.0f} %)" for k in range(2))
    seen = points @ axes[:2].T
    low, high = seen.min(axis=0), seen.max(axis=0)
    reach = 0.62 * max(float(np.max(high - low)), 1e-9)
    box = tuple((float(m) - reach, float(m) + reach) for m in (low + high) / 2)
    return Projection(part, axes.T, labels, None, False, "", (box[0], box[1]))


def name_view(axes: Any, view: Projection) -> None:
    """Say below a picture which axes it shows, where they are not drawn."""
    if view.name:
        words = axes.text(0.0, -0.02, view.name, transform=axes.transAxes, ha="left", va="top", size=6, color=GREY)
        words.set_in_layout(False)


def _draw_frame(axes: Any, data: FigureData, frame: int, view: Projection, paint: np.ndarray) -> None:
    x = data.flow.positions.isel(time=frame).values
    step = max(1, len(x) // MOST_TOKENS)
    seen, paint = view.points(data, x[::step]), paint[::step]
    size = float(np.clip(1500 / len(seen), 1.0, 14.0))
    width = np.abs(seen).max() or 1.0
    apart = np.unique(np.round(seen / width, 3), axis=0, return_index=True)[1]  # tokens that have met are drawn once
    seen, paint = seen[apart], paint[apart]
    draw_axes(axes, view)
    near = np.ones(len(seen), bool)
    graticule(axes, view)
    if view.unit and seen.shape[1] > 2:
        near = seen[:, 2] >= 0
        if len(seen) <= MOST_BEHIND:
            axes.scatter(seen[~near, 0], seen[~near, 1], s=size, c=paint[~near], lw=0, alpha=0.25, zorder=2)
    rim = 0.2 if view.unit and seen.shape[1] > 2 and size > 2 else 0
    axes.scatter(seen[near, 0], seen[near, 1], s=size, c=paint[near], lw=rim, edgecolors=INK, zorder=3)
    named = _draw_masses(axes, data, frame, view)
    if data.names is not None and not named and len(x) <= FEW_WORDS:
        draw_words(axes, view.points(data, x), data.names, np.full(len(x), size), size=WORD)


def graticule(axes: Any, view: Projection, body: str = "none") -> list[Any]:
    """The circle or the sphere that the tokens live on, filled with the colour `body`; nothing for other spaces.

    Gives back the lines on the sphere.
    """
    if not view.unit:
        return []
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.fill(np.cos(angle), np.sin(angle), fc=body, ec=GREY, lw=0.6, zorder=1)
    if len(view.projection.T) < 3:
        return []
    look: dict[str, Any] = {"color": GREY, "lw": 0.3, "alpha": 0.6, "zorder": 1.5}
    return [line for c in tilted_parallels() for line in axes.plot(*np.where(c[:, 2:] > 0, c[:, :2], np.nan).T, **look)]


def tilted_parallels() -> list[np.ndarray]:
    """Circles on S^2 that give a view depth, each as points (across, up, towards the eye)."""
    angle = np.linspace(0, 2 * np.pi, 200)
    return [
        np.stack([np.cos(tilt) * np.cos(angle), np.full(200, np.sin(tilt)), np.cos(tilt) * np.sin(angle)], axis=1)
        @ _tilted().T
        for tilt in np.deg2rad([-60, -30, 0, 30, 60])
    ]


def draw_axes(axes: Any, view: Projection) -> None:
    """A box with names where the coordinates have some; else nothing."""
    axes.margins(0.1)
    axes.set_aspect("equal")
    if view.unit:
        axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12))
    if not view.labels:
        axes.axis("off")
        return
    for spine in axes.spines.values():
        spine.set(visible=True, color=GREY, lw=0.5)
    axes.set_xlabel(view.labels[0], labelpad=0)
    axes.locator_params(nbins=4)
    axes.tick_params(length=2, pad=1.5)
    if len(view.labels) == 1:  # a line
        axes.set_aspect("auto")
        axes.set_box_aspect(0.2)
        axes.set(yticks=[], ylim=(-1, 1))
    if view.box is not None:
        axes.set(xlim=view.box[0], ylim=view.box[1])
    if view.limits is not None:
        if view.limits == (-math.pi, math.pi):
            axes.set_xticks([-math.pi, 0, math.pi], ["−π", "0", "π"])
            axes.set_yticks([-math.pi, 0, math.pi], ["−π", "0", "π"])
        axes.set_xlim(*view.limits)
        axes.set_ylim(*view.limits)


def _draw_masses(axes: Any, data: FigureData, frame: int, view: Projection) -> bool:
    """Condensed clusters as discs whose area is their mass, in the colour of most of it; whether there are some."""
    found = data.clusters.isel(time=frame)
    if not bool(found["condensed"]):
        return False
    labels, count = found["label"].values, int(found["count"])
    places = view.points(data, found["centre"].values[:count])
    if data.names is not None:
        words = [cluster_name([data.names[i] for i in np.flatnonzero(labels == k)]) for k in range(count)]
        areas = DISC * found["mass"].values[:FEW_WORDS]
        draw_words(axes, places[:FEW_WORDS], words[:FEW_WORDS], areas[: len(places)], size=WORD)
    for k, place in enumerate(places):
        behind = view.unit and len(place) > 2 and place[2] < 0
        axes.scatter(
            place[0],
            place[1],
            s=DISC * found["mass"].values[k],
            c=data.colour(labels == k),
            edgecolors=INK,
            lw=0.5,
            alpha=0.35 if behind else 1.0,
            zorder=4,
            clip_on=False,
        )
    return True


def _tilted() -> np.ndarray:
    """A rotation that looks at the sphere slightly from above."""
    a = np.deg2rad(TILT)
    return np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
