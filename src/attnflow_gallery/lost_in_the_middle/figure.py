"""Profiles for several slopes, softmax and S^2, both sides of the threshold, and the end of the formula."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import averaged, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.lost_in_the_middle.compare import closure, closure_sums, profile, rate
from attnflow_gallery.lost_in_the_middle.simulate import EDGES, Parameters, groups, soft_weights

TONES = (COLOURS[0], COLOURS[4], COLOURS[2])
LOOKS = tuple(zip(TONES, "os^", ("-", "--", "-."), strict=True))
"""Colour, mark and line of curves."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """What the last of N tokens keeps of a source at the place j/N.

    (a) Circle, a t = 0.57, three slopes λ: simulation (marks; bars: three standard errors; horizontal: the bin) over
    N exp(a t W) (lines); crosses: the predicted minimum for many tokens. (b) λ = 1: softmax, over W with (solid) and
    without (dotted) a token's own weight, and S². (c) λ = 1 before and after the threshold of recency, over the mean
    of the profile. (d) Sum over all sources: simulation (marks), the formula (solid), the bound √(N - 1) (dashed) and
    the limit 1 (dotted): the last token becomes a copy of the first.
    """
    n, wide = parameters.sizes
    top = f"three slopes, $N = {wide}$", f"softmax and $S^2$, $N = {n}$"
    bottom = rf"threshold, $\lambda = 1$, $N = {n}$", f"where the formula ends, $N = {n}$"
    with panels(2, 2, 5.2, *top, *bottom) as page:
        _draw_profiles(page[0], parameters, data)
        _draw_others(page[1], parameters, data)
        _draw_threshold(page[2], parameters, data)
        _draw_end(page[3], parameters, data)
    return page.figure


def _curve(c: float, n: int, slope: float, dilution: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(1, n) / n, n * theory.causal.last_row_correlations(c, n, slope, dilution=dilution)[:-1]


def _marks(axes: Any, rows: np.ndarray, n: int, scale: float, **style: Any) -> None:
    """Means of the bins, three standard errors, and the extent of the bins."""
    mean, error = averaged(rows)
    middle = np.array([np.mean(some + 1) / n for some in groups(n)])
    sides = np.abs(np.array([EDGES[:-1], EDGES[1:]]) - middle)
    axes.errorbar(middle, mean / scale, 3 * error / scale, sides, ls="", ms=3.5, lw=0.8, elinewidth=0.8, **style)


def _draw_profiles(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    n, depth = parameters.sizes[1], rate(parameters) * parameters.time
    for slope, (tone, mark, line) in zip(parameters.slopes, LOOKS, strict=False):
        axes.plot(*_curve(depth, n, slope), line, color=tone, lw=1.0)
        found = profile(parameters, data, n, slope)
        _marks(axes, found, n, 1.0, fmt=mark, color=tone, label=rf"$\lambda = {slope:g}$")
        middle = theory.causal.find_middle(depth, slope)
        if middle.exists:
            axes.plot(middle.place, middle.value, "x", ms=6, mew=1.3, color=INK, zorder=5)
    _finish(axes)
    axes.set_ylim(0.35, 1.75)
    axes.legend(loc="upper center", ncol=3, columnspacing=1.0)


def _draw_others(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    n = parameters.sizes[0]
    depth = rate(parameters, "SA") * parameters.time
    axes.plot(*_curve(depth, n, 1.0, float(theory.causal.softmax_dilution(parameters.beta, 2))), color=TONES[0], lw=1.0)
    axes.plot(*_curve(depth, n, 1.0), ":", color=TONES[0], lw=1.0)
    _marks(axes, data["softmax"]["first"].values, n, 1.0, fmt="o", color=TONES[0], label="softmax, circle")
    axes.plot(*_curve(rate(parameters, "USA", 3) * parameters.time, n, 1.0), "--", color=TONES[1], lw=1.0)
    _marks(axes, data["sphere"]["first"].values, n, 1.0, fmt="s", color=TONES[1], label="unnormalised, $S^2$")
    _finish(axes)
    axes.set_ylim(0.2, 2.0)
    axes.legend(loc="upper right")


def _draw_threshold(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    n = parameters.sizes[0]
    early = profile(parameters, data, n, 1.0)
    both = ((parameters.time, early), (parameters.late, data["late"]["first"].values))
    for (time, rows), (tone, mark, line) in zip(both, LOOKS, strict=False):
        depth = rate(parameters) * time
        place, value = _curve(depth, n, 1.0)
        axes.plot(place, value / np.mean(closure(depth, n, 1.0)[1:]), line, color=tone, lw=1.0)
        _marks(axes, rows, n, float(np.mean(rows[:, 1:])), fmt=mark, color=tone, label=f"$a t = {depth:.2f}$")
    _finish(axes)
    axes.set(ylabel="profile over its mean", ylim=(0.5, 2.6))
    threshold = float(theory.causal.recency_threshold(1.0))
    axes.legend(loc="upper right", title=f"threshold at $a t = {threshold:.2f}$", title_fontsize=7)


def _draw_end(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    times = np.array(parameters.ends)
    fine = np.geomspace(0.3, times[-1] * 1.2, 150)
    axes.plot(fine, closure_sums(parameters, fine), color=TONES[0], lw=1.0, label="formula")
    axes.axhline(np.sqrt(parameters.sizes[0] - 1), color=GREY, lw=0.9, ls="--", label=r"bound $\sqrt{N - 1}$")
    axes.axhline(1.0, color=GREY, lw=0.9, ls=":", label="limit 1")
    for name, mark, colour, words in (("first", "o", TONES[0], "degree 1"), ("soft", "s", TONES[1], "soft profile")):
        mean, error = averaged(data["end"][name])
        unit = 1.0 if name == "first" else float(np.sum(soft_weights(parameters.vocabulary)))
        label = words if name == "first" else f"{words}, over {unit:.2f}"
        axes.errorbar(times, mean / unit, 3 * error / unit, fmt=mark, ms=4, lw=0.9, color=colour, label=label)
    axes.set(xscale="log", xlim=(fine[0], fine[-1]), xlabel="time $t$")
    axes.set(yscale="log", ylim=(0.01, 100), ylabel="sum over all sources")  # room for the legend
    axes.legend(loc="lower right", labelspacing=0.25, ncol=2)


def _finish(axes: Any) -> None:
    axes.set(xlim=(0, 1), xlabel="place $j/N$ of the source", ylabel=r"$N\,\mathbb{E}\,\langle x_N(t), x_j(0)\rangle$")
