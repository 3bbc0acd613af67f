"""Modes against time, smoothed densities, and numbers of clusters."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, mean_error, panels
from attnflow.plots.style import GREY, INK
from attnflow_gallery.many_modes.compare import linear_times
from attnflow_gallery.many_modes.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """How many clusters a nearly uniform density chooses on the circle, softmax attention.

    (a) Mean number of modes of K∗μ against time (axis linear up to 1, then logarithmic; bars: two standard errors;
    shown while all runs are resolved) for sizes ε of white noise; line: M(t). (b) K∗μ when its first cluster is too
    sharp to be resolved, one run for each ε, scaled. (c) Number of clusters then: area of discs: share of runs; marks:
    mean with two standard errors; open squares: M(t) at the end of the linear phase; open triangle: from iid tokens.
    Horizontal lines in (a) and (c): M(0) dotted, k_max dashed.
    """
    modes = rf"modes of $K*\mu$, $\beta = {parameters.beta:g}$"
    end = "smoothed density at the end", "clusters at the end"
    with panels(1, 3, 3.3, modes, *end, width_ratios=(1.25, 1.0, 1.0)) as page:
        _draw_times(page[0], parameters, data)
        _draw_smoothed(page[1], parameters, data)
        _draw_finals(page[2], parameters, data)
    return page.figure


def _levels(axes: Any, beta: float, words: bool) -> None:
    first, last = float(theory.landscape.expected_modes(beta)), int(theory.uniform.dominant_degree(beta, 2))
    for level, label, style in ((last, r"$k_{\max}$", "--"), (first, "$M(0)$", ":")):
        axes.axhline(level, color=GREY, lw=1.0, ls=style, zorder=0, label=label if words else None)


def _ordered(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[tuple[float, xr.Dataset]]:
    return [(x, data[f"eps{x:g}"]) for x in sorted(parameters.exponents)]


def _draw_times(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    cases = _ordered(parameters, data)
    last = max(float(part["time"][-1]) for _, part in cases)
    t = np.concatenate([np.linspace(0.0, 1.0, 20), np.geomspace(1.05, last, 300)])
    axes.plot(t, theory.uniform.linear_modes(t, parameters.beta), color=INK, lw=1.0, label="$M(t)$")
    for index, ((x, part), colour, mark) in enumerate(looks(cases)):
        resolved = part["time"].values[: int(part["modes_counts"].min())]
        # marks of different sizes stand side by side
        wanted = np.geomspace(1.6 * 1.18**index, resolved[-1], 7) if index else np.linspace(0, resolved[-1], 4)
        shown = np.unique(np.searchsorted(resolved, wanted - 1e-9))
        found = np.array([mean_error(part["modes"].values[:, at]) for at in shown])
        size = rf"$\varepsilon = 10^{{-{x:g}}}$"
        axes.errorbar(resolved[shown], *(found * [1, 2]).T, fmt=mark, ms=3.4, lw=0.8, color=colour, label=size)
    _levels(axes, parameters.beta, True)
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.4)
    axes.set(xlim=(-0.08, 1.5 * last), xlabel="time $t$", ylabel="number of modes")
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.15 * (high - low), high)
    axes.legend(loc="lower right", handletextpad=0.4, ncols=2, columnspacing=0.8)


def _draw_smoothed(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    cases = _ordered(parameters, data)
    for index, ((_, part), colour, _) in enumerate(looks(cases)):
        values = part["smoothed"].values[0]
        angles = np.linspace(0, 2 * np.pi, len(values), endpoint=False)
        height = 0.8 * (values - values.min()) / np.ptp(values)
        axes.plot(angles, index + height - 0.4, color=colour, lw=0.9)
    axes.set_yticks(range(len(cases)), [f"$10^{{-{x:g}}}$" for x, _ in cases])
    axes.set_xticks([0, np.pi, 2 * np.pi], ["0", r"$\pi$", r"$2\pi$"])
    axes.set(xlabel=r"angle $\theta$", ylabel=r"$K*\mu$ (scaled), by size $\varepsilon$ of the noise")


def _draw_finals(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    sizes = sorted(parameters.exponents)
    for index, ((_, part), colour, mark) in enumerate(looks(_ordered(parameters, data))):
        finals = part["final"].values
        counts, shares = np.unique(finals, return_counts=True)
        axes.scatter(np.full(len(counts), index), counts, s=150 * shares / len(finals), color=colour, alpha=0.35, lw=0)
        found, error = mean_error(finals)
        axes.errorbar(index, found, 2 * error, fmt=mark, ms=3.6, lw=1.0, color=colour)
        t = float(part["time"][linear_times(part)[-1]])
        words = "$M$, end of linear phase" if index == 0 else None
        predicted = theory.uniform.linear_modes(t, parameters.beta)
        axes.plot(index + 0.25, predicted, "s", ms=4, mfc="none", mec=INK, mew=0.8, label=words)
    found, error = mean_error(data["tokens"]["final"].values)
    power = np.log10(parameters.tokens)
    where, words = np.interp(power / 2, sizes, np.arange(len(sizes))), rf"$10^{{{power:.3g}}}$ iid tokens"
    axes.errorbar(where - 0.25, found, 2 * error, fmt="^", ms=4.5, lw=1.0, color=INK, mfc="none", label=words)
    _levels(axes, parameters.beta, False)
    low, high = axes.get_ylim()
    axes.set_xticks(range(len(sizes)), [f"$10^{{-{x:g}}}$" for x in sizes], fontsize=6)
    axes.set(xlim=(-0.7, len(sizes) - 0.3), ylim=(low, high + 0.3 * (high - low)))
    axes.set(xlabel=r"size $\varepsilon$ of the noise", ylabel="number of clusters")
    axes.legend(loc="upper left")
