"""Points of a square in a panel, as several experiments show maps."""

from typing import Any

import numpy as np

from attnflow.plots.style import panel


def draw_points(axes: Any, points: np.ndarray, colour: Any, limits: tuple[float, float, float], letter: str,
                title: str) -> None:  # fmt: skip
    """Points in one colour each; `limits` are the lower end of both axes and the upper ends."""
    axes.scatter(*points.T, s=2.0, c=colour, lw=0)
    axes.set_aspect("equal")
    axes.set_xlim(limits[0], limits[1])
    axes.set_ylim(limits[0], limits[2])
    axes.set_xticks([0, 1])
    axes.set_yticks([0, 1])
    panel(axes, letter, title)
