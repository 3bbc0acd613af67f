"""Shares of fresh samples that miss, wrong masses against shifts, and shifts of clouds."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import looks, panels, share_interval
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.interpolation_is_not_learning.compare import missed
from attnflow_gallery.interpolation_is_not_learning.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Schedules that carry samples to atoms, shown other samples of the same distributions.

    (a) Share of fresh samples with W₂ > 10⁻³ against the number n of tokens in a sample, with exact 95 % intervals: for
    targets of one atom and of four. All samples that were given arrive. (b) Four atoms: mass at wrong atoms against the
    shift δ of the cloud that attention makes of a fresh sample, over the radius ρ of a cloud; dotted: 3/4, which is all
    that can be wrong. (c) Shift between clouds of two samples and radius of a cloud, root mean squares; line: n^(-1/2).
    """
    part = data["samples"]
    n = part["n"].values.astype(float)
    with panels(1, 3, 2.5, "fresh samples that miss", "four atoms", "after attention") as page:
        _draw_shares(page[0], part, n)
        _draw_masses(page[1], part)
        _draw_shifts(page[2], data["shifts"])
    return page.figure


def _draw_shares(axes: Any, part: xr.Dataset, n: np.ndarray) -> None:
    for k, (each, colour, mark) in enumerate(looks(part["atoms"].values)):
        aside = n * (0.95, 1.05)[k]
        there = part["found"].values[k] != 0
        hits = [missed(part["fresh"].values[k, j][there[j]]).ravel() for j in range(len(n))]
        share = np.array([one.mean() for one in hits])
        low, high = np.array([share_interval(one.sum(), one.size, 0.95) for one in hits]).T
        label = f"{each} atom{'s' if each > 1 else ''}"
        axes.errorbar(aside, share, [share - low, high - share], fmt=mark, ms=4, lw=0.9, color=colour, label=label)
    axes.set(xscale="log", xlabel="tokens $n$", ylabel="share", ylim=(-0.03, 1.05))
    axes.set_xticks(n, [f"{one:g}" for one in n])
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.legend(loc="lower left")


def _draw_masses(axes: Any, part: xr.Dataset) -> None:
    for j, (n, colour, mark) in enumerate(looks(part["n"].values)):
        x, y = (part[name].values[1, j].ravel() for name in ("shift", "wrong"))
        axes.plot(x, y, mark, ms=3.2, color=colour, alpha=0.8, mew=0, label=f"$n = {n}$")
    axes.axhline(0.75, color=GREY, lw=0.7, ls=":")
    axes.set(xscale="log", xlabel=r"$\delta/\rho$", ylabel="mass at wrong atoms", ylim=(0, 0.8))
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.legend(loc="lower right")


def _draw_shifts(axes: Any, part: xr.Dataset) -> None:
    n = part["n"].values.astype(float)
    shift, radius = (np.sqrt(np.mean(part[name].values ** 2, axis=1)) for name in ("shift", "radius"))
    axes.loglog(n, shift, "s", ms=5, color=COLOURS[0], label="shift of the cloud")
    axes.loglog(n, radius, "o", ms=5, color=COLOURS[1], label="radius of a cloud")
    axes.loglog(n, np.exp(np.mean(np.log(shift * n**0.5))) * n**-0.5, color=GREY, lw=0.8)
    axes.set(xlabel="tokens $n$", ylabel="rad")
    axes.set_xticks(n, [f"{one:g}" for one in n])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(lambda x, _: "")
    axes.legend(loc="best")
