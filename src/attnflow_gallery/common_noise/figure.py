"""Distances to the density, the moving Poisson kernel and its order, layers, the uniform start, the average."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import log_rms
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, panel, shades, styled
from attnflow_gallery.common_noise.compare import average, departures, squares
from attnflow_gallery.common_noise.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Random layers that all tokens share, on the circle.

    (a) Root mean square distance between c_1 of n tokens and c_1 of the density, with the heads of the density (filled)
    and with other heads (open), standard errors; lines: the linearised layers, and twice the variance of c_1 added to
    them. (b) Infinite temperature, one path: density between neighbouring points that carry equal masses (marks), and
    the Poisson kernel (lines). (c) E log|w|² and E|w|² over their starts (marks, 4 standard errors; lines: theory). (d)
    Distance of layers from the Poisson kernels (marks, standard errors) and √(hτ) u₀(1−u₀)/√8. (e) Uniform start: modes
    of every path; dashed: the root of theory's E|c_2|². (f) Average over heads of one token (marks, 4 standard errors)
    and e^(−(d−1)τ/(2d)).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 7.0))
        axes = fig.subplots(3, 2)
        _draw_rates(axes[0, 0], parameters, data)
        _draw_kernel(axes[0, 1], data["kernel"])
        _draw_order(axes[1, 0], parameters, data["order"])
        _draw_leave(axes[1, 1], parameters, data)
        _draw_uniform(axes[2, 0], parameters, data["long"])
        _draw_average(axes[2, 1], parameters, data)
        titles = (
            rf"$b = {parameters.b:g}$: tokens and density", "infinite temperature: a moving Poisson kernel",
            r"infinite temperature: $\log |w|^2$ is a martingale", "infinite temperature: layers leave the kernels",
            rf"uniform start, $b = {max(parameters.uniform_b):g}$: no consensus", "average over heads, one token",
        )  # fmt: skip
        for letter, title, one in zip("abcdef", titles, axes.flat, strict=True):
            panel(one, letter, title)
        return fig


def _draw_rates(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    n = np.array(parameters.sizes, float)
    line = np.geomspace(n[0] / 1.4, n[-1] * 1.4, 40)
    own = float(data["density"]["power"].sum("wave").mean()) / line
    apart = 2 * float(np.sum(np.var(data["density"]["mean"].values, axis=0, ddof=1)))
    for which, words, colour, face, square in (
        ("mean", "same heads", COLOURS[0], COLOURS[0], own), ("other", "other heads", COLOURS[4], "white", apart + own)
    ):  # fmt: skip
        value, error = log_rms(squares(parameters, data, which).T)
        axes.plot(line, np.sqrt(square), color=colour, lw=1.0, ls="-" if which == "mean" else "--")
        axes.errorbar(
            n, np.exp(value), np.exp(value) * error, fmt="o", ms=4, color=colour, mfc=face, lw=0.9, label=words
        )
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(n, [f"{size:g}" for size in n])
    axes.minorticks_off()
    axes.set_xlabel("number of tokens $n$")
    _plain(axes)
    axes.set_ylabel(r"rms distance of $c_1$")
    axes.legend(loc="lower left")


def _draw_kernel(axes: Any, part: xr.Dataset) -> None:
    path = int(np.argmin(part["gap"].values[:, -1]))
    theta, frames = np.linspace(-np.pi, np.pi, 400), range(0, part.sizes["frame"], 2)
    for frame, colour, mark in zip(frames, shades(len(frames)), "os^", strict=False):
        w = complex(*part["w"].values[path, frame])
        axes.plot(theta, (1 - abs(w) ** 2) / np.abs(np.exp(1j * theta) - w) ** 2, color=colour, lw=1.0)
        z = part["points"].values[path, frame, :, 0] + 1j * part["points"].values[path, frame, :, 1]
        gap = np.angle(np.roll(z, -1) / z)
        some = slice(None, None, max(1, len(z) // 32))
        axes.plot(np.angle(z * np.exp(1j * gap / 2))[some], (2 * np.pi / len(z) / gap)[some], mark, ms=3, color=colour,
                  label=rf"$\tau = {float(part['tau'][frame]):g}$")  # fmt: skip
    axes.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    axes.set(ylim=(0, None), xlabel=r"angle $\theta$", ylabel="density (uniform = 1)")
    axes.legend(loc="upper left")


def _draw_order(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    times, u = part["tau"].values[1:], part["u"].values[:, 1:]
    line = np.linspace(0, 1.05 * times[-1], 12)
    scale = 4 / np.sqrt(len(u))
    mean = theory.random_layers.poisson_order_mean(parameters.order, line) / parameters.order
    for found, curve, colour, mark, ls, words in (
        (np.log(u) / np.log(parameters.order), np.ones_like(line), COLOURS[0], "o", "-", r"$E \log |w|^2 / \log u_0$"),
        (u / parameters.order, mean, COLOURS[4], "s", "--", r"$E |w|^2 / u_0$"),
    ):
        axes.plot(line, curve, color=colour, lw=1.0, ls=ls)
        axes.errorbar(times, found.mean(axis=0), scale * found.std(axis=0, ddof=1), fmt=mark, ms=4, lw=0.9,
                      color=colour, label=words)  # fmt: skip
    axes.set(xlim=(0, line[-1]), ylim=(0.93, None), xlabel=r"time $\tau$", ylabel="over the start")
    axes.legend(loc="upper left")


def _draw_leave(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    steps, u = np.array(parameters.leave_steps), parameters.order
    line = np.geomspace(steps.min() / 1.5, steps.max() * 1.5, 20)
    for frame, colour, mark in ((0, COLOURS[0], "o"), (1, COLOURS[4], "s")):
        tau = parameters.leave_tau * (1 + frame)
        rows = np.stack([departures(parameters, data[f"leave-{h:g}"], h)[:, frame] for h in parameters.leave_steps])
        value, error = log_rms(rows * steps[:, None] * tau)
        axes.plot(line, np.sqrt(line * tau / 8) * u * (1 - u), color=colour, lw=1.0, ls="--" if frame else "-")
        axes.errorbar(steps, np.exp(value), np.exp(value) * error, fmt=mark, ms=4, lw=0.9, color=colour,
                      label=rf"$\tau = {tau:g}$")  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(steps, [f"{h:g}" for h in steps])
    axes.minorticks_off()
    axes.set_xlabel("time $h$ of a layer")
    _plain(axes)
    axes.set_ylabel(r"rms $|c_2 - c_1^2|$")
    axes.legend(loc="upper left")


def _draw_uniform(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    times, size = part["tau"].values[1:], part["size"].values[:, 1:]
    floor = 1e-18
    for mode, colour, ls in ((1, COLOURS[4], "-"), (2, COLOURS[0], "-")):
        axes.plot(times, np.maximum(size[..., mode - 1].T, floor), color=colour, lw=0.5, alpha=0.45, ls=ls)
        axes.plot([], [], color=colour, lw=1.2, label=rf"$|c_{mode}|$")
    power = theory.random_layers.uniform_start_power(2, max(parameters.uniform_b))
    early = times[times <= 1.0]
    axes.plot(early, np.sqrt(power * early), color=INK, lw=1.2, ls="--", label=r"$(E|c_2|^2)^{1/2}$, $\tau \to 0$")
    axes.axhline(np.finfo(float).eps, color=GREY, lw=0.8, ls=":", label="rounding")
    axes.set(yscale="log", ylim=(floor, 30), xlim=(0, times[-1]), xlabel=r"time $\tau$", ylabel="size of the mode")
    axes.legend(loc="center right", ncols=2)


def _draw_average(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    times = np.array(parameters.mean_times)
    line = np.linspace(0, 1.05 * times[-1], 60)
    for d, colour, mark, ls in zip(parameters.dims, (COLOURS[0], COLOURS[4]), "os", ("-", "--"), strict=False):
        rows = data[f"single-{d}"]["overlap"].values
        axes.plot(line, average(line, d, parameters.mean_h), color=colour, lw=1.0, ls=ls)
        axes.errorbar(times, rows.mean(axis=0), 4 * rows.std(axis=0, ddof=1) / np.sqrt(len(rows)), fmt=mark, ms=4,
                      lw=0.9, color=colour, label=f"$d = {d}$")  # fmt: skip
    axes.set(xlim=(0, line[-1]), ylim=(0, 1.02), xlabel=r"time $\tau$")
    axes.set(ylabel=r"mean of $\langle x(\tau), x(0) \rangle$")
    axes.legend(loc="lower left")


def _plain(axes: Any) -> None:
    """Plain numbers on a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
