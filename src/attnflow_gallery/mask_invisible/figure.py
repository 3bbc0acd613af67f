"""The density with and without places, the mean and the noise of iid prompts, and a change of topic."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.mask_invisible.compare import density_order, iid_noise, mean_error, squares, switched
from attnflow_gallery.mask_invisible.simulate import BINS, LAST, Parameters, topic

STYLES = (("masked", COLOURS[0], "o"), ("unmasked", COLOURS[4], "s"))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Prompts with and without a causal mask.

    (a) The density of softmax at the end without a mask (line) and at the first, a middle and the last place (circles,
    squares, triangles) under Causal with two ALiBi slopes; dotted: the start. (b) Mean order parameter of iid prompts
    of N tokens, minus its value for the density (dashes): thick bars are standard errors, thin ones the noise of one
    prompt. (c) N times the mean square of the noise (marks, standard errors) and noise carried by the linearised flow
    (lines). (d) A change of topic at the dotted place: mean of cos(theta) by places, tokens (marks) and placed
    densities (lines); shaded: the quarter of which the claims speak.
    """
    titles = "one density at all places", "iid prompts: mean", "iid prompts: noise", "a change of topic"
    with panels(2, 2, 5.0, *titles) as page:
        _draw_densities(page[0], parameters, data["densities"])
        _draw_means(page[1], parameters, data)
        _draw_noise(page[2], parameters, data)
        _draw_switch(page[3], parameters, data["switch"])
    return page.figure


def _draw_densities(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    start = topic(parameters)
    theta = np.linspace(-np.pi, np.pi, 241)
    axes.plot(theta, start.basis.evaluate(np.asarray(start.coefficients), angles=theta), ":", color=GREY, label="start")
    axes.plot(theta, start.basis.evaluate(part["alone"].values[0], angles=theta), color=INK, label="no mask")
    size = part.sizes["place"]
    shapes = ((0, "o"), (size // 2, "s"), (size - 1, "^"))
    for s, (slope, colour) in enumerate(zip(part["slope"].values, (COLOURS[0], COLOURS[4]), strict=False)):
        for k, (node, mark) in enumerate(shapes):
            some = theta[4 * k + 12 * s :: 24]
            values = start.basis.evaluate(part["placed"].values[0, s, node], angles=some)
            words = None if k else rf"$\lambda = {slope:g}$"
            axes.plot(some, values, mark, color=colour, ms=3.5, mfc="white" if s else colour, mew=0.8, label=words)
    words = rf"density, $\beta = {parameters.strong_beta:g}$, $t = {parameters.strong_until:g}$"
    axes.set(xlabel=r"angle $\theta$", ylabel=words)
    axes.legend(loc="upper left")


def _draw_means(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    order = density_order(parameters)
    along = order / np.hypot(*order)
    for at, (mask, colour, mark) in enumerate(STYLES):
        rows = [data[f"iid-{n}"]["order"].values[at] @ along - np.hypot(*order) for n in parameters.sizes]
        means, errors = zip(*(mean_error(row[:, None]) for row in rows), strict=True)
        x = np.array(parameters.sizes) * (1.04 if at else 0.96)
        wide = [row.std(ddof=1) for row in rows]
        axes.errorbar(x, np.ravel(means), wide, fmt="none", ecolor=colour, lw=0.6, capsize=2, alpha=0.6)
        axes.errorbar(x, np.ravel(means), np.ravel(errors), fmt=mark, color=colour, ms=3.5, lw=1.6, label=mask)
    axes.axhline(0, color=INK, lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_xticks(parameters.sizes, [str(n) for n in parameters.sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.set(xlabel="tokens $N$", ylabel=r"$\mathrm{E}\,z$ less that of the density")
    axes.legend(loc="lower right")


def _draw_noise(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    found = [squares(parameters, data, n) for n in parameters.sizes]
    for at, (mask, colour, mark) in enumerate(STYLES):
        lines = [n * iid_noise(parameters, n, mask).noise for n in parameters.sizes]
        axes.plot(parameters.sizes, lines, color=colour, lw=1.0)
        means, errors = ([one[at] for one in column] for column in zip(*found, strict=True))
        axes.errorbar(parameters.sizes, means, errors, fmt=mark, color=colour, ms=3.5, lw=1.0, label=mask)
    axes.set(xscale="log", ylim=(0, None), xlabel="tokens $N$", ylabel=r"$N\,\mathrm{E}|z - z_\infty|^2$")
    axes.legend(loc="lower right")


def _draw_switch(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    middle = (np.arange(BINS) + 0.5) / BINS
    axes.axvspan(LAST, 1, color=GREY, alpha=0.15, lw=0)
    axes.axvline(parameters.share, color=GREY, lw=0.8, ls=":")
    for at, (mask, colour, mark) in enumerate(STYLES):
        end = switched(parameters, mask)
        profile, half = end.profile(1), end.places.nodes
        for piece in (slice(None, half), slice(half, None)):
            axes.plot(end.places.points[piece], profile[piece], color=colour, lw=1.0)
        means, errors = (part[name].values[at, :, 0] for name in ("profile", "profile_error"))
        axes.errorbar(middle, means, errors, fmt=mark, color=colour, ms=3.5, lw=1.0, label=mask)
    axes.set(xlabel=r"place $\sigma$", ylabel=r"mean of $\cos\theta$", ylim=(-0.25, None))
    axes.legend(loc="lower left", ncols=2)
