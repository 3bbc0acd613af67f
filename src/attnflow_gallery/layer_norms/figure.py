"""The gap to consensus and the radius under six placements."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.layer_norms.compare import path
from attnflow_gallery.layer_norms.simulate import NAMES, Parameters, decay

MARKS = {"post": "o", "pre": "s", "peri": "^", "ngpt": "D", "mix": "v", "ln-scaling": "p"}
STYLES = {"post": "-", "pre": "--", "peri": "-", "ngpt": "-.", "mix": ":", "ln-scaling": "-"}
TINTS = dict(zip(NAMES, COLOURS, strict=False)) | {"pre": INK}


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """The gap to consensus under six layer norms: flows (marks, open for iid tokens in a cone), theory (lines).

    (a) Doubly logarithmic, the collapse of residual streams shows as straight lines; grey: slopes -1 and -2. (b)
    Semilogarithmic, the collapse under Post-LN and nGPT does; grey: e^(-2t) and e^(-2 alpha t). (c) The gap times t^p,
    p the exponent of the collapse (2; 1 for LN-scaling), tends to a constant; Pre-LN and Peri-LN differ before t = 100.
    (d) Mean radius from orthonormal tokens over its growth: t, and 2 sqrt(t) for LN-scaling; under Post-LN and nGPT the
    radius is 1. Theory is for orthonormal tokens: tokens in a cone share exponents, not constants.
    """
    titles = "all placements", "exponential collapse", "algebraic collapse, times $t^p$", "radius over its growth"
    heights = r"gap $1 - \rho$", r"gap $1 - \rho$", r"$(1 - \rho)\,t^p$", "radius / growth"
    scales = ("log", "log"), ("linear", "log"), ("log", "log"), ("log", "linear")
    with panels(2, 2, 5.2, *titles) as page:
        for placement in parameters.placements:
            _one(page, parameters, placement, data[placement])
        _guides(page, parameters)
        for axes, (x, y), words in zip(page, scales, heights, strict=True):
            axes.set(xscale=x, yscale=y, xlabel="time $t$", ylabel=words)
        for face, words in ((GREY, "orthonormal tokens"), ("white", "iid tokens in a cone")):
            page[0].plot([], [], "o", ms=4, mec=GREY, mfc=face, mew=0.8, label=words)
        handles, labels = page[0].get_legend_handles_labels()
        page.figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=2.6)
    return page.figure


def _guides(axes: Any, parameters: Parameters) -> None:
    """Slopes, limits of the axes, and where a panel shows the constant 1."""
    last = 2.0**parameters.last
    for power, height, above, side in ((2, 0.15, "top", "right"), (1, 100.0, "bottom", "left")):
        late = np.array([last / 30, last])
        axes[0].plot(late, height * late ** -float(power), color=GREY, lw=0.8)
        middle = float(np.sqrt(late.prod()))
        place = middle, height * middle**-power
        axes[0].annotate(f"$t^{{-{power}}}$", place, color=GREY, fontsize=7, va=above, ha=side)
    axes[0].set_ylim(parameters.gap / 3, 3.0)
    span = -np.log(parameters.gap) / min(2.0, 2 * parameters.alpha)
    axes[1].set(xlim=(0, 1.05 * span), ylim=(parameters.gap / 3, 3.0))
    axes[2].set(xlim=(0.5, None), ylim=(0.2, 1e2))
    axes[3].set(xlim=(0.5, None), ylim=(0, 2.2))
    axes[3].axhline(1.0, color=GREY, lw=0.8, zorder=0)


def _one(axes: Any, parameters: Parameters, placement: str, part: xr.Dataset) -> None:
    kind, power = decay(parameters, placement)
    frames = part["time"].values
    line = np.geomspace(frames[1], frames[-1], 300)
    known = path(parameters, placement, line)
    look = {"color": TINTS[placement], "ls": STYLES[placement], "lw": 1.1}
    mark = {"marker": MARKS[placement], "mec": TINTS[placement], "ls": "none", "mew": 0.8, "ms": 4}
    shift = list(NAMES).index(placement) % 4  # marks of placements that coincide are at different times
    axes[0].plot(line, np.exp(known.log_gap), **look)
    axes[0].plot([], [], **(look | mark | {"ls": STYLES[placement], "mfc": TINTS[placement]}), label=NAMES[placement])
    for start, face in (("orthonormal", TINTS[placement]), ("cone", "white")):
        seen = part.sel(start=start).isel(time=slice(1 + shift, None, 4))
        time, gap = seen["time"].values, seen["gap"].values
        axes[0].plot(time, gap, mfc=face, **mark)
        if kind == "exponential":
            every = part.sel(start=start).isel(time=slice(2, None, 4))
            axes[1].plot(every["time"], every["gap"], mfc=face, **mark)
        else:
            axes[2].plot(time, gap * time**power, mfc=face, **mark)
    if kind == "exponential":
        axes[1].plot(line, np.exp(known.log_gap), **look)
        axes[1].plot(line, np.exp(-power * line), color=GREY, lw=0.8, zorder=0)
        return
    axes[2].plot(line, np.exp(known.log_gap) * line**power, **look)
    growth = (lambda t: 2 * np.sqrt(t)) if placement == "ln-scaling" else (lambda t: t)
    axes[3].plot(line, known.radius / growth(line), **look)
    seen = part.sel(start="orthonormal").isel(time=slice(1 + shift, None, 4))
    axes[3].plot(seen["time"], seen["radius"] / growth(seen["time"]), mfc=TINTS[placement], **mark)
