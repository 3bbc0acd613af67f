"""What grows at a density: the spectrum of the linearised operator and its first eigenfunctions."""

from typing import Any

import numpy as np

from attnflow.meanfield import CircleBasis, Linearised, ZonalBasis
from attnflow.plots.style import COLOURS, GREY, PAGE, styled


def draw_eigenfunctions(operator: Linearised, *, count: int = 5) -> Any:
    """Growth rates (left) and the `count` fastest eigenfunctions (right): curves, or maps on S^2."""
    count = min(count, len(operator.spectrum))
    values = np.real(operator.values(count))
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.6))
        left, right = fig.subplots(1, 2, width_ratios=(1, 1.6))
        left.axhline(0, color=GREY, lw=0.6)
        left.plot(np.arange(1, len(operator.growth) + 1), operator.growth, ".", ms=3, color=GREY)
        for j in range(count):
            left.plot(j + 1, operator.growth[j], "o", ms=4, color=COLOURS[j % len(COLOURS)])
        left.set(xlabel="eigenvalue, by growth", ylabel="growth rate")
        if isinstance(operator.basis, CircleBasis | ZonalBasis):
            angle, name = _angles(operator.basis)
            order = np.argsort(angle)
            for j in range(count):
                right.plot(angle[order], values[j][order], color=COLOURS[j % len(COLOURS)], lw=1.2)
            right.set(xlabel=name, ylabel="eigenfunction")
        else:
            _maps(fig, right, values)
        return fig


def _angles(basis: Any) -> tuple[np.ndarray, str]:
    points = np.asarray(basis.points())
    if isinstance(basis, CircleBasis):
        return points, r"angle $\theta$"
    return np.arccos(np.clip(points, -1, 1)), "angle to the axis"


def _maps(fig: Any, frame: Any, values: np.ndarray) -> None:
    """Latitude by longitude, one below the other."""
    frame.axis("off")
    for j, value in enumerate(values):
        axes = frame.inset_axes((0.0, 1 - (j + 1) / len(values), 1.0, 0.9 / len(values)))
        top = np.max(np.abs(value))
        axes.imshow(value, cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto")
        axes.set(xticks=(), yticks=())
        axes.set_ylabel(str(j + 1), color=COLOURS[j % len(COLOURS)], rotation=0)
