"""The figure of the experiment `value-spectrum`."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.claim import share_interval
from attnflow.experiments.gallery.value_spectrum import (
    KINDS,
    SHOWN,
    Case,
    Parameters,
    cases,
    chords,
    linear_flow,
    measured_rates,
    of_kind,
    two_ended,
)
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Four globes; chords, ends and random heads."""
    known = cases(parameters)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.4))
        top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.35))
        globes = top.subplots(1, 4)
        names = ("$V = I$", r"$V = \mathrm{diag}(1, \frac{1}{2}, \frac{1}{2})$", "$V = -I$", r"$V^\top = -V$")
        for axes, kind, name in zip(globes, SHOWN, names, strict=True):
            _draw_globe(axes, data["short"]["fine"].values[:, of_kind(known, kind)[0]])
            axes.set_title(name)
        globes[0].set_title("(a)", loc="left", fontweight="bold")
        panels = bottom.subplots(1, 3)
        _draw_chords(panels[0], known, data["short"])
        _draw_ends(panels[1], parameters, known, data)
        _draw_heads(panels[2], parameters, data["heads"])
        for letter, one in zip("bcd", panels, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_globe(axes: Any, x: np.ndarray) -> None:
    """Seen along the second axis, a little from above."""
    tilt = 0.35
    across, depth = x[..., 0], np.cos(tilt) * x[..., 1] - np.sin(tilt) * x[..., 2]
    up = np.sin(tilt) * x[..., 1] + np.cos(tilt) * x[..., 2]
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.fill(np.cos(angle), np.sin(angle), facecolor="#f4f4f2", edgecolor=GREY, lw=0.6)
    for path in range(x.shape[1]):
        axes.plot(across[:, path], up[:, path], color=GREY, lw=0.5, alpha=0.7)
    front = depth[-1] < 0
    for side, colour in ((~front, COLOURS[5]), (front, COLOURS[0])):
        axes.plot(across[-1, side], up[-1, side], "o", ms=3, color=colour, mew=0)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_chords(axes: Any, known: list[Case], short: xr.Dataset) -> None:
    times = short["time"].values
    dense = np.linspace(0.0, times[-1], 80)
    for kind, colour in KINDS.items():
        for k in of_kind(known, kind)[:3]:
            x = short["fine"].values[:, k]
            flow = linear_flow(known[k].value.mean(axis=0), x[0].mean(axis=0), dense)
            axes.plot(dense, 1 / np.linalg.norm(flow, axis=1), color=COLOURS[colour], lw=1.0)
            axes.plot(times, chords(x)[:, 0] / chords(x)[0, 0], "o", ms=3, mfc="white", mec=COLOURS[colour], mew=0.8)
        axes.plot([], [], "-o", ms=3, mfc="white", color=COLOURS[colour], lw=1.0, label=kind)
    axes.set_yscale("log")
    axes.set_xlabel("time $t$")
    axes.set_ylabel("chord / initial")
    axes.legend(loc="lower left", handlelength=1.4)


def _draw_ends(axes: Any, parameters: Parameters, known: list[Case], data: dict[str, xr.Dataset]) -> None:
    betas, found = np.array(parameters.betas), two_ended(parameters, known, data["long"]).sum(axis=1)
    low, high = share_interval(found, parameters.seeds, 0.95, "wilson")
    share = found / parameters.seeds
    axes.errorbar(
        betas, share, [np.maximum(share - low, 0), np.maximum(high - share, 0)], fmt="o", ms=4, color=COLOURS[0],
        lw=0.9, label="share of two clusters",
    )  # fmt: skip
    dense = np.linspace(0.1, 1.1 * betas.max(), 100)
    axes.plot(dense, parameters.ratio - np.tanh(dense), color=COLOURS[4], lw=1.0)
    short = data["short"]
    chosen = of_kind(known, "pair")[parameters.pairs :]
    rates = [measured_rates(known[k], short["fine"].values[[0, -1], k], float(short["time"][-1]))[0] for k in chosen]
    axes.plot(betas, rates, "D", ms=3.5, mfc="white", mec=COLOURS[4], mew=0.9, label="rate of bending")
    axes.axvline(float(np.arctanh(parameters.ratio)), ymax=0.8, color=INK, lw=0.8, ls="--")
    axes.axhline(0.0, color=INK, lw=0.6, ls=":")
    axes.set_xscale("log")
    axes.set_xlabel(rf"inverse temperature $\beta$   ($r = {parameters.ratio:g}$)")
    axes.set_ylim(-0.4, 1.35)
    axes.legend(loc="upper left", handlelength=1.2)


def _draw_heads(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    rank, where = part["rank"].values, np.arange(len(parameters.heads))
    for k, beta in enumerate(parameters.head_betas):
        mean, error = rank[:, k].mean(axis=1), rank[:, k].std(axis=1, ddof=1) / np.sqrt(rank.shape[2])
        axes.errorbar(where + 0.08 * (k - 1), mean, 1.96 * error, fmt="o-", ms=4, lw=0.9, color=COLOURS[k],
                      label=rf"$\beta = {beta:g}$")  # fmt: skip
    axes.set_xticks(where, [str(count) for count in parameters.heads])
    axes.set_xlim(-0.4, len(where) - 0.6)
    axes.set_ylim(bottom=1.0)
    axes.set_xlabel("number of heads")
    axes.set_ylabel(f"effective rank at $t = {parameters.head_until:g}$   ($d = {parameters.head_dim}$)")
    axes.legend(loc="upper left")
