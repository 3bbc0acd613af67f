"""Times, meeting points, delays and growth of offsets."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import LINES, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.merge_times import simulate
from attnflow_gallery.merge_times.compare import compare
from attnflow_gallery.merge_times.simulate import SYMMETRIC, SYMMETRIC_MASSES, TRIPLE, TRIPLE_MASSES, Parameters

MARKS = ("o", "s", "^", "D")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Clusters followed to their merges (marks: full SA, open USA0) and closed forms (lines: solid SA, dashed USA0).

    (a) Two equal clusters at the initial angle theta_0: (log T)/beta, and its limit 1 - cos theta_0 (dotted). (b) SA,
    two unequal clusters, the first of mass m_1: the share of the angle that it travels, above its limit for beta ->
    infinity. (c) Two clusters: error of log T, and its tolerance (dashes). (d) What a third cluster adds to log T of
    the first merge, divided by e^(-g), g = beta (u_3 - u_1), where it is known to a fifth, marks moved sideways by
    beta; for small g the third cluster moves meanwhile, which the lines leave out and the tolerance covers. (e)
    Symmetric triples: growth of a small offset of the middle cluster up to the first merge. (f) Merge times of four
    clusters; crosses: SciPy.
    """
    found = compare(parameters, data)
    top = "time of a pair", "meeting point, SA", "error of a pair"
    with panels(2, 3, 4.9, *top, "a third cluster", "symmetric triple", "four clusters") as page:
        _draw_times(page[0], found["pair"], parameters.chord)
        _draw_places(page[1], found["pair"])
        _draw_errors(page[2], found["pair"])
        _draw_delays(page[3], found["triple"])
        _draw_growth(page[4], parameters, found["offset"])
        _draw_four(page[5], found["four"])
    return page.figure


def _draw_times(axes: Any, pairs: xr.Dataset, chord: float) -> None:
    mass = min(np.unique(pairs["mass"]), key=lambda m: abs(m - 0.5))
    betas = np.geomspace(pairs["beta"].min(), pairs["beta"].max(), 60)
    until = 2 * math.asin(chord / 2)
    for k, angle in enumerate(np.unique(pairs["angle"])):
        for model, line in LINES.items():
            predicted = theory.merging.log_merge_time(angle, betas, masses=(mass, 1 - mass), until=until, model=model)
            axes.plot(betas, predicted / betas, line, color=COLOURS[k], lw=0.9)
            found = _some(pairs, model=model, angle=angle, mass=mass)
            axes.plot(found["beta"], found["log_time"] / found["beta"], **_mark(model, k))
        limit = 1 - math.cos(angle)
        axes.axhline(limit, color=COLOURS[k], lw=0.7, ls=":")
        text = {"textcoords": "offset points", "ha": "right", "va": "bottom", "color": COLOURS[k], "fontsize": 7}
        axes.annotate(rf"$\theta_0 = {angle:g}$", (betas[-1], limit), (0, 3), **text)
    axes.set(xscale="log", ylim=(0, 2.6), xlabel=r"inverse temperature $\beta$", ylabel=r"$(\log T)/\beta$")


def _draw_places(axes: Any, pairs: xr.Dataset) -> None:
    angle = min(np.unique(pairs["angle"]), key=lambda a: abs(a - 1))
    betas = np.geomspace(pairs["beta"].min(), pairs["beta"].max(), 60)
    for k, mass in enumerate(m for m in np.unique(pairs["mass"]) if m != 0.5):
        limit = float(theory.merging.meeting_point_limit(angle, masses=(mass, 1 - mass)))
        share = (theory.merging.meeting_point(angle, betas, masses=(mass, 1 - mass)) - limit) / angle
        axes.plot(betas, share, color=COLOURS[k], lw=0.9)
        found = _some(pairs, model="SA", angle=angle, mass=mass)
        axes.plot(found["beta"], (found["way"] - limit) / angle, **_mark("SA", k), label=f"$m_1 = {mass:g}$")
    guide = 0.7 * share[-1] * np.sqrt(betas[-1] / betas)
    axes.plot(betas[betas >= 30], guide[betas >= 30], ":", color=GREY, label=r"$\propto \beta^{-1/2}$")
    share_of_angle = rf"share of $\theta_0$ $-$ limit   ($\theta_0 = {angle:g}$)"
    axes.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$", ylabel=share_of_angle)
    axes.legend(loc="lower left", handletextpad=0.3)


def _draw_errors(axes: Any, pairs: xr.Dataset) -> None:
    shown = pairs.isel(pair=np.isin(pairs["model"].values, simulate.BOTH))
    at = shown["predicted_log_time"]
    axes.plot(at, shown["log_time_tolerance"], "_", ms=5, mew=0.7, color=INK, label="tolerance")
    for k, model in enumerate(simulate.BOTH):
        found = _some(shown, model=model)
        error = np.maximum(np.abs(found["log_time"] - found["predicted_log_time"]), 1e-14)
        axes.plot(found["predicted_log_time"], error, **_mark(model, k, 2.5), label=model)
    axes.set(xscale="log", yscale="log", ylim=(1e-14, 1e-4), xlabel=r"$\log T$", ylabel=r"error of $\log T$")
    axes.legend(loc="upper right", ncols=3, columnspacing=0.8, handletextpad=0.1)


def _draw_delays(axes: Any, three: xr.Dataset) -> None:
    """Where the tolerance is below a fifth of the delay."""
    gaps = np.linspace(float(three["gap"].min()), float(three["gap"].max()), 40)
    betas = np.unique(three["beta"])
    apart = 0.3 * np.min(np.diff(np.unique(three["gap"]))) / max(len(betas) - 1, 1)
    for k, beta in enumerate(betas):
        shift = apart * (2 * k - len(betas) + 1)
        for model, line in LINES.items():
            rest = {"beta": beta, "until": 1e-4 / beta, "model": model}
            thirds = [simulate.distance_of_third(beta, gap) for gap in gaps]
            delays = [
                theory.merging.third_cluster_delay(TRIPLE, third, TRIPLE_MASSES, **rest).value for third in thirds
            ]
            axes.plot(gaps, delays * np.exp(gaps), line, color=COLOURS[k], lw=0.8)
            found = _some(three, model=model, beta=beta)
            found = found.isel(triple=found["first_tolerance"].values < 0.2 * abs(found["predicted_delay"].values))
            # open marks around full ones
            look = _mark(model, k, 2.5) if model == "SA" else _mark(model, k, 5.5) | {"mfc": "none"}
            axes.plot(found["gap"] + shift, found["delay"] * np.exp(found["gap"]), **look)
        axes.plot([], [], MARKS[k], ms=3.5, color=COLOURS[k], label=rf"$\beta = {beta:g}$")
    axes.set(xlabel=r"$g = \beta\,(u_3 - u_1)$", ylabel=r"$e^{g}$ (delay of $\log T$)")
    axes.legend(loc="best", handletextpad=0.1)


def _draw_growth(axes: Any, parameters: Parameters, offsets: xr.Dataset) -> None:
    outer, middle, _ = SYMMETRIC_MASSES
    betas = np.linspace(0.8, 1.15 * float(offsets["beta"].max()), 60)
    for k, (model, line) in enumerate(LINES.items()):
        growth = [
            theory.merging.log_asymmetry_growth(SYMMETRIC, parameters.chord, b, outer=outer, middle=middle, model=model)
            for b in betas
        ]
        axes.plot(betas, growth, line, color=COLOURS[k], lw=0.9)
        found = _some(offsets, model=model)
        axes.plot(found["beta"], found["growth"], **_mark(model, k), label=model)
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel="log growth of the offset")
    axes.legend(loc="upper left", handletextpad=0.1)


def _draw_four(axes: Any, four: xr.Dataset) -> None:
    for k, model in enumerate(simulate.BOTH):
        found = _some(four, model=model)
        axes.plot(found["merge"], found["time"], **_mark(model, k, 6), label=model)
        axes.plot(found["merge"], found["predicted_time"], "x", color=INK, ms=5, mew=0.9, zorder=4)
    axes.plot([], [], "x", color=INK, ms=5, label="SciPy")
    axes.set(yscale="log", xlabel="merge", xticks=[1, 2, 3], ylabel=r"time $t$", xlim=(0.7, 3.3))
    axes.legend(loc="upper left", handletextpad=0.1)


def _mark(model: str, k: int, size: float = 3.5) -> dict[str, Any]:
    """Full for SA, open for USA0; the shape tells series apart."""
    face = COLOURS[k] if model == "SA" else "white"
    return {"ls": "", "marker": MARKS[k % 4], "ms": size, "mec": COLOURS[k], "mfc": face, "mew": 0.8, "zorder": 3}


def _some(table: xr.Dataset, **labels: Any) -> xr.Dataset:
    (kind,) = table.sizes
    return table.isel({kind: np.all([table[name].values == value for name, value in labels.items()], axis=0)})
