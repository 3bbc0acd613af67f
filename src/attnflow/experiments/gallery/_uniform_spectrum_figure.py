"""The panels of `uniform_spectrum`."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK


def draw_linear(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Rates of the linearised field against the degree."""
    kind = "circle" if any(row["kind"] == "circle" for row in rows) else "sphere"
    for beta, colour in zip(sorted({r["beta"] for r in rows if r["kind"] == kind}), COLOURS, strict=False):
        some = [r for r in rows if (r["kind"], r["model"], r["beta"]) == (kind, "SA", beta) and r["predicted"] > 1e-3]
        k = np.array([r["k"] for r in some])
        axes.plot(k, [r["predicted"] for r in some], color=colour, lw=1.0)
        shown = np.unique(np.round(np.geomspace(1, len(k), 16)).astype(int)) - 1
        label = rf"$\beta = {beta:g}$"
        axes.plot(k[shown], [some[j]["measured"] for j in shown], "o", ms=3.2, color=colour, label=label)
    axes.axhline(2 / np.e, color=INK, lw=0.8, ls=":")
    axes.set_xscale("log")
    axes.set_ylim(0, 0.95)
    axes.set_xlabel("degree $k$")
    axes.set_ylabel(r"rate $\lambda_k$" + (" on the circle" if kind == "circle" else " on $S^2$"))
    axes.legend(loc="upper left", ncols=3, columnspacing=0.8, handletextpad=0.1)


def draw_growth(axes: Any, parameters: Any, beta: float, data: dict[str, xr.Dataset]) -> None:
    """Amplitudes of modes on the circle against time."""
    flow = data["saturation"] if "saturation" in data else data["growth"].isel(flow=0)
    times, root = flow["time"].values, np.sqrt(2.0)
    for k, colour in zip(parameters.degrees, COLOURS, strict=False):
        amplitude = flow["amplitude"].sel(degree=k).values / root
        rate = float(theory.growth_rates(beta, 2, k))
        line = amplitude[0] * np.exp(rate * times)
        shown = line < 1
        axes.plot(times[shown], line[shown], color=colour, lw=0.9)
        axes.plot(times, np.abs(amplitude), "o", ms=2.2, color=colour, label=f"$k = {k}$")
    axes.axvline(parameters.until, color=GREY, lw=0.8, ls=":")
    axes.set_yscale("log")
    axes.set_ylim(parameters.size / 3, 3)
    axes.set_xlabel(rf"time $t$   (SA, $\beta = {beta:g}$)")
    axes.set_ylabel(r"$|\langle\cos k\theta\rangle|$")
    axes.legend(loc="upper left", ncols=2, columnspacing=0.8, handletextpad=0.1)


def draw_dimensions(axes: Any, parameters: Any, beta: float, rows: list[dict[str, Any]]) -> None:
    """Rates of growing modes against the degree, by dimension."""
    for d, colour in zip(parameters.dims, COLOURS, strict=False):
        k = np.arange(1, max(parameters.degrees) + 1)
        axes.plot(k, theory.growth_rates(beta, d, k), color=colour, lw=1.0)
        for model, size, face in (("USA0", 6.5, "none"), ("SA", 3.2, colour)):
            some = [r for r in rows if (r["kind"], r["d"], r["model"], r["beta"]) == ("growth", d, model, beta)]
            label = f"$S^{{{d - 1}}}$" if model == "SA" else None
            axes.plot(
                [r["k"] for r in some],
                [r["measured"] for r in some],
                "o",
                ms=size,
                mec=colour,
                mfc=face,
                mew=0.8,
                label=label,
            )
    axes.plot([], [], "o", ms=6.5, mec=INK, mfc="none", mew=0.8, label="USA0")
    axes.set_ylim(0, 1.1)
    axes.set_xlabel("degree $k$")
    axes.set_ylabel(rf"rate $\lambda_k$ / mean weight   ($\beta = {beta:g}$)")
    axes.legend(loc="upper right", ncols=3, columnspacing=0.8, handletextpad=0.1)


def draw_errors(axes: Any, rows: list[dict[str, Any]]) -> None:
    """What is missed, and what may be missed."""
    kinds = (
        ("circle", "linearised, circle", "s"),
        ("sphere", "linearised, $S^2$", "^"),
        ("growth", "growing modes", "o"),
    )
    for (kind, words, marker), colour in zip(kinds, (COLOURS[0], COLOURS[2], COLOURS[4]), strict=True):
        some = [row for row in rows if row["kind"] == kind and row["predicted"] > 1e-6]
        if not some:
            continue
        rates = [row["predicted"] for row in some]
        axes.plot(rates, [row["tolerance"] for row in some], "_", ms=4, mew=0.6, color=colour)
        missed = [max(abs(row["measured"] - row["predicted"]), 1e-18) for row in some]
        axes.plot(rates, missed, marker, ms=2.6, mfc="none", mec=colour, mew=0.5, label=words)
    axes.plot([], [], "_", ms=5, mew=0.8, color=INK, label="tolerance")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(3e-19, 1e-1)
    axes.set_xlabel(r"rate $\lambda_k$ / mean weight")
    axes.set_ylabel("|measured $-$ predicted|")
    axes.legend(loc="upper left", ncols=2, columnspacing=0.8, handletextpad=0.1)
