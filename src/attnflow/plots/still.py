"""Tokens at one moment, and the velocities that a field gives them."""

from typing import Any

import numpy as np

from attnflow.axes import batches
from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.plots.names import draw_words
from attnflow.plots.snapshots import MOST_TOKENS, draw_axes, graticule, name_view, views_of
from attnflow.plots.style import COLOURS, COLUMN, INK, styled
from attnflow.tokens import Tokens

MOST_ARROWS = 150
MOST_WORDS = 80
"""Tokens whose labels are written."""
LONGEST = 0.3
"""The longest arrow, in units of half the width of the picture."""
NUDGE = 1e-6
"""Arrows are differences of pictures over this time, in units of the inverse of the greatest speed."""


def draw_tokens(tokens: Tokens) -> Any:
    """Tokens on their space; areas of dots are masses. Of a batch the first member is shown.

    S^2 is seen from afar, its far side pale; in higher dimension the first principal components are shown.
    """
    return _draw(tokens, None, 0.0)


def draw_velocities(field: AbstractField, tokens: Tokens, t: float = 0.0) -> Any:
    """Tokens and the velocities X_t[mu](x_i) of `field` at up to 150 of them, as arrows of one common scale."""
    instance("field", field, AbstractField, "a field such as Attention(9.0)")
    return _draw(tokens, field, t)


def _draw(tokens: Tokens, field: AbstractField | None, t: float) -> Any:
    instance("tokens", tokens, Tokens, "tokens such as uniform(Sphere(3), n=64)")
    if field is not None and (dims := sorted({one.dim for one in batches(field)})):
        raise InvalidInput(f"`field` is a batch along {dims}; draw the velocities of one member, with one number each.")
    if tokens.dims or tokens.present is not None:
        tokens = tokens.member(**dict.fromkeys(tokens.dims, 0))
    x, masses = np.asarray(tokens.positions, float), np.asarray(tokens.masses, float)
    if field is None:
        moved, speed = None, 0.0
    else:
        velocity = np.asarray(field.velocity(tokens, t), float)
        speed = float(np.linalg.norm(velocity, axis=-1).max())
        moved = x + NUDGE * velocity / (speed or 1.0)
    views = views_of(tokens.space, x)
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * len(views), COLUMN))
        for axes, view in zip(fig.subplots(1, len(views), squeeze=False)[0], views, strict=True):
            step = max(1, len(x) // MOST_TOKENS)
            seen = view.seen(tokens.space, x[::step])
            area = np.clip(3000 * masses[::step], 4.0, 150.0)
            draw_axes(axes, view)
            graticule(axes, view)
            near = seen[:, 2] >= 0 if view.unit and seen.shape[1] > 2 else np.ones(len(seen), bool)
            for side, alpha in ((~near, 0.25), (near, 1.0)):
                axes.scatter(*seen[side, :2].T, s=area[side], c=COLOURS[0], lw=0, alpha=alpha, zorder=2 + alpha)
            name_view(axes, view)
            axes.set_ylabel(view.labels[1] if len(view.labels) > 1 else "")
            if tokens.labels is not None and len(x) <= MOST_WORDS:
                draw_words(axes, seen, [str(label) for label in tokens.labels], area, size=6.0, zoom=3.0)
            if moved is not None:
                some = np.linspace(0, len(x) - 1, min(len(x), MOST_ARROWS)).astype(int)
                at = view.seen(tokens.space, x[some])
                arrow = (view.seen(tokens.space, moved[some]) - at)[:, :2] / NUDGE * LONGEST
                width = 1.0 if view.unit else np.abs(at).max() or 1.0
                pale = np.where(at[:, 2] < 0, 0.2, 1.0) if view.unit and at.shape[1] > 2 else np.ones(len(at))
                axes.quiver(
                    *at[:, :2].T,
                    *(width * arrow).T,
                    angles="xy",
                    scale_units="xy",
                    scale=1.0,
                    color=INK,
                    alpha=pale,
                    width=0.004,
                    zorder=4,
                )
        if field is not None:
            fig.suptitle(f"longest arrow: speed {speed:.3g}", fontsize=8)
        return fig
