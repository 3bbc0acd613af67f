"""Errors against the number of layers, against time, and over their predicted first terms."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels, student
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.euler_limit.compare import LEVEL, fluctuation
from attnflow_gallery.euler_limit.simulate import NAMES, NETWORK, Parameters

LABELS = {"N(x + hA)": r"$N(x + hA)$", "N(x + hPA)": r"$N(x + hPA)$", NETWORK: r"$x + hf$"}
MARKS = {"N(x + hA)": "o", "N(x + hPA)": "s", NETWORK: "^"}
TINTS = dict(zip(NAMES, COLOURS, strict=False))
RANDOM = COLOURS[3]


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """How far networks of L layers, h = T/L, are from their ODE: marks are simulations, lines are predictions.

    (a) Largest error over t <= T of attention layers and a residual network (full marks; lines: h max |E_1|), root mean
    square error at T of networks with independent layers (diamonds; dashed: linear noise equation), and errors of RK4
    at T (open marks; dotted lines fall like L^-4 from the last mark). (b) Error over h in time for the largest L, and
    |E_1(t)| (lines). (c) Errors of (a) over their predicted first terms; they tend to 1. The band is the ratio of
    independent layers, as wide as the claims allow.
    """
    titles = "error", "first term in time", "error over first term"
    with panels(1, 3, 3.1, *titles, width_ratios=(1.3, 1, 1)) as page:
        _errors(page[0], parameters, data)
        _times(page[1], parameters, data)
        _ratios(page[2], parameters, data)
        handles, labels = page[0].get_legend_handles_labels()
        page.figure.legend(handles, labels, loc="outside lower center", ncols=6, handletextpad=0.2, columnspacing=1.4)
    return page.figure


def _largest(data: dict[str, xr.Dataset], name: str) -> np.ndarray:
    return np.asarray(data["layers"]["error"].sel(name=name).max("time").values)


def _errors(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts, steps = np.array(parameters.layers), np.array(parameters.steps)
    for name, colour in TINTS.items():
        axes.plot(counts, float(data["limit"][name].max()) * parameters.until / counts, color=colour, lw=0.9)
        axes.plot(counts, _largest(data, name), MARKS[name], color=colour, ms=4, label=LABELS[name])
    count, mean, _ = fluctuation(data["random"])
    predicted = np.sqrt(float(data["limit"]["variance"]) * parameters.until / count)
    axes.plot(count, predicted, "--", color=RANDOM, lw=0.9)
    axes.plot(count, np.sqrt(mean), "d", color=RANDOM, ms=4, label="independent layers")
    for name, mark in (("attention", "o"), ("network", "^")):
        error = data["steps"]["error"].sel(name=name).values
        axes.plot(steps, error[-1] * (steps[-1] / steps) ** 4.0, ":", color=INK, lw=0.9)
        axes.plot(steps, error, mark, mfc="white", mec=INK, mew=0.8, ms=4, ls="none", label=f"RK4, {name}")
    layers, independent = _largest(data, NETWORK)[-1], np.sqrt(mean[-1])
    at = {"xytext": (6, 0), "textcoords": "offset points", "fontsize": 7, "va": "center", "color": INK}
    for power, x, y in (("-1/2", count[-1], independent), ("-1", counts[-1], layers), ("-4", steps[-1], error[-1])):
        axes.annotate(f"$L^{{{power}}}$", (x, y), **at)
    axes.set(xscale="log", yscale="log", xlim=(None, 4 * counts[-1]), xlabel="number of layers or steps $L$")
    axes.set(ylabel=r"$\|x_L(t) - x(t)\|$")


def _times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    time, count = data["limit"]["time"].values, parameters.layers[-1]
    for name, colour in TINTS.items():
        axes.plot(time, data["limit"][name], color=colour, lw=0.9)
        ratio = data["layers"]["error"].sel(name=name, count=count) * count / parameters.until
        axes.plot(time[::2], ratio[::2], MARKS[name], color=colour, ms=3.5)
    axes.set(xlabel="time $t$", ylabel=rf"$\|x_L(t) - x(t)\|/h$,  $L = {count}$")


def _ratios(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    counts = np.array(parameters.layers)
    count, mean, error = fluctuation(data["random"])
    over = np.sqrt(mean * count / parameters.until / float(data["limit"]["variance"]))
    width = over * student(LEVEL, parameters.networks) * error / (2 * mean)
    axes.fill_between(count, over - width, over + width, color=RANDOM, alpha=0.2, lw=0)
    axes.plot(count, over, "d--", color=RANDOM, ms=4, lw=0.7)
    for name, colour in TINTS.items():
        ratio = _largest(data, name) * counts / parameters.until / float(data["limit"][name].max())
        axes.plot(counts, ratio, MARKS[name] + "-", color=colour, ms=4, lw=0.8)
    axes.axhline(1.0, color=GREY, lw=0.8, zorder=0)
    axes.set_xscale("log", base=4)
    axes.set_xticks(counts[::2], [str(one) for one in counts[::2]])
    axes.minorticks_off()
    axes.set(xlabel="number of layers $L$", ylabel="error / first term")
