"""Exponents against the logit scale and beta, pairs, orthonormal tokens and populations through depth, hot pairs."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import averaged, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.clustering_mitigated.compare import (
    collapsed_exponent,
    exponent,
    growths,
    hot_shares,
    measured,
    simplex_line,
)
from attnflow_gallery.clustering_mitigated.simulate import Parameters

SHAPES = "os^Dv"
LINES = ("-", "--", "-.", ":")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """When nearby tokens separate, and what becomes of populations.

    Bars are one standard error in (d) and (e), else four. (a) Exponent Λ of nearby tokens in a uniform population
    (marks) and theory (lines); crosses: collapsed tokens, which meet at the rate −(d−1)/d (dotted) at every b.
    (b) Pairs in a uniform population with the largest and the smallest b: mean change of log(1−R) (marks) and Λτ
    (lines). (c) Exponent of two nearly antipodal tokens with QᵀK = I. (d) Mean overlap of orthonormal tokens in
    a high dimension (marks) and the simplex equation with the clock of layers (lines). (e) Mean overlap of populations
    with few keys. (f) Two tokens on the circle at infinite temperature: share of pairs on one side at the end (marks).
    """
    d = parameters.d
    titles = (
        rf"nearby tokens, $d = {d}$",
        "pairs in a uniform population",
        rf"nearly antipodal tokens, $d = {d}$",
        rf"{parameters.simplex_n} orthonormal tokens, $d = {parameters.simplex_d}$",
        rf"{parameters.population_n} tokens, $d = {d}$, $d_k = {parameters.d_k}$",
        "two hot tokens on the circle",
    )
    draws = _draw_exponents, _draw_pairs, _draw_antipodal, _draw_simplex, _draw_populations, _draw_hot
    with panels(3, 2, 7.0, *titles) as page:
        for axes, draw_one in zip(page, draws, strict=True):
            draw_one(axes, parameters, data)
    return page.figure


def _draw_exponents(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    d, line = parameters.d, np.geomspace(1.0, 128.0, 25)
    keys = sorted({k for k, _ in parameters.cases})
    for d_k, colour, mark, ls in zip(keys, COLOURS[:5:2], SHAPES, LINES, strict=False):
        axes.plot(line, [exponent(d, d_k, float(b)) for b in line], color=colour, lw=1.0, ls=ls)
        scales = [b for k, b in parameters.cases if k == d_k]
        found, error = np.array([measured(data[f"pairs-{d_k}-{b:g}"]) for b in scales]).T
        axes.errorbar(scales, found, 4 * error, fmt=mark, ms=4, lw=0.9, color=colour, label=f"$d_k = {d_k}$")
    some = tuple(b for b in parameters.collapsed_b if b > 0)
    found, error = growths(parameters, data, "collapsed", some)
    axes.errorbar(some, found, 4 * error, fmt="x", ms=5, lw=0.9, color=INK, label="collapsed")
    axes.axhline(collapsed_exponent(d, parameters.h), color=INK, lw=0.8, ls=":")
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xscale="log", ylim=(-1.0, 1.0), xlabel="logit scale $b$", ylabel=r"exponent $\Lambda$ of $1 - R$")
    axes.legend(loc="upper left")


def _draw_pairs(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    few = parameters.d_k
    scales = sorted(b for k, b in parameters.cases if k == few)
    for b, colour, mark, ls in ((scales[0], COLOURS[0], "o", "-"), (scales[-1], COLOURS[4], "s", "--")):
        part = data[f"pairs-{few}-{b:g}"]
        tau = part["tau"].values
        axes.plot(tau, exponent(parameters.d, few, b) * tau, color=colour, lw=1.4, ls=ls)
        mean, error = averaged(part["drift"].values.T)
        axes.errorbar(tau[::4], mean[::4], 4 * error[::4], fmt=mark, ms=4, lw=0.9, color=colour, label=f"$b = {b:g}$")
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlabel=r"time $\tau$", ylabel=r"mean change of $\log(1-R)$")
    axes.legend(loc="upper left")


def _draw_antipodal(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    line = np.linspace(0, 1.15 * max(parameters.antipodal_beta), 80)
    axes.plot(line, theory.random_layers.antipodal_exponent(line, parameters.d), color=COLOURS[0], lw=1.0)
    found, error = growths(parameters, data, "antipodal", parameters.antipodal_beta)
    axes.errorbar(parameters.antipodal_beta, found, 4 * error, fmt="o", ms=4, lw=0.9, color=COLOURS[0])
    axes.axhline(0, color=GREY, lw=0.6)
    if parameters.d > 3:
        turn = float(np.arccosh(parameters.d - 2)) / 2
        axes.axvline(turn, color=GREY, lw=0.9, ls=":")
        axes.annotate(r"$\cosh 2\beta = d - 2$", (turn, 0.45), xytext=(4, 0), textcoords="offset points", fontsize=7)
    axes.set(xlim=(0, line[-1]), xlabel=r"inverse temperature $\beta$", ylabel="exponent of $1 + R$")


def _draw_simplex(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    line = np.linspace(0, parameters.simplex_tau, 60)
    for b, colour, mark, ls in zip(parameters.simplex_b, (COLOURS[0], COLOURS[4]), SHAPES, LINES, strict=False):
        part = data[f"simplex-{b:g}"]
        mean, error = averaged(part["overlap"])
        axes.plot(line, simplex_line(parameters, b, line), color=colour, lw=1.0, ls=ls)
        axes.errorbar(part["tau"], mean, error, fmt=mark, ms=4, lw=0.9, color=colour, label=f"$b = {b:g}$")
    axes.set(ylim=(0, 1), xlabel=r"time $\tau$", ylabel="mean overlap")
    axes.legend(loc="upper left")


def _draw_populations(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for b, colour, mark, ls in zip(parameters.population_b, (COLOURS[0], COLOURS[4]), SHAPES, LINES, strict=False):
        part = data[f"population-{b:g}"]
        mean, error = averaged(part["overlap"])
        axes.errorbar(part["tau"], mean, error, fmt=mark, ms=4, lw=0.9, ls=ls, color=colour, label=f"$b = {b:g}$")
    axes.set(ylim=(0, None), xlabel=r"time $\tau$", ylabel="mean overlap")
    axes.legend(loc="upper left")


def _draw_hot(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    line = np.linspace(-1, 1, 200)
    axes.plot(line, theory.random_layers.hot_pair_collapse_probability(line), color=COLOURS[0], lw=1.0)
    for overlap in parameters.hot_overlaps:
        _, merged = hot_shares(parameters, data, overlap)
        mean, error = averaged(merged)
        axes.errorbar([overlap], [mean], [4 * error], fmt="o", ms=4, lw=0.9, color=COLOURS[0])
    axes.set(xlim=(-1, 1), ylim=(0, 1), xlabel="overlap $R$ at the start", ylabel="probability to merge")
