"""Four globes; chords, ends of random starts, rates of two clusters."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import share_interval
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.value_spectrum.compare import linear_flow, measured_rates, pair_rates, two_ended
from attnflow_gallery.value_spectrum.simulate import KINDS, SHOWN, Case, Parameters, cases, of_kind


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Attention on the sphere with matrices.

    (a) One random start, Q = K = I, beta = 4: paths (grey) and positions at t = 4 (full marks in front, open marks on
    the far side) for four V; the horizontal axis is the leading eigenvector of diag(1, 0.5, 0.5). (b) Chords of tight
    clusters over their initial length, random Q and K: simulation (marks) and 1/|e^(tV) x(0)| (lines). (c) For
    V = diag(1, r, r) the share of random starts that end in two clusters, with 95% intervals; two clusters are stable
    to the right of the dashed line, tanh beta = r. (d) Two antipodal clusters: rates at which they bend and turn in
    simulations against the formula, for random heads (full marks) and for diag(1, r, r) (open marks); grey: equality.
    """
    known, short = cases(parameters), data["short"]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.6))
        top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.35))
        globes, (left, middle, right) = top.subplots(1, 4), bottom.subplots(1, 3)
        names = ("$V = I$", r"$V = \mathrm{diag}(1, 0.5, 0.5)$", "$V = -I$", "antisymmetric $V$")
        for axes, kind, name in zip(globes, SHOWN, names, strict=True):
            _draw_globe(axes, short["positions"].values[of_kind(known, kind)[0]])
            axes.set_title(name)
        _draw_chords(left, known, short)
        _draw_ends(middle, parameters, data["long"])
        _draw_rates(right, parameters, known, short)
        titles = "", "tight clusters", "random starts", "two clusters"
        for letter, one, title in zip("abcd", (globes[0], left, middle, right), titles, strict=True):
            panel(one, letter, title)
        return fig


def _draw_globe(axes: Any, x: np.ndarray) -> None:
    """Seen along the second axis, a little from above."""
    tilt = 0.35
    across, depth = x[..., 0], np.cos(tilt) * x[..., 1] - np.sin(tilt) * x[..., 2]
    up = np.sin(tilt) * x[..., 1] + np.cos(tilt) * x[..., 2]
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.fill(np.cos(angle), np.sin(angle), facecolor="#f4f4f2", edgecolor=GREY, lw=0.6)
    for path in range(x.shape[1]):
        axes.plot(across[:, path], up[:, path], color=GREY, lw=0.5)
    front = depth[-1] < 0
    for side, face in ((~front, "white"), (front, COLOURS[0])):
        axes.plot(across[-1, side], up[-1, side], "o", ms=3.5, mfc=face, mec=COLOURS[0], mew=0.7)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_chords(axes: Any, known: list[Case], short: xr.Dataset) -> None:
    times = short["time"].values
    dense, some = np.linspace(0.0, times[-1], 80), slice(None, None, max(1, len(times) // 8))
    for kind, colour, mark in zip(KINDS, (COLOURS[k] for k in (0, 2, 4, 3)), "osD^", strict=True):
        style = {"ms": 3.5, "mfc": "white", "mec": colour, "mew": 0.8}
        for k in of_kind(known, kind)[:2]:
            start, chord = short["positions"].values[k, 0], short["chords"].values[k, :, 0, 0]
            flow = linear_flow(known[k].value.mean(axis=0), start.mean(axis=0), dense)
            axes.plot(dense, 1 / np.linalg.norm(flow, axis=1), color=colour, lw=1.0)
            axes.plot(times[some], chord[some] / chord[0], mark, **style)
        axes.plot([], [], mark, label={"-I": "$V = -I$"}.get(kind, kind), **style)
    axes.set(yscale="log", xlabel="time $t$", ylabel="chord / initial chord")
    axes.legend(loc="lower left", handlelength=1.0)


def _draw_ends(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    betas, found = np.array(parameters.betas), two_ended(parameters, part).sum(axis=1)
    low, high = share_interval(found, parameters.draws, 0.95, "wilson")
    share = found / parameters.draws
    bars = [np.maximum(share - low, 0), np.maximum(high - share, 0)]
    axes.errorbar(betas, share, bars, fmt="o", ms=4, color=COLOURS[0], lw=0.9, capsize=2)
    threshold = float(np.arctanh(parameters.ratio))
    axes.axvline(threshold, color=INK, lw=0.8, ls="--")
    axes.annotate(r"$\tanh\beta = r$", (threshold, 0.9), xytext=(-4, 0), textcoords="offset points", ha="right")
    axes.set_xscale("log")
    axes.set_xticks([0.3, 1, 3], ["0.3", "1", "3"])
    axes.minorticks_off()
    axes.set(ylim=(-0.04, 1.04), xlabel=rf"inverse temperature $\beta$   ($r = {parameters.ratio:g}$)")
    axes.set(ylabel="share that ends in two clusters")


def _draw_rates(axes: Any, parameters: Parameters, known: list[Case], short: xr.Dataset) -> None:
    chosen = of_kind(known, "pair")
    found = np.array([measured_rates(known[k], short.isel(case=k))[0] for k in chosen])
    expected = np.array([pair_rates(known[k]) for k in chosen])
    ends = [expected.min() - 0.1, expected.max() + 0.1]
    axes.plot(ends, ends, color=GREY, lw=0.8, zorder=0)
    for k, (word, mark, colour) in enumerate((("bending", "D", COLOURS[4]), ("turning", "o", COLOURS[0]))):
        for part, face in ((slice(parameters.pairs), colour), (slice(parameters.pairs, None), "white")):
            axes.plot(expected[part, k], found[part, k], mark, ms=4.5, mfc=face, mec=colour, mew=0.9)
        axes.plot([], [], mark, ms=4.5, color=colour, label=word)
    axes.set_aspect("equal", adjustable="box")
    axes.set(xlabel="predicted rate", ylabel="measured rate")
    axes.legend(loc="upper left", handlelength=1.0)
