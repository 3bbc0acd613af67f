"""Order against noise, growth on both sides of kappa_c, and order near the onset."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.noisy_transition.compare import compare, growth_rates
from attnflow_gallery.noisy_transition.simulate import Parameters, onset_of

LOOKS = tuple(zip((COLOURS[0], COLOURS[4], COLOURS[2]), "os^", strict=True))
"""Colour and mark of every case."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on the circle with noise κ: order m = |mean of x|.

    First panels, one for each model and β: stationary states (solid: stable, dashed: unstable); the equation with noise
    after 25 relaxation times (open squares); root mean square m of tokens (dots, two standard errors); for tokens
    without order the root of κ/((κ − κ_c)n) (dash-dotted). Last but one: growth rate of a small order of tokens (marks,
    two standard errors) and κ_c − κ (line). Last: stationary states near κ_c (marks) and the closed form of third order
    (lines, slope 1/2); open marks: unstable states at κ > κ_c.
    """
    count, kept = len(parameters.cases) + 2, compare(parameters, data)
    kinds = [
        "jump" if theory.uniform.landau_coefficient(b, model=model) > 0 else "continuous"
        for model, b in parameters.cases
    ]
    titles = [f"{_words(*case)}: {kind}" for case, kind in zip(parameters.cases, kinds, strict=True)]
    titles += ["growth of a small order", r"order near $\kappa_c$"]
    height = (count + 2) // 3
    with panels(height, min(count, 3), 0.4 + 2.3 * height, *titles) as page:
        for axes, (model, beta) in zip(page, parameters.cases, strict=False):
            some = [row for row in kept if (row["model"], row["beta"]) == (model, beta)]
            _draw_branch(axes, data[f"{model}-beta{beta:g}"], some, parameters)
        _draw_growth(page[count - 2], parameters, data)
        _draw_onset(page[count - 1], parameters, data)
        for axes in page[count:]:
            axes.axis("off")
            axes.set_title("", loc="left")
        handles = page[0].get_legend_handles_labels()
        if len(page) > count:
            page[count].legend(*handles, loc="center left")
        else:
            page.figure.legend(*handles, loc="outside upper center", ncols=3)
    return page.figure


def _draw_branch(axes: Any, part: xr.Dataset, rows: list[dict[str, Any]], parameters: Parameters) -> None:
    onset = rows[0]["onset"]
    kappa, order, unstable = part["kappa"].values / onset, part["order"].values, part["unstable"].values > 0
    kappa, order, unstable = np.append(kappa, 1.0), np.append(order, 0.0), np.append(unstable, unstable[-1])
    first = int(np.argmax(unstable)) if unstable.any() else len(kappa)
    axes.plot(kappa[:first], order[:first], color=INK, lw=1.4, label="stationary, stable")
    axes.plot(kappa[first - 1 :], order[first - 1 :], "--", color=INK, lw=1.0)
    right = max(2.1, 1.05 * max(row["kappa"] / onset for row in rows))
    axes.plot([1, right], [0, 0], color=INK, lw=1.4)
    axes.plot([0.45, 1], [0, 0], "--", color=INK, lw=1.0, label="stationary, unstable")
    x = [row["kappa"] / onset for row in rows]
    axes.plot(x, [row["equation"] for row in rows], "s", ms=7, mfc="none", mec=COLOURS[0], mew=1.0, label="equation")
    root = np.sqrt([row["found"] for row in rows])
    bars = [row["error"] / m for row, m in zip(rows, root, strict=True)]  # twice the error of the root
    axes.errorbar(x, root, bars, fmt="o", ms=3.5, lw=1.0, color=COLOURS[4], label="tokens", zorder=3)
    line = np.linspace(1.02, right, 200)
    words = r"tokens without order: $\sqrt{\kappa/((\kappa - \kappa_c)n)}$"
    level = np.sqrt(line / ((line - 1) * parameters.free_tokens))
    axes.plot(line[level < 0.5], level[level < 0.5], "-.", color=GREY, lw=1.2, label=words)
    axes.set(xlim=(0.45, right), ylim=(-0.03, 1.0), xlabel=r"noise $\kappa/\kappa_c$", ylabel="order $m$")


def _draw_growth(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    shares = np.array(parameters.growing)
    ends = np.array([shares[0] - 0.25, shares[-1] + 0.25])
    axes.plot(ends, 1 - ends, color=INK, lw=1.2, label=r"$1 - \kappa/\kappa_c$")
    for k, (case, (colour, mark)) in enumerate(zip(parameters.cases, LOOKS, strict=False)):
        rate, error = growth_rates(parameters, data, case)
        place = shares + 0.04 * (k - (len(parameters.cases) - 1) / 2)
        axes.errorbar(place, rate, 2 * error, fmt=mark, ms=4, lw=1.0, color=colour, label=_words(*case))
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlabel=r"noise $\kappa/\kappa_c$", ylabel=r"growth rate of $m$, over $\kappa_c$")
    axes.legend(loc="upper right")


def _words(model: str, beta: float) -> str:
    return rf"{model}, $\beta = {beta:g}$"


def _draw_onset(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for (model, beta), (colour, mark) in zip(parameters.cases, LOOKS, strict=False):
        part = data[f"near-{model}-beta{beta:g}"]
        face, style = ("white", "--") if float(part["side"]) > 0 else (colour, "-")
        c = abs(float(theory.uniform.landau_coefficient(beta, model=model))) / onset_of(model, beta)
        axes.plot(part["delta"], np.sqrt(part["delta"] / (2 * c)), color=colour, lw=1.0, ls=style)
        axes.plot(part["delta"], part["order"], mark, ms=4, color=colour, mfc=face, label=_words(model, beta))
    axes.set(xscale="log", yscale="log", xlabel=r"$|1 - \kappa/\kappa_c|$", ylabel="order $m$")
    axes.legend(loc="upper left")
