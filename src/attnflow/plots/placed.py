"""Densities with places: the last frame over place and angle, and how far every place is from the uniform measure."""

import math
from typing import Any

import numpy as np

from attnflow.meanfield import CircleBasis, PlacedFlow, SphereBasis
from attnflow.plots.density import colour_scale, plain_numbers
from attnflow.plots.style import COLUMN, PAGE, blank, shades, styled

ANGLES, PLACES = 180, 240
"""Points of the image."""
CURVES = 5
"""Frames that are shown as curves."""


def plot_placed(flow: PlacedFlow) -> Any:
    """All of it in one figure."""
    if not len(flow):
        return blank("no frame was saved")
    with styled() as figure:
        flat = isinstance(flow.start.basis, SphereBasis)
        fig = figure.Figure(figsize=(COLUMN if flat else PAGE, 2.5))
        panels = np.ravel(fig.subplots(1, 1 if flat else 2, squeeze=False))
        _curves(panels[0], flow)
        if not flat:
            _image(fig, panels[1], flow)
        return fig


def draw_places(flow: PlacedFlow) -> Any:
    """|f - 1| of every place, in the 2-norm over points, at some frames."""
    if not len(flow):
        return blank("no frame was saved")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.25, 2.5))
        _curves(fig.subplots(), flow)
        return fig


def draw_placed(flow: PlacedFlow) -> Any:
    """The last frame over place and angle; a density on S^2 has no angle."""
    if not len(flow) or isinstance(flow.start.basis, SphereBasis):
        return blank("no frame was saved" if not len(flow) else "a density on S^2 has no angle to draw")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.25, 2.6))
        _image(fig, fig.subplots(), flow)
        return fig


def summarise_placed(flow: PlacedFlow) -> dict[str, Any]:
    """The numbers of the closing table."""
    found: dict[str, Any] = {
        "kind": "placed",
        "frames": len(flow),
        "time": float(flow.times[-1]) if len(flow) else None,
    }
    for name in ("tail", "place_tail", "negative", "speed"):
        found[name] = float(flow.dataset[name].values[-1]) + 0.0 if len(flow) else None
    sizes = _sizes(flow)
    for word, at in (("start", 0), ("end", -1)):
        found[f"largest_at_{word}"] = float(sizes[at].max()) if len(flow) else None
    return found


def _sizes(flow: PlacedFlow) -> np.ndarray:
    """(time, place) the 2-norm of f - 1: coefficients belong to orthonormal harmonics, the first to the constant."""
    rows = flow.dataset["coefficients"].values
    return np.sqrt(np.sum(rows.reshape(*rows.shape[:2], math.prod(rows.shape[2:]))[..., 1:] ** 2, axis=-1))


def _curves(axes: Any, flow: PlacedFlow) -> None:
    sizes, places = _sizes(flow), flow.start.places
    frames = sorted({round(share * (len(flow) - 1)) for share in np.linspace(0, 1, CURVES)})
    for k, colour in zip(frames, shades(len(frames)), strict=True):
        for piece in range(places.pieces):  # a jump stays one
            own = slice(piece * places.nodes, (piece + 1) * places.nodes)
            name = f"$t = {flow.times[k]:.3g}$" if piece == 0 else None
            axes.plot(places.points[own], sizes[k, own], ".-", ms=2.5, lw=1.0, color=colour, label=name)
    axes.set(xlim=(0, 1), xlabel=r"place $\sigma$", ylabel=r"$\Vert f(\sigma, \cdot) - 1\Vert_2$")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", handlelength=1.2)


def _image(fig: Any, axes: Any, flow: PlacedFlow) -> None:
    circle = isinstance(flow.start.basis, CircleBasis)
    edges, ends = np.linspace(0, 2 * np.pi if circle else np.pi, ANGLES + 1), np.linspace(0, 1, PLACES + 1)
    angles, places = (edges[1:] + edges[:-1]) / 2, (ends[1:] + ends[:-1]) / 2
    where = {"angles": angles} if circle else {"heights": np.cos(angles)}
    values = np.asarray(flow.last(places, **where)).T
    norm = colour_scale(values)
    mesh = axes.pcolormesh(ends, edges, np.maximum(values, norm.vmin), norm=norm, cmap="cividis", rasterized=True)
    plain_numbers(fig.colorbar(mesh, ax=axes, label="density $f$", aspect=25).ax.yaxis, norm.vmin, norm.vmax)
    axes.set(xlabel=r"place $\sigma$", title=f"$t = {flow.times[-1]:.3g}$")
    axes.set_ylabel(r"angle $\theta$" if circle else r"angle $\theta$ to the axis")
    ticks = np.linspace(0, edges[-1], 5 if circle else 3)
    axes.set_yticks(ticks, labels=["0", "π/2", "π", "3π/2", "2π"][: len(ticks)])
