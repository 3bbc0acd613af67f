"""Fixed steps: classical Runge-Kutta of order 4 with a retraction after every step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import positive
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.precision import is_concrete


class Fixed(AbstractMethod):
    """RK4 in equal steps of at most `step` between saved times; reproducible, and differentiable in both modes.

    Rates of softmax attention are of order 1 for every beta (clusters contract at rate 1), so a step of 0.1 to 0.25 is
    accurate and 2.78 is the limit of stability. Written by hand because a scan of four field evaluations compiles
    and runs faster than a general solver.
    """

    step: np.ndarray = eqx.field(converter=positive("step"), default=0.1)

    @property
    def layer_step(self) -> float | None:
        return None

    def count(self, t0: Any, t1: Any) -> int | None:
        known = is_concrete(t0) and is_concrete(t1) and is_concrete(self.step)
        return int(step_count(abs(t1 - t0), self.step)) if known else None

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, count: int | None) -> State:
        steps = step_count(jnp.abs(t1 - t0), self.step) if count is None else count
        h = (t1 - t0) / jnp.asarray(steps, t0.dtype)
        return jax.lax.fori_loop(0, steps, lambda k, y: rk4(system, t0 + jnp.asarray(k, h.dtype) * h, y, h), state)

    def begin(self, system: AbstractSystem, state: State, t0: Time, t1: Time) -> Time:
        return jnp.zeros_like(t0)

    def stretch(
        self, system: AbstractSystem, t: Time, state: State, memory: Time, times: Any, frames: State, limit: int
    ) -> Stretch:
        """`memory` counts the steps already made since the last saved time."""

        def leg(target: Any, done: Any, budget: Any, y: State) -> tuple[State, Any, Any]:
            start, end = times[target - 1], times[target]
            count = step_count(end - start, self.step)
            now = jnp.minimum(done + budget, count)
            h = (end - start) / count.astype(end.dtype)
            y = jax.lax.fori_loop(done, now, lambda k, z: rk4(system, start + k.astype(h.dtype) * h, z, h), y)
            return y, now, now >= count

        return leg_by_leg(leg, t, state, memory, times, frames, limit)

    def check(self, until: float) -> None:
        """Any span will do."""


def step_count(span: Any, step: Any) -> Any:
    """How many equal steps of at most `step` make up `span`; a rounding error more does not add one."""
    xp: Any = np if is_concrete(span) and is_concrete(step) else jnp
    return xp.maximum(xp.ceil(span / step - 1e-9), 1).astype(int)


def rk4(system: AbstractSystem, t: Any, y: State, h: Any) -> State:
    """One step of the classical Runge-Kutta method, moved back onto the space."""

    def shifted(k: State, by: Any) -> State:
        return jax.tree.map(lambda a, b: a + jnp.asarray(by, a.dtype) * b, y, k)

    k1 = system.rate(t, y)
    k2 = system.rate(t + h / 2, shifted(k1, h / 2))
    k3 = system.rate(t + h / 2, shifted(k2, h / 2))
    k4 = system.rate(t + h, shifted(k3, h))
    slope = jax.tree.map(lambda a, b, c, d: (a + 2 * (b + c) + d) / 6, k1, k2, k3, k4)
    return system.retract(shifted(slope, h))


def leg_by_leg(leg: Any, t: Time, state: State, memory: Time, times: Any, frames: State, limit: int) -> Stretch:
    """Go from saved time to saved time by `leg(target, steps done, step budget, state)` for `limit` steps."""

    def go_on(carry: Any) -> Any:
        t, _, _, _, used = carry
        return (t < times[-1]) & (used < limit)

    def go(carry: Any) -> Any:
        t, state, done, frames, used = carry
        target = jnp.minimum(jnp.sum(times <= t), times.shape[0] - 1)
        state, now, arrived = leg(target, done, limit - used, state)
        return (
            jnp.where(arrived, times[target], t),
            state,
            jnp.where(arrived, 0, now),
            put(frames, target, state, arrived),
            used + now - done,
        )

    begin = (t, state, memory.astype(int), frames, jnp.zeros((), int))
    t, state, done, frames, used = jax.lax.while_loop(go_on, go, begin)
    return Stretch(t, state, done.astype(memory.dtype), frames, jnp.stack([used, jnp.zeros_like(used)]), ~finite(state))


def put(frames: State, index: Any, state: State, when: Any) -> State:
    """`frames` with `state` at `index`, if `when`."""
    return jax.tree.map(lambda f, s: f.at[index].set(jnp.where(when, s, f[index])), frames, state)


def finite(state: State) -> Any:
    """Whether every number of the state is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]))
