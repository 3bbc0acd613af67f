"""The histogram of overlaps through time."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import FigureData
from attnflow.plots.style import COLUMN, styled
from attnflow.spaces import Sphere

MOST = 4096
"""Tokens whose pairs are counted; of more, every k-th."""


def draw_overlaps(flow: AbstractTrajectory | FigureData, *, bins: int = 120, columns: int = 160) -> Any:
    """Share of pairs with overlap <x_i, x_j> (vertical) at time t (horizontal), on a logarithmic colour scale."""
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.5))
        draw_overlap_map(fig, fig.subplots(), FigureData.of(flow), bins=bins, columns=columns)
        return fig


def draw_overlap_map(fig: Any, axes: Any, data: FigureData, *, bins: int = 120, columns: int = 160) -> None:
    """The histogram on given axes; a column shows the last frame that is not after its middle."""
    from matplotlib.colors import LogNorm

    edges = data.axis.at(data.axis.edges(columns))
    middles = data.axis.edges(2 * columns)[1::2]
    frames, column = np.unique([data.frame_at(middle) for middle in middles], return_inverse=True)
    stride = -(-data.flow.dataset.sizes["token"] // MOST)  # tokens have no order that a stride could meet
    dataset = data.flow.dataset.isel(time=frames, token=slice(None, None, stride))
    some = dataclasses.replace(data.flow, dataset=dataset)
    share = some.overlap_histogram(bins=bins).values.T[:, column] * (2 / bins)
    shown = np.where(share > 0, share, np.nan)
    mesh = axes.pcolormesh(
        edges, np.linspace(-1, 1, bins + 1), shown, norm=LogNorm(1e-5, 1.0), cmap="cividis", rasterized=True
    )
    fig.colorbar(mesh, ax=axes, label="share of pairs", aspect=25)
    on_sphere = isinstance(data.flow.space, Sphere)
    axes.set_ylabel(r"overlap $\langle x_i, x_j\rangle$" if on_sphere else r"cosine of $x_i$ and $x_j$")
    axes.set_ylim(-1, 1)
    data.axis.draw(axes)
