"""The panels of `noisy_transition`."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.plots.style import COLOURS, GREY, INK


def draw_branch(axes: Any, model: str, beta: float, part: xr.Dataset, rows: list[dict[str, Any]]) -> None:
    """The branch with its stability, the uniform measure, tokens and the equation."""
    onset = rows[0]["onset"]
    kappa, order, unstable = part["kappa"].values / onset, part["order"].values, part["unstable"].values > 0
    kappa, order, unstable = np.append(kappa, 1.0), np.append(order, 0.0), np.append(unstable, unstable[-1])
    first = int(np.argmax(unstable)) if unstable.any() else len(kappa)
    axes.plot(kappa[:first], order[:first], color=INK, lw=1.2, label="stable")
    if first < len(kappa):
        axes.plot(kappa[first - 1 :], order[first - 1 :], "--", color=INK, lw=1.0)
    right = max(2.0, 1.05 * max(row["kappa"] / onset for row in rows))
    axes.plot([1, right], [0, 0], color=INK, lw=1.2)
    axes.plot([0.45, 1], [0, 0], "--", color=INK, lw=1.0, label="unstable")
    x = [row["kappa"] / onset for row in rows]
    axes.plot(x, [row["equation"] for row in rows], "s", ms=6, mfc="none", mec=COLOURS[0], mew=0.9, label="equation")
    root = np.sqrt([row["found"] for row in rows])
    bars = [row["error"] / m for row, m in zip(rows, root, strict=True)]  # twice the error of the root
    axes.errorbar(x, root, bars, fmt="o", ms=3, lw=1.0, color=COLOURS[4], label="tokens", zorder=3)
    free = [row for row in rows if not row["ordered"]]
    level = [np.sqrt(row["square"]) for row in free]
    words = r"$(\kappa/(\kappa - \kappa_c)n)^{1/2}$"
    axes.plot([row["kappa"] / onset for row in free], level, "_", ms=11, color=INK, mew=0.9, label=words)
    axes.axvline(1, color=GREY, lw=0.6, ls=":")
    axes.set_xlim(0.45, right)
    axes.set_ylim(-0.03, 1.04)
    axes.set_xlabel(rf"noise $\kappa/\kappa_c$   ({model}, $\beta = {beta:g}$)")
    axes.set_ylabel("order $m$")
    axes.legend(loc="upper right")


def draw_onset(axes: Any, cases: tuple[tuple[str, float], ...], data: dict[str, xr.Dataset]) -> None:
    """Order near the onset, with the closed form of third order."""
    from attnflow.experiments.gallery.noisy_transition import landau

    for (model, beta), colour in zip(cases, COLOURS, strict=False):
        part = data[f"near-{model}-beta{beta:g}"]
        delta, onset = part["delta"].values, float(part["onset"])
        side = "" if float(part["side"]) < 0 else " (unstable)"
        axes.plot(delta, part["order"].values, "o", ms=3.5, color=colour, label=rf"{model}, $\beta = {beta:g}${side}")
        axes.plot(delta, np.sqrt(delta * onset / (2 * abs(landau(beta, model)))), color=colour, lw=1.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(r"$|1 - \kappa/\kappa_c|$")
    axes.set_ylabel("order $m$")
    axes.legend(loc="upper left")
