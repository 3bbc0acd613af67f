"""The attention matrix before and after."""

from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.flows import AbstractTrajectory
from attnflow.observe import attention_matrix
from attnflow.plots.figure_data import FigureData
from attnflow.plots.style import COLUMN, styled

MOST_TOKENS = 512


def draw_attention(flow: AbstractTrajectory | FigureData, frames: tuple[int, int] | None = None) -> Any:
    """Weights A_ij at two frames, by default the start and the plateau of the colours.

    Tokens are sorted by cluster. More than 512 are thinned for display. Each row of |A_ij| is divided by its sum over
    the tokens shown, whatever the normaliser; a token that sees nobody has a row of zeros.
    """
    data = FigureData.of(flow)
    field = data.flow.field
    if not isinstance(field, Attention) or field.heads is not None:
        raise InvalidInput(f"{type(field).__name__} has no single attention matrix; Attention with one head has one.")
    moments = data.moments()
    chosen = (0, data.shown or moments[len(moments) // 2]) if frames is None else frames
    order = np.argsort(data.labels, kind="stable")
    order = order[:: int(np.ceil(len(order) / MOST_TOKENS))]
    from matplotlib.colors import LogNorm

    from attnflow.tokens import Tokens

    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 1.9))
        panels = fig.subplots(1, 2)
        for axes, k in zip(panels, chosen, strict=True):
            whole = data.flow.tokens(k)
            some = Tokens(whole.positions[order], whole.masses[order], space=whole.space, place=whole.place[order])
            weights = np.abs(attention_matrix(field, some))
            sums = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(sums > 0, sums, 1.0)
            image = axes.imshow(
                weights * len(order),
                norm=LogNorm(1e-3, max(10.0, float(weights.max()) * len(order))),
                cmap="cividis",
                interpolation="nearest",
            )
            axes.set(title=data.axis.title(data.log_time[k]), xticks=[], yticks=[], xlabel="listened to")
        panels[0].set_ylabel("listening")
        fig.colorbar(image, ax=panels, label=r"$n A_{ij}$", aspect=18, shrink=0.85)
        return fig
