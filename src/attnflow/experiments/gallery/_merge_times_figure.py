"""The panels of `merge_times`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK

LINES = {"SA": "-", "USA0": "--"}
LIMIT = math.log(1e-2 / np.finfo(float).eps)
"""Log growth beyond which rounding may decide."""


def draw_times(axes: Any, pairs: xr.Dataset, chord: float) -> None:
    """(log T)/beta against beta, for masses as equal as there are."""
    mass = min(np.unique(pairs["mass"]), key=lambda m: abs(m - 0.5))
    betas = np.geomspace(pairs["beta"].min(), pairs["beta"].max(), 60)
    for angle, colour in zip(np.unique(pairs["angle"]), COLOURS, strict=False):
        for model, line in LINES.items():
            until = 2 * math.asin(chord / 2)
            axes.plot(betas, theory.log_merge_time(angle, betas, (mass, 1 - mass), until, model) / betas, line,
                      color=colour, lw=0.9)  # fmt: skip
            found = some(pairs, model=model, angle=angle, mass=mass)
            axes.plot(found["beta"], found["log_time"] / found["beta"], **mark(model, colour))
        axes.axhline(1 - math.cos(angle), color=colour, lw=0.7, ls=":")
        axes.plot([], [], color=colour, label=f"{angle:g}")
    axes.set(xscale="log", ylim=(0, 3.2), xlabel=r"inverse temperature $\beta$", ylabel=r"$(\log T)/\beta$")
    axes.legend(title="angle", title_fontsize=7, loc="upper right", ncols=2, handlelength=1.2, columnspacing=0.8)


def draw_places(axes: Any, pairs: xr.Dataset) -> None:
    """How far the SA meeting point is from its limit."""
    angle = min(np.unique(pairs["angle"]), key=lambda a: abs(a - 1))
    betas = np.geomspace(pairs["beta"].min(), pairs["beta"].max(), 60)
    for mass, colour in zip([m for m in np.unique(pairs["mass"]) if m != 0.5], COLOURS, strict=False):
        limit = float(theory.meeting_point_limit(angle, (mass, 1 - mass)))
        share = (theory.meeting_point(angle, betas, (mass, 1 - mass)) - limit) / angle
        axes.plot(betas, share, color=colour, lw=0.9, label=f"$m_1 = {mass:g}$")
        found = some(pairs, model="SA", angle=angle, mass=mass)
        axes.plot(found["beta"], (found["way"] - limit) / angle, **mark("SA", colour))
    guide = 0.7 * share[-1] * np.sqrt(betas[-1] / betas)
    axes.plot(betas[betas >= 30], guide[betas >= 30], ":", color=GREY, label=r"$\propto \beta^{-1/2}$")
    axes.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$")
    axes.set_ylabel(rf"share $-$ limit   ($\theta_0 = {angle:g}$)")
    axes.legend(loc="lower left")


def draw_errors(axes: Any, pairs: xr.Dataset) -> None:
    """What log T misses, and what it may miss."""
    shown = pairs.isel(pair=pairs["model"].values != "USA")
    at = shown["predicted_log_time"]
    axes.plot(at, shown["log_time_tolerance"], "_", ms=5, mew=0.7, color=COLOURS[4], label="tolerance")
    for model in LINES:
        found = some(shown, model=model)
        error = np.maximum(np.abs(found["log_time"] - found["predicted_log_time"]), 1e-15)
        axes.plot(found["predicted_log_time"], error, **mark(model, COLOURS[0], 2.5), label=model)
    axes.set(xscale="log", yscale="log", ylim=(1e-14, 1e-4), xlabel=r"$\log T$", ylabel=r"error of $\log T$")
    axes.legend(loc="upper right", ncols=3, columnspacing=0.8, handletextpad=0.1)


def draw_delays(axes: Any, three: xr.Dataset, tide: Callable[[float, float, str], float]) -> None:
    """The delay of the first merge against the gap."""
    betas = np.unique(three["beta"])
    gaps = np.linspace(float(three["gap"].min()), float(three["gap"].max()), 40)
    for model, line in LINES.items():
        axes.plot(gaps, [tide(betas[0], gap, model) for gap in gaps], line, color=INK, lw=0.8)
        for k, (beta, colour) in enumerate(zip(betas, COLOURS, strict=False)):
            found = some(three, model=model, beta=beta)
            size = 7 - 1.6 * min(k, 3)  # they fall on one curve: the first is the largest, the last on top
            axes.plot(found["gap"], np.maximum(found["delay"], 1e-10), **mark(model, colour, size))
    for beta, colour in zip(betas, COLOURS, strict=False):
        axes.plot([], [], "o", ms=3.5, color=colour, label=rf"$\beta = {beta:g}$")
    axes.set(yscale="log", ylim=(3e-10, 1), xlabel=r"$\beta\,(u_3 - u_1)$", ylabel=r"added to $\log T$")
    axes.legend(loc="lower left", handletextpad=0.1)


def draw_growth(axes: Any, symmetric: xr.Dataset, asymmetry: Callable[[float, str], float]) -> None:
    """The growth of an asymmetry against beta, and where rounding decides."""
    certain = symmetric.isel(symmetric=~symmetric["undetermined"].values)
    last = 1.5 * float(certain["beta"].max())
    betas = np.linspace(1, last, 60)
    for model, line, colour in zip(LINES, LINES.values(), COLOURS, strict=False):
        axes.plot(betas, [asymmetry(b, model) for b in betas], line, color=colour, lw=0.9)
        found = some(certain, model=model)
        axes.plot(found["beta"], found["growth"], **mark(model, colour), label=model)
        lost = some(symmetric, model=model, undetermined=True)
        lost = lost.isel(symmetric=lost["beta"].values <= last)
        axes.plot(lost["beta"], lost["growth"], "x", ms=4, color=colour)
    axes.axhline(LIMIT, color=GREY, lw=0.8, ls=":")
    axes.annotate("rounding decides", (1, LIMIT), xytext=(0, 2), textcoords="offset points", fontsize=7, color=GREY)
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel="log growth of asymmetry")
    axes.legend(loc="lower right")


def draw_work(axes: Any, pairs: xr.Dataset) -> None:
    """Evaluations against log T."""
    shown = pairs.isel(pair=pairs["model"].values != "USA")
    for model, colour in zip(LINES, COLOURS, strict=False):
        found = some(shown, model=model)
        axes.plot(found["log_time"], found["evaluations"], **mark(model, colour, 2.5), label=model)
    axes.set(xscale="log", xlabel=r"$\log T$", ylabel="force evaluations", ylim=(0, None))
    axes.legend(loc="lower right")


def mark(model: str, colour: str, size: float = 3.5) -> dict[str, Any]:
    """Full for SA, open for USA0."""
    face = colour if model == "SA" else "white"
    return {"ls": "", "marker": "o", "ms": size, "mec": colour, "mfc": face, "mew": 0.8, "zorder": 3}


def some(table: xr.Dataset, **labels: Any) -> xr.Dataset:
    """The rows with these labels."""
    (kind,) = table.sizes
    return table.isel({kind: np.all([table[name].values == value for name, value in labels.items()], axis=0)})
