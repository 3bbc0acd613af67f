"""The time axis that all figures of a flow share: t, or log t where t outgrows an axis."""

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from attnflow.flows import AbstractTrajectory, LongFlow
from attnflow.flows.longtime.method import log_faster
from attnflow.meanfield.harmonics.density_flow import AbstractDensityFlow
from attnflow.precision import full_precision
from attnflow.special.numbers import Numbers
from attnflow.wording import time_shown

FARTHEST = 300.0
"""Up to this |log t| axes show t; a float holds t up to log t = 709."""
DECADES = np.log(100.0)
"""Times that span more are shown on a logarithmic axis."""
MANY_DECADES = 8
"""A logarithmic axis that spans more is marked at round powers of ten."""
BEFORE = 5.0
"""A long flow is shown from so long before its first merge, in log t."""

BEYOND = 0.04
"""A flow that has come to consensus is shown for so much longer, as a share of the axis."""


class Scale(enum.Enum):
    """What is marked on the axis, and how."""

    LINEAR = "t"
    LOGARITHMIC = "t, logarithmic"
    EXPONENT = "log t"


@dataclasses.dataclass(frozen=True)
class TimeAxis:
    """Takes log t (-inf at the start) to what stands on the axis."""

    scale: Scale
    first: float
    """log t at the left end."""
    last: float
    """log t at the right end."""

    def at(self, log_time: Any) -> Numbers:
        """Where these times stand; what is before the left end stands there."""
        held = np.maximum(np.asarray(log_time, dtype=float), self.first)
        return held if self.scale is Scale.EXPONENT else np.exp(held)

    def edges(self, columns: int) -> np.ndarray:
        """Log times that cut the axis into columns of equal width."""
        if self.scale is Scale.LINEAR:
            with np.errstate(divide="ignore"):
                return np.log(np.linspace(np.exp(self.first), np.exp(self.last), columns + 1))
        return np.linspace(self.first, self.last, columns + 1)

    @property
    def is_logarithmic(self) -> bool:
        """Whether t stands on a logarithmic axis."""
        return self.scale is Scale.LOGARITHMIC

    def title(self, log_time: float) -> str:
        """A time as a title says it."""
        if self.scale is Scale.EXPONENT and np.isfinite(log_time):
            return rf"$\log t = {f'{log_time:.0f}' if abs(log_time) >= 100 else f'{log_time:.3g}'}$"
        return f"$t = {clean(float(np.exp(log_time)))}$"

    def draw(self, axes: Any) -> None:
        """Set scale, limits, ticks and label."""
        if self.is_logarithmic:
            axes.set_xscale("log")
        low, high = self.at([self.first, self.last])
        axes.set_xlim(low, high if high > low else low + 1)
        decades = (self.last - self.first) / np.log(10)
        if self.is_logarithmic and decades > MANY_DECADES:
            from matplotlib.ticker import FixedLocator, NullLocator

            step = next(s for s in (2, 5, 10, 20, 50, 100) if decades / s < 6)
            exponents = step * np.arange(np.ceil(self.first / np.log(10) / step), self.last / np.log(10) / step)
            axes.xaxis.set_major_locator(FixedLocator((10.0**exponents).tolist()))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(r"$\log t$" if self.scale is Scale.EXPONENT else "time $t$")


def time_axis(flow: AbstractTrajectory) -> TimeAxis:
    """For a flow of `solve_long` log t or t on a logarithmic axis; else logarithmic when the frames are spread so."""
    log_time = flow.log_time.values
    finite = log_time[np.isfinite(log_time)]
    if isinstance(flow, LongFlow):
        merges = flow.dataset["merge_log_time"].values
        with full_precision():
            unit = -float(log_faster(cast(Any, flow.field)))  # nothing happens before t = 1 on the clocks SA and USA0
        last = float(finite[-1]) if len(finite) else unit
        first = min(unit, float(merges[0] if len(merges) else last) - BEFORE)
        if len(merges) == flow.dataset.sizes["token"] - 1:  # consensus stays: show a little of it
            last += BEYOND * (last - first)
        return TimeAxis(Scale.EXPONENT if is_long([first, last]) else Scale.LOGARITHMIC, first, last)
    return frames_axis(log_time)


def frames_axis(log_time: np.ndarray) -> TimeAxis:
    """The axis of frames at these log times: logarithmic when they are spread so."""
    finite = log_time[np.isfinite(log_time)]
    last = float(finite[-1]) if len(finite) else 0.0
    spread = len(finite) > 2 and last > finite[0] + DECADES and np.median(finite) < last + np.log(0.2)
    if spread:
        return TimeAxis(Scale.LOGARITHMIC, float(finite[0]), last)
    return TimeAxis(Scale.LINEAR, float(log_time[0]) if len(log_time) else -np.inf, last)


def joined(axes: Sequence[TimeAxis]) -> TimeAxis:
    """One axis for all of these: the scale that suits the longest times, from the first time to the last."""
    scale = max((axis.scale for axis in axes), key=list(Scale).index)
    first = min(axis.first for axis in axes if scale is Scale.LINEAR or np.isfinite(axis.first))
    return TimeAxis(scale, first, max(axis.last for axis in axes))


def log_times(result: AbstractTrajectory | AbstractDensityFlow) -> np.ndarray:
    """Natural logarithm of the saved times of a flow of tokens or of a density, -inf at the start."""
    if isinstance(result, AbstractTrajectory):
        return result.log_time.values
    with np.errstate(divide="ignore"):
        return np.log(result.time.values)


def is_long(log_times: Iterable[float | None]) -> bool:
    """Whether these times (None for 0) are so long, or so short, that an axis shows log t instead of t."""
    return any(abs(value) > FARTHEST for value in log_times if value is not None and np.isfinite(value))


def written(log_time: float | None) -> str:
    """A time t as tables write it, with powers of ten such as 10^79.72 for long ones; None and -inf are the start."""
    return "0" if log_time is None else time_shown(log_time, 5)


def clean(time: float) -> str:
    """A time t in mathematical text."""
    if time == 0:
        return "0"
    if 1e-2 <= time < 1e4:
        return f"{time:.3g}" if time < 100 else f"{time:.0f}"
    mantissa, exponent = f"{time:.1e}".split("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}"
