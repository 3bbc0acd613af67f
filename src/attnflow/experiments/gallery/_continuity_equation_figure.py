"""Panels of the figure of the continuity equation."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.meanfield import CircleBasis, SphereBasis
from attnflow.plots.style import COLOURS, GREY, INK

SHADES = "cividis"
HUES = (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[3], COLOURS[7])
LOOKS = {"circle": ("o", "circle"), "sphere": ("^", "S²")}


def draw(fig: Any, data: dict[str, xr.Dataset]) -> Any:
    """All of it."""
    parts = {name: part for name, part in data.items() if "deviation" in part}
    rows = fig.add_gridspec(3, 1, height_ratios=(1.15, 0.85, 1.0))
    top, bottom = rows[0].subgridspec(1, 2, width_ratios=(1.0, 1.25)), rows[2].subgridspec(1, 3)
    circle = next(part for name, part in parts.items() if part.attrs["space"] == "circle")
    axes = [fig.add_subplot(top[0]), fig.add_subplot(top[1])]
    _history(fig, axes[0], data["clusters"])
    _profiles(axes[1], parts.get("many", circle))
    sphere = [part for part in parts.values() if part.attrs["space"] == "sphere"]
    if sphere:
        axes += _maps(fig, rows[1], sphere[0])
    axes += [fig.add_subplot(bottom[k]) for k in range(3)]
    _energies(axes[-3], parts)
    _missed(axes[-2], parts)
    _orders(axes[-1], data["cells"])
    titled = [*axes[:2], *axes[2:3], *axes[-3:]] if sphere else axes
    for letter, one in zip("abcdef" if sphere else "abdef", titled, strict=True):
        one.set_title(f"({letter})", loc="left", fontweight="bold")
    return fig


def _history(fig: Any, axes: Any, part: xr.Dataset) -> None:
    """The density by finite volumes through time, in logarithms."""
    values = np.log10(np.maximum(part["cells"].values, 1e-3))
    shades = axes.pcolormesh(
        part["cell"].values, part["time"].values, values, cmap=SHADES, vmin=-2, vmax=2, shading="nearest",
        rasterized=True,
    )  # fmt: skip
    axes.axhline(float(part["lost"]), color="white", lw=0.9)
    axes.text(0.06, float(part["lost"]) + 0.15, "handed over to tokens", color="white", fontsize=7, va="bottom")
    count = int(part["count"].sel(way="handed over"))
    angles, end = part["angles"].sel(way="handed over").values[:count], float(part["time"][-1])
    axes.plot(angles, np.full(count, end), "v", color=COLOURS[4], ms=5, clip_on=False, zorder=5)
    axes.set_xticks(np.pi * np.arange(5) / 2, ["0", "π/2", "π", "3π/2", "2π"])
    axes.set_xlabel(r"angle $\theta$")
    axes.set_ylabel("time $t$")
    bar = fig.colorbar(shades, ax=axes, pad=0.02, extend="both", ticks=[-2, -1, 0, 1, 2])
    bar.set_ticklabels(["0.01", "0.1", "1", "10", "100"])
    bar.set_label(r"density $\rho$", labelpad=2)


def _profiles(axes: Any, part: xr.Dataset) -> None:
    """Density and histogram at the times of comparison, one above the other."""
    counts = part["shown"].sel(tokens="iid").values
    basis = CircleBasis((part.sizes["axis0"] - 1) // 2)
    theta = np.linspace(0, 2 * np.pi, 600)
    edges = np.linspace(0, 2 * np.pi, counts.shape[1] + 1)
    shift = 0.4 * float(counts.max())
    for k in reversed(range(len(counts))):
        low, colour = k * shift, HUES[k % len(HUES)]
        axes.stairs(low + counts[k], edges, baseline=low, fill=True, color=colour, alpha=0.22, lw=0)
        axes.stairs(low + counts[k], edges, baseline=None, color=colour, lw=0.6, alpha=0.8)
        axes.plot(theta, low + basis.evaluate(part["coefficients"].values[k], theta), color=INK, lw=0.9)
        axes.text(2 * np.pi + 0.08, low, f"$t = {float(part['time'][k]):g}$", color=colour, va="bottom", fontsize=7)
    axes.set_xticks(np.pi * np.arange(5) / 2, ["0", "π/2", "π", "3π/2", "2π"])
    axes.set_xlim(0, 2 * np.pi)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(rf"angle $\theta$   ({part.attrs['model']}, $n = {_spaced(part.attrs['n'])}$)")
    axes.set_ylabel(r"density $\rho$ (shifted)")


def _spaced(n: int) -> str:
    return f"{n:,}".replace(",", r"\,")


def _maps(fig: Any, row: Any, part: xr.Dataset) -> list[Any]:
    """The density on S^2 at three times, with tokens."""
    basis = SphereBasis(part.sizes["axis1"] - 1)
    frames = np.unique(np.linspace(0, part.sizes["time"] - 1, 3).astype(int))
    grid, made = row.subgridspec(1, len(frames)), []
    lat, lon = np.linspace(-np.pi / 2, np.pi / 2, 91), np.linspace(-np.pi, np.pi, 181)
    over, up = np.meshgrid(lon, lat)
    x = np.stack([np.cos(up) * np.cos(over), np.cos(up) * np.sin(over), np.sin(up)], axis=-1)
    values = [basis.evaluate(part["coefficients"].values[k], x) for k in frames]
    for j, k in enumerate(frames):
        axes = fig.add_subplot(grid[j], projection="mollweide")
        shades = axes.pcolormesh(
            lon, lat, np.log10(np.maximum(values[j], 1e-3)), cmap=SHADES, vmin=-1, vmax=1, shading="gouraud",
            rasterized=True,
        )  # fmt: skip
        tokens = part["shown"].sel(tokens="iid").values[k][:500]
        axes.plot(
            np.arctan2(tokens[:, 1], tokens[:, 0]), np.arcsin(np.clip(tokens[:, 2], -1, 1)), "o", ms=1.5, mfc="white",
            mec="black", mew=0.25,
        )  # fmt: skip
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel(f"{part.attrs['model']} on S², $t = {float(part['time'][k]):.2g}$")
        made.append(axes)
    bar = fig.colorbar(shades, ax=made, pad=0.015, aspect=14, shrink=0.8, extend="both", ticks=[-1, 0, 1])
    bar.set_ticklabels(["0.1", "1", "10"])
    bar.set_label(r"density $\rho$", labelpad=2)
    return made


def _energies(axes: Any, parts: dict[str, xr.Dataset]) -> None:
    for (name, part), colour in zip(parts.items(), HUES, strict=False):
        if name == "many":
            continue
        marker, where = LOOKS[part.attrs["space"]]
        axes.plot(part["time"], part["density"][:, -1], color=colour, lw=1.0)
        axes.plot(
            part["time"], part["measured"].sel(tokens="iid")[:, -1], marker, ms=4, color=colour,
            label=f"{part.attrs['model']}, {where}",
        )  # fmt: skip
    axes.set_xlabel("time $t$")
    axes.set_ylabel("energy $E$")
    axes.legend(loc="best")


def _missed(axes: Any, parts: dict[str, xr.Dataset]) -> None:
    for (name, part), colour in zip(parts.items(), HUES, strict=False):
        marker = "s" if name == "many" else LOOKS[part.attrs["space"]][0]
        noise = np.sqrt(np.mean(part["deviation"].values[:, :-1] ** 2, axis=1) / part.attrs["n"])
        axes.plot(part["time"], noise, color=colour, lw=1.0)
        for kind in part["tokens"].values:
            off = (part["measured"].sel(tokens=kind) - part["density"]).values[:, :-1]
            face = colour if kind == "iid" else "white"
            size = np.maximum(np.sqrt(np.mean(off**2, axis=1)), 1e-13)
            axes.plot(part["time"], size, marker, ms=4, mec=colour, mfc=face, mew=0.8)
    if "many" in parts:
        axes.plot([], [], "s", ms=4, color=GREY, label=f"$n = {_spaced(parts['many'].attrs['n'])}$")
    axes.plot([], [], "o", ms=4, color=GREY, label="iid")
    axes.plot([], [], "o", ms=4, mec=GREY, mfc="white", label="quiet")
    axes.set_yscale("log")
    axes.set_xlabel("time $t$")
    axes.set_ylabel("harmonics: tokens $-$ density")
    axes.legend(loc="lower right", handletextpad=0.2)


def _orders(axes: Any, part: xr.Dataset) -> None:
    for model, colour in zip(part["model"].values, (COLOURS[0], COLOURS[2]), strict=False):
        error = part["error"].sel(model=model)
        axes.plot(part["count"], error, "o-", ms=4, color=colour, lw=1.0, label=str(model))
    count = part["count"].values
    axes.plot(count, float(part["error"][0, 0]) * (count[0] / count) ** 2 * 0.6, "--", color=GREY, lw=0.9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(count, [str(k) for k in count])
    axes.set_xlabel("cells")
    axes.set_ylabel("$L^1$ error of finite volumes")
    axes.legend(loc="upper right")
