"""Layer after layer, in slices of a fraction of a second: what the driver moves in `gram_layers` and its kin."""

import abc
import time
from typing import Any, NamedTuple

import numpy as np

from attnflow.flows.outcome import Ending, Outcome, Reached
from attnflow.flows.stepper import AbstractSingle, Rows, Slice

SLICE = 0.2
"""Seconds of a slice of work."""
CHUNK = 16
"""Frames that a slice hands over at most."""


class State(NamedTuple):
    """Where the work is."""

    layer: Any
    """Layers made."""
    frame: Any
    """Frames so far."""
    inner: Any
    """What layers change."""


class AbstractLayers(AbstractSingle):
    """Layers of so many systems, whose frames are the layers `marks`, which begin with 0; layer k is at time k step."""

    def __init__(self, marks: np.ndarray, table: str, systems: int, step: float = 1.0):
        self.marks, self.table, self.systems, self.step = marks, table, systems, step
        layout = self.layout()
        self.axes = {name: layout.axis(table, name) for name in layout.tables[table]}
        self.limit, self.warm = 1, False

    @abc.abstractmethod
    def inner(self) -> Any:
        """What layers change, at the start."""

    @abc.abstractmethod
    def first(self) -> dict[str, np.ndarray]:
        """The frame of the start: one row of every variable."""

    @abc.abstractmethod
    def further(self, inner: Any, ends: np.ndarray) -> tuple[Any, Any]:
        """`inner` after the layers from ends[0] to ends[1], and what there is to say about it."""

    @abc.abstractmethod
    def row(self, frame: int, inner: Any, found: Any) -> dict[str, np.ndarray]:
        """One row of every variable."""

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.marks[-1] * self.step), len(self.marks)

    def start(self) -> None:
        return None

    def begin(self) -> State:
        zero = np.zeros((), np.int64)
        return State(zero, zero, self.inner())

    def work(self, state: State) -> Slice:
        """At most `limit` layers and `CHUNK` frames; the start is a slice of its own."""
        layer, frame, inner = int(state.layer), int(state.frame), state.inner
        if frame == 0:
            return self._slice(layer, 1, inner, [self.first()])
        frames: list[dict[str, np.ndarray]] = []
        began, before, left = time.perf_counter(), layer, self.limit
        while left and frame < len(self.marks) and len(frames) < CHUNK:
            goal = min(layer + left, int(self.marks[frame]))
            inner, found = self.further(inner, np.array([layer, goal]))
            left, layer = left - (goal - layer), goal
            if layer == self.marks[frame]:
                frames.append(self.row(frame, inner, found))
                frame += 1
        if self.warm and layer > before:  # the first slice also compiles
            lasted = max(time.perf_counter() - began, 1e-6)
            self.limit = int(np.clip(SLICE * (layer - before) / lasted, 1, 1_000_000))
        self.warm = True
        return self._slice(layer, frame, inner, frames)

    def _slice(self, layer: int, frame: int, inner: Any, frames: list[dict[str, np.ndarray]]) -> Slice:
        state = State(np.asarray(layer), np.asarray(frame), inner)
        done = Outcome(Ending.FINISHED, f"made {layer} layers.") if frame == len(self.marks) else None
        if not frames:
            return Slice(state, None, done)
        table = {name: np.concatenate([one[name] for one in frames], axis) for name, axis in self.axes.items()}
        return Slice(state, Rows({self.table: table}), done)

    def reached(self, state: State, rows: dict[str, int]) -> Reached:
        layer, note = int(state.layer), f"layer {int(state.layer)} of {self.marks[-1]}"
        return Reached(float(layer * self.step), rows[self.table], layer * self.systems, note)

    def steps(self, state: State) -> dict[str, int]:
        return {"layers": int(state.layer)}

    def finish(self, state: State) -> dict[str, Any]:
        return {}
