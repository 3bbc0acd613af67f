"""Energy and cluster count against (log) time."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.flows import AbstractTrajectory
from attnflow.plots.observables import NUMBERS
from attnflow.plots.story import Story, tell
from attnflow.plots.style import COLOURS, COLUMN, GREY, say, styled
from attnflow.spaces import Sphere

MANY = 20
"""More clusters than this are counted on a logarithmic axis."""


def draw_series(flow: AbstractTrajectory | Story) -> Any:
    """Two panels over one time axis, with the energies that theory knows: uniform, plateaus, consensus."""
    story = tell(flow)
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 3.4))
        upper, lower = fig.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        draw_energy(upper, story)
        draw_count(lower, story)
        upper.tick_params(labelbottom=False)
        upper.set_xlabel("")
        return fig


def draw_energy(axes: Any, story: Story) -> None:
    """The renormalised energy and its predicted levels."""
    if story.curve is not None:
        log_time, energy = story.curve
        axes.plot(story.axis.at(log_time), energy, color=COLOURS[0], zorder=3, label="measured")
        beta, space = story.beta, story.flow.space
        if beta is not None and beta > 0 and isinstance(space, Sphere):
            level = float(theory.energy_of_uniform(beta, space.dim))
            axes.axhline(level, color=GREY, ls=":", lw=0.8, label="uniform law")
            axes.axhline(0.0, color=GREY, ls="-.", lw=0.8, label="consensus")
            first = True
            for plateau in story.plateaus:
                if plateau.clusters > 1:
                    predicted = float(theory.energy_of_clusters(story.masses_on(plateau), beta))
                    ends = story.axis.at([plateau.log_start, plateau.log_end])
                    axes.plot(
                        ends, [predicted, predicted], color=COLOURS[4], ls="--", lw=1.0, zorder=4,
                        label=r"$(\sum_q M_q^2-1)/2\beta$" if first else None,
                    )  # fmt: skip
                    first = False
            low, high = axes.get_ylim()
            axes.set_ylim(low, high + 0.04 * (high - low))
            axes.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
        axes.set_ylabel(r"energy $\hat E$" if story.beta is not None else "energy")
    elif story.height is not None:
        name, values = story.height
        axes.plot(story.axis.at(story.log_time), values, color=COLOURS[0])
        if (values > 0).any():
            axes.set_yscale("log")
        axes.set_ylabel(NUMBERS[name])
    else:
        say(axes, "no energy or speed was kept")
        return
    story.axis.draw(axes)


def draw_count(axes: Any, story: Story) -> None:
    """Clusters where they exist, grey where the tokens still percolate; those of a long flow by their merges."""
    if story.tree is not None:
        _draw_merges(axes, story)
        return
    times = story.axis.at(story.log_time)
    count = story.clusters["count"].values.astype(float)
    condensed = story.clusters["condensed"].values
    axes.step(times, count, where="post", color=GREY, lw=0.7, label="not condensed")
    axes.step(times, np.where(condensed, count, np.nan), where="post", color=COLOURS[2], lw=1.6, label="clusters")
    top = np.nanmax(np.where(condensed, count, np.nan)) if condensed.any() else count.max()
    axes.set_ylim(0, 1.35 * min(count.max(), 3 * top) + 0.5)
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes.set_ylabel("clusters")
    axes.legend(loc="upper right")
    story.axis.draw(axes)


def _draw_merges(axes: Any, story: Story) -> None:
    assert story.tree is not None
    merges, n = story.tree.merges["log_time"].values, story.flow.dataset.sizes["token"]
    times = story.axis.at(np.concatenate([[-np.inf], merges, [story.axis.last]]))
    counts = n - np.append(np.arange(len(merges) + 1), len(merges))
    axes.step(times, counts, where="post", color=COLOURS[2], lw=1.6)
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    if n > MANY:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0.9, 1.2 * n)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.set_ylim(0, n + 0.5)
    axes.set_ylabel("clusters")
    story.axis.draw(axes)
