"""Distances of given and fresh tokens, and shifts of clouds."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.interpolation_is_not_learning.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Schedules that carry samples to atoms, shown other samples.

    (a) W₂ from the targets against the number n of tokens in a sample: the tokens that were given (dots) and fresh
    ones of the same distributions, for one atom (squares) and four (triangles); medians are filled. (b) Distance
    between the clouds that attention makes of two samples (squares) and radius of a cloud (dots), root mean squares;
    line: n^(-1/2). The cuts are made inside a cloud, so a shift as large as its radius makes them miss.
    """
    part = data["samples"]
    n = part["n"].values.astype(float)
    with panels(1, 2, 2.7, "given and fresh tokens", "after attention") as page:
        _draw_distances(page[0], part, n)
        _draw_shifts(page[1], data["shifts"], n)
    return page.figure


def _draw_distances(axes: Any, part: xr.Dataset, n: np.ndarray) -> None:
    aside = np.linspace(-0.06, 0.06, part.sizes["repeat"] * part.sizes["measure"])
    for each, colour, mark in zip(part["atoms"].values, COLOURS, "s^", strict=False):
        rows = part["fresh"].sel(atoms=each).values.reshape(len(n), -1)
        for x, row in zip(n, rows, strict=True):
            axes.loglog(x * np.exp(aside), row, mark, ms=2.6, mfc="none", mew=0.5, color=colour)
        label = f"fresh, {each} atom{'s' if each > 1 else ''}"
        axes.loglog(n, np.median(rows, axis=1), mark, ms=5, color=colour, label=label)
    given = part["given"].values.transpose(1, 0, 2, 3).reshape(len(n), -1)
    axes.loglog(n, np.median(given, axis=1), "o", ms=4, color=COLOURS[2], label="given")
    axes.set(ylabel="$W_2$ from the target", xlabel="tokens $n$")
    axes.legend(loc="center left")


def _draw_shifts(axes: Any, part: xr.Dataset, n: np.ndarray) -> None:
    shift, radius = (np.sqrt((part[name] ** 2).mean("pair").values) for name in ("shift", "radius"))
    axes.loglog(n, shift, "s", ms=5, color=COLOURS[0], label="shift of the cloud")
    axes.loglog(n, radius, "o", ms=5, color=COLOURS[1], label="radius of a cloud")
    axes.loglog(n, shift[0] * (n / n[0]) ** -0.5, color=GREY, lw=0.8)
    axes.set(xlabel="tokens $n$", ylabel="rad")
    axes.legend(loc="best")
