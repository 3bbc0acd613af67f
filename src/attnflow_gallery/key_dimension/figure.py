"""Pair exponents against the key dimension and the temperature, and the constants of cosines and of cold pairs."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels, powers_of_two
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.key_dimension.compare import cold_constants, exact_constant, keys_of, mean_of, warm_exponents
from attnflow_gallery.key_dimension.simulate import IID, Parameters

NOTE = {"textcoords": "offset points", "color": GREY, "fontsize": 7}
LOOKS = ((COLOURS[0], "o", "-"), (COLOURS[4], "s", "--"))
"""Colour, mark and line: of A = Q^T K and of one matrix, or of the first d_k and of others."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Nearby tokens of a random layer among uniform ones (marks: one layer, two standard errors; lines: theory).

    (a) Pair exponent Λ at zero temperature against the key dimension; square: A of independent entries. Tokens separate
    above 0. (b) Λ against the logit scale b; vertical line: b_c. (c) The constant of the mean cosine of Ax and Ay at
    R = 0.7 against d, for A = QᵀK (d_k = d) and for one Gaussian matrix; lines: exact; dotted: the limits 1 and 1/2.
    (d) Drift constant c of two cold tokens against their overlap; solid: exact; dotted: limits for d → ∞ of A = QᵀK
    (2), of one Gaussian matrix (3/2) and of an orthogonal one (1).
    """
    d, r = parameters.d, parameters.cosine_overlap
    exponents = rf"zero temperature, $d = {d}$", rf"finite temperature, $d = {d}$"
    constants = f"cosine of $Ax$ and $Ay$, $R = {r:g}$", f"cold pairs, $d_k = d = {parameters.cold_d}$"
    with panels(2, 2, 4.8, *exponents, *constants) as page:
        _draw_keys(page[0], parameters, data["cold"])
        _draw_scales(page[1], parameters, data["warm"])
        _draw_cosines(page[2], parameters, data["cosines"])
        _draw_drift(page[3], parameters, data["drift"])
    return page.figure


def _bars(axes: Any, x: Any, y: Any, error: Any, mark: str, colour: str, label: str) -> None:
    look = {"ms": 3.6, "lw": 0.9, "capsize": 1.5, "capthick": 0.7, "color": colour, "label": label}
    axes.errorbar(x, y, 2 * np.asarray(error), fmt=mark, **look)


def _draw_keys(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    d, keys = parameters.d, part["keys"].values
    found, error = mean_of(part["exponent"])
    free = keys == IID
    most = max(keys)
    line = np.unique(np.geomspace(min(keys[~free]), most, 60).astype(int))
    axes.plot(
        line,
        [theory.random_layers.zero_temperature_exponent(d, int(k)) for k in line],
        color=INK,
        lw=1.0,
        label="theory",
    )
    _bars(axes, keys[~free], found[~free], error[~free], "o", COLOURS[0], "$A = Q^T K$")
    if free.any():
        axes.plot(
            [1.4 * most, 2.1 * most], 2 * [theory.random_layers.zero_temperature_exponent(d, None)], color=INK, lw=1.0
        )
        _bars(axes, 1.7 * most, found[free], error[free], "s", COLOURS[4], "$A$ independent entries")
    axes.axhline(0, color=GREY, lw=0.7)
    axes.axvline(d - 1, color=GREY, lw=0.9, ls=":")
    axes.annotate("$d_k = d - 1$", (d - 1, 0.95), (3, 0), xycoords=("data", "axes fraction"), va="top", **NOTE)
    powers_of_two(axes)
    axes.set(xlabel="key dimension $d_k$", ylabel=r"pair exponent $\Lambda$")
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.92))


def _draw_scales(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    scales = part["scale"].values
    found, error = mean_of(part["exponent"])
    line = np.geomspace(scales[0] / 1.5, 1.5 * scales[-1], 120)
    for row, keys in enumerate(part["keys"].values):
        colour, mark, style = LOOKS[min(row, 1)]
        axes.plot(line, warm_exponents(parameters.d, keys, line), color=colour, lw=1.0, ls=style)
        _bars(axes, scales, found[row], error[row], mark, colour, f"$d_k = {keys}$")
        place = theory.random_layers.critical_logit_scale(parameters.d, keys_of(keys))
        if place is not None:
            axes.axvline(place, color=GREY, lw=0.9, ls=":")
            axes.annotate("$b_c$", (place, 0.9), (3, 0), xycoords=("data", "axes fraction"), **NOTE)
    axes.axhline(0, color=GREY, lw=0.7)
    powers_of_two(axes)
    axes.set(xlabel="logit scale $b$", ylabel=r"pair exponent $\Lambda$")
    axes.legend(loc="upper left")


def _draw_cosines(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    r, dims = parameters.cosine_overlap, part["d"].values
    found, error = mean_of(part["cosine"])
    line = np.unique(np.geomspace(dims[0] / 1.5, 1.5 * dims[-1], 40).astype(int))
    scale = dims / (r - r**3)
    for row, ((colour, mark, style), words) in enumerate(zip(LOOKS, ("$A = Q^T K$", "one matrix"), strict=True)):
        exact = np.array(
            [float(theory.random_layers.mean_cosine(r, int(d), d_k=int(d) if row == 0 else None)) for d in line]
        )
        axes.plot(line, line * (r - exact) / (r - r**3), color=colour, lw=1.0, ls=style)
        _bars(axes, dims, (r - found[row]) * scale, error[row] * scale, mark, colour, words)
        axes.axhline((1.0, 0.5)[row], color=GREY, lw=0.9, ls=":")
    powers_of_two(axes)
    axes.set(ylim=(0, 1.3), xlabel="dimension $d = d_k$", ylabel=r"$d\,(R - E \cos)/(R - R^3)$")
    axes.legend(loc="lower right", ncols=2)


def _draw_drift(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    found, error, _ = cold_constants(parameters, part)
    line = np.linspace(0.05, 0.95, 60)
    axes.plot(line, exact_constant(line, parameters.cold_d), color=COLOURS[0], lw=1.0, label="exact drift")
    _bars(axes, part["overlap"].values, found, error, "o", COLOURS[0], "one layer")
    for level, words in ((2.0, "$Q^T K$, $d \\to \\infty$"), (1.5, "one matrix"), (1.0, "orthogonal")):
        axes.axhline(level, color=GREY, lw=0.9, ls=":")
        axes.annotate(words, (0.02, level), (0, 2), xycoords=("axes fraction", "data"), **NOTE)
    axes.set(xlim=(0, 1), ylim=(0.7, 2.3), xlabel="overlap $R$", ylabel="drift constant $c$")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.5))
