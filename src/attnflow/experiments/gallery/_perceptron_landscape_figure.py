"""The figure of `perceptron_landscape`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled

TURN = 2 * np.pi


def draw_figure(
    parameters: Any,
    data: dict[str, xr.Dataset],
    rows: Sequence[dict[str, Any]],
    network_of: Callable[..., Any],
    certificate: Callable[..., float],
) -> Any:
    """Six panels: three on attraction, one on the exception, two on repulsion."""
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 3).ravel()
        shown = max(range(len(rows)), key=lambda k: len(rows[k]["angles"]))
        _paths(axes[0], data["attract"], rows[shown], shown, network_of)
        _energies(axes[1], parameters, data["attract"], network_of)
        _places(axes[2], rows)
        _exception(axes[3], parameters, data["exception"])
        _minimiser(axes[4], parameters, data["repel"], network_of, data["minimum"].isel(network=0))
        _descent(axes[5], parameters, data["repel"], data["minimum"], certificate)
        for letter, one in zip("abcdef", axes, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _turn(axes: Any, which: str) -> None:
    ticks = [0, np.pi, TURN], ["0", r"$\pi$", r"$2\pi$"]
    getattr(axes, f"set_{which}ticks")(*ticks)
    getattr(axes, f"set_{which}lim")(0, TURN)


def _paths(axes: Any, data: xr.Dataset, row: dict[str, Any], k: int, network_of: Callable[..., Any]) -> None:
    last = min(data.sizes["time"], 21)
    paths = data["positions"].values[:last, k]
    angles = np.mod(np.arctan2(paths[..., 1], paths[..., 0]), TURN)
    jump = np.abs(np.diff(angles, axis=0, prepend=angles[:1])) > np.pi
    axes.plot(data["time"].values[:last], np.where(jump, np.nan, angles), color=COLOURS[0], lw=0.5)
    end = float(data["time"].values[last - 1])
    for angle in row["predicted"]:
        axes.plot([0, end], [angle, angle], "--", color=COLOURS[4], lw=0.9)
    grid = np.linspace(0, TURN, 400)
    height = network_of(data, k).potential(theory.circle_points(grid))
    beside = end * (1.05 + 0.25 * (height - height.min()) / np.ptp(height))
    axes.fill_betweenx(grid, end * 1.05, beside, color=GREY, alpha=0.35, lw=0)
    axes.plot(beside, grid, color=INK, lw=0.8)
    axes.text(end * 1.07, 0.15, "$U$", fontsize=7)
    axes.set_xlim(0, end * 1.32)
    axes.set_xlabel("time")
    axes.set_ylabel("angle")
    _turn(axes, "y")


def _energies(axes: Any, parameters: Any, data: xr.Dataset, network_of: Callable[..., Any]) -> None:
    for k in range(data.sizes["network"]):
        bound = theory.dirac_bound(parameters.beta, theory.largest_potential(network_of(data, k))[0])
        below = float(bound) - data["energy"].values[:, k]
        axes.plot(data["time"], np.maximum(below, 1e-17), color=COLOURS[k % 6], lw=0.7)
    axes.set_yscale("log")
    axes.set_xlim(0, 60)
    axes.set_xlabel("time")
    axes.set_ylabel(r"$1/(2\beta) + \max U - E$")


def _places(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    predicted = np.concatenate([row["predicted"] for row in rows])
    found = np.concatenate([row["angles"] for row in rows])
    masses = np.concatenate([row["masses"] for row in rows])
    axes.plot([0, TURN], [0, TURN], color=GREY, lw=0.8)
    axes.scatter(predicted, found, s=4 + 26 * masses, facecolor="none", edgecolor=COLOURS[0], linewidth=0.8)
    worst = max(row["distance"] for row in rows)
    exponent = int(np.floor(np.log10(max(worst, 1e-17))))
    axes.text(0.3, 5.6, rf"all within $10^{{{exponent + 1}}}$", fontsize=7)
    axes.set_xlabel("critical point (theory)")
    axes.set_ylabel("atom (end of the flow)")
    _turn(axes, "x")
    _turn(axes, "y")


def _exception(axes: Any, parameters: Any, data: xr.Dataset) -> None:
    n = data.sizes["token"]
    grid = np.linspace(0, TURN, 300)
    for k, share in enumerate(data["share"].values):
        colour, speed = COLOURS[(0, 2, 4)[k % 3]], float(data["speed"].values[k].max())
        if share <= 1:
            density = theory.non_atomic_density(grid, share * data.attrs["limit"], parameters.beta)
            axes.plot(grid, density, color=colour, lw=1.0)
        marks = data["mass"].values[k] * n / TURN
        label = f"$u = {share:g}$: speed {speed:.0e}"
        axes.plot(data["angle"], marks, "o" if share <= 1 else "x", ms=3 - k % 2, mfc="none", color=colour, label=label)
    axes.set_ylim(0, 0.52)
    axes.set_xlabel("angle")
    axes.set_ylabel("density")
    axes.legend(loc="upper center", handletextpad=0.1, borderpad=0)
    _turn(axes, "x")


def _minimiser(axes: Any, parameters: Any, data: xr.Dataset, network_of: Callable[..., Any], best: xr.Dataset) -> None:
    network = network_of(data, 0)
    grid = np.linspace(0, TURN, 800)
    on = best["weight"].values > 0
    sites, weights = best["angle"].values[on], best["weight"].values[on]
    phi = theory.first_variation(
        theory.circle_points(grid), theory.circle_points(sites), weights, parameters.beta, network
    )
    excess = phi - float(best["constant"])
    axes.plot(grid, excess, color=INK, lw=1.0)
    for angle in sites:
        axes.axvline(angle, color=COLOURS[4], ls=":", lw=0.8)
    ends = data["positions"].values[-1, 0]
    angles = np.mod(np.arctan2(ends[:, 1], ends[:, 0]), TURN)
    top = float(excess.max())
    axes.plot(angles, np.full(len(angles), -0.06 * top), "|", ms=6, mew=0.8, color=COLOURS[0])
    axes.set_ylim(-0.13 * top, 1.05 * top)
    axes.set_xlabel("angle")
    axes.set_ylabel(r"$\Phi - c$ of the minimiser")
    _turn(axes, "x")


def _descent(axes: Any, parameters: Any, data: xr.Dataset, best: xr.Dataset, certificate: Callable[..., float]) -> None:
    time = data["time"].values
    for k in range(data.sizes["network"]):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(time, data["energy"].values[:, k] - float(best["energy"][k]), color=colour, lw=1.0)
        axes.plot(time[-1] * 1.04, certificate(parameters, data, k), "v", ms=4, color=colour)
    axes.plot([], [], color=INK, lw=1.0, label=r"$E - \min E$")
    axes.plot([], [], "v", ms=4, color=INK, label=r"mean $\Phi$ $-$ min $\Phi$")
    axes.set_yscale("log")
    axes.set_xlabel("time")
    axes.set_ylabel("energy")
    axes.legend(loc="upper right")
