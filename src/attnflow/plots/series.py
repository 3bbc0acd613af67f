"""Energy and cluster count against (log) time."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.plots.story import Story
from attnflow.plots.style import COLOURS, COLUMN, GREY, styled, time_axis
from attnflow.spaces import Sphere


def draw_series(story: Story) -> Any:
    """Two panels over one time axis, with the energies that theory knows: uniform, plateaus, consensus."""
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
    times = story.times
    if "energy" in story.flow.dataset:
        axes.plot(times, story.flow.energy.values, color=COLOURS[0], zorder=3, label="measured")
        beta, space = story.beta, story.flow.space
        if beta is not None and beta > 0 and isinstance(space, Sphere):
            level = float(theory.energy_of_uniform(beta, space.dim))
            axes.axhline(level, color=GREY, ls=":", lw=0.8, label="uniform law")
            axes.axhline(0.0, color=GREY, ls="-.", lw=0.8, label="consensus")
            first = True
            for plateau in story.plateaus:
                if plateau.clusters > 1:
                    k = story.frame_at(np.sqrt(plateau.start * plateau.end))
                    predicted = float(theory.energy_of_clusters(story.clusters["mass"].values[k], beta))
                    axes.plot(
                        [plateau.start, plateau.end], [predicted, predicted], color=COLOURS[4], ls="--", lw=1.0,
                        zorder=4, label=r"$(\sum_q M_q^2-1)/2\beta$" if first else None,
                    )  # fmt: skip
                    first = False
            low, high = axes.get_ylim()
            axes.set_ylim(low, high + 0.04 * (high - low))
            axes.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
        axes.set_ylabel(r"energy $\hat E$" if story.beta is not None else "energy")
    else:
        axes.plot(times, story.flow.dataset["speed"].values, color=COLOURS[0])
        axes.set_yscale("log")
        axes.set_ylabel("largest speed")
    time_axis(axes, times)


def draw_count(axes: Any, story: Story) -> None:
    """Clusters where they exist; grey where the tokens still percolate."""
    times = story.times
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
    time_axis(axes, times)
