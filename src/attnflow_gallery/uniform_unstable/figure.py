"""Growth of harmonics: amplitudes, rates, second order, third order."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.uniform_unstable.compare import bends, lines
from attnflow_gallery.uniform_unstable.simulate import Parameters

MARKERS = "osD^vPX"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Growth of harmonics of a nearly uniform density: continuity equation (marks) and theory (lines).

    (a) Amplitudes on the circle under SA. Lines: e^(λ_k t). (b) Rates on the circle over the mean weight (1 for SA);
    full marks: SA, open circles: USA0. (c) Degree 2 on several higher spheres: deviation of log a from log a(0) + λ_k
    t. From one start it is c a (dashed), from a pair of starts ±a it is of order a². Grey: tolerance of a pair, set by
    the steps in time at small a. (d) The end of the growth on the circle: the bend over a²/8, which it is for every k
    under USA0. Lines: terms of third order.
    """
    rows = lines(data)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.2))
        axes = fig.subplots(2, 2)
        _draw_growth(axes[0, 0], rows)
        _draw_rates(axes[0, 1], rows)
        _draw_deviation(axes[1, 0], rows)
        _draw_bends(axes[1, 1], bends(data))
        return fig


def _circle(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    betas = sorted({row["beta"] for row in rows if row["space"] == "circle"})
    return [row for row in rows if row["space"] == "circle"], betas[len(betas) // 2]


def _draw_growth(axes: Any, rows: list[dict[str, Any]]) -> None:
    some, beta = _circle(rows)
    chosen = [row for row in some if (row["beta"], row["model"]) == (beta, "SA") and row["k"] <= 6]
    for row, colour, marker in zip(chosen, COLOURS, MARKERS, strict=False):
        axes.plot(row["t"], row["odd"][0] * np.exp(row["rate"] * row["t"]), color=colour, lw=0.9)
        shown = slice(row["k"], None, 12)
        axes.plot(row["t"][shown], row["odd"][shown], marker, ms=3.2, color=colour, label=f"$k = {row['k']}$")
    axes.set(yscale="log", ylim=(5e-10, 3e-2), xlabel="time $t$", ylabel="amplitude $a$")
    axes.legend(loc="upper left", ncols=4, columnspacing=0.8, handletextpad=0.1)
    panel(axes, "a", rf"growth on the circle, SA, $\beta = {beta:g}$")


def _draw_rates(axes: Any, rows: list[dict[str, Any]]) -> None:
    some, _ = _circle(rows)
    k = np.arange(1, max(row["k"] for row in some) + 1)
    styles = zip(sorted({row["beta"] for row in some}), COLOURS, MARKERS, ("-", "--", "-."), strict=False)
    for beta, colour, marker, style in styles:
        axes.plot(k, theory.uniform.growth_rates(beta, 2, k), style, color=colour, lw=1.0)
        for model, size, face in (("USA0", 7.0, "none"), ("SA", 3.2, colour)):
            unit = 1.0 if model == "SA" else 1 / float(theory.uniform.degree_weights(beta, 2, 1)[0])
            chosen = [row for row in some if (row["beta"], row["model"]) == (beta, model)]
            label = rf"SA, $\beta = {beta:g}$" if model == "SA" else None
            axes.plot([r["k"] for r in chosen], [r["measured"] * unit for r in chosen],
                      marker if model == "SA" else "o", ms=size, mec=colour, mfc=face, mew=0.8, lw=0,
                      label=label)  # fmt: skip
    axes.plot([], [], "o", ms=7.0, mec=INK, mfc="none", mew=0.8, label="USA0")
    axes.set(ylim=(0, 1.0), xlabel="degree $k$", ylabel=r"rate $\lambda_k$ / mean weight")
    axes.set(xticks=k[:: 1 + len(k) // 13])
    axes.legend(loc="upper right", ncols=2, columnspacing=0.8, handletextpad=0.1)
    panel(axes, "b", "rates on the circle")


def _draw_deviation(axes: Any, rows: list[dict[str, Any]]) -> None:
    some = [row for row in rows if (row["space"], row["k"], row["model"]) == ("zonal", 2, "SA")]
    for index, row in enumerate(some):
        shown = row["odd"] > 10 * row["odd"][0]
        a = row["odd"][shown]
        one = np.abs(row["gap"] + row["even"])[shown]
        axes.plot(a, one, color=COLOURS[4], lw=1.4, alpha=0.6, label="one start" if index == 0 else None)
        axes.plot(a, np.abs(row["bend"][shown]), "--", color=INK, lw=0.6, label="$c\\,a$" if index == 0 else None)
        axes.plot(a, np.maximum(np.abs(row["gap"][shown]), 1e-15), ":", color=COLOURS[0], lw=1.0,
                  label="pair of starts" if index == 0 else None)  # fmt: skip
    row = max(some, key=lambda row: row["rate"] * row["t"][1])
    axes.plot(row["odd"], row["tolerance"], color=GREY, lw=2.0, label="tolerance of a pair")
    axes.set(xscale="log", yscale="log", xlim=(1e-8, 1.2e-4), ylim=(1e-12, 1), xlabel="amplitude $a$")
    axes.set(ylabel=r"$|\log a - \log a(0) - \lambda_k t|$")
    axes.legend(loc="upper left", ncols=2, columnspacing=0.8)
    panel(axes, "c", "second order, $k = 2$ on higher spheres, SA")


def _draw_bends(axes: Any, rows: list[dict[str, Any]]) -> None:
    beta = max(row["beta"] for row in rows)
    some = [row for row in rows if row["beta"] == beta]
    least, most = min(row["k"] for row in some), max(row["k"] for row in some)
    cases = (("SA", least, "o", "-"), ("SA", most, "s", "--"), ("USA0", least, "D", "-."))
    for (model, k, marker, style), at in zip(cases, (0, 4, 2), strict=True):
        row = next(row for row in some if (row["model"], row["k"]) == (model, k))
        colour, shown, scale = COLOURS[at], slice(None, None, 5), row["a"] ** 2 / 8
        axes.plot(row["a"][shown], -row["gap"][shown] / scale[shown], marker, ms=3.6, mec=colour, mew=0.8, lw=0,
                  mfc=colour if model == "SA" else "none")  # fmt: skip
        line = row["a"][0] * np.exp(row["rate"] * row["t"])
        early = (line > 2e-3) & (line < 3)
        axes.plot(line[early], -row["bend"][early] / (line[early] ** 2 / 8), style, color=colour, lw=1.1)
        axes.plot([], [], style + marker, color=colour, ms=3.6, mfc=colour if model == "SA" else "none", lw=1.1,
                  label=f"{model}, $k = {k}$")  # fmt: skip
    axes.set(xscale="log", xlim=(3e-3, 3), ylim=(0.7, 1.5), xlabel="amplitude $a$")
    axes.set(ylabel=r"$(\log a(0) + \lambda_k t - \log a)\,/\,(a^2/8)$")
    axes.legend(loc="upper left")
    panel(axes, "d", rf"third order, circle, $\beta = {beta:g}$")
