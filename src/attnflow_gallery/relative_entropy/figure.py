"""Densities, divergences against the number of cells, and parts of shells."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

from attnflow.control import match_density_1d
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.relative_entropy.compare import constants
from attnflow_gallery.relative_entropy.simulate import SPAN, Parameters, reached, target

MARKS = {"uniform": "o", "quantile": "s", "optimal": "^"}
SHOWN = 12
"""Cells in panel a."""


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """A normal density, carried to a mixture by a schedule of ReLU units.

    (a) The target (grey), the base (dotted), and what 15 units make of the base, whose density jumps at the 13 nodes of
    the best mesh. (b) Divergence of the target from the reached density against the number of cells, for three meshes;
    lines: the limits of KL K². (c) Parts of the divergence on shells of Student targets (marks); lines: R^(2 - ν). They
    add up to infinity for ν ≤ 2.
    """
    with panels(1, 3, 2.6, "densities", "sharp constants", "second moments") as page:
        _draw_densities(page[0])
        _draw_meshes(page[1], data["meshes"])
        _draw_tails(page[2], data["tails"])
    return page.figure


def _draw_densities(axes: Any) -> None:
    match, x = match_density_1d(target(), SHOWN, span=SPAN), np.linspace(-5.5, 5, 1500)
    axes.fill_between(x, target().pdf(x), color=GREY, alpha=0.35, lw=0, label="target")
    axes.plot(x, norm.pdf(x), color=INK, lw=0.9, ls=":", label="base")
    axes.plot(x, np.exp(reached(match.schedule, x)), color=COLOURS[0], lw=1.0, label=f"{len(match.schedule)} units")
    axes.set(xlabel="$x$", ylabel="density", ylim=(0, 0.56))
    axes.legend(loc="upper center", handlelength=1.0, ncols=3, columnspacing=0.8, handletextpad=0.4)


def _draw_meshes(axes: Any, part: xr.Dataset) -> None:
    cells = part["cells"].values
    for k, (mesh, mark) in enumerate(MARKS.items()):
        axes.loglog(cells, part["forward"].sel(mesh=mesh), mark, ms=3.6, color=COLOURS[k], label=mesh)
    for k, limit in zip((0, 2), constants().values(), strict=True):
        axes.loglog(cells, limit / cells.astype(float) ** 2, color=COLOURS[k], lw=0.9)
    axes.set(xlabel="cells $K$", ylabel="KL(target | reached)")
    axes.legend(loc="lower left", title="mesh", title_fontsize=7)


def _draw_tails(axes: Any, part: xr.Dataset) -> None:
    shells = part["shell"].values.astype(float)
    for k, nu in enumerate(part["degrees"].values):
        rows = part["part"].sel(degrees=nu).values
        seen = rows > 0
        axes.semilogy(shells[seen], rows[seen], "o", ms=3.0, color=COLOURS[k], label=rf"$\nu = {nu:g}$")
        axes.semilogy(shells[3:], rows[-1] * 10 ** ((2 - nu) * (shells[3:] - shells[-1])), color=COLOURS[k], lw=0.8)
    axes.set(xlabel=r"shell: $\log_{10}|x|$", ylabel="part of KL", ylim=(1e-17, 1e13))
    axes.legend(loc="upper left", ncols=2, handletextpad=0.2, columnspacing=0.6)
