"""Distances to the density, the moving Poisson kernel and its order, layers, the uniform start, the average."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.kit import EPS, averaged, log_rms, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.common_noise.compare import average, blocks, departures, squares
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
    titles = (
        rf"$b = {parameters.b:g}$: tokens and density",
        "infinite temperature: a moving Poisson kernel",
        r"infinite temperature: $\log |w|^2$ is a martingale",
        "infinite temperature: layers leave the kernels",
        rf"uniform start, $b = {max(parameters.uniform_b):g}$: no consensus",
        "average over heads, one token",
    )
    with panels(3, 2, 7.0, *titles) as page:
        _draw_rates(page[0], parameters, data)
        _draw_kernel(page[1], data["kernel"])
        _draw_order(page[2], parameters, data["order"])
        _draw_leave(page[3], parameters, data)
        _draw_uniform(page[4], parameters, data["long"])
        _draw_average(page[5], parameters, data)
    return page.figure


def _draw_rates(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    n = np.array(parameters.sizes, float)
    line = np.geomspace(n[0] / 1.4, n[-1] * 1.4, 40)
    own = float(data["density"]["power"].sum("wave").mean()) / line
    apart = 2 * float(np.sum(np.var(data["density"]["mean"].values, axis=0, ddof=1)))
    same, other = ("same heads", COLOURS[0], COLOURS[0], "-"), ("other heads", COLOURS[4], "white", "--")
    for which, square, (words, colour, face, style) in (("mean", own, same), ("other", apart + own, other)):
        axes.plot(line, np.sqrt(square), color=colour, lw=1.0, ls=style)
        _draw_rms(axes, n, blocks(squares(parameters, data, which)).T, "o", colour, mfc=face, label=words)
    _plain(axes, n)
    axes.set(xlabel="number of tokens $n$", ylabel=r"rms distance of $c_1$")
    axes.legend(loc="lower left")


def _draw_rms(axes: Any, x: np.ndarray, square: np.ndarray, mark: str, colour: str, **more: Any) -> None:
    """Root mean squares over draws, with standard errors."""
    value, error = log_rms(square)
    axes.errorbar(x, np.exp(value), np.exp(value) * error, fmt=mark, ms=4, lw=0.9, color=colour, **more)


def _draw_kernel(axes: Any, part: xr.Dataset) -> None:
    path = int(np.argmin(part["gap"].values[:, -1]))
    theta, frames = np.linspace(-np.pi, np.pi, 400), range(0, part.sizes["frame"], 2)
    for frame, colour, mark in zip(frames, (COLOURS[0], COLOURS[4], COLOURS[2]), "os^", strict=False):
        w = complex(*part["w"].values[path, frame])
        axes.plot(theta, (1 - abs(w) ** 2) / np.abs(np.exp(1j * theta) - w) ** 2, color=colour, lw=1.0)
        z = part["points"].values[path, frame, :, 0] + 1j * part["points"].values[path, frame, :, 1]
        gap = np.angle(np.roll(z, -1) / z)
        some, label = slice(None, None, max(1, len(z) // 32)), rf"$\tau = {float(part['tau'][frame]):g}$"
        middle, density = np.angle(z * np.exp(1j * gap / 2)), 2 * np.pi / len(z) / gap
        axes.plot(middle[some], density[some], mark, ms=3, color=colour, label=label)
    axes.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    axes.set(ylim=(0, None), xlabel=r"angle $\theta$", ylabel="density (uniform = 1)")
    axes.legend(loc="upper left")


def _draw_order(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    times, u = part["tau"].values[1:], part["u"].values[:, 1:]
    line = np.linspace(0, 1.05 * times[-1], 12)
    growth = theory.random_layers.poisson_order_mean(parameters.order, line) / parameters.order
    for found, curve, colour, mark, ls, words in (
        (np.log(u) / np.log(parameters.order), np.ones_like(line), COLOURS[0], "o", "-", r"$E \log |w|^2 / \log u_0$"),
        (u / parameters.order, growth, COLOURS[4], "s", "--", r"$E |w|^2 / u_0$"),
    ):
        axes.plot(line, curve, color=colour, lw=1.0, ls=ls)
        mean, error = averaged(found)
        axes.errorbar(times, mean, 4 * error, fmt=mark, ms=4, lw=0.9, color=colour, label=words)
    axes.set(xlim=(0, line[-1]), ylim=(0.93, None), xlabel=r"time $\tau$", ylabel="over the start")
    axes.legend(loc="upper left")


def _draw_leave(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    steps, u = np.array(parameters.leave_steps), parameters.order
    line = np.geomspace(steps.min() / 1.5, steps.max() * 1.5, 20)
    for frame, colour, mark in ((0, COLOURS[0], "o"), (1, COLOURS[4], "s")):
        tau = parameters.leave_tau * (1 + frame)
        rows = np.stack([departures(parameters, data[f"leave-{h:g}"], h)[:, frame] for h in parameters.leave_steps])
        axes.plot(line, np.sqrt(line * tau / 8) * u * (1 - u), color=colour, lw=1.0, ls="--" if frame else "-")
        _draw_rms(axes, steps, rows * steps[:, None] * tau, mark, colour, label=rf"$\tau = {tau:g}$")
    _plain(axes, steps)
    axes.set(xlabel="time $h$ of a layer", ylabel=r"rms $|c_2 - c_1^2|$")
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
    axes.axhline(EPS, color=GREY, lw=0.8, ls=":", label="rounding")
    axes.set(yscale="log", ylim=(floor, 30), xlim=(0, times[-1]), xlabel=r"time $\tau$", ylabel="size of the mode")
    axes.legend(loc="center right", ncols=2)


def _draw_average(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    times = np.array(parameters.mean_times)
    line = np.linspace(0, 1.05 * times[-1], 60)
    for d, colour, mark, ls in zip(parameters.dims, (COLOURS[0], COLOURS[4]), "os", ("-", "--"), strict=False):
        mean, error = averaged(data[f"single-{d}"]["overlap"])
        axes.plot(line, average(line, d, parameters.mean_h), color=colour, lw=1.0, ls=ls)
        axes.errorbar(times, mean, 4 * error, fmt=mark, ms=4, lw=0.9, color=colour, label=f"$d = {d}$")
    words = r"mean of $\langle x(\tau), x(0) \rangle$"
    axes.set(xlim=(0, line[-1]), ylim=(0, 1.02), xlabel=r"time $\tau$", ylabel=words)
    axes.legend(loc="lower left")


def _plain(axes: Any, x: np.ndarray) -> None:
    """Logarithmic axes with plain numbers, those along x at the data."""
    from matplotlib.ticker import LogLocator

    axes.set(xscale="log", yscale="log")
    axes.set_xticks(x, [f"{one:g}" for one in x])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
