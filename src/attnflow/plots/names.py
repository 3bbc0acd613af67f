"""Words in figures: the labels of tokens, and what a cluster of them is called."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.plots.style import INK, literal

LONGEST = 16
"""Letters of the name of a cluster."""
APART, LETTER = 0.13, 0.06
"""Lines are so far apart and letters so wide, in units of half the width of a small picture."""


def cluster_name(members: Sequence[str], longest: int = LONGEST) -> str:
    """The first words of a cluster, as many as fit, and how many more there are: "king, queen +3"."""
    shown = list(members[:1])
    for word in members[1:]:
        if len(", ".join([*shown, word])) > longest:
            break
        shown.append(word)
    text = ", ".join(shown)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text if len(shown) == len(members) else f"{text} +{len(members) - len(shown)}"


def draw_words(
    axes: Any, points: np.ndarray, words: Sequence[str], areas: np.ndarray, *, size: float, zoom: float = 1.0
) -> None:
    """Words beside discs of these areas, the first ones first; one that would lie on another is left out.

    The limits of the axes are those of the picture; `zoom` is how much wider it is than a small one.
    """
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    middle, half = (
        np.array([(west + east) / 2, (south + north) / 2]),
        np.array([(east - west) / 2, (north - south) / 2]),
    )
    taken: list[tuple[float, float, float]] = []
    for (x, y), word, area in zip((points[:, :2] - middle) / half, words, areas, strict=True):
        left = x > 0.15  # towards the middle, where there is room
        length = LETTER * size / 5 / zoom * (len(word) + 1)
        low, high = (x - length, x) if left else (x, x + length)
        if any(
            low < end and start < high and abs(y - height) < APART * size / 5 / zoom for start, end, height in taken
        ):
            continue
        taken.append((low, high, y))
        axes.annotate(
            literal(word),
            tuple(middle + half * (x, y)),
            ((-1 if left else 1) * (2 + np.sqrt(area) / 2), 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            size=size,
            color=INK,
            zorder=6,
            path_effects=_halo(),
        )


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=1.2, foreground="white")]
