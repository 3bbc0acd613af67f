"""What a method needs to know of a system, and what a flow needs to know of a method."""

import abc
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
from jaxtyping import Array, Float, Int

State: TypeAlias = Any
"""A pytree of arrays."""
Time: TypeAlias = Any
"""A scalar array."""


class AbstractSystem(eqx.Module):
    """Something that moves: a state (a pytree of arrays), its velocity, and its way back onto the space."""

    @abc.abstractmethod
    def rate(self, t: Time, state: State) -> State:
        """Velocity. Constant along the normals of the space, so that off it by O(h^p) costs no order."""

    @abc.abstractmethod
    def retract(self, state: State) -> State:
        """The nearest state on the space."""

    @abc.abstractmethod
    def layer(self, layer: Int[Array, ""], step: Time, state: State, update: Any) -> State:
        """One discrete layer of step `step`: `update(space, x, drive, step)` for every point."""


class Stretch(NamedTuple):
    """What comes back from a slice of work towards the saved times of a chunk."""

    t: Time
    """Time reached."""
    state: State
    memory: Time
    """What the method carries on (a step size)."""
    frames: State
    """Frames with the saved time as first axis; those not reached yet are as they came."""
    steps: Int[Array, "2"]
    """Accepted and rejected steps of this slice."""
    failed: Any
    """Whether the method cannot go on."""


class AbstractMethod(eqx.Module):
    """A way to follow a system. Numbers (tolerances, steps) are traced; only structure is compiled in."""

    @property
    @abc.abstractmethod
    def layer_step(self) -> float | None:
        """The step of a layer, for methods that have layers."""

    @abc.abstractmethod
    def count(self, t0: Any, t1: Any) -> int | None:
        """The number of steps from t0 to t1 where it is known before tracing, else None."""

    @abc.abstractmethod
    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, count: int | None) -> State:
        """The state at t1, on the space; pure. A known `count` makes loops static, so that reverse mode passes."""

    @abc.abstractmethod
    def begin(self, system: AbstractSystem, state: State, t0: Time, t1: Time) -> Time:
        """The memory with which a flow starts."""

    @abc.abstractmethod
    def stretch(
        self,
        system: AbstractSystem,
        t: Time,
        state: State,
        memory: Time,
        times: Float[Array, " frame"],
        frames: State,
        limit: int,
    ) -> Stretch:
        """At most about `limit` steps towards times[-1], filling `frames` at the saved times passed on the way.

        The first time is where the chunk began; repeated times at the end are padding. The result does not
        depend on anything but the arguments, so that a resumed flow repeats it bit by bit.
        """

    @abc.abstractmethod
    def check(self, until: float) -> None:
        """Refuse a span that the method cannot follow."""
