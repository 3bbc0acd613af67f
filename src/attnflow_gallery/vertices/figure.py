"""Paths, hulls, radii and the approach to leaders."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import MARKS, looks, panels
from attnflow.observe import convex_hull
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.vertices.compare import limits, regular_radii
from attnflow_gallery.vertices.simulate import Parameters, solid

STYLES = ("-", "--")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Rescaled tokens z = e^(-t) x for V = I; the first random start, with B = I, in (a) and (d).

    (a) Paths of the tokens (grey lines) from their positions at t = 0 (dots) to the vertices of the limit (squares),
    with the convex hull at t = 0 (dashed), at t = 1 and 2 (thin), and the limit (filled). (b) Volume of the convex hull
    over its volume at t = 0: median over random starts, and bars from the lower to the upper quartile; the volume is 0
    where all limits lie on a line or in a plane. (c) Radius of z from regular polygons of radius 1: simulation (marks)
    and the integral (lines). (d) Distance of every token from its leader (grey lines), and the slope e^(-t) (dashed).
    """
    first = data[f"R{parameters.dims[0]}"]
    titles = "tokens end at vertices", "the hull shrinks", "regular polygons", "approach to the leader"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_paths(page[0], first)
        _draw_volumes(page[1], parameters, data)
        _draw_regular(page[2], parameters, data)
        _draw_approach(page[3], first)
    return page.figure


def _draw_paths(axes: Any, part: xr.Dataset) -> None:
    z = part["positions"].values[:, 0, :, :2]
    for token in range(z.shape[1]):
        axes.plot(*z[:, token].T, color=GREY, lw=0.6)
    axes.plot(*z[0].T, "o", ms=3, color=INK, mew=0, label="$t = 0$")
    for frame in np.searchsorted(part["time"].values, [0.0, 1.0, 2.0]):
        ring = z[frame][convex_hull(z[frame]).vertices]
        line = {"ls": "--", "color": INK, "label": "hull, $t = 0$"} if frame == 0 else {"color": COLOURS[5]}
        axes.plot(*np.r_[ring, ring[:1]].T, lw=0.9, **line)
    axes.plot([], [], color=COLOURS[5], lw=0.9, label="hull, $t = 1, 2$")
    ends = limits(part, 0)[:, :2]
    ring = ends[convex_hull(ends).vertices]
    axes.fill(*ring.T, facecolor=COLOURS[0], alpha=0.15, edgecolor=COLOURS[0], lw=1.2)
    axes.plot(*ring.T, "s", ms=5, color=COLOURS[0], mew=0, label="limits")
    axes.set_aspect("equal", adjustable="datalim")
    axes.update_datalim([(0.0, z[0, :, 1].max() + 0.3 * np.ptp(z[0, :, 1]))])  # room for the legend
    axes.autoscale_view()
    axes.set(xlabel="$z_1$", ylabel="$z_2$")
    axes.legend(loc="upper center", ncols=2, handlelength=1.6, borderaxespad=0.1)


def _draw_volumes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for k, (dim, colour) in enumerate(zip(parameters.dims, (COLOURS[0], COLOURS[4]), strict=False)):
        part = data[f"R{dim}"]
        time, z = part["time"].values, part["positions"].values[:, : parameters.starts]
        shown = np.flatnonzero(time <= 8.0)
        volume = np.array([[convex_hull(x).volume for x in z[frame]] for frame in shown])
        quarter, half, three = np.quantile(volume / volume[0], [0.25, 0.5, 0.75], axis=1)
        axes.plot(time[shown], half, STYLES[k], color=colour)
        some = np.arange(2 + 2 * k, len(shown), max(1, len(shown) // 8))
        bars = [(half - quarter)[some], (three - half)[some]]
        axes.errorbar(time[shown][some], half[some], bars, fmt=MARKS[k], ms=4, color=colour, lw=0.9, capsize=2)
        axes.plot([], [], STYLES[k], marker=MARKS[k], ms=4, color=colour, label=f"$d = {dim}$")
    axes.set(ylim=(0, 1.02), xlabel="time $t$", ylabel="volume of the hull / volume at $t = 0$")
    axes.legend(loc="upper right")


def _draw_regular(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    dim, until = parameters.dims[0], 4.0
    part = data[f"R{dim}"]
    radii, times = regular_radii(part)[:, :, 0], part["time"].values
    begin = 1.0 if 1.0 in parameters.radii else parameters.radii[0]
    dense, early = np.linspace(0.0, until, 60), np.flatnonzero(times <= until)
    early = early[:: max(1, len(early) // 8)]
    for index, colour, mark in looks(np.flatnonzero(part["radius"].values == begin)):
        corners = solid(dim, int(part["corners"][index]))
        path = [theory.landscape.regular_radius(corners, begin, t=float(t)) for t in dense]
        axes.plot(dense, path, color=colour, lw=1.0)
        axes.plot(times[early], radii[early, index], mark, ms=4, mfc="white", mec=colour, mew=0.9)
        place = {"xytext": (5, {10: 3, 20: -3}.get(len(corners), 0)), "textcoords": "offset points", "va": "center"}
        axes.annotate(f"{len(corners)} corners", (until, path[-1]), fontsize=7, color=INK, **place)
    ticks = np.arange(0, until + 1)
    axes.set(ylim=(0.6, 1.02), xlim=(0, 1.3 * until), xticks=ticks, xlabel="time $t$", ylabel="radius $|z|$")


def _draw_approach(axes: Any, part: xr.Dataset) -> None:
    z, leader, time = part["positions"].values[:, 0], part["leader"].values[0], part["time"].values
    apart = np.linalg.norm(z - z[:, leader], axis=2)
    for token in np.flatnonzero(leader != np.arange(len(leader))):
        axes.plot(time, apart[:, token], color=GREY, lw=0.7)
    axes.plot([], [], color=GREY, lw=0.7, label="tokens")
    axes.plot(time, np.exp(-time) * 30, "--", color=INK, lw=1.2, label=r"slope of $e^{-t}$")
    axes.set(yscale="log", xlabel="time $t$", ylabel=r"distance $|z_i - z_{\mathrm{leader}}|$")
    axes.legend(loc="lower left")
