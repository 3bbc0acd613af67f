"""The flow that a field knows of itself, between saved times and jumps."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.fields.base import AbstractField
from attnflow.fields.exact.base import as_exact
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.fixed import count_from_stop, leg_by_leg, stops_between
from attnflow.flows.noises import AbstractNoise
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class Exact(AbstractMethod):
    """The field's own flow: one evaluation of `AbstractExact.carry` from each saved time or jump to the next.

    There are no steps and no error but rounding. Only fields that know their flow can be followed (`Affine`); a sum of
    fields does not know its own. `advance` is differentiable as `carry` is.
    """

    @property
    def layer_step(self) -> float | None:
        return None

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        if not (is_concrete(t0) and is_concrete(t1)):
            return None
        stops = stops_between(t0, t1, breaks)
        return stops if t1 >= t0 else stops[::-1].copy()

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        if grid is not None:
            return jax.lax.scan(lambda y, ends: (system.exact(*ends, y), None), state, (grid[:-1], grid[1:]))[0]
        if not system.breaks.shape[0]:
            return system.exact(t0, t1, state)

        def go(carry: Any) -> Any:
            t, y = carry
            later = jnp.min(jnp.where(system.breaks > t, system.breaks, jnp.inf))
            earlier = jnp.max(jnp.where(system.breaks < t, system.breaks, -jnp.inf))
            then = jnp.where(t1 > t, jnp.minimum(later, t1), jnp.maximum(earlier, t1))
            return then, system.exact(t, then, y)

        return jax.lax.while_loop(lambda carry: carry[0] != t1, go, (t0, state))[1]

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        return count_from_stop()

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` is not needed: a leg is one evaluation."""

        def leg(start: Any, end: Any, done: Any, budget: Any, y: State, memory: Any) -> Any:
            return system.exact(start, end, y), memory, done + 1, jnp.asarray(True)

        return leg_by_leg(leg, at, times, system.breaks, limit)

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return None

    def check(self, until: float, field: AbstractField) -> None:
        as_exact(field)
