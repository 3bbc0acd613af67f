"""Survival functions of log T, and the error of the cascade seed by seed."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.exit_times import compare
from attnflow_gallery.exit_times.compare import CLEAR, EXITS
from attnflow_gallery.exit_times.simulate import Parameters

MARKS = ("o", "s", "^", "D", "v")
LINES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
SHARES = (np.arange(20) + 0.5) / 20


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Distributions over seeds: marks are quantiles of simulations (2.5 %, 7.5 %, ..., 97.5 %), lines are theory.

    (a) Two tokens: probability that they have not merged, and its closed form. (b) Eight tokens on S^2, first merge.
    (c) Their exit from the last plateau, two clusters: lines are cascades of pairs from other starts, grey is the limit
    beta -> infinity. (d) Exit from two clusters, every seed whose cascade is clear: distance of log T from the cascade
    of the same start, against its tolerance; all points lie below the grey line, where the tolerance is
    used up; distances below 1e-9 are drawn at 1e-9.
    """
    several = compare.several_of(data)
    with panels(2, 2, 5.0, "two tokens", *EXITS, "error of the cascade") as page:
        _draw_pairs(page[0], parameters, compare.pairs_of(data))
        for axes, merge in zip(page[1:3], EXITS.values(), strict=True):
            _draw_exits(axes, parameters, several, merge)
        _draw_errors(page[3], parameters, several)
    return page.figure


def _label(part: xr.Dataset) -> str:
    return rf"{part.attrs['model']}, $\beta = {_number(part.attrs['beta'])}$"


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e4 else rf"10^{{{np.log10(value):g}}}"


def _mark(k: int) -> dict[str, Any]:
    face = "white" if k % 2 else COLOURS[k]
    return {"marker": MARKS[k], "mec": COLOURS[k], "mfc": face, "ms": 3.5, "mew": 0.9, "ls": "none"}


def _survival(axes: Any, sample: np.ndarray, k: int, label: str) -> None:
    axes.plot(np.quantile(sample, SHARES), 1 - SHARES, zorder=3, **_mark(k))
    axes.plot([], [], **_mark(k) | {"ls": LINES[k]}, lw=0.9, color=COLOURS[k], label=label)


def _draw_pairs(axes: Any, parameters: Parameters, parts: list[xr.Dataset]) -> None:
    for k, part in enumerate(parts):
        beta, dim, model = part.attrs["beta"], int(part.attrs["dim"]), part.attrs["model"]
        sample = part["log_time"].values[:, 0]
        at = np.linspace(0.0, np.quantile(sample, 0.999), 300)
        shares = theory.merging.pair_time_probability(at, beta, dim, model=model, until=compare.until(parameters, part))
        axes.plot(at, 1 - shares, ls=LINES[k], color=COLOURS[k], lw=0.9)
        _survival(axes, sample, k, rf"$S^{{{dim - 1}}}$, {_label(part)}")
    axes.set(xlabel=r"$\log t$", ylabel=r"$P(T > t)$", ylim=(0, 1.02), xlim=(0, None))
    axes.legend(loc="lower left")


def _draw_exits(axes: Any, parameters: Parameters, parts: list[xr.Dataset], merge: int) -> None:
    starts = compare.other_starts(parameters)
    for k, part in enumerate(parts):
        beta = part.attrs["beta"]
        theirs = np.sort(compare.cascades(parameters, part, starts)[0][:, merge]) / beta
        axes.plot(theirs, 1 - (np.arange(len(theirs)) + 0.5) / len(theirs), ls=LINES[k], color=COLOURS[k], lw=0.9)
        _survival(axes, part["log_time"].values[:, merge] / beta, k, _label(part))
    limit = np.sort(compare.limits(parameters, "USA0")[:, merge])
    axes.plot(limit, 1 - (np.arange(len(limit)) + 0.5) / len(limit), color=GREY, lw=2.5, alpha=0.6, zorder=0)
    axes.plot([], [], color=GREY, lw=2.5, alpha=0.6, label=r"limit $\beta \to \infty$")
    last = float(np.quantile(limit, 0.995))
    axes.set(xlabel=r"$(\log t)/\beta$", ylabel=r"$P(T > t)$", ylim=(0, 1.02), xlim=(0, 1.05 * last))
    axes.legend(loc="upper right" if merge == 0 else "lower left")


def _draw_errors(axes: Any, parameters: Parameters, parts: list[xr.Dataset]) -> None:
    for k, part in enumerate(parts):
        log_time, missed, tolerance = compare.own_cascades(parameters, part)
        clear = missed[:, -1] <= CLEAR
        off = np.abs(part["log_time"].values - log_time)[clear, -1]
        style = _mark(k) | {"ms": 2.5, "mew": 0.5, "label": f"{_label(part)}: {clear.sum()} seeds"}
        axes.plot(tolerance[clear, -1], np.maximum(off, 1e-9), **style)
    axes.plot([1e-5, 1], [1e-5, 1], color=GREY, lw=0.9)
    axes.annotate("tolerance used up", (1.2e-4, 2.5e-3), color=INK, fontsize=7)
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 0.3), ylim=(1e-9, 10))
    axes.set(xlabel=r"tolerance of $\log T$", ylabel=r"|$\log T$ $-$ cascade|")
    axes.legend(loc="upper left", handletextpad=0.1, fontsize=6)
