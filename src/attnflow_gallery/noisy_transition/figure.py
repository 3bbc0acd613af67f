"""Order against noise, growth on both sides of kappa_c, and order near the onset."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, styled
from attnflow_gallery.noisy_transition.compare import compare, growth_gains
from attnflow_gallery.noisy_transition.simulate import Parameters, onset_of

MARKS = "os^D"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on the circle with noise κ: order m = |mean of x|.

    First panels, one for each model and β: stationary states (solid: stable, dashed: unstable); the equation with noise
    after 25 relaxation times (open squares); root mean square m of tokens (dots, two standard errors); for tokens
    without order the root of κ/((κ − κ_c)n) (dash-dotted). Last but one: growth rate of a small order of tokens (marks,
    two standard errors) and κ_c − κ (line). Last: stationary states near κ_c (marks) and the closed form of third order
    (lines, slope 1/2); open marks: unstable states at κ > κ_c.
    """
    with styled() as figure:
        count = len(parameters.cases) + 2
        rows, columns = (count + 2) // 3, min(count, 3)
        fig = figure.Figure(figsize=(PAGE, 0.4 + 2.3 * rows))
        axes = np.ravel(fig.subplots(rows, columns))
        kept = compare(parameters, data)
        for k, (model, beta) in enumerate(parameters.cases):
            some = [row for row in kept if (row["model"], row["beta"]) == (model, beta)]
            kind = "jump" if theory.uniform.landau_coefficient(beta, model) > 0 else "continuous"
            panel(axes[k], "abcdefgh"[k], rf"{model}, $\beta = {beta:g}$: {kind}")
            _draw_branch(axes[k], data[f"{model}-beta{beta:g}"], some, parameters)
        panel(axes[count - 2], "abcdefgh"[count - 2], "growth of a small order")
        _draw_growth(axes[count - 2], parameters, data)
        panel(axes[count - 1], "abcdefgh"[count - 1], r"order near $\kappa_c$")
        _draw_onset(axes[count - 1], parameters, data)
        handles, labels = axes[0].get_legend_handles_labels()
        if len(axes) > count:
            axes[count].axis("off")
            axes[count].legend(handles, labels, loc="center left")
        else:
            fig.legend(handles, labels, loc="outside upper center", ncols=3)
        for one in axes[count + 1 :]:
            one.axis("off")
        return fig


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
    shares, gains = np.array(parameters.growing), growth_gains(parameters, data)
    mean, error = gains.mean(axis=-1), gains.std(axis=-1, ddof=1) / np.sqrt(gains.shape[-1])
    ends = np.array([shares[0] - 0.25, shares[-1] + 0.25])
    axes.plot(ends, 1 - ends, color=INK, lw=1.2, label=r"$1 - \kappa/\kappa_c$")
    for k, (model, beta) in enumerate(parameters.cases):
        rate = np.log(mean[k]) / parameters.growth_time
        bars = 2 * error[k] / mean[k] / parameters.growth_time
        axes.errorbar(
            shares + 0.04 * (k - (len(mean) - 1) / 2), rate, bars, fmt=MARKS[k], ms=4, lw=1.0,
            color=COLOURS[(0, 4, 2)[k]], label=rf"{model}, $\beta = {beta:g}$",
        )  # fmt: skip
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlabel=r"noise $\kappa/\kappa_c$", ylabel=r"growth rate of $m$, over $\kappa_c$")
    axes.legend(loc="upper right")


def _draw_onset(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for k, (model, beta) in enumerate(parameters.cases):
        part, colour = data[f"near-{model}-beta{beta:g}"], COLOURS[(0, 4, 2)[k]]
        delta, unstable = part["delta"].values, float(part["side"]) > 0
        face = "white" if unstable else colour
        c = abs(float(theory.uniform.landau_coefficient(beta, model))) / onset_of(model, beta)
        axes.plot(delta, np.sqrt(delta / (2 * c)), color=colour, lw=1.0, ls="--" if unstable else "-")
        axes.plot(
            delta, part["order"].values, MARKS[k], ms=4, mec=colour, mfc=face, color=colour, ls="",
            label=rf"{model}, $\beta = {beta:g}$",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=r"$|1 - \kappa/\kappa_c|$", ylabel="order $m$")
    axes.legend(loc="upper left")
