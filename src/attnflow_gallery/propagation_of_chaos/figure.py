"""Distances against n and time, what linearisation misses, and S^2."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.propagation_of_chaos.compare import Summary, observed, summaries
from attnflow_gallery.propagation_of_chaos.simulate import Parameters

MARKS = "os^Dv"
INKS = (INK, COLOURS[0], COLOURS[2], COLOURS[4], COLOURS[8])
"""Of the times in their order, all of them dark on white."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """The distance between n tokens and the density that they follow.

    (a) Mean W_1 of iid tokens on the circle under SA (marks, standard errors; open: the noise is not small) and the
    linearised flow (lines, slope -1/2). Crosses: quiet tokens at the last time; dashed: π/(2n). (b) √n W_1 against time
    where the noise is small (marks, 4 standard errors), the linearised flow (lines), and the constant at time 0
    (dotted). Times of USA0 are multiplied by its mean weight e^(-β) I_0(β). (c) Share of W_1 that the linearised flow
    from the same tokens misses, root mean square over samples, SA; dashed: slope -1/2. (d) S²: root mean square
    distance by observables, and the linearised flow (lines).
    """
    found = summaries(parameters, data)
    titles = "circle, SA: distance to the density", "circle: the constant grows", "circle, SA: second order"
    sphere = rf"$S^2$, SA, $\beta = {parameters.sphere_beta:g}$: smooth observables"
    with panels(2, 2, 5.4, *titles, sphere) as page:
        _draw_rates(page[0], found[0], data["quiet"])
        _draw_constants(page[1], found, data, parameters.beta)
        _draw_missed(page[2], found[0])
        _draw_sphere(page[3], parameters, data)
    return page.figure


def _draw_rates(axes: Any, found: Summary, rest: xr.Dataset) -> None:
    n, ends = found.sizes, np.array([found.sizes[0] / 1.4, found.sizes[-1] * 1.4])
    for k, (t, colour) in enumerate(zip(found.times, INKS, strict=False)):
        axes.plot(ends, found.predicted[k] / np.sqrt(ends), color=colour, lw=0.9)
        error = found.spread[k] * found.mean[:, k] / np.sqrt(found.draws)
        axes.errorbar(n, found.mean[:, k], error, fmt="none", lw=0.8, color=colour)
        for some, face in ((found.small[:, k], colour), (~found.small[:, k], "white")):
            axes.plot(n[some], found.mean[some, k], MARKS[k % 5], ms=4, mec=colour, mfc=face, mew=0.8)
        axes.plot([], [], MARKS[k % 5] + "-", ms=4, color=colour, lw=0.9, label=f"iid, $t = {t:g}$")
    sizes = rest["n"].values
    every = np.append(ends, [sizes.min() / 1.4, sizes.max() * 1.4])
    span = np.array([every.min(), every.max()])
    axes.plot(sizes, rest["measured"].values[:, 0, -1], "x", ms=5, color=INK, mew=1.0, label="quiet")
    axes.plot(span, np.pi / 2 / span, color=INK, lw=0.9, ls="--", label=r"$\pi/(2n)$")
    axes.set(xscale="log", yscale="log", xlabel="number of tokens $n$", ylabel="mean $W_1$")
    axes.set_ylim(bottom=np.pi / 2 / span[1] / 60)  # room for the legend
    axes.legend(loc="lower left", labelspacing=0.25, ncol=2)


def _draw_constants(axes: Any, found: list[Summary], data: dict[str, xr.Dataset], beta: float) -> None:
    for one, colour, mark in zip(found, (COLOURS[0], COLOURS[4]), "os", strict=False):
        part, unit = data[f"linear-{one.model}"], 1.0 if one.model == "SA" else float(ive(0, beta))
        axes.plot(unit * part["fine"], part["constant"], color=colour, lw=1.0, ls="-" if mark == "o" else "--")
        look = {"fmt": mark, "ms": 4, "lw": 0.9, "color": colour, "label": one.model}
        axes.errorbar(unit * one.times, one.constant, 4 * one.error, **look)
    axes.axhline(found[0].predicted[0], color=GREY, lw=0.9, ls=":", label="constant at $t = 0$")
    axes.set(yscale="log", ylabel=r"mean of $\sqrt{n}\, W_1$")
    ticks = [1, 1.5, 2, 3, 4, 5, 6, 8, 10]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="time $t$" + (r" (USA0: $t\, e^{-\beta} I_0(\beta)$)" if len(found) > 1 else ""))
    axes.legend(loc="upper left")


def _draw_missed(axes: Any, found: Summary) -> None:
    for k, t in enumerate(found.times[1:], start=1):
        style = {"color": INKS[k % 5], "ms": 4, "lw": 0.9, "label": f"$t = {t:g}$"}
        error = found.missed[:, k] * found.missed_error[:, k]
        axes.errorbar(found.sizes, found.missed[:, k], error, fmt=MARKS[k % 5] + "-", **style)
    ends = np.array([found.sizes[0], found.sizes[-1]], dtype=float)
    slope = found.missed[0, -1] * 1.7 * np.sqrt(ends[0] / ends)
    axes.plot(ends, slope, color=GREY, lw=1.0, ls="--", label="slope $-1/2$")
    words = r"rms of $W_1 / W_1^\mathrm{linear} - 1$"
    axes.set(xscale="log", yscale="log", xlabel="number of tokens $n$", ylabel=words)
    axes.set_ylim(bottom=np.min(found.missed[:, 1:]) / 10)  # room for the legend
    axes.legend(loc="lower left", labelspacing=0.25, ncol=2)


def _draw_sphere(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    from matplotlib.ticker import LogLocator

    n, part = np.array(parameters.sphere_sizes), data["sphere-linear"]
    power, error = observed(parameters, data)
    ends = np.array([n[0] / 1.4, n[-1] * 1.4])
    times = part["time"].values
    for k, (t, colour) in enumerate(zip(times, INKS, strict=False)):
        axes.plot(ends, float(part["constant"][k]) / np.sqrt(ends), color=colour, lw=0.9)
        style = {"color": colour, "ms": 4, "lw": 0.9, "label": f"$t = {t:g}$"}
        axes.errorbar(n, power[:, k], error[:, k], fmt=MARKS[k % 5], **style)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(n, [f"{size}" for size in n])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="number of tokens $n$", ylabel=f"rms distance, degrees 1 to {parameters.observables}")
    axes.legend(loc="lower left", labelspacing=0.25)
