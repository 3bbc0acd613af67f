"""Coefficients in harmonics, carried from saved time to saved time: what the driver moves in `evolve` and its kin."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from attnflow.flows.compiled import wait
from attnflow.flows.observables import Views
from attnflow.flows.outcome import Ending, Outcome, Reached
from attnflow.flows.sink import Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.meanfield.harmonics.exponential import HarmonicState, begin

SLICE = 0.5
"""Seconds of a slice of work."""


@dataclasses.dataclass(frozen=True)
class Equation:
    """What is integrated, and what is said about it."""

    coefficients: np.ndarray
    """The coefficients of the start."""
    dims: tuple[str, ...]
    """Names of their axes."""
    numbers: tuple[str, ...]
    """What `advance` reads off a state, next to the time."""
    advance: Callable[[HarmonicState, Any, Any], tuple[HarmonicState, dict[str, Any]]]
    """At most so many steps (the third argument) towards a time (the second), and the numbers of the state reached."""
    views: Callable[[np.ndarray, float], Views]
    """A frame as observables see it."""
    lost: Callable[[float, int], str]
    """The message for a trouble, a code that is not 0, at some time."""


def frames_of(density: Any) -> Callable[[np.ndarray, float], Views]:
    """Coefficients at a time, as observables see them: `density`, with places or without, moved to them."""

    def views(coefficients: np.ndarray, t: float) -> Views:
        fixed = jax.tree.map(lambda leaf: np.asarray(leaf)[None], density)
        return Views(np.array([[t]]), coefficients[None, None], fixed, _moved)

    return views


def _moved(coefficients: Any, density: Any) -> Any:
    return density.moved(coefficients)


class _HarmonicState(NamedTuple):
    inner: HarmonicState
    row: Any
    """Frames so far."""


class HarmonicStepper(AbstractSingle):
    """An equation for coefficients, with frames at `times`."""

    def __init__(self, equation: Equation, times: np.ndarray):
        self.equation, self.times = equation, times
        self.limit, self.warm = 1, False

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.times[-1]), len(self.times)

    def layout(self) -> Layout:
        dims, shape = self.equation.dims, self.equation.coefficients.shape
        frames = {name: Variable(("time",), np.dtype(np.float64)) for name in ("time", *self.equation.numbers)}
        frames["coefficients"] = Variable(("time", *dims), np.dtype(np.float64))
        return Layout(
            {"time": frames},
            dict(zip(dims, shape, strict=True)),
            {"time": len(self.times)},
            {},
            {},
            {"time": 16},
            {},
            float(self.times[-1]),
            {},
        )

    def start(self) -> Views:
        return self.equation.views(self.equation.coefficients, 0.0)

    def begin(self) -> _HarmonicState:
        return _HarmonicState(begin(self.equation.coefficients), np.zeros((), np.int64))

    def work(self, state: _HarmonicState) -> Slice:
        """Some steps towards the next saved time."""
        row = int(state.row)
        if row >= len(self.times):
            return Slice(state, None, self._finished())
        target = float(self.times[row])
        began, before = time.perf_counter(), _made(state.inner)
        inner, found = wait(self.equation.advance(state.inner, np.asarray(target), np.asarray(self.limit)))
        taken = _made(inner) - before
        if taken and self.warm:  # the first slice also compiles
            self.limit = int(np.clip(SLICE * taken / max(time.perf_counter() - began, 1e-6), 1, 100_000))
        self.warm = True
        reached, trouble = float(inner.t), int(inner.trouble)
        if reached < target and not trouble:
            return Slice(_HarmonicState(inner, state.row), None)
        rows = None
        if row == 0 or reached > self.times[row - 1]:
            numbers = {name: np.array([float(value)]) for name, value in found.items()}
            coefficients = np.asarray(inner.c)
            frames = {"time": np.array([reached]), "coefficients": coefficients[None]} | numbers
            rows = Rows({"time": frames}, self.equation.views(coefficients, reached))
        if trouble:
            failed = Outcome(Ending.FAILED, self.equation.lost(reached, trouble))
            return Slice(_HarmonicState(inner, state.row), rows, failed)
        done = self._finished() if row + 1 == len(self.times) else None
        return Slice(_HarmonicState(inner, np.asarray(row + 1)), rows, done)

    def reached(self, state: _HarmonicState, rows: dict[str, int]) -> Reached:
        return Reached(float(state.inner.t), rows["time"], _made(state.inner))

    def steps(self, state: _HarmonicState) -> dict[str, int]:
        return {"accepted": int(state.inner.accepted), "rejected": int(state.inner.rejected)}

    def finish(self, state: _HarmonicState) -> dict[str, Any]:
        return {}

    def _finished(self) -> Outcome:
        return Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}.")


def _made(state: HarmonicState) -> int:
    """The steps so far."""
    return int(state.accepted) + int(state.rejected)
