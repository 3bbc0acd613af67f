"""The discrete network itself: one residual attention layer per step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField
from attnflow.fields.timed import layer_time
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.fixed import check_steps, count_from_stop, leg_by_leg
from attnflow.flows.methods.layer_updates import AbstractUpdate, Renormalise
from attnflow.flows.noises import AbstractIto, AbstractNoise
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class Layers(AbstractMethod):
    """A network of T/step layers; layer k runs at time k * step, k an integer.

    Converges to the flow at order 1 in `step` (arXiv:2312.10794, section 2). `advance` is differentiable in both modes.
    """

    step: Number = eqx.field(converter=positive("step", batch=False), default=0.1)
    update: AbstractUpdate = Renormalise()

    def __check_init__(self) -> None:
        instance("update", self.update, AbstractUpdate, "an update such as Renormalise()")

    @property
    def layer_step(self) -> float | None:
        return float(self.step)

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        if not (is_concrete(t0) and is_concrete(t1) and is_concrete(self.step)):
            return None
        check_steps(abs(t1 - t0), self.step, listed=True)
        first, last = int(layer_number(t0, self.step)), int(layer_number(t1, self.step))
        if last < first:
            raise InvalidInput(
                f"t1 = {t1:g} is before t0 = {t0:g}: layers cannot be run backwards. Use Fixed or Adaptive."
            )
        return np.arange(first, last)

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        if grid is not None:
            return jax.lax.scan(lambda y, k: (self._layer(system, k, y), None), state, grid)[0]
        first, last = layer_number(t0, self.step), layer_number(t1, self.step)
        return jax.lax.fori_loop(first, last, lambda k, y: self._layer(system, k, y), state)

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        return count_from_stop()

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` counts the layers already run since the last saved time."""

        def leg(start: Any, end: Any, done: Any, budget: Any, y: State, memory: Any) -> Any:
            first, end = layer_number(start, self.step), layer_number(end, self.step)
            last = jnp.minimum(first + done + budget, end)
            y = jax.lax.fori_loop(first + done, last, lambda k, z: self._layer(system, k, z), y)
            return y, memory, last - first, last >= end

        return leg_by_leg(leg, at, times, jnp.zeros(0), limit)

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return self.update.image(space)

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return AbstractIto

    def check(self, until: float, field: AbstractField) -> None:
        check_layers(until, self.step)

    def _layer(self, system: AbstractSystem, k: Any, y: State) -> State:
        moved = system.layer(k, self.step, y, self.update)
        return system.kick(jnp.atleast_1d(k), layer_time(k, self.step), self.step, moved)


def check_layers(until: float, step: Any) -> None:
    """Refuse a span that is not a whole number of layers, or has too many."""
    check_steps(until, step)
    layers = until / float(step)
    if abs(layers - round(layers)) > 1e-6 or round(layers) < 1:
        raise InvalidInput(
            f"`until` is {until:g}, or {layers:g} layers of step {float(step):g}; make it a whole number."
        )


def layer_number(t: Any, step: Any) -> Any:
    """The integer layer at time t = layer * step, by rounding (floor gets 47 of 1,000 layers wrong at step 0.1)."""
    xp: Any = np if is_concrete(t) and is_concrete(step) else jnp
    return xp.rint(t / step).astype(int)
