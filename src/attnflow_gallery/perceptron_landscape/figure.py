"""Six panels: three on attraction, one on the exception, two on repulsion."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.perceptron_landscape.compare import bounds, certificate, compare, network_of
from attnflow_gallery.perceptron_landscape.simulate import ARC, Parameters

TURN = 2 * np.pi
FLOOR = 1e-14
"""Differences of energies below this are rounding and are not drawn."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on the circle under attention and a perceptron block.

    (a) Angles of tokens for one network (lines go on at 0 when they leave at 2 pi), beside its potential U; dashed:
    critical atoms from theory. (b) Distance of the energy from its bound 1/(2 beta) + max U, one line per network:
    tokens that start evenly stay below it when they end in several atoms; tokens that start around the highest peak
    reach it. Values below 1e-14 are rounding and left out. (c) Angles of atoms at the end against the critical points
    of theory, all networks; larger circles have more mass. (d) U = u cos: masses of tokens (marks) on the density
    without atoms (lines). It is at rest up to u = u*; for larger u the density of u* is drawn, and moves. (e) Repelling
    tokens: first variation of the minimiser (line). It is smallest at its atoms (dotted). Ticks: tokens of equal mass
    at the end of their flow; they spread out where the first variation is nearly smallest. (f) Their energy over the
    minimum, one line style per network, and the bound by their first variation at the end (triangles, same order).
    """
    rows = compare(parameters, data["even"])
    shown = max(range(len(rows)), key=lambda k: len(rows[k]["angles"]))
    top = "tokens of one network", "energy below its bound", "atoms"
    with panels(2, 3, 5.0, *top, r"$U = u\,\cos\theta$", "repelling: minimiser", "repelling: energy") as page:
        _paths(page[0], data["even"], rows[shown], shown)
        _energies(page[1], parameters, data)
        _places(page[2], rows)
        _exception(page[3], parameters, data["exception"])
        _minimiser(page[4], parameters, data["repel"], data["minimum"].isel(network=0))
        _descent(page[5], parameters, data["repel"], data["minimum"])
    return page.figure


def _turn(axes: Any, which: str) -> None:
    ticks = {f"{which}ticks": [0, np.pi, TURN], f"{which}ticklabels": ["0", r"$\pi$", r"$2\pi$"]}
    axes.set(**ticks, **{f"{which}lim": (0, TURN)})


def _paths(axes: Any, data: xr.Dataset, row: dict[str, Any], k: int) -> None:
    last = min(data.sizes["time"], 21)
    paths = data["positions"].values[:last, k]
    angles = np.unwrap(np.arctan2(paths[..., 1], paths[..., 0]), axis=0)
    for turns in (-1, 0, 1, 2):
        axes.plot(data["time"].values[:last], angles + TURN * turns, color=COLOURS[0], lw=0.5)
    end = float(data["time"].values[last - 1])
    for angle in row["predicted"]:
        axes.plot([0, end], [angle, angle], "--", color=COLOURS[4], lw=1.0)
    grid = np.linspace(0, TURN, 400)
    height = network_of(data, k).potential(theory.landscape.circle_points(grid))
    beside = end * (1.05 + 0.25 * (height - height.min()) / np.ptp(height))
    axes.fill_betweenx(grid, end, end * 1.5, color="white", lw=0, zorder=2.5)
    axes.fill_betweenx(grid, end * 1.05, beside, color=GREY, alpha=0.35, lw=0, zorder=3)
    axes.plot(beside, grid, color=INK, lw=0.8, zorder=3)
    axes.text(end * 1.07, 0.2, r"$U(\theta)$", fontsize=7, zorder=4)
    axes.set(xlim=(0, end * 1.32), xlabel="time $t$", ylabel=r"angle $\theta$")
    _turn(axes, "y")


def _energies(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    limits = bounds(parameters, data["even"])
    starts = (("even", "even start", COLOURS[0], "-"), ("peak", rf"start within {ARC:g} of the peak", COLOURS[4], "--"))
    for name, words, colour, style in starts:
        below = limits - data[name]["energy"].values
        lines = axes.plot(data[name]["time"], np.where(below > FLOOR, below, np.nan), style, color=colour, lw=0.7)
        lines[0].set_label(words)
    axes.set(yscale="log", ylim=(FLOOR, 1e4), xlim=(0, min(60.0, float(data["even"]["time"][-1]))), xlabel="time $t$")
    axes.set(ylabel=r"$1/(2\beta) + \max U - E$")
    axes.legend(loc="upper right", borderaxespad=0.0, handlelength=1.6)


def _places(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    predicted = np.concatenate([row["predicted"] for row in rows])
    found = np.concatenate([row["angles"] for row in rows])
    masses = np.concatenate([row["masses"] for row in rows])
    axes.plot([0, TURN], [0, TURN], color=GREY, lw=0.8)
    axes.scatter(predicted, found, s=4 + 26 * masses, facecolor="none", edgecolor=COLOURS[0], linewidth=0.8)
    worst = max(row["distance"] for row in rows)
    exponent = int(np.ceil(np.log10(max(worst, 1e-16))))
    axes.text(0.3, 5.6, rf"differences below $10^{{{exponent}}}$", fontsize=7)
    axes.set(xlabel=r"critical point $\theta$ (theory)", ylabel=r"atom $\theta$ (end of the flow)")
    _turn(axes, "x")
    _turn(axes, "y")


def _exception(axes: Any, parameters: Parameters, data: xr.Dataset) -> None:
    n, limit = data.sizes["token"], data.attrs["limit"]
    grid = np.linspace(0, TURN, 300)
    for k, share in enumerate(data["share"].values):
        colour, speed = COLOURS[(0, 2, 4)[k % 3]], float(data["speed"].values[k].max())
        if share <= 1:
            axes.plot(
                grid, theory.landscape.non_atomic_density(grid, share * limit, parameters.beta), color=colour, lw=1.0
            )
        marks = data["mass"].values[k] * n / TURN
        state = "at rest" if speed < 1e-12 else f"speed {speed / limit:.2g} $u^*$"
        mark, words = "x" if share > 1 else "os"[k % 2], rf"$u = {share:g}\,u^*$: {state}"
        axes.plot(data["angle"][k % 2 :: 2], marks[k % 2 :: 2], mark, ms=3.5, mfc="none", color=colour, label=words)
    axes.set(ylim=(0, 0.55), xlabel=r"angle $\theta$", ylabel="density")
    axes.legend(loc="upper center", handletextpad=0.1, borderpad=0)
    _turn(axes, "x")


def _minimiser(axes: Any, parameters: Parameters, data: xr.Dataset, best: xr.Dataset) -> None:
    network, grid = network_of(data, 0), np.linspace(0, TURN, 800)
    sites, masses = best["site"].values, best["mass"].values
    points, atoms = theory.landscape.circle_points(grid), theory.landscape.circle_points(sites)
    phi = theory.landscape.first_variation(points, atoms, masses, beta=parameters.beta, landscape=network)
    excess = 1e3 * (phi - float(best["constant"]))
    axes.plot(grid, excess, color=INK, lw=1.0, label=r"$\Phi - \min\Phi$")
    for k, angle in enumerate(np.unique(sites)):
        label = "atoms of the minimiser" if k == 0 else None
        axes.axvline(angle, ymax=0.62, color=COLOURS[4], ls=":", lw=0.9, label=label)
    ends = data["positions"].values[-1, 0]
    angles = np.mod(np.arctan2(ends[:, 1], ends[:, 0]), TURN)
    top = float(excess.max())
    words = f"{len(angles)} tokens, equal masses"
    axes.plot(angles, np.full(len(angles), -0.08 * top), "|", ms=6, mew=0.8, color=COLOURS[0], label=words)
    axes.set(ylim=(-0.16 * top, 1.75 * top), xlabel=r"angle $\theta$", ylabel=r"$10^3\,(\Phi - \min\Phi)$")
    axes.legend(loc="upper center", borderaxespad=0.0, handlelength=1.4, frameon=True, framealpha=1.0, edgecolor="none")
    _turn(axes, "x")


def _descent(axes: Any, parameters: Parameters, data: xr.Dataset, best: xr.Dataset) -> None:
    time = data["time"].values
    for k in range(data.sizes["network"]):
        colour = COLOURS[k % len(COLOURS)]
        excess = data["energy"].values[:, k] - float(best["energy"][k])
        axes.plot(time, excess, color=colour, ls=("-", "--", "-.", ":")[k % 4], lw=1.0)
        axes.plot(time[-1] * 1.05, certificate(parameters, data, k), "v", ms=4, color=colour)
    axes.plot([], [], color=INK, lw=1.0, label=r"$E - \min E$")
    axes.plot([], [], "v", ms=4, color=INK, ls="none", label=r"bound: mean $\Phi$ $-$ min $\Phi$")
    axes.set(yscale="log", ylim=(None, 4 * axes.get_ylim()[1]), xlabel="time $t$", ylabel=r"$E - \min E$")
    axes.legend(loc="upper right", borderaxespad=0.0)
