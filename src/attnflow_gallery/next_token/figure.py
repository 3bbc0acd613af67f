"""The staircase of alternatives, plateaus against cluster masses, and entropies of prompts."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.next_token.compare import plateaus, predicted
from attnflow_gallery.next_token.simulate import PROMPT, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Alternatives and entropies on the way to consensus.

    (a) exp(I) against log t of one flow on S^2, for both read-outs; rings: exp H(M) of the clusters on plateaus. (b)
    1 - exp(I)/exp H(M) on all plateaus of all starts; lines: the bound by overlaps of distributions, at the plateaus;
    dotted: three digits. (c) Orthonormal words: H, exp(I) (marks) and closed forms (lines). (d) Random words: H (blue)
    and exp(I) (orange) of all prompts (thin), medians (thick).
    """
    titles = "staircase of alternatives", r"plateaus: $1 - e^I/e^{H(M)}$", "orthonormal words", "random words"
    with panels(2, 2, 5.0, *titles) as page:
        _draw_stairs(page[0], parameters, data["stairs-0"])
        _draw_plateaus(page[1], parameters, data)
        _draw_orthonormal(page[2], parameters, data["orthonormal"])
        _draw_random(page[3], data["random"])
    return page.figure


def _draw_stairs(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    times = part["log_time"].values
    for read, beta in enumerate(parameters.read):
        value = np.exp(part["entropy"][read] - part["conditional_entropy"][read])
        words, look = rf"$e^I$, $\beta_o = {beta:g}$", ("-", "--")[read % 2]
        axes.plot(times, value, look, color=COLOURS[(0, 4)[read % 2]], drawstyle="steps-post", lw=1.1, label=words)
    rows = plateaus(parameters, part, 0)
    at = times[part["frame"].values]
    axes.plot(at, np.exp([row[1] for row in rows]), "o", ms=5, mfc="none", mec=INK, mew=0.9, label=r"$e^{H(M)}$")
    axes.set(xlabel=r"$\log t$", ylabel="alternatives", yscale="log", xlim=(max(times[1] - 1, -4), None))
    axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.minorticks_off()
    axes.legend(loc="upper right")


def _draw_plateaus(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for read, beta in enumerate(parameters.read):
        rows = [row for k in range(parameters.starts) for row in plateaus(parameters, data[f"stairs-{k}"], read)]
        count, masses, found, room, _ = np.array(rows).T
        colour, mark = COLOURS[(0, 4)[read % 2]], MARKS[read]
        axes.plot(count, np.maximum(-np.expm1(found - masses), 1e-16), mark, ms=4, color=colour)
        axes.plot(count, np.maximum(-np.expm1(-room), 1e-16), "_", ms=7, mew=1.0, color=colour)
        axes.plot([], [], mark, ms=4, color=colour, label=rf"$\beta_o = {beta:g}$")
    axes.plot([], [], "_", ms=7, mew=1.0, color=INK, label="bound")
    axes.axhline(5e-4, color=GREY, ls=":", lw=0.9)
    axes.set(yscale="log", ylim=(3e-17, 3), xlabel="number of clusters", ylabel="relative difference")
    axes.legend(loc="center", bbox_to_anchor=(0.6, 0.5))


def _draw_orthonormal(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    fine = np.linspace(0.0, parameters.until, 300)
    every = max(1, part.sizes["time"] // 16)
    names = (("entropy", "$H$", COLOURS[0], "o", "-"), ("alternatives", "$e^I$", COLOURS[4], "s", "--"))
    for (name, words, colour, mark, line), curve in zip(names, predicted(parameters, fine), strict=True):
        axes.plot(fine, curve, line, color=colour, lw=1.0)
        axes.plot(part["time"][::every], part[name][::every], mark, ms=3.5, mfc="white", mec=colour, mew=0.9)
        axes.plot([], [], line + mark, ms=3.5, mfc="white", color=colour, lw=1.0, label=words)
    axes.set(xlabel="time $t$", ylabel="nats, or alternatives", ylim=(0, 1.08 * len(PROMPT.split())))
    axes.legend(loc="upper right")


def _draw_random(axes: Any, part: xr.Dataset) -> None:
    time = part["time"].values
    for name, words, colour, line in (("entropy", "$H$", COLOURS[0], "-"), ("alternatives", "$e^I$", COLOURS[4], "--")):
        axes.plot(time, part[name].values.T, line, color=colour, lw=0.4, alpha=0.35)
        axes.plot(time, np.median(part[name].values, axis=0), line, color=colour, lw=2.0, label=words)
    axes.set(xlabel="time $t$", ylabel="nats, or alternatives", ylim=(0, None))
    axes.legend(loc="center right")
