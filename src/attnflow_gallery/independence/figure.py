"""Pairs and triples against 1/n, triples against time, and softmax on S^2."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.independence.compare import series
from attnflow_gallery.independence.simulate import DEGREES, MODELS, Parameters

LOOKS = {"SA": COLOURS[0], "USA": COLOURS[4]}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Correlations of exchangeable tokens that start iid and uniform: Monte Carlo (marks) and theory (lines).

    (a) n times the pair correlation on the circle against 1/n, SA and USA, degree 1 (full marks) and 2 (open); stars:
    limit of many tokens; lines: the closure of softmax. (b) The same for three tokens, with the line through the two
    largest n. (c) The limit for three tokens against time; circles: extrapolated Monte Carlo. (d) Softmax on S²: the
    closure with the token's own weight (line) and the limit (dashed) against n.
    """
    titles = "two tokens, circle", "three tokens, circle", "three tokens against time", "two tokens, softmax on S²"
    with panels(2, 2, 5.2, *titles) as page:
        for model in MODELS:
            every = series(parameters, data, model)
            _draw_pairs(page[0], parameters, every[:2], model)
            _draw_triple(page[1], every[-1], model)
            _draw_time(page[2], parameters, every[-1], model)
        page[2].axhline(0, color=GREY, lw=0.6)
        page[2].set(xlabel="time $t$", ylabel=r"$n^2$ E $\cos(\theta_1+\theta_2-2\theta_3)$")
        page[2].legend(loc="upper left")
        page[0].set(xlim=(0, None), xlabel="$1/n$", ylabel=r"$n$ E $P_k(\langle x_1, x_2\rangle)$")
        page[0].legend(loc="center right", ncols=2, fontsize=6)
        page[1].axhline(0, color=GREY, lw=0.6)
        page[1].set(xlim=(0, None), xlabel="$1/n$", ylabel=r"$n^2$ E $\cos(\theta_1+\theta_2-2\theta_3)$")
        page[1].legend(loc="center right")
        _draw_sphere(page[3], parameters, data["sphere"])
    return page.figure


def _draw_pairs(axes: Any, parameters: Parameters, every: list[Any], model: str) -> None:
    n = np.arange(parameters.sizes[0], 20 * parameters.sizes[-1])
    for k, one in zip(DEGREES, every, strict=True):
        face = LOOKS[model] if k == 1 else "white"
        look: Any = {"fmt": MARKS[k - 1], "color": LOOKS[model], "mfc": face, "ms": 4, "lw": 1.0}
        axes.errorbar(1 / one.sizes, one.mean, one.error, label=f"{model}, $k = {k}$", **look)
        axes.plot(0, one.limit, "*", ms=8, color=LOOKS[model], clip_on=False)
        if model == "SA":
            closure = theory.uniform.pair_correlation(parameters.until, parameters.beta, 2, k=k, n=n)
            axes.plot(1 / n, closure, color=LOOKS[model], lw=0.9)


def _draw_triple(axes: Any, one: Any, model: str) -> None:
    axes.errorbar(1 / one.sizes, one.mean, one.error, fmt="o", ms=4, lw=1.0, color=LOOKS[model], label=model)
    axes.plot(0, one.limit, "*", ms=8, color=LOOKS[model], clip_on=False)
    few, many = 1 / one.sizes[-2:]
    slope = (one.mean[-2] - one.mean[-1]) / (few - many)
    axes.plot([0, few], [one.mean[-1] - slope * many, one.mean[-2]], color=LOOKS[model], lw=0.8)


def _draw_time(axes: Any, parameters: Parameters, one: Any, model: str) -> None:
    t = np.linspace(0, 2 * parameters.until, 100)
    axes.plot(t, theory.uniform.triple_correlation(t, parameters.beta, model=model), color=LOOKS[model], label=model)
    left, error, _ = one.left
    axes.errorbar(parameters.until, one.limit + left, error, fmt="o", ms=4, color=LOOKS[model])
    axes.set_ylim(-0.6, 3)


def _draw_sphere(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    n, beta, t = np.arange(8, 257), parameters.sphere_beta, parameters.until
    for at, k in enumerate(DEGREES):
        colour = COLOURS[(0, 2)[at]]
        axes.plot(n, theory.uniform.pair_correlation(t, beta, 3, k=k, n=n), color=colour, lw=1.0)
        axes.axhline(float(theory.uniform.pair_correlation(t, beta, 3, k=k)), color=colour, ls="--", lw=0.8)
        mean, error = float(part["mean"][at]), float(part["error"][at])
        axes.errorbar(parameters.sphere_size, mean, error, fmt="o", ms=4, color=colour, label=f"degree {k}")
    axes.set(xscale="log", xlabel="$n$", ylabel=rf"$n$ E $P_k$,  $\beta = {beta:g}$")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.plot([], [], "--", color=INK, lw=0.8, label="many tokens")
    axes.legend(loc="center right")
