"""The first change by bins, atoms of two solids, and transforms along flows."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import many_tokens, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.distances_through_time.compare import EXPECTED, gathered, predicted
from attnflow_gallery.distances_through_time.simulate import BINS, LOW, SOLIDS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """The histogram of the overlaps s = 1 − r²/2 of all pairs.

    (a) n times its first change on S², softmax: Monte Carlo at the largest n (circles), extrapolated (dots), the
    closure at that n (dashed) and the limit (steps). (b) Tokens condensed at an octahedron and a cube: share of pairs
    within 0.15 of the overlaps of vertices (marks), and the predicted atoms (lines). (c) The transform at β along
    flows, softmax, every random start. (d) Three tokens: transforms at β (which rises) and at a smaller one (which
    falls), each less its start.
    """
    titles = "first change", "after condensation", r"transform at $\beta$", "three tokens"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_change(page[0], parameters, data["change"])
        _draw_atoms(page[1], data)
        part = data["rise-SA"]
        time = np.linspace(0, parameters.rise_until, parameters.frames + 1)
        page[2].plot(time, part["own"].values[:-1].T, color=COLOURS[0], lw=0.6)
        page[2].set(xlabel="time $t$", ylabel=rf"$\int e^{{-\beta r^2/2}}$,  $\beta = {parameters.rise_beta:g}$")
        for what, colour, line, words in (("own", 0, "-", r"$\beta$"), ("low", 4, "--", f"{LOW:g}")):
            values = part[what].values[-1]
            page[3].plot(time, values - values[0], line, color=COLOURS[colour], label=words)
        page[3].axhline(0, color=GREY, lw=0.6)
        page[3].set(xlabel="time $t$", ylabel="transform less its start")
        page[3].legend(loc="center right", title="at")
    return page.figure


def _draw_change(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    edges, sizes = np.linspace(-1, 1, BINS + 1), part["size"].values
    middle = (edges[1:] + edges[:-1]) / 2
    axes.stairs(predicted(parameters, None), edges, color=INK, lw=1.0, label="many tokens", baseline=None)
    closure = np.array([predicted(parameters, int(n)) for n in sizes])
    axes.stairs(
        closure[-1], edges, color=COLOURS[0], ls="--", lw=0.9, label=f"closure, $n = {sizes[-1]}$", baseline=None
    )
    look: Any = {"fmt": "o", "ms": 4, "mfc": "white", "color": COLOURS[0], "label": f"$n = {sizes[-1]}$"}
    axes.errorbar(middle, part["mean"][-1], part["error"][-1], **look)
    left, error, _ = many_tokens(sizes, part["mean"].values - closure, part["error"].values)
    axes.errorbar(middle, predicted(parameters, None) + left, error, fmt=".", color=COLOURS[4], label=r"$1/n \to 0$")
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlabel="overlap $s$", ylabel="$n$ times the change of a bin")
    axes.legend(loc="upper left", fontsize=6)


def _draw_atoms(axes: Any, data: dict[str, xr.Dataset]) -> None:
    for solid, colour, mark in zip(SOLIDS, (COLOURS[0], COLOURS[4]), "os", strict=True):
        places, mass = np.array(list(EXPECTED[solid])), data[solid]["mass"].values
        axes.vlines(places, 0, list(EXPECTED[solid].values()), color=colour, lw=1.0)
        found = [gathered(mass, float(place)) for place in places]
        axes.plot(places, found, mark, ms=5, mec=colour, mfc="white", lw=0, label=solid)
    axes.set(xlim=(-1.1, 1.1), ylim=(0, 0.75), xlabel="overlap $s$", ylabel="share of pairs")
    axes.legend(loc="upper right", fontsize=6)
