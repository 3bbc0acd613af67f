"""When frames are saved. The first frame is always the start, the last one `until`."""

import abc
from collections.abc import Sequence

import equinox as eqx
import numpy as np

from attnflow.checks import ABOVE_ZERO, end_time, not_instance, number, reals, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import length
from attnflow.lazy import listing

__all__ = ["AbstractTimes", "At", "Evenly", "EveryLayer", "LogSpaced"]
__dir__ = listing(__all__)


class AbstractTimes(eqx.Module):
    """A rule that turns `until` into the saved times."""

    @abc.abstractmethod
    def times(self, until: float, step: float | None) -> np.ndarray:
        """Increasing saved times from 0 to `until`; `step` is the layer step when the method has layers."""


class Evenly(AbstractTimes):
    """`count` intervals of equal length: count + 1 frames."""

    count: int = eqx.field(static=True, default=200, converter=lambda count: length("count", count, 1, 4))

    def times(self, until: float, step: float | None) -> np.ndarray:
        times = np.linspace(0.0, until, self.count + 1)
        return times if step is None else _on_layers(times, step)


class LogSpaced(AbstractTimes):
    """The start, then `count` times spaced evenly in log t from `first` to `until`."""

    count: int = eqx.field(static=True, default=200, converter=lambda count: length("count", count, 1, 4))
    first: float = eqx.field(static=True, default=0.1, converter=lambda t: number("first", t, low=ABOVE_ZERO))

    def times(self, until: float, step: float | None) -> np.ndarray:
        if self.first >= until:
            raise InvalidInput(f"`first` is {self.first:g}; it must come before `until`, {until:g}.")
        times = np.concatenate([[0.0], np.geomspace(self.first, until, self.count)])
        times[-1] = until
        return times if step is None else _on_layers(times, step)


class EveryLayer(AbstractTimes):
    """Every layer of the method `Layers`, or every `every`-th; with `Alternate(sublayers=2)` every part of a layer."""

    every: int = eqx.field(static=True, default=1, converter=lambda every: whole("every", every, 1))

    def times(self, until: float, step: float | None) -> np.ndarray:
        if step is None:
            raise InvalidInput("EveryLayer needs the method `Layers(step)`; use Evenly or LogSpaced.")
        layers = round(until / step)
        chosen = np.arange(0, layers + 1, self.every)
        if chosen[-1] != layers:
            chosen = np.append(chosen, layers)
        return chosen * step


class At(AbstractTimes):
    """The start, then the given increasing times, the last of which is `until`."""

    chosen: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, times: Sequence[float] | np.ndarray):
        values = reals(times)
        if values is None or values.ndim != 1 or not _increase(values):
            raise InvalidInput(f"`times` is {shown(times)}; give increasing positive times.")
        self.chosen = tuple(values.tolist())

    def times(self, until: float, step: float | None) -> np.ndarray:
        if not np.isclose(self.chosen[-1], until, rtol=1e-12):
            raise InvalidInput(
                f"the last saved time is {self.chosen[-1]:g}, but `until` is {until:g}; make them equal."
            )
        times = np.concatenate([[0.0], self.chosen])
        times[-1] = until
        return times if step is None else _on_layers(times, step)


Save = AbstractTimes | int | Sequence[float] | np.ndarray
"""`Evenly` or another rule for times, a number of equal intervals, or increasing times up to `until`."""


def as_times(save: Save | None, default: int = 200) -> AbstractTimes:
    """The rule for times that is meant by `save`; None means `default` equal intervals."""
    if isinstance(save, AbstractTimes):
        return save
    if save is None or (isinstance(save, int | np.integer) and not isinstance(save, bool)):
        return Evenly(default if save is None else int(save))
    times = reals(save)
    if times is None or times.ndim != 1:
        hint = "Evenly(50) or the like, a number of intervals, or increasing times"
        raise not_instance("save", save, AbstractTimes, hint)
    return At(times[1:] if len(times) and times[0] == 0 else times)


def saved_times(save: Save | None, until: float, step: float | None, default: int = 200) -> np.ndarray:
    """The times of all frames up to `until`; `default` equal intervals where `save` is None."""
    times = as_times(save, default).times(until, step)
    if len(times) > 1 and (gap := float(np.diff(times).min())) < ABOVE_ZERO:
        raise InvalidInput(
            f"`until` is {until:g} with {len(times)} frames: saved times are {gap:g} apart, which compiled code takes "
            "for 0; give a later time, or save fewer frames."
        )
    return times


def continued(before: np.ndarray, save: Save | None, until: float, step: float | None) -> np.ndarray:
    """The times `before`, and those that `save` means for the time from the last of them to `until`.

    A number counts equal intervals of that time, times are later than the last one before; None goes on with the
    spacing of the last two.
    """
    last, until = float(before[-1]), end_time(until)
    if until <= last:
        return before
    if isinstance(save, LogSpaced):
        more = np.geomspace(last, until, save.count + 1)[1:]
    elif isinstance(save, EveryLayer):
        return np.concatenate([before, (times := save.times(until, step))[times > last * (1 + 1e-12)]])
    elif save is None or (isinstance(save, Evenly | int | np.integer) and not isinstance(save, bool)):
        every = float(before[-1] - before[-2]) if len(before) > 1 else until - last
        given = save.count if isinstance(save, Evenly) else save
        count = max(1, round((until - last) / every)) if given is None else int(given)
        more = np.linspace(last, until, length("save", count, 1) + 1)[1:]
    else:
        rule = as_times(save)
        more = rule.times(until, None)[1:]
        if more[0] <= last:
            raise InvalidInput(f"`save` begins at {more[0]:g}; the flow has frames up to {last:g}, give later times.")
    more[-1] = until
    times = np.concatenate([before, more])
    return times if step is None else _on_layers(times, step)


def _increase(times: np.ndarray) -> bool:
    """Whether the times are positive and finite, and each is later than the one before."""
    return bool(times.size and np.isfinite(times).all() and times[0] > 0 and (np.diff(times) > 0).all())


def _on_layers(times: np.ndarray, step: float) -> np.ndarray:
    """The layers nearest to the times, without repetition."""
    return np.unique(np.rint(times / step).astype(np.int64)) * step
