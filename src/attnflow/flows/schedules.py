"""When frames are saved. The first frame is always the start, the last one `until`."""

import abc
from collections.abc import Sequence

import equinox as eqx
import numpy as np

from attnflow.errors import InvalidInput


class AbstractSchedule(eqx.Module):
    """A rule that turns `until` into the saved times."""

    @abc.abstractmethod
    def times(self, until: float, step: float | None) -> np.ndarray:
        """Increasing saved times from 0 to `until`; `step` is the layer step when the method has layers."""


class Evenly(AbstractSchedule):
    """`count` intervals of equal length: count + 1 frames."""

    count: int = eqx.field(static=True, default=200)

    def __check_init__(self) -> None:
        _positive_integer("count", self.count)

    def times(self, until: float, step: float | None) -> np.ndarray:
        times = np.linspace(0.0, until, self.count + 1)
        return times if step is None else _on_layers(times, step)


class LogSpaced(AbstractSchedule):
    """The start, then `count` times spaced evenly in log t from `first` to `until`."""

    count: int = eqx.field(static=True, default=200)
    first: float = eqx.field(static=True, default=0.1)

    def __check_init__(self) -> None:
        _positive_integer("count", self.count)
        if not (np.isfinite(self.first) and self.first > 0):
            raise InvalidInput(f"`first` is {self.first}; give a positive time.")

    def times(self, until: float, step: float | None) -> np.ndarray:
        if self.first >= until:
            raise InvalidInput(f"`first` is {self.first:g}; it must come before `until`, {until:g}.")
        times = np.concatenate([[0.0], np.geomspace(self.first, until, self.count)])
        times[-1] = until
        return times if step is None else _on_layers(times, step)


class EveryLayer(AbstractSchedule):
    """Every layer of the method `Layers`, or every `every`-th."""

    every: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        _positive_integer("every", self.every)

    def times(self, until: float, step: float | None) -> np.ndarray:
        if step is None:
            raise InvalidInput("the schedule EveryLayer needs the method `Layers(step)`; use Evenly or LogSpaced.")
        layers = round(until / step)
        chosen = np.arange(0, layers + 1, self.every)
        if chosen[-1] != layers:
            chosen = np.append(chosen, layers)
        return chosen * step


class At(AbstractSchedule):
    """The start, then the given increasing times, the last of which is `until`."""

    chosen: tuple[float, ...] = eqx.field(static=True, converter=lambda times: tuple(float(t) for t in times))

    def __init__(self, times: Sequence[float]):
        self.chosen = tuple(float(t) for t in times)
        values = np.asarray(self.chosen)
        if not len(values) or not np.isfinite(values).all() or (np.diff(values) <= 0).any() or values[0] <= 0:
            raise InvalidInput(f"`times` is {list(self.chosen)[:5]}...; give increasing positive times.")

    def times(self, until: float, step: float | None) -> np.ndarray:
        if not np.isclose(self.chosen[-1], until, rtol=1e-12):
            raise InvalidInput(
                f"the last saved time is {self.chosen[-1]:g}, but `until` is {until:g}; make them equal."
            )
        times = np.concatenate([[0.0], self.chosen])
        times[-1] = until
        return times if step is None else _on_layers(times, step)


Save = AbstractSchedule | int | Sequence[float] | np.ndarray
"""A schedule, a number of equal intervals, or increasing times up to `until`."""


def as_schedule(save: Save | None, default: int = 200) -> AbstractSchedule:
    """The schedule that is meant by `save`; None means `default` equal intervals."""
    if isinstance(save, AbstractSchedule):
        return save
    if save is None or (isinstance(save, int | np.integer) and not isinstance(save, bool)):
        return Evenly(default if save is None else int(save))
    times = np.asarray(save)
    if times.ndim != 1 or times.dtype.kind not in "iuf":
        raise InvalidInput(f"`save` is {save!r}; give a schedule, a number of intervals, or increasing times.")
    return At(times[1:].tolist() if len(times) and times[0] == 0 else times.tolist())


def _on_layers(times: np.ndarray, step: float) -> np.ndarray:
    """The layers nearest to the times, without repetition."""
    return np.unique(np.rint(times / step).astype(np.int64)) * step


def _positive_integer(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"`{name}` is {value!r}; give a positive integer.")
