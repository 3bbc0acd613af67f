"""Clusters and modes against beta, time and the number of tokens."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import mean_error, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.cluster_count.compare import case, cases, looks, shared_beta
from attnflow_gallery.cluster_count.simulate import LOOKS, Parameters, linear_time

STYLES = ((COLOURS[0], "o", "-"), (COLOURS[4], "s", "--"), (COLOURS[2], "D", "-."))
"""Colour, marker and line of the inverse temperatures of densities."""


def draw(parameters: Parameters, data: xr.Dataset) -> Any:
    """Softmax attention on the circle. Thick bars: two standard errors; thin bars: standard deviation of a run.

    (a) Iid tokens: clusters at the end, and modes of the smoothed density at t = 0, with M(0) and k_max (steps). (b)
    Modes against time: full marks and lines M(t): the density of the most tokens; open marks joined by dots: iid
    tokens. (c) Clusters against the number of tokens: open marks: iid tokens; full marks: densities. Lines: M at the
    end of the linear phase, an estimate from above, as modes merge while they condense. (d) How often each number of
    clusters is seen.
    """
    most = f"modes, density of {_power(max(parameters.densities))} tokens"
    titles = f"{parameters.tokens} iid tokens", most, "clusters at the end", rf"$\beta = {shared_beta(parameters):g}$"
    with panels(2, 2, 5.4, *titles) as page:
        _draw_iid(page[0], parameters, data)
        _draw_modes(page[1], parameters, data)
        _draw_densities(page[2], parameters, data)
        _draw_histogram(page[3], parameters, data)
    return page.figure


def _bars(
    axes: Any, x: float, counts: Any, scale: float, colour: str, marker: str, full: bool, label: Any = None
) -> None:
    values = np.asarray(counts, dtype=np.float64) / scale
    middle, error = values.mean(), mean_error(counts)[1] / scale
    axes.errorbar(x, middle, values.std(ddof=1), color=colour, lw=0.6, fmt="none")
    style = {"fmt": marker, "ms": 4.2, "mfc": colour if full else "white", "mew": 0.9, "label": label}
    axes.errorbar(x, middle, 2 * error, color=colour, lw=1.8, **style)


def _draw_iid(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    low, high = min(parameters.betas) / 1.4, 1.4 * max(parameters.betas)
    betas = np.geomspace(low, high, 2000)
    axes.plot(betas, theory.uniform.dominant_degree(betas, 2) / np.sqrt(betas), color=GREY, lw=0.7, label=r"$k_{\max}$")
    axes.plot(betas, theory.landscape.expected_modes(betas) / np.sqrt(betas), "--", color=INK, lw=1.0, label="$M(0)$")
    for k, one in enumerate(cases(data, "iid")):
        beta = float(one["beta"])
        labels = ("clusters", "modes, $t = 0$") if k == 0 else (None, None)
        _bars(axes, beta * 1.04, one["clusters"], np.sqrt(beta), COLOURS[4], "s", True, labels[0])
        _bars(axes, beta / 1.04, one["modes"].sel(time=0.0), np.sqrt(beta), COLOURS[0], "o", False, labels[1])
    axes.set(xscale="log", xlim=(low, high), ylim=(0.8, 2.1))
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"number / $\sqrt{\beta}$")
    axes.legend(loc="upper right", ncols=2)


def _draw_modes(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    times, rows = np.linspace(0, max(LOOKS) + 1, 200), looks(parameters, data)
    for k, (beta, (colour, marker, style)) in enumerate(zip(parameters.density_betas, STYLES, strict=False)):
        scale, shift = float(theory.uniform.dominant_degree(beta, 2)), 0.3 * (k - 1)
        axes.plot(times, theory.uniform.linear_modes(times, beta) / scale, style, color=colour, lw=1.0)
        for row in rows:
            if (row["kind"], row["beta"]) == ("density", beta):
                found, error = row["found"] / scale, 2 * row["error"] / scale
                axes.errorbar(row["t"] + shift, found, error, color=colour, fmt=marker, ms=4.2, lw=1.4)
        for one in (c for c in cases(data, "iid") if float(c["beta"]) == beta):
            shown = [t for t in LOOKS if t <= float(one["until"])]
            found = [mean_error(one["modes"].sel(time=t))[0] / scale for t in shown]
            axes.plot(np.array(shown) + shift, found, marker + ":", color=colour, ms=4.2, mfc="white", mew=0.9, lw=0.7)
        axes.plot([], [], style + marker, color=colour, ms=4.2, lw=1.0, label=rf"$\beta = {beta:g}$")
    axes.plot([], [], "o:", color=INK, ms=4.2, mfc="white", mew=0.9, lw=0.7, label=f"{parameters.tokens} iid tokens")
    axes.axhline(1, color=GREY, lw=0.8, ls=":")
    axes.set(ylim=(0.72, 1.06), xlabel="time $t$", ylabel=r"number of modes / $k_{\max}$")
    axes.legend(loc="lower right", ncols=2)


def _draw_densities(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    sizes = np.geomspace(min(parameters.tokens, *parameters.densities) / 3, 3 * max(parameters.densities), 60)
    for k, (beta, (colour, marker, style)) in enumerate(zip(parameters.density_betas, STYLES, strict=False)):
        scale = float(theory.uniform.dominant_degree(beta, 2))
        end = [float(theory.uniform.linear_modes(linear_time(beta, size), beta)) / scale for size in sizes]
        axes.plot(sizes, end, style, color=colour, lw=1.0)
        for one in cases(data, "iid") + cases(data, "density"):
            if float(one["beta"]) == beta:
                full = str(one["start"].values) == "density"
                _bars(axes, float(one["size"]) * 2.2 ** (k - 1), one["clusters"], scale, colour, marker, full)
        axes.plot([], [], style + marker, color=colour, ms=4.2, lw=1.0, label=rf"$\beta = {beta:g}$")
    axes.plot([], [], "o", color=INK, ms=4.2, mfc="white", mew=0.9, label="iid tokens")
    axes.axhline(1, color=GREY, lw=0.8, ls=":")
    axes.set(xscale="log", ylim=(0.55, 1.2), xlabel="number of tokens $n$", ylabel=r"number of clusters / $k_{\max}$")
    axes.legend(loc="lower right", ncols=2)


def _draw_histogram(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    beta, many = shared_beta(parameters), max(parameters.densities)
    kinds = (
        ("iid", float(parameters.tokens), f"{parameters.tokens} iid tokens", COLOURS[1], "", -0.2),
        ("density", many, f"density of {_power(many)}", COLOURS[0], "///", 0.2),
    )
    for start, size, words, colour, hatch, shift in kinds:
        values, counts = np.unique(case(data, start, size, beta)["clusters"].values, return_counts=True)
        style = {"color": colour, "hatch": hatch, "ec": "white", "lw": 0, "label": words}
        axes.bar(values + shift, counts / parameters.runs, 0.38, **style)
    axes.axvline(np.sqrt(1.5 * beta), ymax=0.66, color=INK, lw=0.9, ls="--", label=r"$\sqrt{3\beta/2}$")
    axes.axvline(
        float(theory.uniform.dominant_degree(beta, 2)), ymax=0.66, color=GREY, lw=1.2, ls=":", label=r"$k_{\max}$"
    )
    axes.set(ylim=(0, 1.5 * axes.get_ylim()[1]), xlabel="number of clusters", ylabel="share of runs")
    axes.legend(loc="upper left", ncols=2)


def _power(size: float) -> str:
    return f"$10^{{{math.log10(size):.0f}}}$"
