"""The histogram of overlaps through time."""

from typing import Any

import numpy as np

from attnflow.plots.story import Story
from attnflow.plots.style import COLUMN, styled, time_axis
from attnflow.spaces import Sphere


def draw_overlaps(story: Story, *, bins: int = 120, frames: int = 160) -> Any:
    """Share of pairs with overlap <x_i, x_j> (vertical) at time t (horizontal), on a logarithmic colour scale."""
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.5))
        draw_overlap_map(fig, fig.subplots(), story, bins=bins, frames=frames)
        return fig


def draw_overlap_map(fig: Any, axes: Any, story: Story, *, bins: int = 120, frames: int = 160) -> None:
    """The histogram on given axes."""
    from matplotlib.colors import LogNorm

    histogram = story.flow.thinned(frames).overlap_histogram(bins=bins)
    share = histogram.values.T * (2 / bins)
    times = histogram["time"].values
    later = times > 0
    shown = np.where(share > 0, share, np.nan)[:, later]
    mesh = axes.pcolormesh(
        times[later], histogram["overlap"].values, shown, norm=LogNorm(1e-5, 1.0), cmap="cividis", shading="nearest",
        rasterized=True,
    )  # fmt: skip
    fig.colorbar(mesh, ax=axes, label="share of pairs", aspect=25)
    on_sphere = isinstance(story.flow.space, Sphere)
    axes.set_ylabel(r"overlap $\langle x_i, x_j\rangle$" if on_sphere else r"cosine of $x_i$ and $x_j$")
    axes.set_ylim(-1, 1)
    time_axis(axes, times)
