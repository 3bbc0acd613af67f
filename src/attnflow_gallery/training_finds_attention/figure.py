"""Losses, weights, energy and clusters through training; the layers of networks with weights of each layer."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.training_finds_attention.compare import LEFT, anisotropy, left, products, rises, scale
from attnflow_gallery.training_finds_attention.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """In-context clustering from random weights; each curve is a seed, grey where it stays on the plateau.

    (a) Test loss against the step; dotted: the best isotropic flow and 1.1 times its loss, dashed: no layer at all. (b)
    Anisotropy of QᵀK (lines) and V (thin lines), 0 for multiples of the identity. (c) β = tr QᵀK/d. (d) Share of
    prompts on which the energy falls in no layer. (e) Clusters after each layer, mean over prompts: before training
    (grey), and after it for the seeds that left the plateau. (f) Weights of each layer: tr QᵀK/d (lines) and 10 tr V/d
    (dashed) against the layer; below 0 a layer repels.
    """
    titles = ("test loss", "anisotropy", "inverse temperature", "the energy rises", "clusters", "weights of each layer")
    part, seen, found = data["shared"], data["shared-seen"], left(data)
    steps = np.maximum(part["mark_step"].values, 0.6)
    attention, value = products(part)
    colours = [COLOURS[k % len(COLOURS)] if one else GREY for k, one in enumerate(found)]
    with panels(2, 3, 4.6, *titles) as page:
        share, number = rises(seen), seen["clusters"].values.mean(axis=2)
        for k, colour in enumerate(colours):
            page[0].plot(steps, part["test_loss"].values[:, k], color=colour, lw=1.0)
            page[1].plot(steps, anisotropy(attention)[:, k], color=colour, lw=1.2)
            page[1].plot(steps, anisotropy(value)[:, k], color=colour, lw=0.5)
            page[2].plot(steps, scale(attention)[:, k], color=colour, lw=1.0)
            page[3].plot(steps, share[:, k], color=colour, lw=1.0)
            depth = np.arange(number.shape[-1])
            page[4].plot(depth, number[0, k], color=GREY, lw=0.6, ls="--")
            if found[k]:
                page[4].plot(depth, number[-1, k], "o-", color=colour, lw=1.0, ms=2.5)
        best = float(data["grid"]["loss"].min())
        for level, look in ((best, ":"), (LEFT * best, ":"), (float(data["grid"]["input"]), "--")):
            page[0].axhline(level, color=GREY, lw=0.8, ls=look)
        for axes in page[:4]:
            axes.set(xscale="log", xlabel="step")
        page[0].set(yscale="log", ylabel=r"$1 - \langle x, c \rangle$")
        page[1].set(ylim=(0, 1.05))
        page[2].set(ylabel=r"$\mathrm{tr}(Q^\top K)/d$")
        page[3].set(ylabel="share of prompts", ylim=(-0.03, 1.05))
        page[4].set(xlabel="layer", ylabel="clusters", ylim=(0, parameters.tokens))
        _draw_layers(page[5], data["own"])
    return page.figure


def _draw_layers(axes: Any, part: xr.Dataset) -> None:
    attention, value = (scale(matrix)[-1] for matrix in products(part))
    layer = np.arange(1, attention.shape[-1] + 1)
    for k, (beta, v) in enumerate(zip(attention, value, strict=True)):
        axes.plot(layer, beta, "o-", color=COLOURS[k % len(COLOURS)], lw=1.0, ms=3)
        axes.plot(layer, 10 * v, "s--", color=COLOURS[k % len(COLOURS)], lw=0.9, ms=2.5)
    axes.axhline(0, color=GREY, lw=0.7)
    axes.set(xlabel="layer", ylabel=r"tr$/d$", xticks=layer)
