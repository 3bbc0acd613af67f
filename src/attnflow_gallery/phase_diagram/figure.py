"""Maps of the mean overlap, and deviations from the transition curve."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, INK, PAGE, panel, styled
from attnflow_gallery.phase_diagram.compare import compare, relative
from attnflow_gallery.phase_diagram.simulate import Parameters, crossing


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Collapse of iid tokens under softmax attention.

    (a-c) Mean overlap over time t and inverse temperature beta; lines: where theory for orthonormal tokens passes the
    levels 0.1, 0.5 and 0.9, circles: where the mean of the draws passes 0.5. (d) Measured time of the transition over
    the predicted one, minus 1: mean and twice the standard deviation of the draws (marks with bars), and twice the
    standard deviation of theory (boxes). (e) Root mean square of the same over draws and beta, from the curve and from
    theory started at the measured mean overlap; lines: slopes -1/2 and -1 through the last point. Bars in (e): 4
    standard errors.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.9))
        top, bottom = fig.subfigures(2, 1, height_ratios=(1.15, 1.0))
        maps = top.subplots(1, 3, sharey=True)
        _draw_maps(top, maps, parameters, data["maps"])
        below = bottom.subplots(1, 2)
        pairs = compare(parameters, data["times"])
        _draw_curve(below[0], pairs)
        _draw_exponents(below[1], pairs)
        names = [rf"$d = {int(d)}$, $n = {parameters.n}$" for d in data["maps"]["d"]]
        titles = *names, "time of the transition", "deviation against dimension"
        for letter, title, one in zip("abcde", titles, (*maps, *below), strict=True):
            panel(one, letter, title)
        return fig


def _draw_maps(fig: Any, axes: Any, parameters: Parameters, maps: xr.Dataset) -> None:
    betas, times = maps["beta"].values, maps["time"].values
    fine = np.linspace(betas[0], betas[-1], 200)
    for k, one in enumerate(axes):
        values = maps["overlap"].isel(d=k).transpose("beta", "time").values
        mesh = one.pcolormesh(times, betas, values, vmin=0, vmax=1, cmap="viridis", shading="nearest", rasterized=True)
        for level, line, word in ((0.5, "-", "theory, 0.5"), (0.1, ":", "theory, 0.1, 0.9"), (0.9, ":", None)):
            curve = theory.uniform.equiangular_time(level, fine, parameters.n)
            one.plot(curve, fine, line, color="white", lw=1.2, label=word)
        measured = crossing(values.T, dataclasses.replace(parameters, level=0.5))
        one.plot(measured[::2], betas[::2], "o", ms=3.2, mfc=COLOURS[4], mec="white", mew=0.5, label="measured, 0.5")
        one.set(xlim=(times[0], times[-1]), ylim=(betas[0], betas[-1]), xlabel="time $t$")
        one.spines[["top", "right"]].set_visible(True)
    axes[0].set_ylabel(r"inverse temperature $\beta$")
    style = {"facecolor": "#303030", "edgecolor": "none", "labelcolor": "white", "framealpha": 0.75}
    axes[2].legend(loc="lower right", frameon=True, **style).set_zorder(5)
    fig.colorbar(mesh, ax=list(axes), label="mean overlap", pad=0.01)


def _draw_curve(axes: Any, pairs: xr.Dataset) -> None:
    chosen = sorted({0, pairs.sizes["d"] // 2, pairs.sizes["d"] - 1})
    styles = zip(chosen, (COLOURS[1], COLOURS[0], COLOURS[2]), "sod", strict=False)
    for place, (k, colour, mark) in enumerate(styles):
        here, shift = pairs.isel(d=k), 0.2 * (place - 1)
        unit, x = here["predicted"].values, here["beta"].values + shift
        width = 2 * here["spread"].values / unit
        axes.bar(x, 2 * width, 0.17, -width, facecolor="none", edgecolor=colour, lw=0.8)
        off = here["time"].transpose("beta", "seed").values / unit[:, None] - 1
        mean, bars, words = off.mean(axis=1), 2 * off.std(axis=1), rf"$d = {int(here['d'])}$"
        axes.errorbar(x, mean, bars, fmt=mark, ms=3, color=colour, elinewidth=0.9, label=words)
    axes.plot([], [], "s", ms=6, mfc="none", mec=INK, mew=0.8, label="theory")
    axes.axhline(0, color=INK, lw=0.6)
    low, high = axes.get_ylim()
    axes.set(ylim=(low - 0.35 * (high - low), high), xlabel=r"inverse temperature $\beta$")
    axes.set(ylabel=r"$T_{\rm measured}/T_{\rm predicted} - 1$")
    axes.legend(loc="lower left", ncols=2, columnspacing=1.0, handletextpad=0.4)


def _draw_exponents(axes: Any, pairs: xr.Dataset) -> None:
    d = pairs["d"].values.astype(float)
    curve = "predicted", "from the curve", -0.5, "-1/2", COLOURS[0], "o", "-"
    started = "started", "started at the measured mean", -1.0, "-1", COLOURS[4], "s", "--"
    for name, words, slope, power, colour, mark, line in (curve, started):
        value, error = relative(pairs, name)
        bars = np.exp(value) * np.expm1(4 * error)
        axes.errorbar(d, np.exp(value), bars, fmt=mark, ms=3.5, color=colour, elinewidth=0.8, label=words)
        guide = np.exp(value[-1]) * (d / d[-1]) ** slope
        axes.plot(d, guide, line, color=colour, lw=1.0, label=rf"$d^{{{power}}}$")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="dimension $d$", ylabel="rms of $T_{\\rm measured}/T_{\\rm predicted} - 1$")
    axes.legend(loc="lower left")
