"""Densities with an axis, their rates and times, and tokens."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.zonal.compare import predicted_rates
from attnflow_gallery.zonal.simulate import LEVELS, Parameters

MARKS = "os^Dv<>"
TONES = (INK, COLOURS[0], COLOURS[2], COLOURS[4], COLOURS[3], COLOURS[7], COLOURS[8])
"""Of dimensions, all of them dark on white."""
DASHES = ("--", ":", "-.", "-")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Densities with an axis on S^(d-1) under softmax attention.

    (a) Distribution of the angle to the axis at four mean overlaps, for several d, each scaled to its largest value and
    shifted upwards. (b) Growth rates of small harmonics: nonlinear equation (marks) and closed form (lines). (c) Time
    to a mean overlap of 0.5 against d, from three small overlaps ε (marks); lines: log(0.5/ε)/λ_1, as if growth stayed
    exponential. (d) Mean overlap with the axis, iid tokens minus density (marks, one a sample); grey: 2 and 4 standard
    errors that the linearised flow carries.
    """
    titles = (
        rf"condensing densities, $\beta = {parameters.beta:g}$",
        rf"growth of small harmonics, $\beta = {parameters.rate_beta:g}$",
        rf"time to mean overlap {parameters.condensed:g}, $\beta = {parameters.beta:g}$",
        rf"{parameters.n} tokens on $S^{{{parameters.token_dim - 1}}}$, $\beta = {parameters.token_beta:g}$",
    )
    with panels(2, 2, 5.6, *titles) as page:
        _draw_profiles(page[0], data["condensation"])
        _draw_rates(page[1], parameters, data["rates"])
        _draw_times(page[2], parameters, data["condensation"])
        _draw_tokens(page[3], data["tokens"])
    return page.figure


def _draw_profiles(axes: Any, part: xr.Dataset) -> None:
    dims, theta = part["dimension"].values, part["angle"].values
    chosen = dims[np.unique(np.linspace(0, len(dims) - 1, 4).astype(int))]
    for j, d in enumerate(chosen):
        weight = np.sin(theta) ** (int(d) - 2)
        curves = part["profile"].sel(dimension=d).values * weight
        peak = np.nanmax(curves)
        for k, curve in enumerate(curves):
            label = f"mean overlap {LEVELS[k]:g}" if j == 0 else None
            colour = GREY if k == 0 else COLOURS[0]
            axes.plot(theta, j + 0.85 * curve / peak, DASHES[k], color=colour, lw=1.1, label=label)
        axes.annotate(f"$d = {d}$", (np.pi, j), (3, 2), textcoords="offset points", fontsize=8, annotation_clip=False)
    axes.set_xticks([0, np.pi / 2, np.pi], ["0", "π/2", "π"])
    axes.set(yticks=[], xlim=(0, np.pi), ylim=(0, len(chosen) + 0.75))
    axes.set(xlabel="angle to the axis", ylabel="distribution (scaled, shifted)")
    axes.legend(loc="upper center", ncols=2, columnspacing=1.0)


def _draw_rates(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    dims, many = part["dimension"].values, np.arange(1, part["degree"].values[-1] + 3)
    expected = predicted_rates(parameters, many)
    for j, (d, tone) in enumerate(zip(dims, TONES, strict=False)):
        axes.plot(many, expected[j], color=tone, lw=0.9)
        axes.plot(part["degree"], part["rate"][j], MARKS[j % 7], ms=4.5, color=tone, label=f"{d}")
    axes.set(yscale="log", xticks=many, xlabel="degree $k$", ylabel=r"growth rate $\lambda_k$")
    axes.legend(title="dimension $d$", ncols=2, loc="lower left", handletextpad=0.1, columnspacing=0.8)


def _draw_times(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    dims = part["dimension"].values
    many = np.arange(2, dims.max() + 1)
    first = np.array([float(theory.uniform.growth_rates(parameters.beta, int(d), k=1)) for d in many])
    styles = zip(part["overlap"].values, (COLOURS[0], COLOURS[4], COLOURS[2]), "os^", ("-", "--", ":"), strict=False)
    for overlap, colour, mark, dash in styles:
        axes.plot(many, np.log(parameters.condensed / overlap) / first, dash, color=colour, lw=1.0)
        words = rf"$\varepsilon = 10^{{{np.log10(overlap):.0f}}}$"
        axes.plot(dims, part["time"].sel(overlap=overlap), mark, ms=5, color=colour, label=words)
    axes.set_xscale("log", base=2)
    axes.set_xticks(dims, [str(d) for d in dims])
    axes.set(ylim=(0, 1.35 * float(part["time"].max())), xlabel="dimension $d$", ylabel="time $t$")
    axes.legend(ncols=3, loc="upper right", handletextpad=0.1, columnspacing=0.8)


def _draw_tokens(axes: Any, part: xr.Dataset) -> None:
    t, noise = part["time"].values, part["noise"].values
    axes.fill_between(t, -4 * noise, 4 * noise, color="#e4e4e4", lw=0, label="4 standard errors")
    axes.fill_between(t, -2 * noise, 2 * noise, color="#bdbdbd", lw=0, label="2 standard errors")
    axes.axhline(0, color=INK, lw=0.8)
    for k, row in enumerate(part["overlap"].values):
        axes.plot(t, row - part["density"].values, MARKS[k % 7], ms=4.5, mfc="white", mec=COLOURS[0], mew=1.0)
    axes.plot([], [], "o", ms=4.5, mfc="white", mec=COLOURS[0], mew=1.0, label="samples of tokens")
    axes.set(ylim=(-5 * float(noise.max()), 8 * float(noise.max())), xlabel="time $t$")
    axes.set(ylabel="mean overlap: tokens $-$ density")
    axes.legend(loc="upper left", ncols=1)
