"""Mean overlaps and spreads of networks that diffuse, freeze or flow."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels, powers_of_two
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.depth_scalings.compare import (
    Row,
    at_one,
    diffusive,
    euler,
    fluctuation,
    growth,
    limit,
    noise_drift,
    ode,
    one_layer,
    rows_of,
)
from attnflow_gallery.depth_scalings.simulate import Parameters

MARKS = {1: "o", 4: "s", 16: "^", 64: "D"}
SHADES = {1: COLOURS[0], 4: COLOURS[4], 16: COLOURS[2], 64: COLOURS[7]}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Four orthonormal tokens after random layers (marks: mean overlap over networks, bars: two standard errors).

    (a) η²L/H = 1: against η²/H, marks beside one another where η²/H is the same; dotted: the diffusion; lines: fitted
    terms in η²/H, for the smallest and the largest number of heads H. (b) η = 1/L, frozen: mean overlap (filled: half
    that with steps 2η less that with η, the same random numbers) and standard deviation (open) against L H; lines: one
    layer's drift and variance. (c) η = 1/L and E V = I: mean overlap against η; lines: layers without noise plus K/(L
    H), for every H; dotted: the ODE. (d) Fluctuations around the ODE against L H; line: theory for short steps.
    """
    titles = r"diffusive, $\eta^2 L/H = 1$", r"frozen, $\eta = 1/L$", r"ballistic, $E V = I$, $\eta = 1/L$"
    with panels(2, 2, 4.8, *titles, "fluctuations around the ODE") as page:
        _draw_diffusive(page[0], parameters, data)
        _draw_frozen(page[1], parameters, data)
        _draw_ode(page[2], parameters, data)
        _draw_spread(page[3], parameters, data)
    return page.figure


def _bar(axes: Any, x: float, y: float, error: float, row: Row, seen: set[int] | None = None, **more: Any) -> None:
    """A mark with two standard errors; `seen` are the numbers of heads that the legend has."""
    heads = row.network[1]
    more |= {"fmt": MARKS.get(heads, "v"), "color": SHADES.get(heads, INK)}
    if seen is not None and heads not in seen:
        more["label"] = f"$H = {heads}$"
        seen.add(heads)
    axes.errorbar(x, y, 2 * error, ms=3.8, lw=0.9, capsize=1.5, **more)


def _draw_diffusive(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    rows, slopes, _ = diffusive(parameters, data)
    known, _, _ = limit(data["diffusion"])
    most = 1.15 * max(row.coarse for row in rows)
    line = np.array([0.0, most])
    heads = sorted({row.network[1] for row in rows})
    for one in (heads[0], heads[-1]):
        axes.plot(line, known + (slopes[0] + slopes[1] / one) * line, color=SHADES.get(one, INK), lw=0.8)
    seen: set[int] = set()
    for row, value in zip(rows, at_one(parameters, rows), strict=True):
        aside = 0.02 * most * (heads.index(row.network[1]) - (len(heads) - 1) / 2)
        _bar(axes, row.coarse + aside, value, row.error, row, seen)
    axes.axhline(known, color=GREY, lw=0.9, ls=":")
    axes.set(xlim=(0, most), xlabel=r"$\eta^2/H$", ylabel=r"mean overlap at $\tau = 1$")
    axes.legend(loc="lower left")


def _draw_frozen(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    rows, part = rows_of(parameters, data, "frozen"), data["moments"].sel(level=0.0)
    sizes = np.array([1 / row.tau for row in rows])
    line = np.geomspace(sizes.min() / 1.5, sizes.max() * 1.5, 50)
    rate = float(theory.random_layers.overlap_drift(0.0, part["shared"], part["own"], part["own"], d=parameters.d))
    wide = np.sqrt(one_layer(data["moments"], parameters.d, 0.0)[0])
    words = r"standard deviation, $\propto (LH)^{-1/2}$"
    axes.plot(line, wide / np.sqrt(line), color=INK, lw=1.0, ls="--", label=words)
    axes.plot(line, rate / line, color=INK, lw=1.0, label=r"mean, $\propto 1/(LH)$")
    for number, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        found, error = growth(parameters, data, number)
        _bar(axes, size, found / size, error / size, row)
        _bar(axes, size, row.spread, row.spread_error, row, mfc="white")
    powers_of_two(axes)
    axes.set(yscale="log", xlabel="$LH$", ylabel="overlap")
    axes.legend(loc="center right")


def _draw_ode(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    rows = rows_of(parameters, data, "ballistic")
    seen: set[int] = set()
    depths = np.arange(min(row.network[2] for row in rows) - 1, 400)
    plain, moved = np.array([euler(parameters.n, 1 / k, int(k)) for k in depths]), noise_drift(parameters, rows)
    for heads in sorted({row.network[1] for row in rows}):
        axes.plot(1 / depths, plain + moved / (depths * heads), color=SHADES.get(heads, INK), lw=0.9)
    for row in rows:
        _bar(axes, row.network[0], row.mean, row.error, row, seen)
    axes.axhline(ode(parameters.n, 1.0), color=GREY, lw=0.9, ls=":")
    axes.set(xlim=(0, None), xlabel=r"$\eta = 1/L$", ylabel="mean overlap at $t = 1$")
    axes.legend(loc="lower left")


def _draw_spread(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    rows = rows_of(parameters, data, "ballistic")
    seen: set[int] = set()
    sizes = np.array([1 / row.tau for row in rows])
    line = np.geomspace(sizes.min() / 1.5, sizes.max() * 1.5, 50)
    axes.plot(line, fluctuation(parameters, data["moments"]) / np.sqrt(line), color=INK, lw=1.0)
    for row, size in zip(rows, sizes, strict=True):
        _bar(axes, size, row.spread, row.spread_error, row, seen)
    powers_of_two(axes)
    axes.set(yscale="log", xlabel="$LH$", ylabel="standard deviation of overlap")
    axes.legend(loc="lower left")
