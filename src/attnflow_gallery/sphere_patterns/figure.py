"""Where clusters of Platonic seeds lie, and slopes of the skewness."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.sphere_patterns.compare import ends_at, slopes
from attnflow_gallery.sphere_patterns.simulate import MODELS, SEEDS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Patterns on S² from seeds of one degree.

    First panels: clusters of Platonic seeds (dots, area by mass) and vertices of the predicted solid (crosses), in
    equal-area (Hammer) projection. Then a random seed of degree 4: a distorted polyhedron. Last: measured growth of
    the skewness per unit of amplitude against 3κ(|Πu²|² − w²), softmax (full) and USA0 (open); the line is equality.
    """
    shown = [f"seed-{k}" for k in parameters.platonic] + ["random-0"]
    titles = []
    for name in shown:
        one = SEEDS[int(name[5:])] if name.startswith("seed") else None
        words = f"degree {one.degree}, {'+' if one.sign > 0 else '−'}: {one.ends}" if one else "random, degree 4"
        titles.append(f"{words} ({data[name].sizes['cluster']})")
    rows = (len(shown) + 2) // 2
    with panels(rows, 2, 1.8 * rows, *titles, "growth of the skewness") as page:
        for axes, name in zip(page, shown, strict=False):
            _draw_map(axes, data[name], ends_at(parameters, int(name[5:])) if name.startswith("seed") else None)
        _draw_slopes(page[len(shown)], parameters, data)
        for axes in page[len(shown) + 1 :]:
            axes.set_visible(False)
    return page.figure


def _hammer(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal-area coordinates of unit vectors."""
    longitude, latitude = np.arctan2(x[:, 1], x[:, 0]), np.arcsin(np.clip(x[:, 2], -1, 1))
    scale = np.sqrt(1 + np.cos(latitude) * np.cos(longitude / 2))
    return 2 * np.cos(latitude) * np.sin(longitude / 2) / scale, np.sin(latitude) / scale


def _draw_map(axes: Any, part: xr.Dataset, vertices: np.ndarray | None) -> None:
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(2 * np.cos(angle), np.sin(angle), color=GREY, lw=0.6)
    axes.scatter(*_hammer(part["centre"].values), s=400 * part["mass"].values, color=COLOURS[0], lw=0)
    if vertices is not None:
        axes.plot(*_hammer(vertices), "+", ms=7, mew=0.9, color=COLOURS[4])
    axes.set(aspect="equal", xlim=(-2.1, 2.1), ylim=(-1.1, 1.1), xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)


def _draw_slopes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    top = 0.0
    for (degree, beta), mark in zip(parameters.skew, MARKS, strict=False):
        for model, colour in zip(MODELS, (COLOURS[0], COLOURS[4]), strict=True):
            kappa = theory.uniform.pattern_coefficient(beta, 3, degree, model=model)
            found, bracket, _ = slopes(data[f"skew-{degree}-{model}"], degree)
            face, words = colour if model == "SA" else "white", rf"{model}, $l = {degree}$, $\beta = {beta:g}$"
            axes.plot(3 * kappa * bracket, found, mark, ms=4, mec=colour, mfc=face, lw=0, label=words)
            top = max(top, float(np.max(3 * kappa * bracket)))
    axes.plot([0, 1.1 * top], [0, 1.1 * top], color=INK, lw=0.8)
    axes.set(xlabel=r"$3\kappa(|\Pi u^2|^2 - w^2)$", ylabel="measured")
    axes.legend(loc="upper left", fontsize=5.5)
