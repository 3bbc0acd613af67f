"""A density in motion: a curve over the angle, or a map of S^2, beside its energy and its entropy."""

from typing import Any

import numpy as np

from attnflow.plots.density import (
    DEPTH,
    STEEP,
    DensityView,
    angle_axis,
    colour_scale,
    draw_entropy,
    draw_level,
    map_axes,
    plain_numbers,
)
from attnflow.plots.scenes import AbstractScene, Panel
from attnflow.plots.style import COLOURS, GREY
from attnflow.plots.ticks import Ticks


class DensityScene(AbstractScene):
    """The density of a frame, relative to the uniform measure; axes and colours are the same for all frames."""

    def __init__(self, view: DensityView):
        self.view, self.axis, self.log_time = view, view.axis, view.log_time
        self.panels = [
            Panel(lambda axes: draw_level(axes, view), view.flow.dataset["energy"].values),
            Panel(lambda axes: draw_entropy(axes, view), view.entropy),
        ]

    def areas(self, fig: Any, box: tuple[float, float, float, float]) -> None:
        left, bottom, width, height = box
        if self.view.edges is None:
            self.axes = [fig.add_axes((left, bottom + 0.2 * height, width, 0.8 * height), projection="mollweide")]
            bar = fig.add_axes((left + 0.1 * width, bottom + 0.14 * height, 0.8 * width, 0.03 * height))
            self._map(fig, bar)
        else:
            self.axes = [fig.add_axes((left + 0.16 * width, bottom + 0.13 * height, 0.82 * width, 0.87 * height))]
            self._curve()

    def moving(self) -> list[Any]:
        return [self.mesh if self.view.edges is None else self.line]

    def show(self, ticks: Ticks, k: int) -> None:
        frame = int(ticks.frame[k])
        if self.view.edges is None:
            self.mesh.set_array(np.maximum(self.view.mapped(frame), self.mesh.norm.vmin).ravel())
        else:
            self.line.set_data(self.view.angles, self.view.values(frame))

    def _curve(self) -> None:
        (axes,) = self.axes
        values = np.stack([self.view.values(k) for k in range(len(self.log_time))])
        top = float(np.nanmax(values))
        if top > STEEP:
            axes.set_yscale("log")
            low = float(np.nanmin(np.where(values > 0, values, np.nan)))
            axes.set_ylim(0.7 * max(low, 2e-1 / DEPTH * top), 2 * top)
        else:
            axes.set_ylim(0, 1.08 * top)
        axes.plot(self.view.angles, values[0], color=GREY, lw=0.8, ls=":", label="start")
        (self.line,) = axes.plot(self.view.angles, values[0], color=COLOURS[0], lw=1.8)
        angle_axis(axes.xaxis, self.view)
        axes.set_ylabel(r"density $\rho$")
        axes.legend(loc="upper right")

    def _map(self, fig: Any, bar: Any) -> None:
        (axes,) = self.axes
        latitudes, longitudes = map_axes()
        some = np.unique(np.linspace(0, len(self.log_time) - 1, 20).astype(int))
        norm = colour_scale(np.stack([self.view.mapped(int(k)) for k in some]))
        start = np.maximum(self.view.mapped(0), norm.vmin)
        self.mesh = axes.pcolormesh(longitudes, latitudes, start, norm=norm, cmap="cividis", shading="gouraud")
        axes.set(xticks=(), yticks=())
        fig.colorbar(self.mesh, cax=bar, orientation="horizontal", label=r"density $\rho$")
        plain_numbers(bar.xaxis, norm.vmin, norm.vmax)
