"""Staircases, a merge tree, lifetimes, and three caps."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.metastability.compare import compare
from attnflow_gallery.metastability.simulate import Parameters

SHADES = (COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[3], COLOURS[4])
DASHES = ("--", "-.", "-", ":", "-")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens drawn uniformly, followed to consensus.

    (a) The level 2 beta E0, which is the sum of squared masses on plateaus, against (log t)/beta, with the numbers of
    clusters at the largest beta. (b) The merge tree of the flow at the largest beta; each of the last six clusters has
    a colour, which means nothing else. (c) Lifetimes of all plateaus against the time in which the pair that ends them
    would merge alone (equal on the grey line), and the theorem's lower bound T_2 where it makes a statement. (d) Three
    caps that contract, USA0: the quantity that slow motion is about, its bound from measured constants, and the slope
    delta of the slow manifold (dotted).
    """
    every = [compare(one) for name, one in data.items() if name != "caps"]
    shown = [one for one in every if one.attrs["model"] == "SA" and one.attrs["dim"] == max(parameters.dims)]
    words, beta = _space(shown[-1]), shown[-1].attrs["beta"]
    titles = f"energy, {words}", rf"merge tree, {words}, $\beta = {beta:g}$", "lifetimes of plateaus"
    with panels(2, 2, 5.2, *titles, rf"three caps, USA0, $\beta = {parameters.cap_beta:g}$") as page:
        draw_staircases(page[0], shown)
        draw_tree(page[1], shown[-1])
        draw_lifetimes(page[2], every)
        draw_caps(page[3], data["caps"])
    return page.figure


def draw_staircases(axes: Any, flows: list[xr.Dataset]) -> None:
    """Level against (log t)/beta; plateaus of the largest beta have their number of clusters."""
    for flow, colour, line in zip(flows, SHADES, DASHES, strict=False):
        beta = flow.attrs["beta"]
        s = np.maximum(flow["stair_log_time"].values / beta, -2.0)
        axes.plot(s, flow["stair_level"], color=colour, ls=line, lw=1.1, label=rf"$\beta = {beta:g}$")
    last = flows[-1]
    start, end = (np.maximum(last[name].values / last.attrs["beta"], 0.0) for name in ("log_start", "log_end"))
    at = {"xytext": (0, -2), "textcoords": "offset points", "ha": "center", "va": "top", "fontsize": 7}
    for k in np.flatnonzero(end - start > 0.04):
        place = (start[k] + end[k]) / 2, float(last["level"][k])
        axes.annotate(f"{int(last['clusters'][k])}", place, color=colour, **at)
    axes.set(xlim=(-0.3, 1.95), ylim=(0, 1.04), xlabel=r"$(\log t)/\beta$", ylabel=r"level $2\beta E_0$")
    axes.legend(loc="upper left", handlelength=1.6)


def draw_tree(axes: Any, flow: xr.Dataset) -> None:
    """Who met whom, and when; the branches of the last few clusters in colour."""
    from scipy.cluster.hierarchy import dendrogram

    beta, linkage = flow.attrs["beta"], flow["linkage"].values
    n, apart = len(linkage) + 1, 6
    tree = dendrogram(linkage, no_plot=True, color_threshold=linkage[-min(apart, n - 1), 2] * (1 + 1e-12))
    shades = dict(zip(dict.fromkeys(c for c in tree["color_list"] if c != "C0"), COLOURS, strict=False))
    for x, height, name in zip(tree["icoord"], tree["dcoord"], tree["color_list"], strict=True):
        t = _log_expm1(np.array(height))
        axes.plot((np.array(x) - 5) / 10, t / beta, color=shades.get(name, INK), lw=0.8, solid_joinstyle="miter")
    axes.set(xlim=(-1, n), xticks=[], ylim=(-0.1, 1.06 * linkage[-1, 2] / beta))
    axes.set(xlabel=f"{n} tokens", ylabel=r"$(\log t)/\beta$")


def _log_expm1(height: np.ndarray) -> np.ndarray:
    """log t from log(1 + t); the start is put at t = 0.01."""
    with np.errstate(divide="ignore"):
        return np.maximum(height + np.log(-np.expm1(-height)), np.log(1e-2))


def draw_lifetimes(axes: Any, flows: list[xr.Dataset]) -> None:
    """Lifetimes of all plateaus, and the theorem's T_2, against the formula of the pair that merges."""
    betas = sorted({flow.attrs["beta"] for flow in flows})
    for flow in flows:
        beta = flow.attrs["beta"]
        colour = SHADES[betas.index(beta)]
        shape = "s" if flow.attrs["model"] == "USA0" else "o" if flow.attrs["dim"] > 2 else "^"
        x = flow["alone"].values / beta
        axes.plot(x, flow["life"].values / beta, shape, mfc="none", mec=colour, ms=4, mew=0.9)
        axes.plot(x, flow["bound"].values / beta, "_", color=colour, ms=5, mew=1.2)
    axes.plot([0, 2.1], [0, 2.1], color=GREY, lw=0.7, zorder=0)
    for marker, words in (("^", "SA, circle"), ("o", "SA, sphere"), ("s", "USA0, sphere"), ("_", "bound $T_2$")):
        axes.plot([], [], marker, mfc="none", mec=INK, color=INK, ms=4, mew=0.9, label=words)
    for beta, colour in zip(betas, SHADES, strict=False):
        axes.plot([], [], color=colour, label=rf"$\beta = {beta:g}$")
    axes.set(xlim=(0, 2.1), ylim=(0, 2.1))
    axes.set(xlabel=r"$(\log T)/\beta$, the pair that merges alone", ylabel=r"(log lifetime)$/\beta$ of a plateau")
    axes.legend(loc="upper left", ncols=2, handletextpad=0.4, columnspacing=0.8, handlelength=1.2)


def draw_caps(axes: Any, data: xr.Dataset) -> None:
    """The fall of |u - v| + sqrt(gap), its bound, and the slope delta."""
    time = data["time"].values
    total = data["distance"] + np.sqrt(np.maximum(data["gap"], 0.0))
    axes.plot(time, data["bound"], "--", color=INK, lw=1.0, label="bound by slow motion")
    axes.plot(time, total, "o", color=COLOURS[0], ms=3, label="flow")
    light = data.attrs["lightest"]
    axes.plot(time, float(total[0]) * np.exp(-light * time), color=GREY, lw=0.8, label=rf"$e^{{-{light:.2g}\,t}}$")
    axes.axhline(float(data["slope"].max()), color=COLOURS[4], lw=0.8, ls=":")
    axes.annotate(r"$\delta$", (time[-1], float(data["slope"].max())), color=COLOURS[4], ha="right", va="bottom")
    axes.set(yscale="log", xlim=(0, time[-1]), xlabel="time $t$", ylabel=r"$|u - v| + \sqrt{E(u) - E(v)}$")
    axes.legend(loc="upper right")


def _space(flow: xr.Dataset) -> str:
    return f"{flow.attrs['model']}, $S^{{{flow.attrs['dim'] - 1}}}$"
