"""Growth of harmonics: amplitudes, rates, second order, third order."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.uniform_unstable.compare import bends, lines
from attnflow_gallery.uniform_unstable.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Growth of harmonics of a nearly uniform density: continuity equation (marks) and theory (lines).

    (a) Amplitudes on the circle under SA. Lines: e^(λ_k t). (b) Rates on the circle over the mean weight (1 for SA);
    full marks: SA, open circles: USA0. (c) Degree 2 on several higher spheres: deviation of log a from log a(0) + λ_k
    t. From one start it is c a (dashed), from a pair of starts ±a it is of order a². Grey: tolerance of a pair, set by
    the steps in time at small a. (d) The end of the growth on the circle: the bend over a²/8, which it is for every k
    under USA0. Lines: terms of third order.
    """
    rows, ends = lines(data), bends(data)
    circle = [row for row in rows if row["space"] == "circle"]
    zonal = [row for row in rows if (row["space"], row["k"], row["model"]) == ("zonal", 2, "SA")]
    betas = sorted({row["beta"] for row in circle})
    middle, last = betas[len(betas) // 2], max(row["beta"] for row in ends)
    titles = (
        rf"growth on the circle, SA, $\beta = {middle:g}$",
        "rates on the circle",
        "second order, $k = 2$ on higher spheres, SA",
        rf"third order, circle, $\beta = {last:g}$",
    )
    with panels(2, 2, 5.2, *titles) as page:
        _draw_growth(page[0], [row for row in circle if (row["beta"], row["model"]) == (middle, "SA")])
        _draw_rates(page[1], circle)
        _draw_deviation(page[2], zonal)
        _draw_bends(page[3], [row for row in ends if row["beta"] == last])
    return page.figure


def _draw_growth(axes: Any, rows: list[dict[str, Any]]) -> None:
    low = [row for row in rows if row["k"] <= 6]
    for row, colour, marker in zip(low, COLOURS, "osD^vP", strict=False):
        axes.plot(row["t"], row["odd"][0] * np.exp(row["rate"] * row["t"]), color=colour, lw=0.9)
        shown = slice(row["k"], None, 12)
        axes.plot(row["t"][shown], row["odd"][shown], marker, ms=3.2, color=colour, label=f"$k = {row['k']}$")
    axes.set(yscale="log", ylim=(5e-10, 3e-2), xlabel="time $t$", ylabel="amplitude $a$")
    axes.legend(loc="upper left", ncols=4, columnspacing=0.8, handletextpad=0.1)


def _draw_rates(axes: Any, rows: list[dict[str, Any]]) -> None:
    k = np.arange(1, max(row["k"] for row in rows) + 1)
    styles = zip(looks(sorted({row["beta"] for row in rows})), ("-", "--", "-."), strict=False)
    for (beta, colour, marker), style in styles:
        axes.plot(k, theory.uniform.growth_rates(beta, 2, k=k), style, color=colour, lw=1.0)
        for model, size, face in (("USA0", 7.0, "none"), ("SA", 3.2, colour)):
            unit = 1.0 if model == "SA" else 1 / float(theory.uniform.degree_weights(beta, 2, 1)[0])
            chosen = [row for row in rows if (row["beta"], row["model"]) == (beta, model)]
            found = [row["k"] for row in chosen], [row["measured"] * unit for row in chosen]
            shape, label = (marker, rf"SA, $\beta = {beta:g}$") if model == "SA" else ("o", None)
            axes.plot(*found, shape, ms=size, mec=colour, mfc=face, mew=0.8, lw=0, label=label)
    axes.plot([], [], "o", ms=7.0, mec=INK, mfc="none", mew=0.8, label="USA0")
    ticks = k[:: 1 + len(k) // 13]
    axes.set(xticks=ticks, ylim=(0, 1.0), xlabel="degree $k$", ylabel=r"rate $\lambda_k$ / mean weight")
    axes.legend(loc="upper right", ncols=2, columnspacing=0.8, handletextpad=0.1)


def _draw_deviation(axes: Any, rows: list[dict[str, Any]]) -> None:
    labels: tuple[str | None, ...] = ("one start", r"$c\,a$", "pair of starts")
    for row in rows:
        shown = row["odd"] > 10 * row["odd"][0]
        a, one = row["odd"][shown], np.abs(row["gap"] + row["even"])[shown]
        axes.plot(a, one, color=COLOURS[4], lw=1.4, alpha=0.6, label=labels[0])
        axes.plot(a, np.abs(row["bend"][shown]), "--", color=INK, lw=0.6, label=labels[1])
        axes.plot(a, np.maximum(np.abs(row["gap"][shown]), 1e-15), ":", color=COLOURS[0], lw=1.0, label=labels[2])
        labels = None, None, None
    row = max(rows, key=lambda row: row["rate"] * row["t"][1])
    axes.plot(row["odd"], row["tolerance"], color=GREY, lw=2.0, label="tolerance of a pair")
    axes.set(xscale="log", yscale="log", xlim=(1e-8, 1.2e-4), ylim=(1e-12, 1), xlabel="amplitude $a$")
    axes.set(ylabel=r"$|\log a - \log a(0) - \lambda_k t|$")
    axes.legend(loc="upper left", ncols=2, columnspacing=0.8)


def _draw_bends(axes: Any, rows: list[dict[str, Any]]) -> None:
    least, most = min(row["k"] for row in rows), max(row["k"] for row in rows)
    cases = (("SA", least, "o", "-"), ("SA", most, "s", "--"), ("USA0", least, "D", "-."))
    for (model, k, marker, style), at in zip(cases, (0, 4, 2), strict=True):
        row = next(row for row in rows if (row["model"], row["k"]) == (model, k))
        colour, a = COLOURS[at], row["a"][::5]
        face = colour if model == "SA" else "none"
        axes.plot(a, -row["gap"][::5] / (a**2 / 8), marker, ms=3.6, mec=colour, mew=0.8, lw=0, mfc=face)
        line = row["a"][0] * np.exp(row["rate"] * row["t"])
        early = (line > 2e-3) & (line < 3)
        axes.plot(line[early], -row["bend"][early] / (line[early] ** 2 / 8), style, color=colour, lw=1.1)
        axes.plot([], [], style + marker, color=colour, ms=3.6, mfc=face, lw=1.1, label=f"{model}, $k = {k}$")
    axes.set(xscale="log", xlim=(3e-3, 3), ylim=(0.7, 1.5), xlabel="amplitude $a$")
    axes.set(ylabel=r"$(\log a(0) + \lambda_k t - \log a)\,/\,(a^2/8)$")
    axes.legend(loc="upper left")
