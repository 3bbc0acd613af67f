"""The discrete network itself: one residual attention layer per step."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import positive
from attnflow.errors import InvalidInput
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.fixed import leg_by_leg
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class AbstractUpdate(eqx.Module):
    """What a layer does with its attention output A: three rules with one ODE limit, all of order 1."""

    @abc.abstractmethod
    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        """The positions after the layer."""


class Renormalise(AbstractUpdate):
    """x <- N(x + h A): post-layer-norm, the network as built."""

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return space.retract(x + step * drive)


class ProjectRenormalise(AbstractUpdate):
    """x <- N(x + h P_x A)."""

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return space.retract(x + step * space.tangent(x, drive))


class Project(AbstractUpdate):
    """x <- x + h P_x A: leaves the sphere by O(h) over times of order 1; for comparison only."""

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return x + step * space.tangent(x, drive)


class Layers(AbstractMethod):
    """A network of T/step layers; layer k runs at time k * step, k an integer.

    Converges to the flow at order 1 in `step` (arXiv:2312.10794, section 2). `advance` is differentiable in both modes.
    """

    step: np.ndarray = eqx.field(converter=positive("step"), default=0.1)
    update: AbstractUpdate = Renormalise()

    @property
    def layer_step(self) -> float | None:
        return float(self.step)

    def count(self, t0: Any, t1: Any) -> int | None:
        if not (is_concrete(t0) and is_concrete(t1) and is_concrete(self.step)):
            return None
        count = int(layer_number(t1, self.step) - layer_number(t0, self.step))
        if count < 0:
            raise InvalidInput(
                f"t1 = {t1:g} is before t0 = {t0:g}: layers cannot be run backwards. Use Fixed or Adaptive."
            )
        return count

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, count: int | None) -> State:
        first = layer_number(t0, self.step)
        layers = layer_number(t1, self.step) - first if count is None else count
        return jax.lax.fori_loop(0, layers, lambda k, y: system.layer(first + k, self.step, y, self.update), state)

    def begin(self, system: AbstractSystem, state: State, t0: Time, t1: Time) -> Time:
        return jnp.zeros_like(t0)

    def stretch(
        self, system: AbstractSystem, t: Time, state: State, memory: Time, times: Any, frames: State, limit: int
    ) -> Stretch:
        """`memory` counts the layers already run since the last saved time."""

        def leg(target: Any, done: Any, budget: Any, y: State) -> tuple[State, Any, Any]:
            start, end = layer_number(times[target - 1], self.step), layer_number(times[target], self.step)
            last = jnp.minimum(start + done + budget, end)
            y = jax.lax.fori_loop(start + done, last, lambda k, z: system.layer(k, self.step, z, self.update), y)
            return y, last - start, last >= end

        return leg_by_leg(leg, t, state, memory, times, frames, limit)

    def check(self, until: float) -> None:
        layers = until / float(self.step)
        if abs(layers - round(layers)) > 1e-6 or round(layers) < 1:
            raise InvalidInput(
                f"`until` is {until:g}, or {layers:g} layers of step {float(self.step):g}; make it a whole number."
            )


def layer_number(t: Any, step: Any) -> Any:
    """The integer layer at time t = layer * step, by rounding (floor gets 47 of 1,000 layers wrong at step 0.1)."""
    xp: Any = np if is_concrete(t) and is_concrete(step) else jnp
    return xp.rint(t / step).astype(int)
