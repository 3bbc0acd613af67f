"""One look for all figures: vector output, colours that the colour-blind can tell apart, legible at column width."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

COLUMN = 3.4
"""Width of a journal column, inches."""
PAGE = 7.0
"""Width of a page of two columns, inches."""

# Okabe and Ito's palette without black, reordered so that the first ones differ most in lightness too, then darker
# ones of Tol's muted palette, for small clusters
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442",
    "#332288", "#882255", "#999933", "#44AA99", "#661100",
)  # fmt: skip
GREY = "#8a8a8a"
INK = "#1a1a1a"

_RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
}


@contextlib.contextmanager
def styled() -> Iterator[Any]:
    """Matplotlib without a screen, in the house look; yields `matplotlib.figure`."""
    import matplotlib
    import matplotlib.figure

    with matplotlib.rc_context(_RC):
        yield matplotlib.figure


def colours(labels: np.ndarray) -> list[str]:
    """A colour per token from its cluster number; clusters beyond the palette share grey."""
    return [COLOURS[k] if k < len(COLOURS) else GREY for k in labels]


def shades(count: int) -> list[Any]:
    """Colours for frames in their order, dark to light, all of them legible on white."""
    import matplotlib

    return [matplotlib.colormaps["cividis"](share) for share in np.linspace(0.0, 0.82, max(count, 1))][:count]


def blank(words: str) -> Any:
    """A figure that says why there is none."""
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 0.6))
        say(fig.subplots(), words)
        return fig


def say(axes: Any, words: str) -> None:
    """Words in the place of a panel."""
    axes.axis("off")
    axes.text(0.5, 0.5, words, color=GREY, ha="center", va="center", transform=axes.transAxes)
