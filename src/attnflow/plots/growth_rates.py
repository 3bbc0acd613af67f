"""The spectrum at the uniform measure, as a figure."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.plots.style import COLOURS, COLUMN, GREY, styled


def draw_growth_rates(beta: float, d: int) -> Any:
    """Growth rate against degree for SA, the fastest one marked, with the large-beta bound 2/e."""
    from matplotlib.ticker import MaxNLocator

    rates = theory.uniform.growth_rates(beta, d)
    top = int(theory.uniform.dominant_degree(beta, d))
    degrees = np.arange(1, len(rates) + 1)
    shown = degrees <= max(3 * top, 8)
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.3))
        axes = fig.subplots()
        axes.vlines(degrees[shown], 0, rates[shown], color=COLOURS[0], lw=1.4)
        axes.plot(degrees[shown], rates[shown], "o", ms=3.5, color=COLOURS[0])
        axes.plot(top, rates[top - 1], "o", ms=6, color=COLOURS[4], label=f"$k_{{max}} = {top}$")
        axes.axhline(2 / np.e, color=GREY, ls=":", lw=0.8, label="$2/e$")
        axes.set_ylim(0, 1.15 * max(2 / np.e, float(rates.max())))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.set(xlabel="degree $k$", ylabel=r"growth rate $\lambda_k$")
        axes.set(title=rf"uniform measure on $S^{{{d - 1}}}$, softmax, $\beta = {beta:g}$")
        axes.legend(loc="upper right")
        return fig
