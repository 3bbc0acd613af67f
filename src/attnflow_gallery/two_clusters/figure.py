"""Merge times, meeting points, errors, and the expansion at large beta."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, INK
from attnflow_gallery.two_clusters.compare import compare
from attnflow_gallery.two_clusters.simulate import MODELS, Parameters

LINES = {"SA": "-", "USA0": "--"}
FILLS = {"SA": None, "USA0": "white"}
SHAPES = "os^Dv"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Simulated pairs (marks: full SA, open USA0) and theory (lines: solid SA, dashed USA0).

    (a) Merge time against the initial angle theta_0, equal masses. (b) The share of theta_0 that cluster 1 of mass m_1
    travels; dotted: its limit for SA as beta -> infinity. (c) Error of merge times (relative) and of meeting points,
    and their tolerances (dashes). (d) Relative error of the large-beta approximations of T: the leading term, and the
    leading term with its first correction; the two largest beta were followed on the coordinate log t.
    """
    pairs = compare(parameters, data["pairs"])
    with panels(2, 2, 5.0, "merge time", "meeting point", "errors and tolerances", "large-beta approximation") as page:
        _draw_times(page[0], parameters, pairs)
        _draw_places(page[1], parameters, pairs)
        _draw_errors(page[2], pairs)
        _draw_expansion(page[3], parameters, pairs, data["large"])
    return page.figure


def _some(pairs: xr.Dataset, **labels: Any) -> xr.Dataset:
    keep = np.ones(pairs.sizes["pair"], dtype=bool)
    for name, value in labels.items():
        keep &= pairs[name].values == value
    return pairs.isel(pair=keep)


def _draw_times(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    """Merge time against angle, for masses as equal as there are."""
    mass = min(parameters.masses, key=lambda m: abs(m - 0.5))
    betas = sorted(parameters.betas)
    betas = [betas[k] for k in np.unique(np.linspace(0, len(betas) - 1, 5).astype(int))]
    widest = min(max(parameters.angles) + 0.15, 3.0)
    for beta, colour, shape in zip(betas, COLOURS, SHAPES, strict=False):
        last = float(np.arccos(max(1 - parameters.reach / beta, np.cos(widest))))
        angles = np.linspace(3 * parameters.until, last, 200)
        for model, line in LINES.items():
            times = theory.merging.merge_time(
                angles, beta, masses=(mass, 1 - mass), until=parameters.until, model=model
            )
            axes.plot(angles, times, line, color=colour, lw=1.0)
            found = _some(pairs, beta=beta, mass=mass, model=model)
            axes.plot(found["angle"], found["time"], shape, ms=4, mec=colour, mfc=FILLS[model] or colour, mew=0.9)
        steep = last < 0.999 * widest
        side = {"xytext": (0, 3), "ha": "center", "va": "bottom"} if steep else {"xytext": (3, 0), "va": "center"}
        style = {"textcoords": "offset points", "color": colour, "fontsize": 7}
        axes.annotate(rf"$\beta = {beta:g}$", (last, times[-1]), **style, **side)
    axes.set(yscale="log", ylim=(0.5, None), xlim=(0, widest + 0.4), xlabel=r"initial angle $\theta_0$")
    axes.set(ylabel=rf"merge time $T$   ($m_1 = {mass:g}$)")
    axes.plot([], [], "-o", color=INK, ms=4, lw=1.0, label="SA")
    axes.plot([], [], "--o", color=INK, ms=4, lw=1.0, mfc="white", label="USA0")
    axes.legend(loc="lower right", handlelength=2.4, ncols=2)


def _draw_places(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    """Share of the angle that cluster 1 travels, against beta."""
    angle = min(parameters.angles, key=lambda a: (-len(_some(pairs, angle=a)["beta"]), -a))
    betas = np.geomspace(min(parameters.betas) / 2, 10 * max(parameters.betas), 120)
    for mass, colour, shape in zip(sorted(parameters.masses), COLOURS, SHAPES, strict=False):
        masses = (mass, 1 - mass)
        share = theory.merging.meeting_point(angle, betas, masses=masses) / angle
        axes.plot(betas, share, color=colour, lw=1.0, marker=shape, markevery=[], ms=4, label=f"$m_1 = {mass:g}$")
        axes.axhline(1 - mass, color=colour, lw=1.0, ls="--")
        axes.axhline(
            float(theory.merging.meeting_point_limit(angle, masses=masses)) / angle, color=colour, lw=0.9, ls=":"
        )
        for model in MODELS:
            found = _some(pairs, angle=angle, mass=mass, model=model)
            face = FILLS[model] or colour
            axes.plot(found["beta"], found["travelled"] / angle, shape, ms=4, mec=colour, mfc=face, mew=0.9)
    axes.plot([], [], ":", color=INK, lw=0.9, label=r"SA, $\beta \to \infty$")
    axes.set(xscale="log", ylim=(0, 0.72), xlabel=r"inverse temperature $\beta$")
    axes.set(ylabel=rf"share of $\theta_0$ travelled   ($\theta_0 = {angle:g}$)")
    axes.legend(loc="upper right", ncols=2)


def _draw_errors(axes: Any, pairs: xr.Dataset) -> None:
    """What the simulation misses, and what it may miss."""
    kinds = (("time", "$T$, relative", "s"), ("travelled", "meeting point", "^"))
    for (name, words, marker), colour in zip(kinds, (COLOURS[0], COLOURS[4]), strict=True):
        scale = pairs["predicted_time"] if name == "time" else 1.0
        error = np.abs(pairs[name] - pairs[f"predicted_{name}"]) / scale
        axes.plot(pairs["time"], pairs[f"{name}_tolerance"] / scale, "_", ms=6, mew=0.8, color=colour)
        axes.plot(pairs["time"], np.maximum(error, 1e-17), marker, ms=3, mfc="none", mec=colour, mew=0.6, label=words)
    axes.plot([], [], "_", ms=6, mew=0.8, color=INK, label="tolerance")
    axes.set(xscale="log", yscale="log", ylim=(1e-18, 1e-3), xlabel="merge time $T$", ylabel="|measured $-$ predicted|")
    axes.legend(loc="upper right", ncols=3, columnspacing=1.0, handletextpad=0.2)


def _draw_expansion(axes: Any, parameters: Parameters, pairs: xr.Dataset, large: xr.Dataset) -> None:
    """Relative error of the large-beta approximations of the merge time."""
    mass = max(parameters.masses)
    angle = min(parameters.angles, key=lambda a: abs(a - 1))
    betas = np.geomspace(2.0, 2 * max(parameters.large_betas), 160)
    words = "leading term", r"with $1 + 2\cos\theta_0/(\beta\sin^2\theta_0)$"
    kinds = list(zip((1, 2), (COLOURS[0], COLOURS[4]), "os", words, strict=True))
    for model, line in LINES.items():
        near = _some(pairs, angle=angle, mass=mass, model=model)
        near = near.isel(pair=near["beta"].values >= betas[0])
        far = _some(large, angle=angle, mass=mass, model=model)
        at = np.concatenate([near["beta"].values, far["beta"].values])
        found = np.concatenate([np.log(near["time"].values), far["log_time"].values])
        exact = theory.merging.log_merge_time(
            angle, betas, masses=(mass, 1 - mass), until=parameters.until, model=model
        )
        for terms, colour, shape, _ in kinds:
            for x, y in ((betas, exact), (at, found)):
                error = np.abs(
                    np.expm1(
                        theory.merging.log_merge_time_expansion(
                            angle, x, masses=(mass, 1 - mass), model=model, terms=terms
                        )
                        - y
                    )
                )
                style = {"ls": line} if x is betas else {"ls": "", "marker": shape, "mfc": FILLS[model] or colour}
                axes.plot(x, error, color=colour, lw=1.0, ms=4, mew=0.9, **style)
    for _, colour, shape, label in kinds:
        axes.plot([], [], color=colour, marker=shape, ms=4, label=label)
    axes.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$")
    axes.set(ylabel=rf"$|T_{{approx}}/T - 1|$   ($\theta_0 = {angle:g}$)")
    axes.legend(loc="upper right")
