"""Loss, inverse temperature and anisotropy through training, and the valley of isotropic layers."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.in_context_denoising.compare import anisotropy, products, scale
from attnflow_gallery.in_context_denoising.simulate import TASKS, Parameters

WORDS = {"centres": "four centres", "great-sphere": "great sphere"}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """One attention layer that learns to denoise a query in context; each curve is a seed.

    (a) Test loss against the step; dotted: the best layer with QᵀK = βI, V = vI. (b) σ² tr QᵀK/d: the posterior mean
    has 1 (dotted); on a great sphere its mirror image, −1, is as good. (c) Anisotropy of QᵀK, 0 for multiples of the
    identity. (d) Loss of isotropic layers, best v for each β, against βσ²: a flat valley; dots: what the seeds found.
    """
    with panels(2, 2, 5.0, "test loss", "inverse temperature", "anisotropy", "the valley") as page:
        for name, sigma, colour in zip(TASKS, parameters.noises, (COLOURS[0], COLOURS[1]), strict=True):
            part, grid = data[f"train-{name}"], data[f"grid-{name}"]
            steps = np.maximum(part["mark_step"].values, 0.6)
            attention = products(part)[0]
            beta = scale(attention) * sigma**2
            page[0].plot(steps, part["test_loss"].values, color=colour, lw=1.0)
            page[0].axhline(float(grid["loss"].min()), color=colour, lw=0.8, ls=":")
            page[1].plot(steps, beta, color=colour, lw=1.0)
            page[2].plot(steps, anisotropy(attention), color=colour, lw=1.0)
            page[3].plot(grid["beta"] * sigma**2, grid["loss"].min("v"), color=colour, lw=1.2, label=WORDS[name])
            page[3].plot(abs(beta[-1]), part["test_loss"].values[-1], "o", ms=3.5, color=INK, mfc=colour)
        for axes in page[:3]:
            axes.set(xscale="log", xlabel="step")
        for y in (-1, 1):
            page[1].axhline(y, color=GREY, lw=0.8, ls=":")
        page[0].set(yscale="log", ylabel="squared error")
        page[1].set(ylabel=r"$\sigma^2\,\mathrm{tr}(Q^\top K)/d$")
        page[2].set(ylabel=r"anisotropy of $Q^\top K$", ylim=(0, 1.05))
        page[3].set(xlabel=r"$\beta\sigma^2$", ylabel="squared error")
        page[3].legend(loc="best")
    return page.figure
