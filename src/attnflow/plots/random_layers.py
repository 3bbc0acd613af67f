"""Random layers: overlaps of the replicas of a network, and a density given the heads."""

from typing import Any

import numpy as np

from attnflow.plots.style import COLOURS, GREY, PAGE, blank, shades, styled
from attnflow.random_layers import ConditionalDensity, GramPath

LINES = 50
"""Replicas or head streams that are drawn."""
CURVES = 5
"""Frames that are shown as curves."""


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


def plot_conditional(found: ConditionalDensity) -> Any:
    """The density of the first member at some frames, and the sizes of two Fourier coefficients of all of them."""
    if not len(found.times):
        return blank("no frame was saved")
    frames = sorted({round(share * (len(found.times) - 1)) for share in np.linspace(0, 1, CURVES)})
    angles, logs = (a.reshape(-1, *a.shape[-2:])[0] for a in (found.angles, found.log_density))
    sizes = np.abs(found.fourier(2))[..., 1:]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.5))
        left, right = fig.subplots(1, 2)
        for k, colour in zip(frames, shades(len(frames)), strict=True):
            order = np.argsort(angles[k])
            left.plot(angles[k][order], np.exp(logs[k][order]), color=colour, label=f"$t = {found.times[k]:.3g}$")
        left.set(xlabel=r"angle $\theta$", ylabel=r"density $\rho$", xlim=(-np.pi, np.pi))
        left.set_xticks([-np.pi, 0, np.pi], labels=["−π", "0", "π"])
        left.legend(loc="best", handlelength=1.2)
        for k, colour in ((0, COLOURS[0]), (1, COLOURS[1])):
            lines = sizes[..., k].reshape(-1, len(found.times))[:LINES]
            right.plot(found.times, lines.T, color=colour, lw=1.2 if len(lines) == 1 else 0.6)
            right.plot([], [], color=colour, label=f"$|c_{k + 1}|$")
        right.set(xlabel="time $t$", ylabel="Fourier coefficients")
        right.set_ylim(bottom=0)
        right.legend(loc="best", handlelength=1.2)
        return fig


def summarise_conditional(found: ConditionalDensity) -> dict[str, Any]:
    """The numbers of the closing table; means over the members of a batch."""
    some, sizes = len(found.times) > 0, np.abs(found.fourier(2))
    summary: dict[str, Any] = {"kind": "conditional", "frames": len(found.times), "labels": len(found.labels)}
    summary["time"] = float(found.times[-1]) if some else None
    summary["members"] = int(np.prod([len(labels) for labels in found.dims.values()], dtype=int))
    for k in (1, 2):
        summary[f"coefficient_{k}_at_end"] = float(sizes[..., -1, k].mean()) if some else None
    summary["folded"] = int(found.folded[..., -1].sum()) if some else None
    return summary
