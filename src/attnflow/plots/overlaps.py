"""The histogram of overlaps through time."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.flows import AbstractTrajectory
from attnflow.plots.figure_data import FigureData
from attnflow.plots.style import COLUMN, styled
from attnflow.spaces import Sphere

SAMPLE = 400
"""Tokens whose pairs are counted; of more, a sample of so many, the same for every frame and every call."""
LARGER_SAMPLE = 4096
"""The same where masses differ, so that a sample may miss what matters."""


def draw_overlaps(flow: AbstractTrajectory | FigureData, *, bins: int = 120, columns: int = 160) -> Any:
    """Share of pairs with overlap <x_i, x_j> (vertical) at time t (horizontal), on a logarithmic colour scale."""
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.5))
        draw_overlap_map(fig, fig.subplots(), FigureData.of(flow), bins=bins, columns=columns)
        return fig


def draw_overlap_map(fig: Any, axes: Any, data: FigureData, *, bins: int = 120, columns: int = 160) -> None:
    """The histogram on given axes; a column shows the last frame that is not after its middle.

    Of more than SAMPLE tokens a sample is counted, and the label of the colours says so.
    """
    from matplotlib.colors import LogNorm

    edges = data.axis.at(data.axis.edges(columns))
    middles = data.axis.edges(2 * columns)[1::2]
    frames, column = np.unique([data.frame_at(middle) for middle in middles], return_inverse=True)
    whole = data.flow.dataset
    chosen, weights = sampled(whole["masses"].values)
    picked = whole.isel(time=frames, token=chosen)
    some = dataclasses.replace(data.flow, dataset=picked.assign(masses=picked["masses"].copy(data=weights)))
    share = some.overlap_histogram(bins=bins).values.T[:, column] * (2 / bins)
    shown = np.where(share > 0, share, np.nan)
    mesh = axes.pcolormesh(
        edges, np.linspace(-1, 1, bins + 1), shown, norm=LogNorm(1e-5, 1.0), cmap="cividis", rasterized=True
    )
    of = "" if len(chosen) == np.count_nonzero(whole["masses"].values) else f" (of {len(chosen)} tokens)"
    fig.colorbar(mesh, ax=axes, label=f"share of pairs{of}", aspect=25)
    on_sphere = isinstance(data.flow.space, Sphere)
    axes.set(ylabel=r"overlap $\langle x_i, x_j\rangle$" if on_sphere else r"cosine of $x_i$ and $x_j$", ylim=(-1, 1))
    data.axis.draw(axes)


def sampled(masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens whose pairs are counted, in increasing order, and their weights; a fixed seed draws them.

    Tokens without mass do not count. Of equal masses SAMPLE tokens are drawn. Of unequal ones LARGER_SAMPLE draws are
    made with the masses as probabilities, and weights are how often a token was drawn: the expectation of a product of
    two of them is m_i m_j, up to a common factor.
    """
    there = np.flatnonzero(masses > 0)
    weights, rng = masses[there], np.random.default_rng(0)
    equal = bool(np.all(weights == weights[0]))
    if len(there) <= (SAMPLE if equal else LARGER_SAMPLE):
        return there, weights
    if equal:
        return np.sort(rng.choice(there, SAMPLE, replace=False)), weights[:SAMPLE]
    counts = rng.multinomial(LARGER_SAMPLE, weights / weights.sum())
    return there[counts > 0], counts[counts > 0].astype(float)
