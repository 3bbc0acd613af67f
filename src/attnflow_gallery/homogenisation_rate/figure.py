"""One token against the step, its error by dimension, two tokens, and the consensus."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import looks, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.homogenisation_rate.simulate import EIGENVALUES, PAIRS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Random layers of finite steps: networks (marks, standard errors) and closed forms (lines).

    (a) One token: E⟨x_L, x_0⟩ over its limit, less 1, against η²: exact (lines) with its first order (dotted). (b) Its
    first error over τη² against the dimension: none at d = 4. (c) Two tokens with E V = vI: (E R − R of the ODE)/η,
    predicted and measured; the line is equality. (d) E V = diag(1, 1/2, 0): variance along e_2 and e_3, predicted
    (crosses).
    """
    titles = "one token", "first error", "two tokens", "fluctuation of the consensus"
    with panels(2, 2, 5.2, *titles) as page:
        _draw_one(page[0], parameters, data)
        dims = np.arange(2, 33)
        page[1].plot(dims, (dims - 1) * (dims - 4) / (4 * dims**2), "o-", ms=3, color=COLOURS[0])
        page[1].axhline(0, color=GREY, lw=0.6)
        page[1].set(xlabel="dimension $d$", ylabel=r"$(d-1)(d-4)/4d^2$")
        _draw_two(page[2], parameters, data)
        part = data["consensus"]
        page[3].errorbar([2, 3], part["mean"], part["error"], fmt="o", ms=4, color=COLOURS[0], label="networks")
        expected = theory.random_layers.consensus_fluctuation(EIGENVALUES, parameters.consensus_step)
        page[3].plot([2, 3], expected, "x", ms=7, color=COLOURS[4], label="formula")
        page[3].set(xlim=(1.5, 3.5), ylim=(0, None), xticks=[2, 3], xlabel="axis $k$", ylabel=r"E $x_k^2$")
        page[3].legend(loc="lower left")
    return page.figure


def _draw_one(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    fine = np.linspace(0.01, 1.1 * max(parameters.steps), 100)
    for d, colour, mark in looks(parameters.dims):
        limit, slope = (float(one) for one in theory.random_layers.single_token_limit(parameters.time, d=d))
        exact = theory.random_layers.single_token_overlap(fine, parameters.time, d=d)
        axes.plot(fine, exact / limit - 1, color=colour, lw=1.0)
        axes.plot(fine, slope / limit * fine, ":", color=colour, lw=0.8)
        part = data[f"one-{d}"]
        axes.errorbar(
            part["step"],
            part["mean"] / limit - 1,
            part["error"] / limit,
            fmt=mark,
            ms=4,
            color=colour,
            label=f"$d = {d}$",
        )
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlim=(0, None), xlabel=r"step $\eta^2$", ylabel="relative error of the limit")
    axes.legend(loc="lower left", fontsize=6)


def _draw_two(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    step, low = parameters.pair_step, 0.0
    for k, colour, mark in looks(parameters.pairs):
        one, part = PAIRS[k], data[f"pair-{k}"]
        slopes = theory.random_layers.pair_layer_error(one.time, one.overlap, one.v, d=one.d)
        ode = np.tanh(np.arctanh(one.overlap) + one.v * one.time)
        expected, words = (
            float(slopes.euler + slopes.noise / one.heads),
            f"$d = {one.d}$, $H = {one.heads}$, $v = {one.v:g}$",
        )
        found = (float(part["mean"]) - ode) / step
        axes.errorbar(expected, found, float(part["error"]) / step, fmt=mark, ms=4, color=colour, label=words)
        low = min(low, expected, found)
    axes.plot([1.1 * low, 0], [1.1 * low, 0], color=GREY, lw=0.8)
    axes.set(xlabel=r"$C_E + C_N/H$", ylabel="measured")
    axes.legend(loc="upper left", fontsize=6)
