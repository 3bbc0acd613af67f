"""The panels of `saddles`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.gallery.saddles import SPAN, Parameters, tail_rate
from attnflow.plots.style import COLOURS, GREY, INK

MARKS = {2: ("s", COLOURS[1]), 3: ("o", COLOURS[0])}


def draw_indices(axes: Any, parts: list[xr.Dataset]) -> None:
    """Energy against Morse index."""
    for part in parts:
        n, d, beta = (part.attrs[name] for name in ("n", "d", "beta"))
        mark, colour = MARKS[d]
        face = colour if d == 3 else "white"
        axes.plot(part["energy"], part["index"], mark, ms=4.5, mec=colour, mfc=face, mew=1.0,
                  label=rf"$S^{{{d - 1}}}$, $n = {n}$")  # fmt: skip
    axes.annotate("consensus", (0, 0), xytext=(-6, 5), textcoords="offset points", ha="right", va="bottom", fontsize=7)
    axes.set_ylim(bottom=-0.5)
    axes.set_xlabel(rf"energy   ($\beta = {beta:g}$)")
    axes.set_ylabel("Morse index")
    axes.legend(loc="upper right")


def draw_counts(axes: Any, parts: list[xr.Dataset]) -> None:
    """Labelled equilibria modulo rotations, by index."""
    for part in parts:
        n, d = part.attrs["n"], part.attrs["d"]
        colour = MARKS[d][1]
        count = np.bincount(part["index"].values, part["labelled"].values)
        shift = -0.2 if d == 2 else 0.2
        axes.bar(np.arange(len(count)) + shift, count, 0.4, color=colour, alpha=0.85, label=rf"$S^{{{d - 1}}}$")
        if d == 2:
            betti = [math.comb(n - 1, k) for k in range(n)]
            axes.plot(np.arange(n) + shift, betti, "_", ms=11, mew=1.6, color=INK, label=rf"Betti, $T^{{{n - 1}}}$")
    axes.set_yscale("log")
    axes.set_ylim(0.7, 2500)
    axes.set_xlabel("Morse index")
    axes.set_ylabel(rf"labelled equilibria   ($n = {n}$)")
    axes.legend(loc="upper left", ncols=3, columnspacing=1.0)


def draw_tails(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    """Survival of iid starts near saddles."""
    for d in parameters.dims:
        left = data[f"starts-S{d - 1}"]["left"].values
        colour = MARKS[d][1]
        times = np.arange(0, np.max(left[np.isfinite(left)]) + SPAN, SPAN)
        share = np.array([np.mean(left > t) for t in times])
        axes.step(times[share > 0], share[share > 0], where="post", color=colour, lw=1.0)
        rate, begin = (d - 1) * math.exp(-2 * parameters.beta), float(np.quantile(left, 0.9))
        late = np.array([begin, begin + math.log(0.1 * len(left)) / rate])
        axes.plot(late, np.mean(left > begin) * np.exp(-rate * (late - begin)), "--", color=INK, lw=0.9)
        found, error = tail_rate(left)
        axes.plot([], [], color=colour, label=rf"$S^{{{d - 1}}}$: rate {found:.3f}({1000 * error:.0f}), {rate:.4f}")
    axes.plot([], [], "--", color=INK, lw=0.9, label=r"$e^{-(d-1)e^{-2\beta}t}$")
    axes.set_yscale("log")
    axes.set_ylim(0.5 / parameters.seeds, 1.3)
    axes.set_xlabel("time $t$")
    axes.set_ylabel(rf"share that lingers   ($n = {parameters.n}$, $\beta = {parameters.beta:g}$)")
    axes.legend(loc="upper right")


def draw_exits(
    axes: Any, parameters: Parameters, data: dict[str, xr.Dataset], merge: Callable[[float, float], float]
) -> None:
    """Exit time against the distance from the stable set."""
    bends = np.geomspace(min(parameters.bends) / 3, max(parameters.bends) * 3, 100)
    axes.plot(bends, [merge(float(b), parameters.beta) for b in bends], color=GREY, lw=1.0, label="closed form")
    for d in parameters.dims:
        part = data[f"starts-S{d - 1}"]
        mark, colour = MARKS[d]
        axes.plot(part["bend"], part["bent"] - SPAN / 2, mark, ms=6 if d == 2 else 3, mec=colour,
                  mfc="white" if d == 2 else colour, label=rf"$S^{{{d - 1}}}$")  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"distance $\varepsilon$ from antipodal (angle)")
    axes.set_ylabel("exit time")
    axes.legend(loc="upper right")
