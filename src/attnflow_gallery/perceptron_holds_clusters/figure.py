"""Separations against the strength of attention, thresholds against beta, rates."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import LINES, looks, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.perceptron_holds_clusters.simulate import MODELS, Parameters, guesses

NAMES = "across, one side", "across, opposite", "turning", "breathing"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Two clusters held by two neurons; marks: tokens, lines: closed forms.

    (a) Separation at rest against the strength of attention over its threshold (full marks SA, open USA0). (b) The
    threshold against beta; bars: brackets of bisection. (c) Rates at the held pair, USA0: breathing is 0 at the
    threshold.
    """
    titles = "separation at rest", "where clusters merge", "rates at the held pair"
    with panels(1, 3, 2.9, *titles) as page:
        _draw_held(page[0], parameters, data["held"])
        _draw_folds(page[1], parameters, data["folds"])
        _draw_rates(page[2], parameters, data["rates"])
    return page.figure


def _draw_held(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    shares = np.linspace(0.02, 0.9999, 80)
    for opening, colour, mark in looks(parameters.openings):
        for model in MODELS:
            top = theory.landscape.hold_threshold(parameters.beta, opening, model=model).kappa
            known = [theory.landscape.held_angle(parameters.beta, opening, s * top, model=model) for s in shares]
            axes.plot(shares, known, LINES[model], color=colour, lw=1.0)
            for k, (wide, share, kind) in enumerate(guesses(parameters)):
                if (wide, kind) == (opening, model):
                    face = colour if model == "SA" else "white"
                    axes.plot(share, part["angle"].values[k], mark, ms=4, mec=colour, mfc=face)
        axes.plot([], [], f"-{mark}", color=colour, ms=4, lw=1.0, label=rf"$\Theta = {opening:g}$")
    axes.set(xlabel=r"$\kappa/\kappa^*$", ylabel=r"separation $\theta$")
    axes.legend(loc="lower left")


def _draw_folds(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    betas, opening = np.linspace(1.0, max(parameters.betas) + 1, 60), parameters.openings[0]
    for i, (model, colour) in enumerate(zip(MODELS, (COLOURS[4], COLOURS[0]), strict=True)):
        known = [theory.landscape.hold_threshold(b, opening, model=model).kappa for b in betas]
        axes.plot(betas, known, LINES[model], color=colour, lw=1.0)
        low, high = np.exp(part["log_kappa"].values[i]).T
        middle = np.sqrt(low * high)
        bars = [middle - low, high - middle]
        axes.errorbar(parameters.betas, middle, bars, fmt="o", ms=4, color=colour, elinewidth=0.9, label=model)
    axes.set(yscale="log", xlabel=r"inverse temperature $\beta$", ylabel=r"threshold $\kappa^*$")
    axes.legend(loc="upper left")


def _draw_rates(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    opening, shares = parameters.openings[0], np.linspace(0.02, 0.9999, 60)
    top = theory.landscape.hold_threshold(parameters.beta, opening).kappa
    known = np.array([theory.landscape.held_rates(parameters.beta, opening, s * top) for s in shares])
    for k, name in enumerate(NAMES):
        axes.plot(shares, known[:, k], color=COLOURS[k], lw=1.0, label=name)
    for k, share in enumerate(parameters.shares):
        axes.plot(np.full(4, share), part["rate"].values[k], "o", ms=3, color=GREY)
    axes.set(xlabel=r"$\kappa/\kappa^*$", ylabel="rate", ylim=(None, 0.9))
    axes.legend(loc="upper left", fontsize=6.5)
