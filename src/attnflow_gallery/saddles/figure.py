"""Equilibria by energy and index, and how starts leave the saddles."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.saddles.compare import LATE, merge, tail_rate
from attnflow_gallery.saddles.simulate import SPAN, Parameters, name

STYLES = {2: ("s", COLOURS[1], "white"), 3: ("o", COLOURS[0], COLOURS[0])}
"""By dimension: mark, colour, face."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Equilibria of equal tokens, and how iid starts leave the saddles.

    (a) Energy and Morse index of the equilibria of the largest n, first beta; those of the circle are drawn a little
    below their index, those of the sphere a little above. (b) Number of equilibria by index, tokens labelled and modulo
    rotations; bars: Betti numbers of the torus, a lower bound on the numbers of the circle. On the sphere collinear
    equilibria keep a rotation, so that Morse's inequalities bound no single number there. (c) Share of iid starts with
    a pair of tokens more than 90 degrees apart, USA0; dashed: exponential tail with the rate of theory; the legend
    gives the measured rate with its standard error. (d) Time until two groups at the angle pi - epsilon are 90 degrees
    apart; line: closed form.
    """
    largest = {d: n for n, d in sorted(parameters.cases)}
    chosen = [data[name(largest[d], d, parameters.betas[0])] for d in sorted(largest)]
    titles = "equilibria", "how many of each index", "iid starts near a saddle", "two almost antipodal groups"
    with panels(2, 2, 4.8, *titles) as page:
        _draw_indices(page[0], chosen)
        _draw_counts(page[1], chosen)
        _draw_tails(page[2], parameters, data)
        _draw_exits(page[3], parameters, data)
    return page.figure


def _draw_indices(axes: Any, parts: list[xr.Dataset]) -> None:
    for part in parts:
        n, d, beta = (part.attrs[key] for key in ("n", "d", "beta"))
        mark, colour, face = STYLES[d]
        index, label = part["index"] + (-0.16 if d == 2 else 0.16), rf"$S^{{{d - 1}}}$, $n = {n}$"
        axes.plot(part["energy"], index, mark, ms=3.6, mec=colour, mfc=face, mew=0.9, label=label)
    side = {"textcoords": "offset points", "ha": "right", "va": "bottom", "fontsize": 7}
    axes.annotate("consensus", (0, 0.16), xytext=(-6, 4), **side)
    axes.set(ylim=(-0.5, None), yticks=range(0, int(max(part["index"].max() for part in parts)) + 1, 2))
    axes.set(xlabel=rf"energy $E$   ($\beta = {beta:g}$)", ylabel="Morse index")
    axes.legend(loc="upper right")


def _draw_counts(axes: Any, parts: list[xr.Dataset]) -> None:
    for part in parts:
        n, d = part.attrs["n"], part.attrs["d"]
        _, colour, _ = STYLES[d]
        count = np.bincount(part["index"].values, part["labelled"].values)
        shift = -0.2 if d == 2 else 0.2
        look: dict[str, Any] = {"facecolor": "white", "hatch": "////"} if d == 2 else {"facecolor": colour}
        look |= {"edgecolor": colour, "lw": 0.8, "label": rf"$S^{{{d - 1}}}$, $n = {n}$"}
        axes.bar(np.arange(len(count)) + shift, count, 0.4, **look)
        if d == 2:
            betti = [math.comb(n - 1, k) for k in range(n)]
            label = rf"Betti numbers of $T^{{{n - 1}}}$"
            axes.plot(np.arange(n) + shift, betti, "_", ms=11, mew=1.8, color=INK, label=label)
    axes.set(yscale="log", ylim=(0.7, axes.get_ylim()[1] ** 1.25), xlabel="Morse index", ylabel="labelled equilibria")
    axes.legend(loc="upper left", ncols=2, columnspacing=1.0)


def _draw_tails(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for d, line in zip(parameters.dims, ("-", "-."), strict=False):
        left = data[f"starts-S{d - 1}"]["left"].values
        colour = STYLES[d][1]
        times = np.arange(0, np.max(left[np.isfinite(left)]) + SPAN, SPAN)
        share = np.array([np.mean(left > t) for t in times])
        rate, begin = (d - 1) * math.exp(-2 * parameters.beta), float(np.quantile(left, 1 - LATE))
        found, error = tail_rate(left)
        label = rf"$S^{{{d - 1}}}$: rate {found:.3f}({1000 * error:.0f}), theory {rate:.3f}"
        axes.step(times[share > 0], share[share > 0], line, where="post", color=colour, lw=1.2, label=label)
        late = np.array([begin, begin + math.log(LATE * len(left)) / rate])
        axes.plot(late, np.mean(left > begin) * np.exp(-rate * (late - begin)), "--", color=INK, lw=0.9)
    axes.plot([], [], "--", color=INK, lw=0.9, label=r"$e^{-(d-1)e^{-2\beta}t}$")
    axes.set(yscale="log", ylim=(0.5 / parameters.draws, 1.3))
    where = rf"($n = {parameters.n}$, $\beta = {parameters.beta:g}$)"
    axes.set(xlabel=f"time $t$   {where}", ylabel=r"share with $\min\langle x_i, x_j\rangle \leq 0$")
    axes.legend(loc="upper right")


def _draw_exits(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    bends = np.geomspace(min(parameters.bends) / 3, max(parameters.bends) * 3, 100)
    axes.plot(bends, [merge(float(b), parameters.beta) for b in bends], color=GREY, lw=1.0, label="closed form")
    for d in parameters.dims:
        part = data[f"starts-S{d - 1}"]
        mark, colour, face = STYLES[d]
        size, label = 6 if d == 2 else 3, rf"$S^{{{d - 1}}}$"
        axes.plot(part["bend"], part["bent"], mark, ms=size, mec=colour, mfc=face, label=label)
    axes.set(xscale="log", ylim=(0, None), xlabel=r"angle $\varepsilon$ from antipodal", ylabel="exit time")
    axes.legend(loc="upper right")
