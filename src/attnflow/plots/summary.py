"""A whole result in one figure, and in a few numbers."""

import functools
from typing import Any

import numpy as np

from attnflow.control import LineMatch, Matching, PolarMatch, Schedule, VelocityMatch
from attnflow.decoders import Retrieval
from attnflow.errors import InvalidInput
from attnflow.flows import AbstractResult, AbstractTrajectory, Merges
from attnflow.learn import Fitted, Trained
from attnflow.meanfield import CellFlow, Density, DensityFlow, PlacedFlow
from attnflow.plots.compare import plot_several
from attnflow.plots.density import DensityView, plot_density, summarise_density
from attnflow.plots.energy import draw_count, draw_energy
from attnflow.plots.figure_data import FigureData
from attnflow.plots.fit import plot_fit, summarise_fit
from attnflow.plots.matching import plot_matching, summarise_matching
from attnflow.plots.members import summarise_members
from attnflow.plots.merges import plot_merges, summarise_merges
from attnflow.plots.observables import draw_numbers, draw_rows, summarise_rows
from attnflow.plots.overlaps import draw_overlap_map
from attnflow.plots.placed import plot_placed, summarise_placed
from attnflow.plots.random_layers import plot_conditional, plot_gram, summarise_conditional, summarise_gram
from attnflow.plots.retrieval import plot_retrieval, summarise_retrieval
from attnflow.plots.schedule import plot_schedule
from attnflow.plots.snapshots import draw_frames, views
from attnflow.plots.staircase import draw_levels, draw_lifetimes
from attnflow.plots.still import draw_tokens
from attnflow.plots.style import PAGE, blank, resized, styled, with_style
from attnflow.plots.together import draw_one_density, is_mixed, plot_together
from attnflow.plots.training import plot_training, summarise_training
from attnflow.plots.tree import draw_branches
from attnflow.random_layers import ConditionalDensity, GramPath
from attnflow.tokens import Tokens


def plot(result: Any, *, figsize: tuple[float, float] | None = None, style: Any = None) -> Any:
    """What `solve`, `solve_long`, `evolve`, `fit` or another kind of work returned, in one Matplotlib Figure.

    Of a flow of tokens: tokens at a few times, energy, cluster count and overlaps, with theory overlaid; of one of
    `solve_long` the staircase, the merge tree and the lifetimes of plateaus; of one without positions the numbers that
    were kept. Of a batch the first member is shown. Of a density: its history, energy, entropy and resolution; of one
    with places: how far each is from the uniform measure. Of merges: their distributions and quartiles. Of a fit:
    losses, regions of the plane and paths.

    Several flows of tokens are overlaid, as lines of energy, mean overlap and number of clusters: `plot([a, b])` names
    them by what differs between them, `plot({"soft": a, "hard": b})` as you say. Of a batch up to 8 members are lines.
    A density beside tokens, `plot([density, flow])`, is drawn over their histogram at a few times, with the distance
    between the two. Tokens are drawn on their space, and `field.plot(tokens)` draws their velocities. Of a `Schedule`
    the elements and the gates are shown, of matched measures the targets too.

    `figsize` is the width and height in inches; `style` goes over the house look and is whatever
    `matplotlib.style.context` takes: a name, a dictionary of rcParams, a list of these.
    """
    with with_style(style):
        if not isinstance(result, list | tuple | dict):
            return resized(_plot(result), figsize)
        return resized(plot_together(result) if is_mixed(result) else plot_several(result), figsize)


def summarise(result: Any) -> dict[str, Any]:
    """The numbers of the closing table, as JSON can hold them; `kind` says of what.

    Of tokens: plateaus, cluster counts, energies; times as logarithms, None for log 0. Of a batch these are the numbers
    of the first member, and `batch` holds the mean, the least and the largest over all members.
    """
    return _summarise(result)


@functools.singledispatch
def _plot(result: Any) -> Any:
    if isinstance(result, AbstractResult):
        return draw_rows(result)
    raise _unknown(result)


@functools.singledispatch
def _summarise(result: Any) -> dict[str, Any]:
    if isinstance(result, AbstractResult):
        return summarise_rows(result)
    raise _unknown(result)


_plot.register(Merges)(plot_merges)
_summarise.register(Merges)(summarise_merges)
_plot.register(DensityFlow | CellFlow | DensityView)(plot_density)
_summarise.register(DensityFlow | CellFlow | DensityView)(summarise_density)
_plot.register(PlacedFlow)(plot_placed)
_summarise.register(PlacedFlow)(summarise_placed)
_plot.register(GramPath)(plot_gram)
_summarise.register(GramPath)(summarise_gram)
_plot.register(ConditionalDensity)(plot_conditional)
_summarise.register(ConditionalDensity)(summarise_conditional)
_plot.register(Retrieval)(plot_retrieval)
_summarise.register(Retrieval)(summarise_retrieval)
_plot.register(Fitted)(plot_fit)
_plot.register(Trained)(plot_training)
_summarise.register(Trained)(summarise_training)
_plot.register(Tokens)(draw_tokens)
_summarise.register(Fitted)(summarise_fit)
_plot.register(Matching)(plot_matching)
_plot.register(Schedule | LineMatch | PolarMatch | VelocityMatch)(plot_schedule)
_plot.register(Density)(draw_one_density)
_summarise.register(Matching)(summarise_matching)


@_plot.register
def _(flow: AbstractTrajectory) -> Any:
    if not flow.dataset.sizes["time"]:
        return blank("no frame was saved")
    return plot(FigureData.of(flow)) if "positions" in flow.dataset else draw_numbers(flow)


@_summarise.register
def _(flow: AbstractTrajectory) -> dict[str, Any]:
    if "positions" in flow.dataset and flow.dataset.sizes["time"]:
        return summarise(FigureData.of(flow)) | summarise_members(flow)
    one = flow.member(**dict.fromkeys(flow.dims, 0))
    return _numbers(one, one.log_time.values) | summarise_members(flow)


@_plot.register
def _(data: FigureData) -> Any:
    frames, rows = data.moments(), len(views(data))
    with styled() as figure:
        heights = rows * PAGE / max(len(frames), 4) + 0.3, 2.1
        fig = figure.Figure(figsize=(PAGE, sum(heights)))
        upper, lower = fig.subfigures(2, 1, height_ratios=heights)
        draw_frames(upper.subplots(rows, len(frames), squeeze=False), data, frames)
        left, middle, right = lower.subplots(1, 3)
        if data.tree is None:
            draw_energy(left, data)
            draw_count(middle, data)
            draw_overlap_map(lower, right, data)
        else:
            draw_levels(left, data)
            draw_branches(middle, data)
            if data.plateaus:
                draw_lifetimes(right, data)
            else:
                draw_overlap_map(lower, right, data)
        return fig


@_summarise.register
def _(data: FigureData) -> dict[str, Any]:
    plateaus = [
        {
            "log_start": _number(p.log_start),
            "log_end": _number(p.log_end),
            "clusters": p.clusters,
            "energy": _number(p.energy),
        }
        for p in data.plateaus
    ]
    if data.stretches is not None and "log_proved" in data.stretches:
        for row, proved in zip(plateaus, data.stretches["log_proved"].values, strict=True):
            row["log_proved"] = None if np.isnan(proved) else float(proved)
    return {"plateaus": plateaus, "clusters_at_end": data.count} | _numbers(data.flow, data.log_time)


def _numbers(flow: AbstractTrajectory, log_time: np.ndarray) -> dict[str, Any]:
    """What can be said of one system without its positions."""

    def at(name: str, frame: int) -> Any:
        return flow.dataset[name].values[frame] if name in flow.dataset and len(log_time) else None

    start, end, resolved = at("energy", 0), at("energy", -1), at("resolved", -1)
    return {
        "kind": "tokens",
        "energy_at_start": None if start is None else float(start),
        "energy_at_end": None if end is None else float(end) + 0.0,  # not -0
        "log_final_time": _number(log_time[-1]) if len(log_time) else None,
        "resolved": None if resolved is None else bool(resolved),
    }


def _unknown(result: Any) -> InvalidInput:
    return InvalidInput(
        f"`result` is {type(result).__name__}; give the result of work, as `solve` returns one, tokens, a density or a "
        "schedule."
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
