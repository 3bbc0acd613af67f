"""Amplitudes against time, the early share against depth, the take-over against the share, and errors of tokens."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.topic_switch.compare import depths, errors, rate, signals
from attnflow_gallery.topic_switch.simulate import Parameters

LINES = ("-", "--", "-.", ":")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """An early topic takes over the last token.

    (a) Amplitudes of both topics at the last 4 % of places, in units of their initial one: tokens (marks, mean and
    largest and smallest of the quiet starts), density of the same eps (solid), closed form for small eps (dashed);
    vertical: the take-over by the closed form. (b) The part of the signal at the place 1 that is the early topic's,
    densities of small eps (marks) over P(N_c > N_y) (lines). (c) Depth of the take-over against y, which is
    log(1/share) without a slope: densities (marks), theory (line), y + 1/2 (dashed). (d) Root mean square error of
    tokens against the density, over the whole signal; grey: slopes -1/2 and -0.7. Tokens are drawn, not claimed.
    """
    first = rf"amplitudes: share {parameters.shares[0]:g}, $\varepsilon = {parameters.leanings[0]:g}$"
    titles = first, "part of the early topic", "depth of the take-over", "tokens against density"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_amplitudes(page[0], parameters, data)
        _draw_shares(page[1], parameters, data)
        _draw_depths(page[2], parameters, data)
        _draw_errors(page[3], parameters, data)
    return page.figure


def _look(parameters: Parameters, case: int) -> tuple[str, str, str, str]:
    """Colour, line, mark and words of a case."""
    share, slope = parameters.shares[case], parameters.slopes[case]
    words = f"share {share:g}" + (f", slope {slope:g}" if slope else "")
    return COLOURS[(0, 4, 2, 3, 1)[case % 5]], LINES[case % 4], MARKS[case % 5], words


def _draw_amplitudes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    density, tokens = data["density-0"].isel(eps=0), data["tokens-0"]
    fine = np.linspace(0.0, parameters.untils[0], 200)
    closed = signals(parameters, 0, fine)
    for k, (name, colour, mark) in enumerate((("early", COLOURS[0], "o"), ("late", COLOURS[4], "s"))):
        axes.plot(fine, closed[k], "--", color=colour, lw=0.9)
        axes.plot(density["time"], density[name], color=colour, lw=1.1)
        rows = tokens[name].values[-1]
        mean = rows.mean(axis=0)
        ends = np.abs(np.stack([rows.min(axis=0), rows.max(axis=0)]) - mean)
        axes.errorbar(tokens["time"], mean, ends, fmt=mark, ms=4, lw=0.9, color=colour, label=f"{name} topic")
    takeover = float(theory.causal.takeover_time(parameters.shares[0], slope=parameters.slopes[0])) / rate(parameters)
    axes.axvline(takeover, color=GREY, lw=0.8, ls=":")
    axes.plot([], [], color=INK, lw=1.1, label="density")
    axes.plot([], [], "--", color=GREY, lw=0.9, label="closed form")
    axes.set(xlabel="time $t$", ylabel=r"amplitude over $\varepsilon$", ylim=(0, 1.08 * np.max(closed)))
    axes.legend(loc="upper left", title=f"{parameters.tokens[-1]:,} tokens".replace(",", "\u202f"), title_fontsize=7)


def _draw_shares(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for case, (share, slope) in enumerate(zip(parameters.shares, parameters.slopes, strict=True)):
        part = data[f"density-{case}"].isel(eps=-1)
        depth = rate(parameters) * part["time"].values
        fine = np.linspace(0.0, depth[-1], 200)
        colour, line, mark, words = _look(parameters, case)
        axes.plot(fine, theory.causal.early_share(fine, share, slope=slope), line, color=colour, lw=1.0)
        found = (part["early_end"] / (part["early_end"] + part["late_end"])).values
        axes.plot(depth[::2], found[::2], mark, ms=3.5, mec=colour, mfc="white", mew=0.9)
        axes.plot([], [], line + mark, ms=3.5, mfc="white", color=colour, lw=1.0, label=words)
    axes.axhline(0.5, color=GREY, lw=0.8, ls=":")
    axes.set(xlabel="depth $c = a_1 t$", ylabel="part of the early topic", ylim=(0, 1))
    axes.legend(loc="upper left", labelspacing=0.25)


def _draw_depths(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    found, _ = depths(parameters, data)
    y = theory.causal.log_place_ratio(1.0, np.array(parameters.shares), np.array(parameters.slopes))
    fine = np.linspace(0.0, 1.15 * np.max(y), 120)[1:]
    axes.plot(fine, theory.causal.takeover_time(np.exp(-fine)), color=INK, lw=1.0, label=r"$P(N_c > N_y) = 1/2$")
    axes.plot(fine, fine + 0.5, "--", color=COLOURS[4], lw=0.9, label=r"$y + 1/2$")
    flat = np.array(parameters.slopes) == 0
    for some, mark, words in ((flat, "o", "density, no slope"), (~flat, "s", "density, slope")):
        axes.plot(y[some], found[some], mark, ms=5, mec=COLOURS[0], mfc="white", mew=1.0, label=words)
    axes.set(xlabel=r"$y = \log\,[(e^{\lambda} - 1)/(e^{\lambda s} - 1)]$,   $\log(1/s)$ without a slope")
    axes.set(ylabel="depth of the take-over $c^*$", xlim=(0, None), ylim=(0, None))
    axes.legend(loc="lower right")


def _draw_errors(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    sizes = np.array(parameters.tokens, float)
    size = errors(parameters, data)
    for case, row in enumerate(size):
        colour, line, mark, words = _look(parameters, case)
        axes.plot(sizes, row, line + mark, ms=4, color=colour, lw=0.9, label=words)
    top = 1.6 * np.max(size[:, 0])
    for power, style in ((-0.5, ":"), (-0.7, "--")):
        axes.plot(sizes, top * (sizes / sizes[0]) ** power, style, color=GREY, lw=1.0, label=f"$N^{{{power:g}}}$")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set(xlabel="number of tokens $N$", ylabel="rms error over the signal", ylim=(np.min(size) / 4, None))
    axes.legend(loc="lower left", ncol=2, labelspacing=0.25)
