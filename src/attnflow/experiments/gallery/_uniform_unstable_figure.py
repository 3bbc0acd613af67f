"""The panels of `uniform_unstable`."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK


def _circle(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    betas = sorted({row["beta"] for row in rows if row["space"] == "circle"})
    return [row for row in rows if row["space"] == "circle"], betas[len(betas) // 2]


def draw_growth(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Amplitudes against time, of some degrees."""
    some, beta = _circle(rows)
    chosen = [row for row in some if (row["beta"], row["model"]) == (beta, "SA") and row["k"] <= 7]
    for row, colour in zip(chosen, COLOURS, strict=False):
        axes.plot(row["t"], row["odd"][0] * np.exp(row["rate"] * row["t"]), color=colour, lw=0.9)
        axes.plot(row["t"][::10], row["odd"][::10], "o", ms=2.6, color=colour, label=f"$k = {row['k']}$")
    axes.set_yscale("log")
    axes.set_ylim(5e-10, 3e-2)
    axes.set_xlabel(rf"time $t$   (circle, SA, $\beta = {beta:g}$)")
    axes.set_ylabel("amplitude $a$")
    axes.legend(loc="upper left", ncols=4, columnspacing=0.8, handletextpad=0.1)


def draw_rates(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Rates on the circle against the degree."""
    some, _ = _circle(rows)
    for beta, colour in zip(sorted({row["beta"] for row in some}), COLOURS, strict=False):
        k = np.arange(1, max(row["k"] for row in some) + 1)
        axes.plot(k, theory.growth_rates(beta, 2, k), color=colour, lw=1.0)
        for model, size, face in (("USA0", 6.5, "none"), ("SA", 3.2, colour)):
            unit = 1.0 if model == "SA" else 1 / float(theory.degree_weights(beta, 2, 1)[0])
            chosen = [row for row in some if (row["beta"], row["model"]) == (beta, model)]
            label = rf"$\beta = {beta:g}$" if model == "SA" else None
            axes.plot([r["k"] for r in chosen], [r["measured"] * unit for r in chosen], "o", ms=size, mec=colour,
                      mfc=face, mew=0.8, label=label)  # fmt: skip
    axes.plot([], [], "o", ms=6.5, mec=INK, mfc="none", mew=0.8, label="USA0")
    axes.set_ylim(0, 0.95)
    axes.set_xlabel("degree $k$")
    axes.set_ylabel(r"rate $\lambda_k$ / mean weight")
    axes.set_xticks(k[:: 1 + len(k) // 13])
    axes.legend(loc="upper right", ncols=2, columnspacing=0.8, handletextpad=0.1)


def draw_deviation(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Deviation from the straight line against the amplitude, by one start and by the pair."""
    some = [row for row in rows if row["space"] != "circle" and row["k"] % 2 == 0 and row["decades"] > 4]
    for name, colour, words in (("one", COLOURS[4], "one start"), ("gap", COLOURS[0], "pair")):
        for index, row in enumerate(some):
            shown = row["odd"] > 10 * row["odd"][0]
            size = np.abs(row[name][shown])
            axes.plot(row["odd"][shown], np.maximum(size, 1e-15), color=colour, lw=0.7, alpha=0.7,
                      label=words if index == 0 else None)  # fmt: skip
    a = np.geomspace(1e-8, 1e-4, 50)
    axes.plot(a, a, "--", color=INK, lw=0.8, label="$a$")
    axes.plot(a, a**2, ":", color=INK, lw=0.8, label="$a^2$")
    if some:
        row = max(some, key=lambda row: row["rate"] * row["t"][1])
        axes.plot(row["odd"], row["tolerance"], color=GREY, lw=1.0, label="tolerance of a pair")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1e-8, 1.2e-4)
    axes.set_ylim(1e-12, 1)
    axes.set_xlabel("amplitude $a$   ($S^2$ and higher spheres, even $k$)")
    axes.set_ylabel(r"$|\log a - \log a_0 - \lambda_k t|$")
    axes.legend(loc="upper left", ncols=2, columnspacing=0.8)


def draw_bends(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Shortfall of log a over a^2/8, to the end of the growth."""
    beta = max((row["beta"] for row in rows), default=0.0)
    some = [row for row in rows if row["beta"] == beta]
    for model, marker in (("SA", "o"), ("USA0", "s")):
        for row, colour in zip([row for row in some if row["model"] == model], COLOURS, strict=False):
            shown = slice(None, None, 5)
            scale = row["a"] ** 2 / 8
            axes.plot(row["a"][shown], -row["gap"][shown] / scale[shown], marker, ms=3, mec=colour, mew=0.7, lw=0,
                      mfc=colour if model == "SA" else "none", label=f"{model}, $k = {row['k']}$")  # fmt: skip
            line = row["a"][0] * np.exp(row["rate"] * row["t"])
            early = line < 3
            axes.plot(line[early], -row["bend"][early] / (line[early] ** 2 / 8), color=colour, lw=0.9)
    axes.set_xscale("log")
    axes.set_xlim(3e-3, 3)
    axes.set_ylim(0, 1.9)
    axes.set_xlabel("amplitude $a$" + (rf"   (circle, $\beta = {beta:g}$)" if rows else ""))
    axes.set_ylabel(r"$(\log a_0 + \lambda_k t - \log a)\,/\,(a^2/8)$")
    axes.legend(loc="lower left", ncols=2, columnspacing=0.8, handletextpad=0.1)
