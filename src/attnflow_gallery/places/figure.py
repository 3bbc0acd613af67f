"""Overlaps of words, rates of rotary modes, and ends of random starts."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.places.compare import elsewhere
from attnflow_gallery.places.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Marks: tokens, lines: closed forms.

    (a) Overlaps within a word (solid) and across words (dashed) for places of different size. (b) Growth rates of the
    modes cos(k theta + (k-1) p) with rotary places; dots: the largest rate without them, at most 2/e. (c) Rates at
    which deviations cos(q p) from consensus fall. (d) Ends of random starts: angle against place; the first two that
    rest elsewhere, and one consensus where there is one.
    """
    titles = "additive places", "rotary places: growth", "rotary places: consensus", "rotary places: ends"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_words(page[0], parameters, data["words"])
        _draw_modes(page[1], parameters, data["modes"])
        _draw_consensus(page[2], parameters, data["consensus"])
        _draw_ends(page[3], data["rotary"])
    return page.figure


def _draw_words(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    t = np.linspace(0, 1.1 * max(parameters.times), 120)
    for (k, size), colour, mark in looks(enumerate(parameters.sizes)):
        known = theory.uniform.placed_overlaps(
            t, parameters.word_beta, size, words=parameters.words, copies=parameters.copies
        )
        for kind, line in enumerate(("-", "--")):
            axes.plot(t, known[kind], line, color=colour, lw=1.0)
            axes.plot(parameters.times, part["overlap"].values[k, 1, kind], mark, ms=4, color=colour)
        axes.plot([], [], f"-{mark}", ms=4, lw=1.0, color=colour, label=f"size {size:g}")
    axes.set(xlabel="time $t$", ylabel=rf"overlap   ($\beta = {parameters.word_beta:g}$)", ylim=(-0.03, 1.3))
    axes.legend(loc="upper left", fontsize=6.5, ncols=3)


def _draw_modes(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    degrees = np.arange(1, 9)
    for (k, beta), colour, mark in looks(enumerate(parameters.betas)):
        axes.plot(degrees, theory.uniform.rotary_growth_rates(beta, k=degrees), color=colour, lw=1.0)
        axes.plot(parameters.degrees, part["rate"].values[k], mark, ms=4, color=colour, label=rf"$\beta = {beta:g}$")
    axes.plot(degrees, theory.uniform.rotary_growth_rates(20.0, k=degrees), color=GREY, lw=1.0, label=r"$\beta = 20$")
    axes.axhline(2 / np.e, color=GREY, lw=0.9, ls=":")
    axes.set(xlabel="degree $k$", ylabel="growth rate", ylim=(-0.05, 2.2))
    axes.legend(loc="upper left", fontsize=6.5, ncols=3)


def _draw_consensus(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    betas = np.linspace(0.05, max(parameters.betas) + 1, 60)
    for (j, q), colour, mark in looks(enumerate(parameters.orders)):
        known = [-float(theory.uniform.rotary_consensus_rates(b, q=q)) for b in betas]
        axes.plot(betas, known, color=colour, lw=1.0)
        axes.plot(parameters.betas, -part["rate"].values[:, j], mark, ms=4, color=colour, label=f"$q = {q}$")
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel="rate of approach", ylim=(0, 1.05))
    axes.legend(loc="lower left")


def _draw_ends(axes: Any, part: xr.Dataset) -> None:
    n = part.sizes["token"]
    chosen = [*np.flatnonzero(elsewhere(part))[:2], *np.flatnonzero(part["order"].values >= 0.99)[:1]]
    for start, colour, mark in zip(chosen, (COLOURS[0], COLOURS[4], COLOURS[2]), "os^", strict=False):
        label = "consensus" if part["order"].values[start] >= 0.99 else f"start {start}"
        axes.plot(np.arange(n) / n, part["angle"].values[start], mark, ms=3, color=colour, label=label)
    axes.set(xlabel="place (once round)", ylabel="angle", ylim=(-3.3, 5.0))
    if chosen:
        axes.legend(loc="upper right", ncols=3, fontsize=6.5, handletextpad=0.1)
