"""What a method needs to know of a system, and what a flow needs to know of a method."""

import abc
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from attnflow.fields.base import AbstractField
from attnflow.flows.noises import AbstractNoise
from attnflow.spaces import AbstractSpace
from attnflow.tokens import Measure

State: TypeAlias = Any
"""A pytree of arrays."""
Time: TypeAlias = Any
"""A scalar array."""


class AbstractSystem(eqx.Module):
    """Something that moves: a state (a pytree of arrays), its velocity, and its way back onto the space."""

    @abc.abstractmethod
    def rate(self, t: Time, state: State) -> State:
        """The velocity, constant along the normals of the space, so that an O(h^p) distance from it keeps the order."""

    @abc.abstractmethod
    def retract(self, state: State) -> State:
        """The state moved back onto the space."""

    @abc.abstractmethod
    def layer(self, layer: Int[Array, ""], step: Time, state: State, update: Any) -> State:
        """One discrete layer of step `step`: `update(space, x, drive, step)` for every point."""

    @abc.abstractmethod
    def exact(self, t0: Time, t1: Time, state: State) -> State:
        """The state at t1 in the flow that the field knows of itself, from the one at t0; nothing jumps in between."""

    @property
    @abc.abstractmethod
    def diffusion(self) -> tuple[AbstractNoise, Measure] | None:
        """The noise and the measure whose positions, which are the state, it moves; None without noise."""

    @abc.abstractmethod
    def parts(self) -> tuple["AbstractSystem", ...]:
        """The systems whose rates add up to this one's, without noise."""

    @property
    @abc.abstractmethod
    def breaks(self) -> Float[Array, " break"]:
        """Times at which the rate jumps; steps must not cross them."""

    def kick(self, label: Integer[Array, " word"], t: Time, step: Time, state: State) -> State:
        """The state after the noise of the step that began at t, drawn from the seed and the label."""
        if self.diffusion is None:
            return state
        noise, mu = self.diffusion
        return noise.kick(t, mu.moved(state), step, label)


class Stretch(NamedTuple):
    """What comes back from a slice of work towards the saved times of a chunk."""

    t: Time
    """Time reached."""
    state: State
    memory: Any
    """What the method carries on: a pytree of arrays (a step size)."""
    frames: State
    """Frames with the saved time as first axis."""
    filled: Int[Array, ""]
    """How many frames are filled."""
    steps: Int[Array, "2"]
    """Accepted and rejected steps of this slice."""
    failed: Any
    """Whether the method cannot go on."""
    waiting: Any
    """Whether the next step would pass the last time, so that it has to be shortened (`landing`)."""


class AbstractMethod(eqx.Module):
    """A way to follow a system. Numbers (tolerances, steps) are traced; only structure is compiled in."""

    @property
    @abc.abstractmethod
    def layer_step(self) -> float | None:
        """The step of a layer, for methods that have layers."""

    @abc.abstractmethod
    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        """Where the steps from t0 to t1 begin and end, if that is known before tracing, else None."""

    @abc.abstractmethod
    def advance(
        self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Float[Array, " node"] | None
    ) -> State:
        """The state at t1, on the space; pure. A known `grid` makes loops static, so that reverse mode passes."""

    @abc.abstractmethod
    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        """The memory with which a flow starts: a pytree of arrays."""

    @abc.abstractmethod
    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """At most about `limit` steps from `at` towards times[-1], filling frames at the saved times on the way.

        What is computed does not depend on where slices and chunks are cut: `at` holds everything that the next step
        depends on. `times` are the saved times of the chunk; repeated ones at the end are padding. `after` is the first
        saved time after the chunk, or -inf if it is not known. No step passes `end`, the last time of the flow; with
        `landing` False a method that would have to shorten a step for that waits instead, so that the state stays one
        that longer flows pass through.
        """

    @abc.abstractmethod
    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        """Where the field is evaluated when tokens start on `space`: another space if steps leave it."""

    @property
    @abc.abstractmethod
    def calculus(self) -> type[AbstractNoise] | None:
        """The noise that the steps converge to: `AbstractIto` or `AbstractStratonovich`; None: the method has none."""

    @abc.abstractmethod
    def check(self, until: float, field: AbstractField) -> None:
        """Refuse a span or a field that the method cannot follow."""
