"""Panels of the figure of zonal densities."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK

HUES = (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[3], COLOURS[1], COLOURS[7], COLOURS[5])


def draw(fig: Any, parameters: Any, data: dict[str, xr.Dataset]) -> Any:
    """All of it."""
    grid = fig.add_gridspec(2, 6)
    axes = [fig.add_subplot(grid[0, :2]), fig.add_subplot(grid[0, 2:4]), fig.add_subplot(grid[0, 4:])]
    axes += [fig.add_subplot(grid[1, :3]), fig.add_subplot(grid[1, 3:])]
    _profiles(axes[0], data["condensation"])
    _rates(axes[1], parameters, data["rates"])
    _times(axes[2], parameters, data["condensation"])
    _tokens(axes[3], parameters, data["tokens"])
    _orders(axes[4], data["cells"])
    for letter, one in zip("abcde", axes, strict=True):
        one.set_title(f"({letter})", loc="left", fontweight="bold")
    return fig


def _profiles(axes: Any, part: xr.Dataset) -> None:
    """The distribution of the polar angle, each curve over its own largest value in the dimension."""
    dims, theta = part["dimension"].values, part["angle"].values
    chosen = dims[np.unique(np.linspace(0, len(dims) - 1, 4).astype(int))]
    for j, d in enumerate(chosen):
        density = np.sin(theta) ** (int(d) - 2)
        density /= np.trapezoid(density, theta)
        distributions = part["profile"].sel(dimension=d).values * density
        peak = np.nanmax(distributions)
        for k, distribution in enumerate(distributions):
            look = (
                {"color": GREY, "ls": "--", "lw": 0.9}
                if k == 0
                else {"color": HUES[j], "alpha": (0.4, 0.7, 1.0)[k - 1]}
            )
            axes.plot(theta, j + 0.85 * distribution / peak, **({"lw": 1.1} | look))
        axes.text(np.pi, j + (0.1 if d > 3 else 0.5), f"$d = {d}$", color=HUES[j], fontsize=7, ha="right", va="bottom")
    axes.set_xticks([0, np.pi / 2, np.pi], ["0", "π/2", "π"])
    axes.set_yticks([])
    axes.set_xlim(0, np.pi)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("angle to the axis")
    axes.set_ylabel("distribution of the angle (scaled, shifted)")


def _rates(axes: Any, parameters: Any, part: xr.Dataset) -> None:
    beta = sorted(parameters.betas)[len(parameters.betas) // 2]
    dims = part["dimension"].values
    for d, colour in zip(dims, HUES, strict=False):
        found = part["rate"].sel(model=parameters.models[0], beta=beta, dimension=d)
        axes.plot(part["degree"], theory.growth_rates(beta, int(d), part["degree"].values), color=colour, lw=1.0)
        axes.plot(part["degree"], found, "o", ms=3.5, color=colour, label=f"{d}")
    axes.set_yscale("log")
    axes.set_ylim(bottom=1e-9)
    axes.set_xlabel(rf"degree $k$   ($\beta = {beta:g}$)")
    axes.set_ylabel(r"rate $\lambda_k$")
    axes.legend(title="$d$", ncols=2, loc="lower left", handletextpad=0.1, columnspacing=0.8)


def _times(axes: Any, parameters: Any, part: xr.Dataset) -> None:
    dims = part["dimension"].values
    many = np.arange(2, dims.max() + 1)
    rates = np.array([float(theory.growth_rates(parameters.beta, int(d), 1)) for d in many])
    for overlap, colour in zip(part["overlap"].values, HUES, strict=False):
        axes.plot(many, np.log(parameters.condensed / overlap) / rates, color=colour, lw=1.0)
        axes.plot(
            dims, part["time"].sel(overlap=overlap), "o", ms=4, color=colour,
            label=f"$10^{{{np.log10(overlap):.0f}}}$",
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(dims, [str(d) for d in dims])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(rf"dimension $d$   ($\beta = {parameters.beta:g}$)")
    axes.set_ylabel("time to condensation")
    axes.legend(title="overlap at the start", ncols=3, loc="upper right", handletextpad=0.1, columnspacing=0.8)


def _tokens(axes: Any, parameters: Any, part: xr.Dataset) -> None:
    t, mean, noise = part["time"].values, part["density"].values, part["noise"].values
    axes.axhline(0, color=INK, lw=0.9)
    axes.fill_between(t, -2 * noise, 2 * noise, color=GREY, alpha=0.25, lw=0)
    for seed in part["seed"].values:
        axes.plot(t, part["overlap"].sel(seed=seed) - mean, "o", ms=4, color=HUES[int(seed) % len(HUES)])
    twin = axes.inset_axes((0.62, 0.62, 0.36, 0.36))
    twin.plot(t, mean, color=INK, lw=1.0)
    twin.plot(t, part["overlap"].values.T, "o", ms=2, color=HUES[0])
    twin.set_title("mean overlap", fontsize=7, pad=2)
    twin.tick_params(labelsize=6)
    axes.set_ylim(-3.5 * float(noise.max()), 7.5 * float(noise.max()))
    axes.set_xlabel(f"time $t$   ($d = {parameters.token_dim}$, $n = {parameters.n}$)")
    axes.set_ylabel("mean overlap: tokens $-$ density")


def _orders(axes: Any, part: xr.Dataset) -> None:
    for d, colour in zip(part["dimension"].values, HUES, strict=False):
        axes.plot(part["count"], part["error"].sel(dimension=d), "o-", ms=4, color=colour, lw=1.0, label=f"$d = {d}$")
    count = part["count"].values
    axes.plot(count, 0.6 * float(part["error"].min("dimension")[0]) * (count[0] / count) ** 2, "--", color=GREY, lw=0.9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(count, [str(k) for k in count])
    axes.set_xlabel("cells")
    axes.set_ylabel("$L^1$ error of finite volumes")
    axes.legend(loc="upper right")
