"""Random layers: overlaps of the replicas of a network."""

from typing import Any

import numpy as np

from attnflow.depth import GramPath
from attnflow.plots.style import COLOURS, GREY, PAGE, blank, styled

LINES = 50
"""Replicas that are drawn."""


def plot_gram(path: GramPath) -> Any:
    """The mean overlap of pairs, and how fast 1 minus it falls; replicas as thin lines."""
    if not len(path.layers):
        return blank("no frame was saved")
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.4))
        left, right = fig.subplots(1, 2)
        for axes, values, name in ((left, path.overlap, "mean overlap"), (right, path.gap, "1 - mean overlap")):
            axes.plot(path.tau, values[:LINES].T, color=GREY, lw=0.5, alpha=0.6)
            axes.plot(path.tau, values.mean(axis=0), color=COLOURS[0], lw=1.6, marker="." if len(path.tau) < 2 else "")
            axes.set(xlabel=r"$\tau = \eta^2\,$layers$/H$", ylabel=name.replace("-", "−"))
        if (path.gap > 0).all():
            right.set_yscale("log")
        return fig


def summarise_gram(path: GramPath) -> dict[str, Any]:
    """The numbers of the closing table."""
    some = len(path.layers) > 0
    found: dict[str, Any] = {"kind": "gram", "frames": len(path.layers), "replicas": len(path.gap)}
    found["layers"] = int(path.layers[-1]) if some else None
    found["tau"] = float(path.tau[-1]) if some else None
    for word, at in (("start", 0), ("end", -1)):
        found[f"overlap_at_{word}"] = float(path.overlap[:, at].mean()) if some else None
    if some and len(path.gap) > 1:
        found["standard_error"] = float(path.gap[:, -1].std(ddof=1) / np.sqrt(len(path.gap)))
    return found
