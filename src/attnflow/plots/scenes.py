"""What moves in an animation: tokens on their space or a density, and cursors in the panels beside them."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnflow.flows import LongFlow
from attnflow.observe.linked import components
from attnflow.plots.energy import draw_count, draw_energy
from attnflow.plots.figure_data import FigureData
from attnflow.plots.snapshots import Projection, draw_axes, graticule, views
from attnflow.plots.style import COLOURS, INK, colours
from attnflow.plots.ticks import Ticks, even_ticks, long_ticks
from attnflow.plots.times import TimeAxis

MOST_TOKENS = 1500
MOST_TRAILS = 400
"""Tokens that leave a trail."""
TRAIL = 12
"""Pictures that a trail goes back."""
KEPT = 256
"""Clouds that are kept, since trails show each of them many times."""
NEAR = 0.008
"""Tokens nearer than this, as a share of the picture, are drawn as one disc."""
DISC = 420.0
"""Size of a disc that holds all mass, the square of its diameter in points, at a width of seven inches."""
BODY = "#f6f6f4"
PALE = 0.66
"""How much of white is in the colours of the far side of a sphere."""


class Panel(NamedTuple):
    """A curve against time, with a cursor."""

    draw: Callable[[Any], None]
    values: np.ndarray
    """Where the cursor stands at every saved frame; NaN: nowhere."""


class Cloud(NamedTuple):
    """The tokens of one frame in one picture; those that have met are at one place and have one colour and area."""

    points: np.ndarray
    """(token, 2 or 3)"""
    areas: np.ndarray
    labels: np.ndarray
    """The numbers of the colours."""
    first: np.ndarray
    """The tokens that stand for all that have met."""


class AbstractScene(abc.ABC):
    """A result as animations see it."""

    axis: TimeAxis
    log_time: np.ndarray
    panels: list[Panel]

    def ticks(self, seconds: float, fps: float) -> Ticks:
        """Which saved frame is shown when."""
        return even_ticks(self.log_time, self.axis, seconds, fps)

    @abc.abstractmethod
    def areas(self, fig: Any, box: tuple[float, float, float, float]) -> None:
        """Make the axes of the pictures within a box, with what does not move."""

    @abc.abstractmethod
    def moving(self) -> list[Any]:
        """The artists that `show` moves."""

    def turning(self) -> list[Any]:
        """What turns with a solid picture in the player."""
        return []

    @abc.abstractmethod
    def show(self, ticks: Ticks, k: int) -> None:
        """Move everything to picture number `k`."""


class TokenScene(AbstractScene):
    """Tokens in the colours of their clusters; discs are as large as the mass that has met."""

    def __init__(self, data: FigureData):
        self.data, self.axis, self.log_time = data, data.axis, data.log_time
        self.views = views(data)
        step = -(-len(data.labels) // MOST_TOKENS)
        self.chosen = np.arange(0, len(data.labels), step)
        self.masses = data.flow.dataset["masses"].values[self.chosen]
        self.masses = self.masses / self.masses.sum()
        self.labels = data.labels[self.chosen]
        self.width = [
            1.0 if view.unit else float(np.ptp(self._seen(view, slice(None)))) / 2 or 1.0 for view in self.views
        ]
        self.least = float(np.clip(2400 / len(self.chosen), 2.0, 16.0))
        self.clouds: dict[tuple[int, int], Cloud] = {}
        self.panels = [Panel(lambda axes: draw_count(axes, data), _counts(data))]
        if data.height is not None:
            self.panels.insert(0, Panel(lambda axes: draw_energy(axes, data), data.height[1]))

    def ticks(self, seconds: float, fps: float) -> Ticks:
        if not isinstance(self.data.flow, LongFlow):
            return even_ticks(self.log_time, self.axis, seconds, fps)
        steps = np.diff(self.data.flow.positions.values, axis=0)
        way = np.append(0, np.cumsum(np.sqrt((steps**2).sum(axis=2) @ self.data.flow.dataset["masses"].values)))
        return long_ticks(self.log_time, way, self.axis, seconds, fps)

    def _seen(self, view: Projection, frame: Any) -> np.ndarray:
        return view.points(self.data, self.data.flow.positions.values[frame][..., self.chosen, :])

    def cloud(self, part: int, frame: int) -> Cloud:
        """The tokens of a frame, those that have met as one disc whose area is their mass."""
        if (part, frame) not in self.clouds:
            if len(self.clouds) > KEPT:
                self.clouds.clear()
            self.clouds[part, frame] = self._cloud(part, frame)
        return self.clouds[part, frame]

    def _cloud(self, part: int, frame: int) -> Cloud:
        points = self._seen(self.views[part], frame)
        near = NEAR * self.width[part]
        group = np.unique(components(points, near), return_inverse=True)[1]
        size = np.bincount(group)
        centre = np.stack([np.bincount(group, column) / size for column in points.T], axis=1)
        reach = np.zeros(len(size))
        np.maximum.at(reach, group, np.linalg.norm(points - centre[group], axis=1))
        met = (reach < 2 * near)[group]
        group = np.unique(np.where(met, group, len(size) + np.arange(len(group))), return_inverse=True)[1]
        first = np.unique(group, return_index=True)[1]
        mass = np.bincount(group, self.masses)
        colour = np.zeros((len(first), self.labels.max() + 1))
        np.add.at(colour, (group, self.labels), self.masses)
        points = np.where(met[:, None], points[first][group], points)
        areas = self.least + DISC * np.where(np.bincount(group) > 1, mass, 0.0)
        return Cloud(points, areas[group], colour.argmax(axis=1)[group], first)

    def areas(self, fig: Any, box: tuple[float, float, float, float]) -> None:
        left, bottom, width, height = box
        count = len(self.views)
        self.axes = []
        self.dots, self.far, self.trails, self.depth = [], [], [], []
        for k, view in enumerate(self.views):
            gap = 0.0 if not view.labels else 0.2
            axes = fig.add_axes(
                (
                    left + gap * width,
                    bottom + (count - 1 - k + gap / 2) * height / count,
                    width * (1 - 1.2 * gap),
                    height * (1 - gap) / count,
                )
            )
            draw_axes(axes, view)
            if view.labels:
                axes.set_ylabel(view.labels[1] if len(view.labels) > 1 else "")
            if not view.unit and view.limits is None:
                _limits(axes, self._seen(view, slice(None)))
            self.depth += graticule(axes, view, BODY)
            self.axes.append(axes)
            self.trails.append(axes.add_collection(_lines()))
            self.far.append(axes.scatter([], [], zorder=2, lw=0))
            self.dots.append(axes.scatter([], [], zorder=4, lw=0.5, edgecolors=INK, clip_on=False))

    def moving(self) -> list[Any]:
        return [*self.trails, *self.far, *self.dots]

    def turning(self) -> list[Any]:
        return self.depth

    def show(self, ticks: Ticks, k: int) -> None:
        for part, view in enumerate(self.views):
            cloud = self.cloud(part, int(ticks.frame[k]))
            pick = cloud.first[np.argsort(-cloud.areas[cloud.first], kind="stable")]
            near = ~_behind(view, cloud.points[pick])
            paint = np.array(colours(cloud.labels[pick]))
            _move(self.dots[part], cloud.points[pick[near]], cloud.areas[pick[near]], paint[near])
            pale = [lighter(colour, PALE) for colour in paint[~near]]
            _move(self.far[part], cloud.points[pick[~near]], cloud.areas[pick[~near]], pale)
            segments, shades = self.trail(part, ticks, k)
            self.trails[part].set_segments(list(segments))
            self.trails[part].set_color(shades)

    def trail(self, part: int, ticks: Ticks, k: int) -> tuple[list[np.ndarray], list[str]]:
        """Lines from saved frame to saved frame, on a sphere along great circles, lighter as they are older."""
        back = ticks.frame[max(k - TRAIL, 0) : k + 1]
        frames = back[np.append(True, back[1:] != back[:-1])]
        age = k - np.array([np.flatnonzero(ticks.frame[: k + 1] == frame).min() for frame in frames[1:]])
        view, some = self.views[part], np.unique(np.linspace(0, len(self.chosen) - 1, MOST_TRAILS).astype(int))
        segments: list[np.ndarray] = []
        shades: list[str] = []
        if len(frames) < 2:
            return segments, shades
        clouds = [self.cloud(part, int(frame)) for frame in frames]
        for old, new, years in zip(clouds[:-1], clouds[1:], age, strict=True):
            ends = np.stack([old.points[some], new.points[some]], axis=1)
            far = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
            which = np.flatnonzero(far > 0.5 * NEAR * self.width[part])
            if view.limits is not None:  # an angle that went past pi
                which = which[far[which] < (view.limits[1] - view.limits[0]) / 2]
            if not len(which):
                continue
            rounded = np.round(ends[which].reshape(len(which), -1) / self.width[part], 3)
            which = which[np.unique(rounded, axis=0, return_index=True)[1]]
            lines = _great_circles(ends[which]) if view.unit else ends[which]
            hidden = _behind(view, lines.mean(axis=1))
            fade = 0.35 + 0.65 * min(years / TRAIL, 1.0)
            segments += list(lines[..., :2])
            names = colours(new.labels[some[which]])
            shades += [lighter(c, max(fade, 0.85 * h)) for c, h in zip(names, hidden, strict=True)]
        return segments, shades


@functools.cache
def lighter(colour: str, share: float) -> str:
    """A colour mixed with so much white."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return "#" + "".join(f"{round(part):02x}" for part in parts + share * (255 - parts))


@dataclasses.dataclass
class Cursor:
    """A vertical line and a dot in a panel."""

    panel: Panel
    axes: Any
    line: Any
    dot: Any

    @classmethod
    def at(cls, axes: Any, panel: Panel) -> "Cursor":
        """Draw a panel with its legend above it, and its cursor at the left end."""
        panel.draw(axes)
        if axes.get_legend() is not None:
            axes.legend(
                loc="lower left",
                bbox_to_anchor=(-0.02, 1.0),
                ncols=2,
                borderaxespad=0.1,
                columnspacing=1.2,
                handlelength=1.6,
                labelspacing=0.2,
            )
        low = axes.get_xlim()[0]
        line = axes.axvline(low, color=INK, lw=0.8, zorder=5)
        (dot,) = axes.plot([low], [np.nan], "o", ms=6, mfc=COLOURS[4], mec=INK, mew=0.7, zorder=6, clip_on=False)
        return cls(panel, axes, line, dot)

    def move(self, time: float, frame: int) -> None:
        """To a time of the axis, and the value of a saved frame."""
        self.line.set_xdata([time, time])
        self.dot.set_data([time], [self.panel.values[frame]])


def _counts(data: FigureData) -> np.ndarray:
    """The number of clusters of every saved frame, as `draw_count` shows it; NaN where tokens percolate."""
    if data.tree is None:
        return np.where(data.clusters["condensed"].values, data.clusters["count"].values, np.nan)
    merges = data.tree.merges["log_time"].values
    return data.flow.dataset.sizes["token"] - np.searchsorted(merges, data.log_time, side="right").astype(float)


def _behind(view: Projection, points: np.ndarray) -> np.ndarray:
    """Which points are on the far side of a sphere."""
    if not view.unit or points.shape[1] < 3:
        return np.zeros(len(points), bool)
    return points[:, 2] < 0


def _great_circles(ends: np.ndarray) -> np.ndarray:
    """Points between pairs of points of the unit sphere or circle; between others, and antipodes, a straight line."""
    share = np.linspace(0, 1, 9)[:, None]
    lines = (1 - share) * ends[:, :1] + share * ends[:, 1:]
    length = np.linalg.norm(lines, axis=2, keepdims=True)
    on = (np.linalg.norm(ends, axis=2).min(axis=1) > 0.999) & (length.min(axis=(1, 2)) > 0.1)
    return np.where(on[:, None, None], lines / np.maximum(length, 1e-9), lines)


def _limits(axes: Any, points: np.ndarray) -> None:
    """Limits that hold the tokens of all frames, the same for both axes."""
    flat = points.reshape(-1, points.shape[-1])[:, :2]
    middle, reach = (flat.max(axis=0) + flat.min(axis=0)) / 2, 0.55 * max(np.ptp(flat, axis=0).max(), 1e-9)
    axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))


def _lines() -> Any:
    from matplotlib.collections import LineCollection

    return LineCollection([], linewidths=1.2, zorder=3, capstyle="round")


def _move(dots: Any, points: np.ndarray, areas: np.ndarray, paint: Any) -> None:
    dots.set_offsets(points[:, :2] if len(points) else np.zeros((0, 2)))
    dots.set_sizes(areas)
    dots.set_facecolor(list(paint))
