"""A profile, deviations against 1/N, softmax, and noise of the mean."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.causal_correlations.compare import closure, depth, diluted, predicted_noise, quarters, retrievals
from attnflow_gallery.causal_correlations.simulate import FINE, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Correlations of causal prompts of iid uniform tokens, Monte Carlo (marks, standard errors) and theory (lines).

    (a) N E<x_N(t), x_j(0)> by bins of j on the circle: the matrix exponential at this N (steps) and the limit of many
    tokens (dashed). (b) Relative deviation from the matrix exponential against 1/N, sources or pairs in the last half
    of the prompt, and fits by 1/N and 1/N² (lines). (c) Softmax on S²: the same deviation by bins, with and without the
    weight of the token itself in W. (d) N E|F|² of the mean of N tokens under softmax against time: masked and unmasked
    prompts, the discrete formula (lines) and the limit e^{2c} I_0(2c) (dashed).
    """
    titles = "what the last token keeps", "deviation from exp(cW)", "softmax counts itself", "noise of the mean"
    with panels(2, 2, 5.0, *titles) as page:
        _draw_profile(page[0], parameters, data["profile"])
        _draw_deviations(page[1], parameters, data)
        _draw_softmax(page[2], parameters, data["softmax"])
        _draw_noise(page[3], parameters, data)
    return page.figure


def _draw_profile(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    edges, n = np.array(FINE[2:]), int(part["size"][0])
    steps = closure(parameters, "circle-1", n, FINE[2:])
    axes.stairs(steps, edges, color=COLOURS[0], lw=1.2, label=rf"$\exp(cW)$, $N = {n}$", baseline=None)
    place = np.linspace(edges[0], 1, 200)
    limit = theory.causal.correlation(depth(parameters, "circle-1"), 1.0, place, slope=parameters.slope)
    axes.plot(place, limit, "--", color=INK, lw=0.9, label="many tokens")
    style = {"fmt": "o", "color": COLOURS[4], "ms": 3.5, "lw": 1.0, "label": "Monte Carlo"}
    axes.errorbar((edges[1:] + edges[:-1]) / 2, part["mean"][0], part["error"][0], **style)
    axes.set(xlabel="place of the source $j/N$", ylabel=r"$N\,\mathrm{E}\langle x_N(t), x_j(0)\rangle$")
    axes.legend(loc="upper left")


def _draw_deviations(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    found = [(one, one.label.split(", j/N")[0]) for one in retrievals(parameters, data)[1::2]]
    found.append((quarters(parameters, data)[-1], "S¹, pairs at one time"))
    for (one, words), colour, mark in zip(found, (COLOURS[0], COLOURS[4], COLOURS[2], GREY), "os^D", strict=True):
        n = 1 / np.linspace(1e-4, 1.08 / one.sizes[0], 100)
        axes.plot(1 / n, one.curve(n), color=colour, lw=1.0)
        axes.errorbar(1 / one.sizes, one.off, one.error, fmt=mark, color=colour, ms=3.5, lw=1.0, label=words)
    axes.axhline(0, color=INK, lw=0.6)
    axes.set(xlim=(0, None), xlabel="$1/N$", ylabel="relative deviation")
    axes.legend(loc="lower left")


def _draw_softmax(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    middle = (np.array(FINE[1:]) + np.array(FINE[:-1])) / 2
    counted = {"fmt": "o", "color": COLOURS[0], "label": "own weight in $W$"}
    left_out = {"fmt": "s", "color": COLOURS[4], "mfc": "white", "label": "own weight left out"}
    for with_self, look in ((True, counted), (False, left_out)):
        axes.errorbar(middle, *diluted(parameters, part, with_self), ms=3.5, lw=1.0, **look)
    axes.axhline(0, color=INK, lw=0.6)
    axes.set(xlabel="place of the source $j/N$", ylabel=f"relative deviation, $N = {int(part['size'])}$")
    axes.legend(loc="lower right")


def _draw_noise(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    last = 1.08 * max(parameters.noise_times)
    times = np.linspace(0, last, 60)
    rate = float(theory.causal.rates(1, parameters.beta, 2, model="SA"))
    for mask, colour, mark in (("masked", COLOURS[0], "o"), ("unmasked", COLOURS[4], "s")):
        part = data[mask]
        axes.plot(times, predicted_noise(parameters, mask, times, parameters.noise_size), color=colour, lw=1.0)
        axes.errorbar(part["time"], part["mean"], part["error"], fmt=mark, color=colour, ms=3.5, lw=1.0, label=mask)
    axes.plot(times, theory.causal.prefix_noise(rate * times), "--", color=INK, lw=0.9, label="masked, many tokens")
    axes.set(yscale="log", xlabel="time $t$", ylabel=rf"$N\,\mathrm{{E}}|F|^2$,  $N = {parameters.noise_size}$")
    axes.legend(loc="upper left")
