"""Points of a square in a panel, as several experiments show maps."""

from typing import Any

import numpy as np

from attnflow.plots.style import panel


def draw_points(
    axes: Any, points: np.ndarray, colour: Any, limits: tuple[float, float, float], letter: str = "", title: str = ""
) -> None:
    """Points in one colour each; `limits` are the lower end of both axes and the upper ends."""
    axes.scatter(*points.T, s=2.0, c=colour, lw=0)
    axes.set(aspect="equal", xlim=limits[:2], ylim=limits[::2], xticks=[0, 1], yticks=[0, 1])
    if letter:
        panel(axes, letter, title)
