"""Energy and cluster count against (log) time."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import SHARE, FigureData
from attnflow.plots.observables import NUMBERS
from attnflow.plots.style import COLOURS, COLUMN, GREY, say, styled
from attnflow.spaces import Sphere

MANY = 20
"""More clusters than this are counted on a logarithmic axis."""
SHADE = "#e6e6e4"
BRIDGE = 0.05
"""Stretches without condensed clusters that are shorter than this share of the axis are bridged."""
FEW_FRAMES = 20
"""Fewer frames than this are marked each."""


def draw_energy_and_count(flow: AbstractTrajectory | FigureData) -> Any:
    """Two panels over one time axis, with the energies that theory knows: uniform, plateaus, consensus."""
    data = FigureData.of(flow)
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 3.4))
        upper, lower = fig.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        draw_energy(upper, data)
        draw_count(lower, data)
        upper.tick_params(labelbottom=False)
        upper.set_xlabel("")
        return fig


def draw_energy(axes: Any, data: FigureData) -> None:
    """The renormalised energy and its predicted levels."""
    if data.curve is not None:
        log_time, energy = data.curve
        axes.plot(data.axis.at(log_time), energy, color=COLOURS[0], zorder=3, label="measured")
        beta, space = data.beta, data.flow.space
        if beta is not None and beta > 0 and isinstance(space, Sphere):
            level = float(theory.landscape.energy_of_uniform(beta, space.dim))
            axes.axhline(level, color=GREY, ls=":", lw=0.8, label="uniform measure")
            near = bool(energy.max() > 0.5 * level)
            if near:  # else it would squeeze the curve
                axes.axhline(0.0, color=GREY, ls="-.", lw=0.8, label="consensus")
            first = True
            for plateau in data.plateaus:
                if plateau.clusters > 1:
                    predicted = float(theory.landscape.energy_of_clusters(data.masses_on(plateau), beta))
                    ends = data.axis.at([plateau.log_start, plateau.log_end])
                    axes.plot(
                        ends,
                        [predicted, predicted],
                        color=COLOURS[4],
                        ls="--",
                        lw=1.0,
                        zorder=4,
                        label=r"$(\sum_q M_q^2-1)/2\beta$" if first else None,
                    )
                    first = False
            low, high = axes.get_ylim()
            axes.set_ylim(low, high + 0.04 * (high - low))
            axes.legend(**{"loc": "upper left", "bbox_to_anchor": (0, 0.93)} if near else {"loc": "best"})
        axes.set_ylabel(r"energy $\hat E$" if data.beta is not None else "energy")
    elif data.height is not None:
        name, values = data.height
        axes.plot(data.axis.at(data.log_time), values, color=COLOURS[0])
        if (values > 0).any():
            axes.set_yscale("log")
        axes.set_ylabel(NUMBERS[name])
    else:
        say(axes, "no energy or speed was kept")
        return
    data.axis.draw(axes)


def draw_count(axes: Any, data: FigureData) -> None:
    """Clusters where they exist, a grey area where the tokens still percolate; those of a long flow by their merges.

    Where clusters are condensed in some frames and not in others, short gaps are bridged by a thin line, and a frame
    that stands alone is a dot.
    """
    if data.tree is not None:
        _draw_merges(axes, data)
        return
    times, shown = data.axis.at(data.log_time), data.counts[1]
    condensed = np.isfinite(shown)
    bridged = _bridged(condensed, np.log(times) if data.axis.is_logarithmic else times)
    words = "not condensed"
    for start, end in _runs(~bridged):
        axes.axvspan(times[start], times[min(end, len(times) - 1)], fc=SHADE, ec="none", zorder=0, label=words)
        words = ""
    mark = "o" if condensed.sum() < FEW_FRAMES else None
    if condensed.any():
        if (bridged & ~condensed).any():
            last = np.maximum.accumulate(np.where(condensed, np.arange(len(shown)), 0))
            held = np.where(bridged, shown[last], np.nan)
            often = np.mean(bridged & ~condensed) > BRIDGE
            label = "condensed at times" if often else None
            axes.step(times, held, where="post", color=COLOURS[2], lw=0.6, zorder=2, label=label)
        axes.step(times, shown, where="post", color=COLOURS[2], lw=1.6, marker=mark, ms=3, label="condensed")
        alone = [start for start, end in _runs(condensed) if end == start + 1]
        if mark is None and alone:
            axes.plot(times[alone], shown[alone], "o", ms=1.8, color=COLOURS[2])
    most = float(shown[condensed].max(initial=1.0))
    if np.mean(condensed) < 0.5:  # groups are all that can be seen
        linked = data.clusters["count"].values.astype(float)
        axes.step(times, linked, where="post", color=GREY, lw=0.8, zorder=1.5, label="linked, not condensed")
        most, words = max(most, float(linked.max())), ""
    axes.set_ylim(0, 1.35 * most + 0.5)
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    trimmed = bool((data.clusters["share"].values < 1).any())
    axes.set_ylabel(f"clusters that hold\n{100 * SHARE:g} % of the mass" if trimmed else "clusters")
    if len(axes.get_legend_handles_labels()[1]) > 1 or not bridged.all():
        legend = axes.legend(loc="upper right", frameon=True, facecolor="white", edgecolor="none", framealpha=1.0)
        legend.set_zorder(4)
    data.axis.draw(axes)


def _bridged(condensed: np.ndarray, places: np.ndarray) -> np.ndarray:
    """`condensed` with its gaps closed that are narrower than BRIDGE of the axis and lie between condensed frames."""
    found = condensed.copy()
    finite = places[np.isfinite(places)]
    width = BRIDGE * float(np.ptp(finite)) if len(finite) else 0.0
    for start, end in _runs(~condensed):
        if start > 0 and end < len(places) and places[end] - places[start - 1] <= width:
            found[start:end] = True
    return found


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """(first, one after the last) of every stretch that is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _draw_merges(axes: Any, data: FigureData) -> None:
    log_time, counts = data.counts
    axes.step(data.axis.at(log_time), counts, where="post", color=COLOURS[2], lw=1.6)
    scale_of_counts(axes, data.flow.dataset.sizes["token"])
    axes.set_ylabel("clusters")
    data.axis.draw(axes)


def scale_of_counts(axes: Any, most: float) -> None:
    """Whole numbers from 0, or from 1 on a logarithmic axis where there are MANY."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    if most > MANY:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0.9, 1.2 * most)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.set_ylim(0, most + 0.5)
