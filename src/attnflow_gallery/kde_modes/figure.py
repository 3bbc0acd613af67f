"""Numbers of modes of kernel densities."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import mean_error, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.kde_modes.compare import case, each, middle, paths
from attnflow_gallery.kde_modes.simulate import Parameters

STYLES = {1.0: (COLOURS[4], "o", "-"), 1.5: (COLOURS[0], "s", "--"), 0.5: (COLOURS[2], "D", ":")}
WORDS = {1.0: r"$\beta = n$", 1.5: r"$\beta = n^{3/2}$", 0.5: r"$\beta = n^{1/2}$"}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Mean number M of modes: Monte Carlo (marks; bars: two standard errors) and theory (lines).

    (a) Two samples on the line. (b) n samples on the line along three paths; a number of the order of √(β log β) tends
    to a constant here; lines: a heuristic for that constant, √3/π √(1/α − 1/2) for β = n^α, α ≥ 2/3. (c) A fixed number
    of samples: on the whole line, from one mode to one per sample, and within [-1, 1], where the line is Kac and Rice's
    formula up to one sample per width. (d) The circle.
    """
    line = "two samples on the line", "$n$ samples on the line", f"{parameters.sweep} samples on the line"
    with panels(2, 2, 5.0, *line, "tokens on the circle") as page:
        _draw_pairs(page[0], parameters, data["pairs"])
        _draw_paths(page[1], parameters, data["line"])
        _draw_sweep(page[2], parameters, data["line"])
        _draw_circle(page[3], parameters, data["circle"])
        for axes in page:
            axes.set(xscale="log", xlabel=r"inverse temperature $\beta$")
    return page.figure


def _marks(axes: Any, x: Any, y: Any, error: Any, colour: str = COLOURS[4], marker: str = "o", **rest: Any) -> None:
    axes.errorbar(x, y, 2 * np.asarray(error), fmt=marker, ms=3.8, lw=1.2, color=colour, zorder=3, **rest)


def _draw_pairs(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    betas = np.geomspace(0.1, 10 * float(pairs["beta"].max()), 200)
    axes.plot(
        betas, theory.landscape.two_point_modes(betas), color=INK, lw=1.0, label=r"$1 + \mathrm{erfc}(\beta^{-1/2})$"
    )
    error = np.sqrt((pairs["fine"] - 1) * (2 - pairs["fine"]) / parameters.pairs)
    _marks(axes, pairs["beta"], pairs["fine"], error, label=f"{parameters.pairs} pairs")
    axes.set(ylim=(0.95, 2.05), ylabel="number of modes $M$")
    axes.legend(loc="upper left")


def _draw_paths(axes: Any, parameters: Parameters, line: xr.Dataset) -> None:
    for alpha, sizes in paths(parameters).items():
        colour, marker, style = STYLES[alpha]
        some = [case(line, n, float(n) ** alpha) for n in sizes]
        betas, found, error = (np.array([float(one[name]) for one in some]) for name in ("beta", "fine", "fine_error"))
        scale = np.sqrt(betas * np.log(betas))
        if alpha >= 2 / 3:  # noise decides up to the last samples, at x^2 = (2/alpha - 1) log(beta)
            axes.axhline(np.sqrt(3) / np.pi * np.sqrt(1 / alpha - 0.5), color=colour, lw=0.9, ls=style)
        _marks(axes, betas, found / scale, error / scale, colour, marker, label=WORDS[alpha])
    axes.plot([], [], color=GREY, lw=0.9, label="heuristic limits")
    axes.set(ylim=(0, 1.0), ylabel=r"$M\,/\,\sqrt{\beta\log\beta}$")
    axes.legend(loc="upper right", ncols=2)


def _draw_sweep(axes: Any, parameters: Parameters, line: xr.Dataset) -> None:
    n = parameters.sweep
    some = sorted((c for c in each(line) if int(c["n"]) == n), key=lambda c: float(c["beta"]))
    betas = np.array([float(c["beta"]) for c in some])
    columns = {name: [float(c[name]) for c in some] for name in ("fine", "fine_error", "middle", "middle_error")}
    _marks(axes, betas, columns["fine"], columns["fine_error"], label="whole line")
    _marks(axes, betas, columns["middle"], columns["middle_error"], COLOURS[0], "s", mfc="white", label="in $[-1, 1]$")
    dense = np.geomspace(betas.min(), min(betas.max(), 0.3 * n**2), 40)
    axes.plot(dense, [middle(n, beta) for beta in dense], color=COLOURS[0], lw=1.0, label="Kac and Rice in $[-1, 1]$")
    for level, words in ((n, f"$n = {n}$"), (1, "1")):
        axes.axhline(level, color=GREY, lw=0.8, ls=":")
        axes.annotate(words, (0.01, level), xycoords=("axes fraction", "data"), fontsize=7, va="bottom", color=INK)
    axes.set(yscale="log", ylim=(0.15, 4 * n), ylabel="number of modes $M$")
    axes.legend(loc="lower right")


def _draw_circle(axes: Any, parameters: Parameters, circle: xr.Dataset) -> None:
    betas = circle["beta"].values
    some = np.geomspace(betas.min() / 2, 2 * betas.max(), 200)
    label = r"$(\Sigma k^4I_k^2 / \Sigma k^2I_k^2)^{1/2}$"
    axes.plot(some, theory.landscape.expected_modes(some) / np.sqrt(some), color=INK, lw=1.0, label=label)
    axes.axhline(np.sqrt(1.5), color=GREY, lw=0.8, ls="--", label=r"$\sqrt{3\beta/2}$")
    found, error = np.array([mean_error(row) for row in circle["fine"].values]).T / np.sqrt(betas)
    _marks(axes, betas, found, error, label=f"{parameters.circle} tokens")
    axes.set(ylim=(1.1, 1.6), ylabel=r"$M\,/\,\sqrt{\beta}$")
    axes.legend(loc="upper right")
