"""Densities, tokens and the difference between them."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.meanfield import CircleBasis, SphereBasis
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.continuity_equation.simulate import Parameters

TONES = "cividis"
LOOKS = {"SA": (COLOURS[0], "o", "-"), "USA0": (COLOURS[4], "s", "--")}
PLACES = {"circle": "the circle", "sphere": "$S^2$"}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens of attention and the density of the continuity equation.

    (a) SA on the circle: density by finite volumes against time. Above the white line harmonics of the smaller degree
    do not resolve it; triangles: clusters of the tokens that take over there. (b) SA on the circle: density by
    harmonics (lines) and histograms of iid tokens (grey) at several times, shifted upwards. (c) SA on S²: density by
    harmonics and 500 of the iid tokens at three times, in Mollweide's projection. (d), (e) Root mean square difference
    of harmonics between tokens and density: iid tokens (full marks) and their predicted standard error (lines); quiet
    tokens (open marks; on the circle their difference is that of the time steps). (f) Error of finite volumes against
    harmonics.
    """
    parts = {name: part for name, part in data.items() if "deviation" in part}
    spheres = [part for part in parts.values() if part.attrs["space"] == "sphere"]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 7.2 if spheres else 5.0))
        rows = fig.add_gridspec(3 if spheres else 2, 1, height_ratios=(1.2, 0.85, 1.0) if spheres else (1.2, 1.0))
        top, bottom = rows[0].subgridspec(1, 2), rows[-1].subgridspec(1, 3 if spheres else 2)
        left, right = fig.add_subplot(top[0]), fig.add_subplot(top[1])
        panel(left, "a", "SA, circle: from a density to clusters")
        _draw_history(fig, left, data["clusters"])
        panel(right, "b", "SA, circle: density and iid tokens")
        _draw_profiles(right, next(iter(parts.values())))
        if spheres:
            maps = _draw_maps(fig, rows[1], spheres[0])
            panel(maps[0], "c", f"{spheres[0].attrs['model']}, $S^2$: density and iid tokens")
        spaces = ["circle", "sphere"] if spheres else ["circle"]
        letters = iter("def" if spheres else "cd")
        for k, space in enumerate(spaces):
            axes = fig.add_subplot(bottom[k])
            panel(axes, next(letters), f"tokens $-$ density, {PLACES[space]}")
            _draw_missed(axes, [part for part in parts.values() if part.attrs["space"] == space])
        axes = fig.add_subplot(bottom[len(spaces)])
        panel(axes, next(letters), "finite volumes $-$ harmonics")
        _draw_orders(axes, data["cells"])
        return fig


def _draw_history(fig: Any, axes: Any, part: xr.Dataset) -> None:
    density = part["cell"].values, part["time"].values, np.log10(np.maximum(part["cells"].values, 1e-3))
    tones = axes.pcolormesh(*density, cmap=TONES, vmin=-2, vmax=2, shading="nearest", rasterized=True)
    lost, end = float(part["lost"]), float(part["time"][-1])
    axes.axhline(lost, color="white", lw=1.2)
    axes.text(0.08, lost + 0.12, "tokens take over", color="white", fontsize=8, va="bottom")
    count = int(part["count"].sel(way="handed over"))
    angles = part["angles"].sel(way="handed over").values[:count]
    axes.plot(angles, np.full(count, end), "v", mfc="white", mec=INK, ms=7, clip_on=False, zorder=5)
    _angles(axes)
    axes.set_ylabel("time $t$")
    bar = fig.colorbar(tones, ax=axes, pad=0.02, extend="both", ticks=[-2, -1, 0, 1, 2])
    bar.set_ticklabels(["0.01", "0.1", "1", "10", "100"])
    bar.ax.set_title(r"$\rho$")


def _draw_profiles(axes: Any, part: xr.Dataset) -> None:
    counts = part["shown"].sel(tokens="iid").values
    basis = CircleBasis((part.sizes["axis0"] - 1) // 2)
    theta, edges = np.linspace(0, 2 * np.pi, 600), np.linspace(0, 2 * np.pi, counts.shape[1] + 1)
    curves = [basis.evaluate(c, angles=theta) for c in part["coefficients"].values]
    highest = float(counts.max())
    shift = 0.6 * highest
    for k in reversed(range(len(counts))):
        low, words = k * shift, ("iid tokens", "density") if k == 0 else (None, None)
        axes.stairs(low + counts[k], edges, baseline=low, fill=True, color="#c9c9c9", lw=0, label=words[0])
        axes.plot(theta, low + curves[k], color=COLOURS[0], lw=1.2, label=words[1])
        beside = {"textcoords": "offset points", "fontsize": 8, "annotation_clip": False}
        axes.annotate(f"$t = {float(part['time'][k]):g}$", (2 * np.pi, low), (3, 2), **beside)
    _angles(axes)
    axes.set(ylim=(0, shift * (len(counts) - 1) + 1.05 * highest), yticks=[], ylabel=r"density $\rho$ (shifted)")
    axes.legend(loc="upper right")


def _angles(axes: Any) -> None:
    axes.set_xticks(np.pi * np.arange(5) / 2, ["0", "π/2", "π", "3π/2", "2π"])
    axes.set(xlim=(0, 2 * np.pi), xlabel=r"angle $\theta$")


def _draw_maps(fig: Any, row: Any, part: xr.Dataset) -> list[Any]:
    basis = SphereBasis(part.sizes["axis1"] - 1)
    frames = np.unique(np.linspace(0, part.sizes["time"] - 1, 3).astype(int))
    grid, made = row.subgridspec(1, len(frames)), []
    lat, lon = np.linspace(-np.pi / 2, np.pi / 2, 91), np.linspace(-np.pi, np.pi, 181)
    over, up = np.meshgrid(lon, lat)
    x = np.stack([np.cos(up) * np.cos(over), np.cos(up) * np.sin(over), np.sin(up)], axis=-1)
    for j, k in enumerate(frames):
        axes = fig.add_subplot(grid[j], projection="mollweide")
        values = np.log10(np.maximum(basis.evaluate(part["coefficients"].values[k], x), 1e-3))
        tones = axes.pcolormesh(lon, lat, values, cmap=TONES, vmin=-1, vmax=1, shading="gouraud", rasterized=True)
        tokens = part["shown"].sel(tokens="iid").values[k][:500]
        places = np.arctan2(tokens[:, 1], tokens[:, 0]), np.arcsin(np.clip(tokens[:, 2], -1, 1))
        axes.plot(*places, "o", ms=2, mfc="white", mec="black", mew=0.3)
        axes.set(xticks=[], yticks=[], xlabel=f"$t = {float(part['time'][k]):.2g}$")
        made.append(axes)
    bar = fig.colorbar(tones, ax=made, pad=0.015, aspect=14, shrink=0.8, extend="both", ticks=[-1, 0, 1])
    bar.set_ticklabels(["0.1", "1", "10"])
    bar.ax.set_title(r"$\rho$")
    return made


def _draw_missed(axes: Any, parts: list[xr.Dataset]) -> None:
    for part in parts:
        colour, mark, dash = LOOKS[part.attrs["model"]]
        noise = np.sqrt(np.mean(part["deviation"].values[:, :-1] ** 2, axis=1) / part.attrs["n"])
        axes.plot(part["time"], noise, dash, color=colour, lw=1.1)
        for kind, face in (("iid", colour), ("quiet", "white")):
            off = (part["measured"].sel(tokens=kind) - part["density"]).values[1:, :-1]
            rms, words = np.sqrt(np.mean(off**2, axis=1)), f"{part.attrs['model']}, {kind}"
            axes.plot(part["time"][1:], rms, mark, ms=5, color=colour, mfc=face, mew=1.0, label=words)
    axes.set(yscale="log", xlabel="time $t$", ylabel="rms difference of harmonics")
    title = rf"$n = {parts[0].attrs['n']:,}$".replace(",", r"\,")
    axes.legend(loc="center", ncols=2, handletextpad=0.1, columnspacing=0.8, title=title)


def _draw_orders(axes: Any, part: xr.Dataset) -> None:
    count = part["count"].values
    for model in part["model"].values:
        colour, mark, dash = LOOKS[str(model)]
        axes.plot(count, part["error"].sel(model=model), mark + dash, ms=5, color=colour, lw=1.0, label=str(model))
    line = float(part["error"].min("model")[0]) * (count[0] / count) ** 2 * 0.5
    axes.plot(count, line, ":", color=GREY, lw=1.4, label="second order")
    axes.set_xscale("log", base=2)
    axes.set_xticks(count, [str(k) for k in count])
    axes.set(yscale="log", xlabel="number of cells", ylabel="$L^1$ difference")
    axes.legend(loc="upper right")
