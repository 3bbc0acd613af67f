"""Angles to the first token, differences near consensus, numbers of centres, and clusters at large beta."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, INK
from attnflow_gallery.causal_clusters.compare import allowed_time, pair_times, per_root, start_counts
from attnflow_gallery.causal_clusters.simulate import LARGE, Parameters

MARKS = "os^DvP"
INKS = (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[3], COLOURS[7], COLOURS[8])
"""One for every mark, all of them dark on white."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Causal softmax attention with V = I.

    (a) S²: the time of the flow minus that which the integral gives for the angle of tokens 1 and 2, against this angle
    (marks), and tolerances (lines). (b) Forward differences of order p at the first token near consensus (marks) and
    e^{-pt/(p+1)} (lines). (c) Mean numbers of centres of uniform starts against the angle, and formulas (lines).
    (d) Large beta at t = 20: clusters and Rényi centres with δ = 4 β^{-1/2}, over √β, and strong centres; bars are
    standard errors.
    """
    titles = "time of token 2: errors", "rates near consensus", "centres of starts", "clusters at large beta"
    with panels(2, 2, 5.0, *titles) as page:
        _draw_second(page[0], parameters, data["consensus"])
        _draw_differences(page[1], parameters, data["near"])
        _draw_starts(page[2], parameters, data["starts"])
        _draw_number(page[3], parameters, data)
    return page.figure


def _draw_second(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    every, time, angles, integral = pair_times(parameters, part)
    fine = np.geomspace(np.min(angles), np.pi, 60)
    for beta, colour, mark in zip(parameters.betas, (COLOURS[0], COLOURS[4], COLOURS[2]), MARKS, strict=False):
        some = every == beta
        off = np.maximum(np.abs(time - integral)[some], 1e-15)
        axes.plot(angles[some], off, mark, color=colour, ms=3.5, label=rf"$\beta = {beta:g}$", mfc="none", mew=0.9)
        axes.plot(fine, allowed_time(beta, fine), color=colour, lw=0.9)
    axes.plot([], [], color=INK, lw=0.9, label="tolerance")
    axes.set(xscale="log", yscale="log", ylim=(3e-16, None), xlabel="angle of tokens 1 and 2")
    axes.set(ylabel="|time $-$ integral|")
    axes.legend(loc="upper right", ncols=2)


def _draw_differences(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    time = np.linspace(0, max(parameters.near_times), 60)
    size = np.linalg.norm(part["difference"].values, axis=-1)
    for p, colour, mark in zip(part["order"].values, INKS, MARKS, strict=False):
        axes.plot(time, np.exp(-p / (p + 1) * time), color=colour, lw=1.0)
        for b in range(len(parameters.betas)):
            row = size[b, :, p - 1] / size[b, 0, p - 1]
            face, label = ("none", None) if b else (colour, f"$p = {p}$")
            axes.plot(part["time"], row, mark, color=colour, ms=3 + 1.5 * b, mfc=face, mew=0.8, label=label)
    axes.set(yscale="log", xlabel="time $t$", ylabel=r"$|\Delta^p x_1(t)|\,/\,|\Delta^p x_1(0)|$")
    axes.legend(loc="lower left", ncols=2)


def _draw_starts(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    fine = np.geomspace(0.8 * min(parameters.angles), 1.2 * max(parameters.angles), 80)
    n = parameters.strong_tokens
    curves = (
        theory.causal.strong_centres(n=n, angle=fine, d=2),
        theory.causal.strong_centres(n=n, angle=fine, d=3),
        theory.causal.renyi_centres(fine),
    )
    looks = zip(curves, (COLOURS[0], COLOURS[2], COLOURS[4]), MARKS, strict=False)
    for (words, _, mean, error), (curve, colour, mark) in zip(start_counts(parameters, part), looks, strict=True):
        axes.plot(fine, curve, color=colour, lw=1.0)
        axes.errorbar(part["angle"], mean, error, fmt=mark, color=colour, ms=3.5, lw=1.0, label=words)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(parameters.angles, [f"{one:g}" for one in parameters.angles])
    axes.set_xticks([], minor=True)
    axes.set(xlabel=r"angle $\delta$", ylabel="mean number of centres")
    axes.legend(loc="upper right")


def _draw_number(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    betas = np.array(parameters.large_betas)
    kinds = (("clusters", "clusters", INK), ("renyi", "Rényi centres", COLOURS[4]), ("strong", "strong", COLOURS[0]))
    for (name, words, colour), mark, shift in zip(kinds, MARKS, (0.97, 1.03, 1.0), strict=False):
        mean, error = per_root(parameters, data, name)
        face = colour if name == "clusters" else "white"
        axes.errorbar(shift * betas, mean, error, fmt=mark, color=colour, ms=3.5, lw=1.0, label=words, mfc=face)
    many = float(theory.causal.renyi_centres(LARGE / 100)) / 100
    axes.axhline(many, color=COLOURS[4], lw=0.9, ls="--", label="Rényi, many tokens")
    axes.set_xscale("log")
    axes.set_xticks(betas, [f"{one:g}" for one in betas])
    axes.set_xticks([], minor=True)
    axes.set(ylim=(0, None), xlabel=r"inverse temperature $\beta$", ylabel=r"number over $\sqrt{\beta}$")
    axes.legend(loc="lower left", ncols=2)
