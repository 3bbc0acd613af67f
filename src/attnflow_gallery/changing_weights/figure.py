"""Winners of ramps, pairs beside the critical rate, and times to merge under a skew V."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import LINES, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.changing_weights.simulate import MODELS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Marks: tokens, lines: closed forms.

    (a) The mode that wins under beta = r t. (b) Angle that is left of two clusters when beta is 300, just below (open)
    and just above (full) the critical rate. (c) Time to merge of unequal clusters under V = I + omega J; the heavy
    cluster is ahead for omega > 0.
    """
    titles = "ramps select", "ramps freeze", "skew V laps"
    with panels(1, 3, 2.9, *titles) as page:
        _draw_ramps(page[0], parameters, data["ramps"])
        _draw_freezing(page[1], parameters, data["freezing"])
        _draw_skew(page[2], parameters, data)
    return page.figure


def _draw_ramps(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    products = np.geomspace(0.3, 12.0, 200)
    axes.plot(products, [theory.uniform.ramp_winner(one) for one in products], color=GREY, lw=1.0)
    for k in range(parameters.phases):
        axes.plot(parameters.products, part["winner"].values[:, k], "o", ms=5, color=COLOURS[0], mfc="none")
    axes.set(xscale="log", xlabel=r"$r\,\log(A/\varepsilon)$", ylabel="mode that wins", yticks=range(1, 6))


def _draw_freezing(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    for side, (label, face) in enumerate((("below", "white"), ("above", COLOURS[0]))):
        where = np.arange(len(parameters.pairs))
        axes.plot(where, part["angle"].values[:, side], "o", ms=5, mec=COLOURS[0], mfc=face, label=label)
    axes.set_xticks(where, [rf"$\beta_0 = {first:g}$, {angle:g} rad" for first, angle in parameters.pairs], fontsize=6)
    axes.set(ylabel="angle left", ylim=(-0.05, 1.4), xlim=(-0.5, len(parameters.pairs) - 0.5))
    axes.legend(loc="upper left", title=f"{100 * parameters.near:g} % beside the critical rate", title_fontsize=6.5)


def _draw_skew(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    skews = np.linspace(0.02, 0.55, 40)
    for model, colour in zip(MODELS, (COLOURS[4], COLOURS[0]), strict=True):
        for sign in (1, -1):
            known = []
            for one in sign * skews:
                args: dict[str, Any] = {"masses": parameters.masses, "until": parameters.until, "model": model}
                try:
                    known.append(theory.merging.skew_merge_time(parameters.angle, parameters.beta, one, **args))
                except ValueError:
                    known.append(np.nan)
            axes.plot(sign * skews, known, LINES[model], color=colour, lw=1.0)
        axes.plot(parameters.skews, data[f"skew-{model}"]["time"], "o", ms=4, color=colour, label=model)
    axes.set(yscale="log", xlabel=r"$\omega$", ylabel="time to merge")
    axes.legend(loc="lower right")
