"""Maps of a square in panels, as several experiments show them: a board of light and dark cells, and errors."""

from typing import Any

import numpy as np

SIDE = 6
"""Cells of the board on a side."""
SHADES = ("#b4c3cf", "#0072B2", "#000000")
"""Of errors from none to large, ever darker."""


def draw_board(axes: Any, start: np.ndarray, points: np.ndarray, limits: tuple[float, float, float]) -> None:
    """Points that start on a board of cells; the lightness says on which cell.

    It alternates from cell to cell, and grows with the second coordinate. `limits` are the lower end of both axes and
    the upper ends.
    """
    column, row = np.minimum((SIDE * start).astype(int), SIDE - 1).T
    light = np.where((column + row) % 2 == 0, 0.3 * row / SIDE, 0.6 + 0.2 * row / SIDE)
    axes.scatter(*points.T, s=1.6, c=light, cmap="gray", vmin=0, vmax=1, lw=0)
    _square(axes, limits)


def draw_errors_at(axes: Any, start: np.ndarray, error: np.ndarray, high: float) -> None:
    """Errors at the places where points start, from 0 to `high`, with a bar of colours."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("errors", SHADES)
    found = axes.scatter(*start.T, s=1.6, c=error, cmap=shades, vmin=0, vmax=high, lw=0)
    _square(axes, (-0.02, 1.02, 1.02))
    axes.figure.colorbar(found, ax=axes, shrink=0.6, ticks=[0, high], format="%.2g", pad=0.03)


def _square(axes: Any, limits: tuple[float, float, float]) -> None:
    axes.set(aspect="equal", xlim=limits[:2], ylim=limits[::2], xticks=[0, 1], yticks=[0, 1])
