"""One look for all figures: vector output, colours that the colour-blind can tell apart, legible at column width."""

import contextlib
import contextvars
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnflow.checks import reals, shown
from attnflow.errors import InvalidInput
from attnflow.lazy import listing

__all__ = ["COLOURS", "COLUMN", "GREY", "INK", "PAGE", "panel", "shades", "styled", "with_style"]
"""What figures outside the package may use."""
__dir__ = listing(__all__)
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
# the same darker, for clusters beyond the first twelve
DARKER = tuple("#" + "".join(f"{round(0.6 * int(c[k : k + 2], 16)):02x}" for k in (1, 3, 5)) for c in COLOURS)
GREY = "#8a8a8a"
INK = "#1a1a1a"
PALETTE = (*COLOURS, *DARKER, GREY)
"""The colours of clusters by number; the last is that of all others."""

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
    "axes.formatter.use_mathtext": True,  # 10^6 on every axis, never 1e6
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
}

SMALLEST = 0.5
"""Inches that a figure is wide and high at least."""
_OWN: contextvars.ContextVar[Any] = contextvars.ContextVar("style of figures", default=None)


@contextlib.contextmanager
def styled() -> Iterator[Any]:
    """Matplotlib without a screen, in the house look; yields `matplotlib.figure`."""
    import matplotlib
    import matplotlib.figure
    import matplotlib.style

    _show_in_notebooks(matplotlib.figure.Figure)
    own = _OWN.get()
    with matplotlib.rc_context(_RC), contextlib.nullcontext() if own is None else matplotlib.style.context(own):
        yield matplotlib.figure


def _show_in_notebooks(kind: type) -> None:
    """A notebook shows a figure that a cell ends with. To import pyplot would see to that, but nothing here does."""
    shell = sys.modules["IPython"].get_ipython() if "ipykernel" in sys.modules and "IPython" in sys.modules else None
    if shell is not None and not any(kind in one.type_printers for one in shell.display_formatter.formatters.values()):
        tools = importlib.import_module("IPython.core.pylabtools")
        tools.select_figure_formats(shell, {"png"}, bbox_inches="tight")


@contextlib.contextmanager
def with_style(style: Any) -> Iterator[None]:
    """Figures that are made meanwhile have `style` over the house look: whatever `matplotlib.style.context` takes."""
    import matplotlib.style

    if style is None:  # within another style too
        yield
        return
    try:
        with matplotlib.style.context(style):
            pass
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        raise InvalidInput(
            f"`style` is {shown(style)}; give a style of Matplotlib by its name or file, a dictionary of rcParams, or "
            "a list of these."
        ) from None
    token = _OWN.set(style)
    try:
        yield
    finally:
        _OWN.reset(token)


def resized(figure: Any, size: Any) -> Any:
    """A figure with the width and height `size` in inches; as it is where `size` is None."""
    if size is not None:
        found = reals(size)
        if found is None or found.shape != (2,) or not (np.isfinite(found) & (found >= SMALLEST)).all():
            raise InvalidInput(
                f"`figsize` is {shown(size)}; give width and height in inches, at least {SMALLEST}, as in (7, 4)."
            )
        figure.set_size_inches(*found)
    return figure


def colours(labels: np.ndarray) -> list[str]:
    """A colour per token from its cluster number; after twelve colours come darker ones, then all share grey."""
    return [PALETTE[min(k, len(PALETTE) - 1)] for k in labels]


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


def literal(text: Any) -> str:
    """A text that somebody else wrote, for a figure: Matplotlib sees no formula between dollars in it."""
    return str(text).replace("$", r"\$")


def say(axes: Any, words: str) -> None:
    """Words in the place of a panel."""
    axes.axis("off")
    axes.text(0.5, 0.5, words, color=GREY, ha="center", va="center", transform=axes.transAxes)


def panel(axes: Any, letter: str, title: str = "") -> None:
    """The letter of a panel in bold, and what it shows."""
    axes.set_title(rf"$\bf{{({letter})}}$ {title}".rstrip(), loc="left")


def lay_out(figure: Any) -> None:
    """Lay a figure out once for all formats; numbers at ticks become plain text, which draws faster than formulas."""
    import matplotlib
    from matplotlib.ticker import ScalarFormatter

    scalar = [
        formatter
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if isinstance(formatter := axis.get_major_formatter(), ScalarFormatter)
    ]
    for formatter in scalar:
        formatter.set_useMathText(False)
    figure.draw_without_rendering()
    for formatter in scalar:
        formatter.set_useMathText(bool(formatter.get_offset()))
    with matplotlib.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
