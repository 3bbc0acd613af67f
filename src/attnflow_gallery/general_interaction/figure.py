"""Moments that stay and moments that move, growth and turning of modes, and errors."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.general_interaction.compare import measured, rate
from attnflow_gallery.general_interaction.simulate import MODES, TURNS, Parameters, kept, modes, moved


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """General weights at the uniform measure: tokens (marks) and closed forms (lines).

    (a) Largest rate of change of the moments of tokens that stand for the uniform measure, softmax, all scales of B:
    weights with VBᵀ = cI + S, [S, BBᵀ] = 0 (full marks) and others (open), on the circle and S². (b) Growth of modes of
    degree 1, 2, 3 on the circle against the angle by which B is turned, V = I (line) and V = R (dashed). (c) How fast
    these patterns turn. (d) S², V = R turned by 0.7 about an axis: amplitude of modes; the full rate is left to those
    of azimuthal order 0.
    """
    titles = (
        "moments of the uniform measure",
        "growth on the circle",
        "turning on the circle",
        "S², keys and values turned",
    )
    beta = parameters.betas[len(parameters.betas) // 2]
    with panels(2, 2, 5.4, *titles) as page:
        _draw_moments(page[0], parameters, data)
        _draw_rates(page[1], parameters, data, beta, np.real, "growth, Re $\\Lambda$")
        _draw_rates(page[2], parameters, data, beta, lambda z: -np.imag(z), "turning times $k$, $-$Im $\\Lambda$")
        _draw_sphere(page[3], parameters, data[f"growth-3-SA-{beta:g}"], beta)
    return page.figure


def _draw_moments(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    names, height = [], 0
    for d in (2, 3):
        part, stays = data[f"moments-{d}-SA"]["rate"].values, len(kept(parameters, d))
        for k, one in enumerate(kept(parameters, d) + moved(d)):
            values = np.maximum(np.abs(part[:, k]).max(axis=(1, 2)), 1e-17)
            colour = COLOURS[0] if k < stays else COLOURS[4]
            face = colour if k < stays else "white"
            axes.plot(values, np.full(len(values), height), "o" if d == 2 else "s", ms=4, mec=colour, mfc=face)
            names.append(f"$S^{d - 1}$: {one.name.replace('^T', 'ᵀ').replace('^(-T)', '⁻ᵀ')}")
            height += 1
    axes.set(
        xscale="log", xlim=(1e-18, 10), ylim=(height - 0.5, -0.5), xlabel=r"largest rate of E$\langle x,u\rangle^p$"
    )
    axes.set_yticks(range(height), names, fontsize=5)


def _draw_rates(
    axes: Any, parameters: Parameters, data: dict[str, xr.Dataset], beta: float, read: Any, label: str
) -> None:
    angles = np.linspace(0, np.pi / 2, 120)
    part = data[f"growth-2-SA-{beta:g}"]
    (*_, end), logs = measured(part)
    for b, (k, _) in enumerate(modes(parameters, 2)):
        colour = COLOURS[(0, 4, 2)[b % 3]]
        same = theory.uniform.turning_rates(beta, 2, k, angle=k * angles)
        own = theory.uniform.turning_rates(beta, 2, k, angle=k * angles, scale=np.cos(angles), spin=-k * np.sin(angles))
        axes.plot(angles, read(own), color=colour, lw=1.0, label=f"$k = {k}$")
        axes.plot(angles, read(same), "--", color=colour, lw=0.8)
        for a, one in enumerate(TURNS[:3]):
            face = "white" if one.spin == 0 else colour
            axes.plot(one.angle, read(logs[a, b, -1] / end), MARKS[b], ms=4, mec=colour, mfc=face)
    axes.axhline(0, color=GREY, lw=0.6)
    axes.set(xlabel=r"angle $\varphi$ of $B = \beta R_\varphi$", ylabel=f"{label}   ($\\beta = {beta:g}$, SA)")
    axes.legend(loc="lower left", fontsize=6)


def _draw_sphere(axes: Any, parameters: Parameters, part: xr.Dataset, beta: float) -> None:
    time, logs = measured(part)
    for b, mode in enumerate(MODES):
        colour = COLOURS[b % len(COLOURS)]
        growth = rate(TURNS[1], mode, beta, 3, "SA").real
        axes.plot(time, growth * time, color=colour, lw=1.0)
        words = f"degree {mode[0]}, order {mode[1]}"
        axes.plot(time, logs[1, b].real, MARKS[b], ms=4, color=colour, label=words)
    axes.set(xlabel="time $t$", ylabel="log of the amplitude over its start")
    axes.legend(loc="upper left", fontsize=6)
