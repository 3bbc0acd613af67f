"""Densities through time, by harmonics or by cells: images, chosen frames, energies, and how well they are resolved."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import xlogy

from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.meanfield import CellFlow, CircleBasis, DensityFlow, SphereBasis
from attnflow.plots.style import COLOURS, COLUMN, GREY, PAGE, blank, shades, styled
from attnflow.plots.times import TimeAxis, frames_axis, log_times

CURVES = 5
"""Frames that are shown as curves."""
MAPS = 6
"""Frames that are shown as maps of S^2."""
ANGLES = 512
COLUMNS = 200
"""Columns of the image through time."""
DEPTH = 1e4
"""The colours of an image span at most this factor."""
STEEP = 20.0
"""A density that is higher than this is drawn on a logarithmic axis."""
LATITUDES, LONGITUDES = 91, 181


@dataclasses.dataclass(frozen=True)
class DensityView:
    """A flow of a density as figures see it; make it with `look`."""

    flow: DensityFlow | CellFlow
    log_time: np.ndarray
    axis: TimeAxis
    edges: np.ndarray | None
    """Angles between which a value stands in the image; None on S^2, which has maps instead."""

    @property
    def angles(self) -> np.ndarray:
        """Where `values` are taken."""
        assert self.edges is not None
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def is_zonal(self) -> bool:
        """Whether the angle is the one to an axis, from 0 to pi."""
        return self.edges is not None and self.edges[-1] < 4

    def values(self, frame: int) -> np.ndarray:
        """The density of a frame, relative to the uniform measure, at `angles`."""
        flow = self.flow
        if isinstance(flow, CellFlow):
            with np.errstate(divide="ignore", invalid="ignore"):
                return flow.masses.values[frame] / flow.dataset["measure"].values
        points = {"heights": np.cos(self.angles)} if self.is_zonal else {"angles": self.angles}
        return np.asarray(flow.basis.evaluate(flow.dataset["coefficients"].values[frame], **points))

    def mapped(self, frame: int) -> np.ndarray:
        """The density of a frame on S^2, (latitude, longitude) from south-west to north-east."""
        assert isinstance(self.flow, DensityFlow)
        up, over = np.meshgrid(*map_axes(), indexing="ij")
        x = np.stack([np.cos(up) * np.cos(over), np.cos(up) * np.sin(over), np.sin(up)], axis=-1)
        return np.asarray(self.flow.basis.evaluate(self.flow.dataset["coefficients"].values[frame], x))

    def moments(self, count: int) -> list[int]:
        """Frames evenly spread over the way that the energy goes, the first and the last among them."""
        energy = self.flow.dataset["energy"].values
        way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(energy)))])
        if not way[-1] > 0:
            way = np.arange(len(energy), dtype=float)
        return sorted({int(np.argmin(np.abs(way - share * way[-1]))) for share in np.linspace(0, 1, count)})

    def between(self, log_time: float) -> np.ndarray:
        """The density at a time, linear in time between the frames around it; cells the same way."""
        time, last = np.exp(self.log_time), len(self.log_time) - 1
        k = int(np.clip(np.searchsorted(self.log_time, log_time, side="right") - 1, 0, max(last - 1, 0)))
        if not last:
            return self.values(0)
        share = float(np.clip((np.exp(log_time) - time[k]) / (time[k + 1] - time[k]), 0, 1))
        return (1 - share) * self.values(k) + share * self.values(k + 1)

    @property
    def entropy(self) -> np.ndarray:
        """The integral of rho log rho at every frame."""
        if isinstance(self.flow, DensityFlow):
            return self.flow.dataset["entropy"].values
        masses = self.flow.masses.values
        return np.sum(xlogy(masses, masses) - masses * self.flow.cells.log_measure, axis=1)


def look(flow: DensityFlow | CellFlow | DensityView) -> DensityView:
    """What figures need to know of a flow; a view is made already."""
    if isinstance(flow, DensityView):
        return flow
    log_time = log_times(flow)
    edges = None
    if isinstance(flow, CellFlow):
        edges = np.asarray(flow.cells.edges)
    elif not isinstance(flow.basis, SphereBasis):
        edges = np.linspace(0, 2 * np.pi if isinstance(flow.basis, CircleBasis) else np.pi, ANGLES + 1)
    return DensityView(dataclasses.replace(flow, dataset=flow.dataset.load()), log_time, frames_axis(log_time), edges)


def draw_density(flow: DensityFlow | CellFlow | DensityView) -> Any:
    """The density over time and angle as an image; on S^2 maps of chosen frames."""
    view = look(flow)
    if not len(view.log_time):
        return blank("no frame was saved")
    with styled() as figure:
        if view.edges is not None:
            fig = figure.Figure(figsize=(COLUMN * 1.25, 2.6))
            draw_image(fig, fig.subplots(), view)
            return fig
        frames = view.moments(MAPS)
        columns = 2 if len(frames) == 4 else min(len(frames), 3)
        rows = -(-len(frames) // columns)
        fig = figure.Figure(figsize=(PAGE * columns / 3 + (0.8 if columns < 3 else 0), 1.45 * rows + 0.1))
        draw_maps(fig, fig, view, frames, columns)
        return fig


def draw_profiles(flow: DensityFlow | CellFlow | DensityView) -> Any:
    """Chosen frames as curves over the angle."""
    view = look(flow)
    if view.edges is None:
        raise InvalidInput("a density on S^2 has no angle to draw curves over; use draw_density, which draws maps.")
    if not len(view.log_time):
        return blank("no frame was saved")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.25, 2.5))
        draw_curves(fig.subplots(), view)
        return fig


def draw_energies(flow: DensityFlow | CellFlow | DensityView) -> Any:
    """Energy, entropy and, by harmonics, speed against time; by cells the share of mass in narrow clusters."""
    view = look(flow)
    if not len(view.log_time):
        return blank("no frame was saved")
    panels = [draw_level, draw_entropy, draw_narrow if isinstance(view.flow, CellFlow) else draw_speed]
    if "free_energy" in view.flow.dataset:
        panels.insert(1, draw_free_energy)
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 1.2 * len(panels) + 0.3))
        rows = fig.subplots(len(panels), 1, sharex=True)
        for axes, draw in zip(rows, panels, strict=True):
            draw(axes, view)
        for axes in rows[:-1]:
            axes.tick_params(labelbottom=False)
            axes.set_xlabel("")
        fig.align_ylabels(rows)
        return fig


def draw_decay(flow: DensityFlow | DensityView) -> Any:
    """Sizes of the coefficients by degree: how well the density is resolved."""
    view = look(flow)
    if not isinstance(view.flow, DensityFlow):
        raise InvalidInput("cells have no coefficients; draw_energies shows the share of mass in narrow clusters.")
    if not len(view.log_time):
        return blank("no frame was saved")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.4))
        draw_degrees(fig.subplots(), view)
        return fig


def plot_density(flow: DensityFlow | CellFlow | DensityView) -> Any:
    """All of it in one figure."""
    view = look(flow)
    if not len(view.log_time):
        return blank("no frame was saved")
    with styled() as figure:
        heights = (2.3, 2.0) if view.edges is not None else (1.6, 2.0)
        fig = figure.Figure(figsize=(PAGE, sum(heights)))
        upper, lower = fig.subfigures(2, 1, height_ratios=heights)
        if view.edges is not None:
            left, right = upper.subplots(1, 2, width_ratios=(1.25, 1))
            draw_image(upper, left, view)
            draw_curves(right, view)
        else:
            frames = view.moments(3)
            draw_maps(fig, upper, view, frames, len(frames))
        panels = lower.subplots(1, 3)
        draw_level(panels[0], view)
        draw_entropy(panels[1], view)
        if isinstance(view.flow, CellFlow):
            draw_narrow(panels[2], view)
        else:
            draw_degrees(panels[2], view)
        return fig


def summarise_density(flow: DensityFlow | CellFlow | DensityView) -> dict[str, Any]:
    """The numbers of the closing table."""
    view = look(flow)
    dataset, some = view.flow.dataset, len(view.log_time) > 0

    def at(name: str, frame: int) -> float | None:
        return _number(dataset[name].values[frame]) if some else None

    cells = isinstance(view.flow, CellFlow)
    found: dict[str, Any] = {
        "kind": "cells" if cells else "density",
        "frames": len(view.log_time),
        "time": at("time", -1),
        "energy_at_start": at("energy", 0),
        "energy_at_end": at("energy", -1),
        "entropy_at_start": _number(view.entropy[0]) if some else None,
        "entropy_at_end": _number(view.entropy[-1]) if some else None,
    }
    if isinstance(view.flow, CellFlow):
        return found | {"narrow": at("narrow", -1), "concentrated_since": view.flow.concentrated}
    return found | {name: at(name, -1) for name in ("tail", "negative", "speed")}


def draw_image(fig: Any, axes: Any, view: DensityView) -> None:
    """Density over time (across) and angle (up) on a logarithmic colour scale, straight between frames."""
    edges = view.axis.at(view.axis.edges(COLUMNS))
    middles = view.axis.edges(2 * COLUMNS)[1::2]
    values = np.stack([view.between(middle) for middle in middles], axis=1)
    if not edges[-1] > edges[0]:
        edges = np.linspace(edges[0], edges[0] + 1, COLUMNS + 1)
    norm = colour_scale(values)
    mesh = axes.pcolormesh(
        edges, view.edges, np.maximum(values, norm.vmin), norm=norm, cmap="cividis", rasterized=True
    )  # fmt: skip
    plain_numbers(fig.colorbar(mesh, ax=axes, label=r"density $\rho$", aspect=25).ax.yaxis, norm.vmin, norm.vmax)
    angle_axis(axes.yaxis, view)
    if isinstance(view.flow, CellFlow) and view.flow.concentrated is not None:
        axes.axvline(view.axis.at(np.log(view.flow.concentrated)), color="white", lw=0.9, ls="--")
    view.axis.draw(axes)


def draw_maps(fig: Any, area: Any, view: DensityView, frames: list[int], columns: int) -> None:
    """Frames on S^2 in Mollweide's projection, which keeps areas; the pole e_3 is up, e_1 in the middle."""
    latitudes, longitudes = map_axes()
    values = [view.mapped(k) for k in frames]
    norm = colour_scale(np.stack(values))
    rows = -(-len(frames) // columns)
    panels = np.ravel(area.subplots(rows, columns, subplot_kw={"projection": "mollweide"}, squeeze=False))
    for axes, k, value in zip(panels, frames, values, strict=False):
        mesh = axes.pcolormesh(
            longitudes, latitudes, np.maximum(value, norm.vmin), norm=norm, cmap="cividis", shading="gouraud",
            rasterized=True,
        )  # fmt: skip
        axes.set(xticks=(), yticks=())
        axes.set_title(view.axis.title(view.log_time[k]))
    for axes in panels[len(frames) :]:
        axes.remove()
    shown = panels[: len(frames)].tolist()
    bar = area.colorbar(mesh, ax=shown, label=r"density $\rho$", aspect=18, shrink=0.85, pad=0.02)
    plain_numbers(bar.ax.yaxis, norm.vmin, norm.vmax)


def draw_curves(axes: Any, view: DensityView) -> None:
    """Chosen frames, dark to light as time goes on."""
    frames = view.moments(CURVES)
    values = np.stack([view.values(k) for k in frames])
    for k, value, colour in zip(frames, values, shades(len(frames)), strict=True):
        axes.plot(view.angles, value, color=colour, lw=1.2, label=view.axis.title(view.log_time[k]))
    top = float(np.nanmax(values))
    if top > STEEP:
        axes.set_yscale("log")
        low = float(np.nanmin(np.where(values > 0, values, np.nan)))
        axes.set_ylim(0.7 * max(low, 2e-1 / DEPTH * top), 2 * top)
    else:
        axes.set_ylim(0, 1.05 * top)
    angle_axis(axes.xaxis, view)
    axes.set_ylabel(r"density $\rho$")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), handlelength=1.2, borderaxespad=0.2)


def draw_level(axes: Any, view: DensityView) -> None:
    """The energy, with what theory knows of the uniform measure and of consensus."""
    _line(axes, view, view.flow.dataset["energy"].values, "energy $E$")
    field, dim = view.flow.field, view.flow.cells.dim if isinstance(view.flow, CellFlow) else view.flow.basis.dim
    if isinstance(field, Attention) and field.is_plain and float(field.beta) > 0:
        level = float(theory.landscape.energy_of_uniform(float(field.beta), dim))
        axes.axhline(level, color=GREY, ls=":", lw=0.8, zorder=1, label="uniform measure")
        energy = view.flow.dataset["energy"].values
        if energy.max() > 0.5 * level:  # else it would squeeze the curve
            axes.axhline(0.0, color=GREY, ls="-.", lw=0.8, zorder=1, label="consensus")
        axes.legend(loc="best")


def draw_free_energy(axes: Any, view: DensityView) -> None:
    """What unnormalised attention climbs: energy on the clock of the field less kappa times entropy."""
    _line(axes, view, view.flow.dataset["free_energy"].values, "free energy")


def draw_entropy(axes: Any, view: DensityView) -> None:
    """The entropy relative to the uniform measure, 0 for that measure."""
    _line(axes, view, view.entropy, r"entropy $\int \rho\log\rho$")


def draw_speed(axes: Any, view: DensityView) -> None:
    """The 2-norm of the change of the density."""
    speed = view.flow.dataset["speed"].values
    _line(axes, view, speed, r"speed $\Vert\partial_t\rho\Vert_2$")
    some = speed[speed > 0]
    if len(some) and some.max() > 10 * some.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def draw_narrow(axes: Any, view: DensityView) -> None:
    """The share of mass in clusters narrower than a cell, and since when it is half."""
    assert isinstance(view.flow, CellFlow)
    _line(axes, view, view.flow.dataset["narrow"].values, "mass in clusters\nnarrower than cells")
    axes.set_ylim(-0.03, 1.4)  # room for the legend
    axes.set_yticks([0, 0.5, 1])
    axes.axhline(0.5, color=GREY, ls=":", lw=0.8, zorder=1)
    if view.flow.concentrated is not None:
        since = view.flow.concentrated
        axes.axvline(view.axis.at(np.log(since)), color=GREY, ls="--", lw=0.9, label=f"half since $t = {since:.3g}$")
        axes.legend(loc="upper left")


def draw_degrees(axes: Any, view: DensityView) -> None:
    """The norm of the coefficients of every degree as a share of the largest, at the first, a middle and the last."""
    assert isinstance(view.flow, DensityFlow)
    frames = view.moments(3)
    degrees = np.arange(view.flow.basis.degree + 1)
    found = [by_degree(view.flow, k) for k in frames]
    for k, sizes, colour in zip(frames, found, (COLOURS[7], COLOURS[0], COLOURS[1])[-len(frames) :], strict=True):
        axes.plot(degrees, np.where(sizes > 0, sizes, np.nan), ".-", ms=2.5, lw=0.8, color=colour,
                  label=view.axis.title(view.log_time[k]))  # fmt: skip
    if view.flow.work is not None:
        resolution = view.flow.work.resolution
        axes.axhline(resolution, color=GREY, ls=":", lw=0.8, zorder=1, label="resolution")
    axes.set_yscale("log")
    low = min(np.min(sizes[sizes > 0]) for sizes in found)
    axes.set(ylim=(max(1e-17, min(low, 1e-8) / 10), 20), xlim=(0, max(view.flow.basis.degree, 1)), xlabel="degree $k$")
    axes.set(ylabel="coefficients (relative)")
    axes.legend(loc="best", handlelength=1.2)


def by_degree(flow: DensityFlow, frame: int) -> np.ndarray:
    """The 2-norm of the coefficients of every degree, divided by the largest."""
    squares = np.ravel(flow.dataset["coefficients"].values[frame]) ** 2
    sizes = np.sqrt(np.bincount(np.ravel(flow.basis.degrees), squares, minlength=flow.basis.degree + 1))
    return sizes / np.max(sizes)


def _line(axes: Any, view: DensityView, values: np.ndarray, label: str) -> None:
    mark = "o" if len(values) == 1 else None
    axes.plot(view.axis.at(view.log_time), values, color=COLOURS[0], marker=mark, ms=3, zorder=3)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_ylabel(label)
    view.axis.draw(axes)


def angle_axis(axis: Any, view: DensityView) -> None:
    """Ticks and label of the angle, across or up."""
    if view.is_zonal:
        axis.set_ticks([0, np.pi / 2, np.pi], labels=["0", "π/2", "π"])
        axis.set_label_text(r"angle $\theta$ to the axis")
    else:
        axis.set_ticks(np.pi * np.arange(5) / 2, labels=["0", "π/2", "π", "3π/2", "2π"])
        axis.set_label_text(r"angle $\theta$")
    assert view.edges is not None
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(0, view.edges[-1])


def colour_scale(values: np.ndarray) -> Any:
    """A logarithmic scale that spans at most the factor DEPTH."""
    from matplotlib.colors import LogNorm

    top = max(float(np.nanmax(values)), 1.0)
    low = float(np.nanmin(np.where(values > 0, values, np.nan)))
    return LogNorm(min(max(low, top / DEPTH), 0.8), 1.25 * top if top < 1.25 else top)


def plain_numbers(axis: Any, low: float, high: float) -> None:
    """Numbers on a logarithmic axis as people write them."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    decades = np.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1,) if decades > 2.5 else (1, 2, 5) if decades > 1 else range(1, 10)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
    if decades <= 2.5:
        axis.set_minor_locator(NullLocator())


def map_axes() -> tuple[np.ndarray, np.ndarray]:
    """Latitudes and longitudes of `mapped`."""
    return np.linspace(-np.pi / 2, np.pi / 2, LATITUDES), np.linspace(-np.pi, np.pi, LONGITUDES)


def _number(value: float) -> float | None:
    return float(value) + 0.0 if np.isfinite(value) else None
