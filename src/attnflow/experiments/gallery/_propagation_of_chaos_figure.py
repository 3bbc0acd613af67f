"""The panels of `propagation_of_chaos`."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive

from attnflow.plots.style import COLOURS, GREY, INK


def draw_rates(axes: Any, found: Any, part: xr.Dataset, rest: xr.Dataset) -> None:
    """W_1 against n by time."""
    n, constant = found.sizes, part["constant"].values[::2]
    ends = np.array([n[0] / 1.4, n[-1] * 1.4])
    for k, (t, colour) in enumerate(zip(found.times, COLOURS, strict=False)):
        axes.plot(ends, constant[k] / np.sqrt(ends), color=colour, lw=0.9)
        error = found.spread[k] * found.mean[:, k] / np.sqrt(found.seeds)
        axes.errorbar(n, found.mean[:, k], error, fmt="none", lw=0.8, color=colour)
        for some, face in ((found.small[:, k], colour), (~found.small[:, k], "white")):
            label = f"$t = {t:g}$" if face == colour else None
            axes.plot(n[some], found.mean[some, k], "o", ms=3.0, mec=colour, mfc=face, mew=0.8, label=label)
    sizes = rest["n"].values
    axes.plot(ends, np.pi / 2 / ends, color=INK, lw=0.9, ls="--")
    axes.plot(sizes, rest["measured"].values[:, 0, -1], "s", ms=3.6, mfc="white", mec=INK, mew=0.8)
    axes.annotate(
        r"quiet, $\pi/(2n)$", (sizes[-1], np.pi / 2 / sizes[-1]), (6, 6), textcoords="offset points", fontsize=7
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("tokens $n$")
    axes.set_ylabel("mean $W_1$ to the density")
    axes.legend(loc="lower left", ncols=1, handletextpad=0.1, labelspacing=0.25)


def draw_constants(axes: Any, found: dict[str, Any], data: dict[str, xr.Dataset], beta: float) -> None:
    """sqrt(n) W_1 against time."""
    for (model, one), colour in zip(found.items(), (COLOURS[0], COLOURS[4]), strict=False):
        part, unit = data[f"linear-{model}"], 1.0 if model == "SA" else float(ive(0, beta))
        axes.plot(unit * part["fine"], part["constant"], color=colour, lw=1.0)
        axes.errorbar(unit * one.times, one.constant, 3 * one.error, fmt="o", ms=3.2, lw=0.9, color=colour, label=model)
    axes.axhline(float(data["linear-SA"]["constant"][0]), color=GREY, lw=0.9, ls="--")
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel("time $t$" + (r" (USA0: times the mean weight $e^{-\beta} I_0(\beta)$)" if len(found) > 1 else ""))
    axes.set_ylabel(r"$\sqrt{n}\, W_1$")
    axes.legend(loc="upper left", handletextpad=0.1)


def draw_departures(axes: Any, found: Any) -> None:
    """What the linearised flow misses, seed by seed."""
    for k, (t, colour) in enumerate(zip(found.times[1:], COLOURS[1:], strict=False), start=1):
        axes.plot(found.sizes, found.departure[:, k], "o-", ms=3.0, lw=0.8, color=colour, label=f"$t = {t:g}$")
    ends = np.array([found.sizes[0], found.sizes[-1]], dtype=float)
    axes.plot(ends, found.departure[0, -1] * 1.6 * np.sqrt(ends[0] / ends), color=GREY, lw=0.9, ls="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("tokens $n$")
    axes.set_ylabel(r"rms of $W_1 / W_1^\mathrm{linear} - 1$")
    axes.legend(loc="lower left", handletextpad=0.3, labelspacing=0.25)


def draw_sphere(axes: Any, parameters: Any, data: dict[str, xr.Dataset]) -> None:
    """Observables on S^2."""
    if not parameters.sphere_sizes:
        axes.text(
            0.5, 0.5, "$S^2$: in the full version", ha="center", va="center", transform=axes.transAxes, color=GREY
        )
        axes.set_axis_off()
        return
    n, part = np.array(parameters.sphere_sizes), data["sphere-linear"]
    rows = [data[f"sphere-{k}"]["measured"].values for k in n]
    power = np.array([np.mean(r**2, axis=0) for r in rows])
    error = np.array([np.std(r**2, axis=0, ddof=1) / np.sqrt(len(r)) for r in rows]) / (2 * np.sqrt(power))
    ends = np.array([n[0] / 1.4, n[-1] * 1.4])
    for k, (t, colour) in enumerate(zip(part["time"].values, COLOURS, strict=False)):
        axes.plot(ends, float(part["constant"][k]) / np.sqrt(ends), color=colour, lw=0.9)
        axes.errorbar(n, np.sqrt(power[:, k]), error[:, k], fmt="o", ms=2.8, lw=0.8, color=colour, label=f"$t = {t:g}$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(rf"tokens $n$ on $S^2$ ($\beta = {parameters.sphere_beta:g}$)")
    axes.set_ylabel(f"rms distance, degrees 1–{parameters.observables}")
    axes.legend(loc="lower left", handletextpad=0.1, labelspacing=0.25)
