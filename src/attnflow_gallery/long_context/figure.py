"""The transition in c, its scaling with log n, and iid tokens."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.long_context.simulate import Parameters, scan

REACH = 6.0
"""Of the scaled distance to the threshold."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Cosine of two outputs of one attention layer with beta = c log n.

    (a) Tokens of equal overlap: all of them (full marks), or two and the mean of the others (open marks); exact cosine
    (lines); limit for n -> infinity (grey, diamond at the threshold). (b) Against the distance to the threshold times
    log n all n fall on one curve for each overlap (lines: limit for large n; diamonds: value at the threshold). (c) iid
    tokens around a direction (bars: standard deviation of draws), their mean field (line), and the same in infinite
    dimension (dashed); grey: threshold of equal overlaps. Fluctuations of overlaps move the transition up.
    """
    rho = rf"$\rho = {parameters.overlaps[-1]:g}$"
    with panels(1, 3, 2.8, f"equal overlaps {rho}", r"scaling with $\log n$", f"iid tokens, {rho}") as page:
        _transition(page[0], parameters, data)
        _collapse(page[1], parameters, data)
        _iid(page[2], parameters, data["iid"])
    return page.figure


def _transition(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    overlap = parameters.overlaps[-1]
    c = scan(parameters, overlap)
    fine = np.linspace(0.6 * c[0], 1.05 * c[-1], 300)
    threshold = float(theory.uniform.long_context_threshold(overlap))
    axes.plot([fine[0], threshold, threshold, fine[-1]], [1, 1, overlap, overlap], color=GREY, lw=0.8, zorder=0)
    axes.plot(
        threshold,
        float(theory.uniform.long_context_limit(threshold, overlap)),
        "D",
        ms=6,
        mfc="none",
        mec=GREY,
        mew=0.8,
    )
    sizes: list[tuple[float, Any, bool]] = [(n, data[f"all-{n}"]["cosine"], True) for n in parameters.counts]
    sizes.append((parameters.large[-1], data["mean"]["cosine"].sel(n=parameters.large[-1]), False))
    for (n, found, full), mark, colour in zip(sizes, "os^v", COLOURS, strict=False):
        axes.plot(fine, theory.uniform.long_context_overlap(fine, n, overlap), color=colour, lw=0.9)
        label = f"$n = {n}$" if full else rf"$n = 10^{{{round(np.log10(n))}}}$"
        face = colour if full else "white"
        axes.plot(c, found.sel(overlap=overlap), mark, ms=3.6, mec=colour, mfc=face, mew=0.8, label=label)
    axes.set(xlabel=r"$c = \beta/\log n$", ylabel="cosine of outputs")
    axes.legend(loc="upper right", handletextpad=0.1)


def _collapse(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    z = np.linspace(-REACH, REACH, 200)
    for overlap, colour, style in zip(parameters.overlaps, COLOURS, ("-", "--"), strict=False):
        x = overlap * (2 * np.exp(-z) + np.exp(-2 * z))
        axes.plot(z, (overlap + x) / (1 + x), style, color=colour, lw=0.9, label=rf"$\rho = {overlap:g}$")
        for n in parameters.large:
            found = data["mean"]["cosine"].sel(overlap=overlap, n=n)
            place = (scan(parameters, overlap) * (1 - overlap) - 1) * np.log(n)
            keep = np.abs(place) < REACH
            axes.plot(place[keep], found.values[keep], "o", ms=3.2, mec=colour, mfc="white", mew=0.8)
        limit = float(theory.uniform.long_context_limit(1 / (1 - overlap), overlap))
        axes.plot(0.0, limit, "D", ms=6, mfc="none", mec=GREY, mew=0.8)
    first, last = (round(np.log10(n)) for n in (parameters.large[0], parameters.large[-1]))
    words = rf"$n = 10^{{{first}}}, \ldots, 10^{{{last}}}$"
    axes.plot([], [], "o", ms=3.2, mec=INK, mfc="white", mew=0.8, label=words)
    axes.set(xlabel=r"$(c(1 - \rho) - 1)\,\log n$", ylabel="cosine of outputs")
    axes.legend(loc="lower left", borderaxespad=0.1)


def _iid(axes: Any, parameters: Parameters, iid: xr.Dataset) -> None:
    overlap = float(iid.attrs["overlap"])
    n, d, c, found = parameters.iid_count, parameters.iid_dim, scan(parameters, overlap), iid["cosine"].values
    fine = np.linspace(0.6 * c[0], 1.05 * c[-1], 300)
    mean = theory.uniform.long_context_iid_overlap(fine, n=n, d=d, overlap=overlap)
    axes.plot(fine, mean, color=COLOURS[2], lw=0.9, label="mean field")
    flat = theory.uniform.long_context_iid_overlap(fine, n=n, d=np.inf, overlap=overlap)
    axes.plot(fine, flat, "--", color=INK, lw=0.9, label=r"$d \to \infty$")
    label = f"$n = {n}$,\n$d = {d}$"
    bars = found.std(axis=0, ddof=1)
    axes.errorbar(c, found.mean(axis=0), bars, fmt="o", ms=3.2, color=COLOURS[2], lw=0.8, label=label)
    axes.axvline(float(theory.uniform.long_context_threshold(overlap)), color=GREY, lw=0.7)
    axes.set(xlabel=r"$c = \beta/\log n$", ylabel="cosine of outputs at $u$ and $-u$")
    axes.legend(loc="lower left")
