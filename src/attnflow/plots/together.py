"""A density and tokens in one picture: the curve over the histogram, the dots over the map."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import betainc

from attnflow.errors import InvalidInput
from attnflow.flows import AbstractTrajectory
from attnflow.meanfield import CellFlow, CircleBasis, Density, DensityFlow, observable_distance
from attnflow.plots.density import (
    STEEP,
    DensityView,
    angle_axis,
    colour_scale,
    look,
    map_axes,
    plain_numbers,
)
from attnflow.plots.style import COLOURS, COLUMN, INK, PAGE, literal, say, styled
from attnflow.tokens import Tokens
from attnflow.transport import distance

PICTURES = 4
"""Times that are shown."""
COMPARED = 24
"""Times at which the distance is measured, at most."""
MOST_DOTS = 1500
FEWEST_BINS, MOST_BINS = 24, 120
DEGREE = 8
"""Harmonics that tell the distance where W_1 is not known."""
BAR = "#bcd7ea"


@dataclasses.dataclass(frozen=True)
class Pair:
    """A density and tokens at the same times."""

    view: DensityView
    moments: list[tuple[int, Tokens]]
    """Frames of the density, and the tokens nearest to them in time."""
    names: tuple[str, str]
    tokens_at: tuple[float, ...]
    """The times of these tokens."""
    flow: AbstractTrajectory | None = None
    """The flow of the tokens, where they move."""


def is_mixed(results: Sequence[Any] | Mapping[str, Any]) -> bool:
    """Whether densities are among these."""
    several = results.values() if isinstance(results, Mapping) else results
    return any(isinstance(one, Density | DensityFlow | CellFlow) for one in several)


def draw_one_density(density: Density) -> Any:
    """A density over the angle, or as a map of S^2."""
    view = _still(density)
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.2, 2.4))
        if view.edges is None:
            _maps(fig, fig, view, [0], None)
        else:
            axes = fig.subplots()
            _curve(axes, view, 0)
            _finish(axes, view, float(np.nanmax(view.values(0))))
        return fig


def plot_together(results: Sequence[Any] | Mapping[str, Any]) -> Any:
    """One density, or its flow, beside tokens, or theirs."""
    pair = _paired(results)
    view, frames = pair.view, [frame for frame, _ in pair.moments]
    below = len(view.log_time) > 1
    with styled() as figure:
        width = PAGE if below else COLUMN * 1.2
        fig = figure.Figure(figsize=(width, 4.3 if below else 2.4))
        upper, lower = fig.subfigures(2, 1, height_ratios=(2.1, 2.0)) if below else (fig, None)
        if view.edges is None:
            _maps(fig, upper, view, frames, pair)
        else:
            panels = np.atleast_1d(upper.subplots(1, len(frames), sharey=True))
            top = _histograms(panels, pair)
            for axes in panels:
                _finish(axes, view, top)
            for axes in panels[1:]:
                axes.set_ylabel("")
            panels[0].legend(loc="upper left", handlelength=1.2)
        if lower is not None:
            left, right = lower.subplots(1, 2)
            _energies(left, pair)
            _distances(right, pair)
        return fig


def _paired(results: Sequence[Any] | Mapping[str, Any]) -> Pair:
    several = list(results.values()) if isinstance(results, Mapping) else list(results)
    words = list(map(str, results)) if isinstance(results, Mapping) else ["", ""]
    densities = [k for k, one in enumerate(several) if isinstance(one, Density | DensityFlow | CellFlow)]
    clouds = [k for k, one in enumerate(several) if isinstance(one, Tokens | AbstractTrajectory)]
    if len(several) != 2 or len(densities) != 1 or len(clouds) != 1:
        given = ", ".join(type(one).__name__ for one in several)
        raise InvalidInput(f"`result` holds {given}; beside a density give tokens, or their flow, and nothing else.")
    density, tokens = several[densities[0]], several[clouds[0]]
    if isinstance(density, Density) is not isinstance(tokens, Tokens):
        raise InvalidInput(
            "`result` holds a flow and a single moment; give two flows, or one moment of each, as in "
            "plot([flow.density(-1), tokens])."
        )
    view = _still(density) if isinstance(density, Density) else look(density)
    dim = density.cells.dim if isinstance(density, CellFlow) else density.basis.dim
    one = tokens.member(**dict.fromkeys(tokens.dims, 0))
    space = one.space
    if space.dim != dim or not np.isfinite(space.volume):
        raise InvalidInput(f"the tokens are on {space} and the density on the sphere in R^{dim}; give both on one.")
    n = one.n if isinstance(one, Tokens) else one.dataset.sizes["token"]
    names = (literal(words[densities[0]] or "density"), literal(words[clouds[0]] or f"{n:,} tokens"))
    return Pair(view, [(0, one)], names, (0.0,)) if isinstance(one, Tokens) else _matched(view, one, names)


def _matched(view: DensityView, flow: AbstractTrajectory, names: tuple[str, str]) -> Pair:
    """Frames of the density that show its way, and the tokens nearest in time."""
    flow.positions  # noqa: B018 (refuses where none were kept)
    times, own = np.exp(view.log_time), flow.time.values
    if not len(own) or not len(times):
        raise InvalidInput("one of the two flows has no frame; there is nothing to draw.")
    if own[-1] < times[-1] and not _same(own[-1], times[-1]):  # the way of the density as far as the tokens go
        last = max(int(np.searchsorted(times, own[-1], side="right")), 1)
        short = dataclasses.replace(view.flow, dataset=view.flow.dataset.isel(time=slice(0, last)))
        view = look(short)
    frames = view.moments(PICTURES)
    nearest = [int(np.argmin(np.abs(own - np.exp(view.log_time[k])))) for k in frames]
    moments = [(k, flow.tokens(at)) for k, at in zip(frames, nearest, strict=True)]
    return Pair(view, moments, names, tuple(float(own[at]) for at in nearest), flow)


def _still(density: Density) -> DensityView:
    """A single density as the only frame of a flow."""
    import xarray as xr

    rows = xr.Dataset({"coefficients": (("time", "one", "two", "three", "four")[: 1 + np.ndim(density.coefficients)],
                                        np.asarray(density.coefficients)[None])})  # fmt: skip
    rows = rows.assign(energy=("time", np.zeros(1))).assign_coords(time=[0.0])
    flow: Any = DensityFlow(rows, None, 0.0, density, None, {})  # type: ignore[arg-type]
    return look(flow)


def _angles(view: DensityView, tokens: Tokens) -> np.ndarray:
    """The angles of tokens as the density has them."""
    x = np.asarray(tokens.positions, float)
    if not view.is_zonal:
        return np.arctan2(x[:, 1], x[:, 0]) % (2 * np.pi)
    return np.arccos(np.clip(x[:, -1], -1, 1))  # the axis of zonal densities is the last one


def _histogram(view: DensityView, tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """(edges, density relative to the uniform measure) of tokens."""
    count = int(np.clip(np.sqrt(tokens.n), FEWEST_BINS, MOST_BINS))
    assert view.edges is not None
    edges = np.linspace(0, view.edges[-1], count + 1)
    masses = np.histogram(_angles(view, tokens), edges, weights=np.asarray(tokens.masses, float))[0]
    if not view.is_zonal:
        return edges, masses * count
    half = (tokens.dim - 1) / 2  # (1 - cos)/2 is Beta(half, half) under the uniform measure
    return edges, masses / np.diff(betainc(half, half, np.sin(edges / 2) ** 2))


def _histograms(panels: Any, pair: Pair) -> float:
    top = 0.0
    for axes, (frame, tokens), at in zip(panels, pair.moments, pair.tokens_at, strict=True):
        edges, height = _histogram(pair.view, tokens)
        axes.stairs(height, edges, fill=True, color=BAR, zorder=1, label=pair.names[1])
        _curve(axes, pair.view, frame, pair.names[0])
        top = max(top, float(np.nanmax(pair.view.values(frame))), float(height.max()))
        if len(pair.view.log_time) > 1:
            time = float(np.exp(pair.view.log_time[frame]))
            apart = not _same(at, time)
            axes.set_title(pair.view.axis.title(pair.view.log_time[frame]) + (f" (tokens: {at:.3g})" if apart else ""))
    return top


def _curve(axes: Any, view: DensityView, frame: int, label: str | None = None) -> None:
    axes.plot(view.angles, view.values(frame), color=INK, lw=1.1, zorder=3, label=label)


def _finish(axes: Any, view: DensityView, top: float) -> None:
    if top > STEEP:
        axes.set_yscale("log")
        axes.set_ylim(1e-2, 2 * top)
    else:
        axes.set_ylim(0, 1.25 * top)
    angle_axis(axes.xaxis, view)
    axes.set_ylabel(r"density $\rho$")


def _maps(fig: Any, area: Any, view: DensityView, frames: list[int], pair: Pair | None) -> None:
    latitudes, longitudes = map_axes()
    values = [view.mapped(k) for k in frames]
    norm = colour_scale(np.stack(values))
    panels = np.atleast_1d(area.subplots(1, len(frames), subplot_kw={"projection": "mollweide"}))
    for k, (axes, frame, value) in enumerate(zip(panels, frames, values, strict=True)):
        mesh = axes.pcolormesh(
            longitudes, latitudes, np.maximum(value, norm.vmin), norm=norm, cmap="cividis", shading="gouraud",
            rasterized=True,
        )  # fmt: skip
        axes.set(xticks=(), yticks=())
        if len(view.log_time) > 1:
            axes.set_title(view.axis.title(view.log_time[frame]))
        if pair is not None:
            x = np.asarray(pair.moments[k][1].positions, float)
            x = x[:: max(1, len(x) // MOST_DOTS)]
            axes.scatter(np.arctan2(x[:, 1], x[:, 0]), np.arcsin(np.clip(x[:, 2], -1, 1)), s=1.5, c=COLOURS[4], lw=0)
    bar = area.colorbar(mesh, ax=panels.tolist(), label=r"density $\rho$", aspect=14, shrink=0.8, pad=0.02)
    plain_numbers(bar.ax.yaxis, norm.vmin, norm.vmax)


def _energies(axes: Any, pair: Pair) -> None:
    view = pair.view
    if pair.flow is not None and "energy" in pair.flow.dataset:
        energy = pair.flow.dataset["energy"].values
        axes.plot(view.axis.at(pair.flow.log_time.values), energy, color=COLOURS[5], lw=2.6, label=pair.names[1])
    axes.plot(view.axis.at(view.log_time), view.flow.dataset["energy"].values, color=INK, lw=1, label=pair.names[0])
    axes.set_ylabel("energy $E$")
    axes.legend(loc="best")
    view.axis.draw(axes)


def _distances(axes: Any, pair: Pair) -> None:
    """The distance between tokens and density at the times that both have saved."""
    flow, density = pair.flow, pair.view.flow
    if flow is None or not isinstance(density, DensityFlow):
        say(axes, "cells have no distance to tokens here")
        return
    own = flow.time.values
    times = np.exp(pair.view.log_time)
    nearest = [int(np.argmin(np.abs(own - time))) for time in times]
    common = [(k, at) for k, (at, time) in enumerate(zip(nearest, times, strict=True)) if _same(own[at], time)]
    if not common:
        say(axes, "no saved time is the same in both")
        return
    some = [common[k] for k in np.unique(np.linspace(0, len(common) - 1, min(len(common), COMPARED)).astype(int))]
    found = [_distance(flow.tokens(at), density.density(k)) for k, at in some]
    on_circle = isinstance(density.basis, CircleBasis)
    axes.plot(pair.view.axis.at(pair.view.log_time[[k for k, _ in some]]), found, "o-", ms=2.5, color=INK, lw=0.8)
    axes.set_ylabel("$W_1$ of tokens and density" if on_circle else f"distance by degrees 1 to {DEGREE}")
    axes.set_ylim(bottom=0)
    pair.view.axis.draw(axes)


def _distance(tokens: Tokens, density: Density) -> float:
    if isinstance(density.basis, CircleBasis):
        return float(distance(tokens, density))
    return observable_distance(tokens, density, DEGREE)


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * max(abs(other), 1.0)
