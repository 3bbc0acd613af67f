"""Retrieval profiles: what the last token keeps of each place."""

from typing import Any

import numpy as np

from attnflow.decoders import Retrieval
from attnflow.plots.style import COLOURS, COLUMN, GREY, blank, styled


def plot_retrieval(found: Retrieval) -> Any:
    """The estimate in every bin with twice its standard error."""
    if not found.prompts:
        return blank("no prompt was followed")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.25, 2.5))
        axes = fig.subplots()
        axes.axhline(0.0, color=GREY, lw=0.6, zorder=1)
        axes.errorbar(found.place, found.mean, 2 * found.standard_error, fmt="o-", ms=3, lw=1.0, color=COLOURS[0])
        axes.set(xlim=(0, 1), xlabel="place $j/n$", ylabel=rf"$n\,\mathrm{{E}}\,P_{{{found.degree}}}$")
        return fig


def summarise_retrieval(found: Retrieval) -> dict[str, Any]:
    """The numbers of the closing table."""
    summary: dict[str, Any] = {"kind": "retrieval", "prompts": found.prompts, "bins": len(found.mean)}
    numbers = {"least": found.mean.min(), "least_at": found.place[np.argmin(found.mean)], "last": found.mean[-1]}
    numbers["largest_error"] = found.standard_error.max()
    return summary | {name: float(value) if np.isfinite(value) else None for name, value in numbers.items()}
