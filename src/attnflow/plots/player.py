"""The player of animations: the still part of the figure as SVG, and a canvas over it with what moves."""

import base64
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.plots.density_scene import DensityScene
from attnflow.plots.page import PLAYER, as_page, as_svg, json_for_script
from attnflow.plots.scenes import PALE, TRAIL, TokenScene, lighter
from attnflow.plots.snapshots import tilted_parallels
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, PALETTE

ACROSS = 700.0
"""Units of the figure across."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def player(animation: Any) -> str:
    """The player as an element of a page; it loads nothing."""
    return f"""<div class="player">
<div class="stage">{_still(animation)}<canvas role="img" aria-label="animation of the flow"></canvas></div>
<div class="controls"><button type="button">Play</button>
<input type="range" min="0" value="0" step="1" aria-label="time"></div>
<script type="application/json">{json_for_script(player_data(animation))}</script>
<script>{PLAYER}</script></div>"""


def player_page(animation: Any, title: str) -> str:
    """The player on a page of its own."""
    return as_page(title, player(animation))


def player_data(animation: Any) -> dict[str, Any]:
    """All numbers of the player, in units of the figure from its upper left corner."""
    ticks, scene, figure = animation.ticks, animation.scene, animation.figure
    unit = ACROSS / figure.bbox.width

    def placed(axes: Any, x: Any, y: Any) -> np.ndarray:
        dots = axes.transData.transform(np.stack([np.ravel(x), np.ravel(y)], axis=1).astype(float)) * unit
        return np.stack([dots[:, 0], figure.bbox.height * unit - dots[:, 1]], axis=1)

    used, frame = np.unique(ticks.frame, return_inverse=True)
    times = scene.axis.at(ticks.log_time)
    panels = []
    for cursor in animation.cursors:
        values, box = cursor.panel.values[ticks.frame], cursor.axes.bbox
        known = np.isfinite(values)
        # A value that is not known would make its time unknown, too: Matplotlib multiplies it by zero.
        at = placed(cursor.axes, times, np.where(known, values, cursor.axes.get_ylim()[0]))
        panels.append({
            "x": _rounded(at[:, 0]),
            "y": [y if there else None for y, there in zip(_rounded(at[:, 1]), known, strict=True)],
            "top": figure.bbox.height * unit - box.y1 * unit, "bottom": figure.bbox.height * unit - box.y0 * unit,
        })  # fmt: skip
    left, low = animation.label.get_position()
    found: dict[str, Any] = {
        "size": [ACROSS, figure.bbox.height * unit], "frame": frame.tolist(), "seconds": _rounded(ticks.seconds, 4),
        "label": [_plain(scene.axis.title(float(t))) for t in ticks.log_time], "panels": panels, "views": [],
        "title": [ACROSS * left, (1 - low) * figure.bbox.height * unit + 5], "trail": TRAIL, "colours": PALETTE,
        "pale": [lighter(colour, PALE) for colour in PALETTE], "ink": INK, "grey": GREY, "dot": COLOURS[4],
    }  # fmt: skip
    if isinstance(scene, TokenScene):
        if scene.data.names is not None:
            found["names"] = [scene.data.names[k] for k in scene.chosen]
        found["views"] = [_view(scene, part, used, placed, unit) for part in range(len(scene.views))]
    elif isinstance(scene, DensityScene):
        if scene.view.edges is None:
            raise InvalidInput("the player shows no maps of S^2; write this density as gif or mp4.")
        (axes,) = scene.axes
        curves = [placed(axes, scene.view.angles, scene.view.values(int(k))) for k in used]
        heights = np.clip(np.nan_to_num(32 * np.stack([curve[:, 1] for curve in curves]), nan=30000), -30000, 30000)
        found["curve"] = {"x": _rounded(curves[0][:, 0]), "y": _packed(heights.round(), "<i2"), "colour": COLOURS[0]}
    return found


def _view(scene: TokenScene, part: int, used: np.ndarray, placed: Any, unit: float) -> dict[str, Any]:
    view, clouds = scene.views[part], [scene.cloud(part, int(k)) for k in used]
    points = np.stack([cloud.points for cloud in clouds])
    width = float(np.abs(points).max()) or 1.0
    radii = np.zeros(points.shape[:2])
    for row, cloud in zip(radii, clouds, strict=True):  # of tokens that have met one is drawn
        row[cloud.first] = np.sqrt(cloud.areas[cloud.first]) / 2 * ACROSS / (72 * PAGE)
    labels = np.minimum(np.stack([cloud.labels for cloud in clouds]), len(PALETTE) - 1)
    origin, end = placed(scene.axes[part], [0.0, 1.0], [0.0, 1.0])
    solid = view.unit and points.shape[2] > 2
    return {
        "count": points.shape[1], "dim": points.shape[2], "width": width, "unit": bool(view.unit),
        "wraps": view.limits is not None, "origin": origin.tolist(), "scale": (end - origin).tolist(),
        "points": _packed((points / width * 32767).round(), "<i2"), "labels": _packed(labels, "u1"),
        "radii": _packed(np.clip((10 * radii).round(), 0, 255), "u1"),
        "circles": [np.round(circle[::4], 4).tolist() for circle in tilted_parallels()] if solid else [],
    }  # fmt: skip


def _still(animation: Any) -> str:
    """The figure without what moves or turns."""
    moving = [*animation.scene.moving(), *animation.scene.turning(), animation.label]
    with _hidden([*moving, *(part for cursor in animation.cursors for part in (cursor.line, cursor.dot))]):
        return as_svg(animation.figure)


@contextlib.contextmanager
def _hidden(parts: list[Any]) -> Iterator[None]:
    for part in parts:
        part.set_visible(False)
    try:
        yield
    finally:
        for part in parts:
            part.set_visible(True)


def _packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


def _rounded(values: np.ndarray, digits: int = 2) -> list[float]:
    return np.round(values, digits).tolist()


def _plain(title: str) -> str:
    """A title of the time axis without the marks of mathematical text."""
    text = title.strip("$").replace(r"\log", "log").replace(r"\times ", "×").replace(r"\times", "×")
    return re.sub(r"\^\{(.*?)\}", lambda found: found.group(1).translate(RAISED), text)
