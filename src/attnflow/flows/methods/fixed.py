"""Fixed steps: classical Runge-Kutta of order 4 with a retraction after every step."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.noise import AbstractIto, AbstractNoise
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class Fixed(AbstractMethod):
    """RK4 in equal steps of at most `step` between saved times; reproducible, and differentiable in both modes.

    Rates of softmax attention are of order 1 for every beta (clusters contract at rate 1), so a step of 0.1 to 0.25 is
    accurate and 2.78 is the limit of stability. Written by hand because a scan of four field evaluations compiles
    and runs faster than a general solver.
    """

    step: Number = eqx.field(converter=positive("step"), default=0.1)

    @property
    def layer_step(self) -> float | None:
        return None

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        if not (is_concrete(t0) and is_concrete(t1) and is_concrete(self.step)):
            return None
        low, high = min(t0, t1), max(t0, t1)
        stops = np.concatenate([[low], breaks[(breaks > low) & (breaks < high)], [high]])
        legs = [np.linspace(a, b, int(step_count(b - a, self.step)) + 1)[:-1] for a, b in itertools.pairwise(stops)]
        nodes = np.append(np.concatenate(legs), high)
        return nodes if t1 >= t0 else nodes[::-1].copy()

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        if grid is not None:

            def step(y: State, span: Any) -> Any:
                t, end, label = span
                return system.kick(label, t, end - t, rk4(system, t, y, end - t, end)), None

            return jax.lax.scan(step, state, (grid[:-1], grid[1:], _labels(grid, system.breaks)))[0]
        if system.breaks.shape[0]:
            raise InvalidInput(
                "`Fixed` has to know its steps beforehand where a field jumps in time: give t0, t1 and the step as "
                "plain numbers, or use Adaptive."
            )
        steps = step_count(jnp.abs(t1 - t0), self.step)
        h = (t1 - t0) / jnp.asarray(steps, t0.dtype)

        def numbered(k: Any, y: State) -> State:
            t = t0 + jnp.asarray(k, h.dtype) * h
            return system.kick(_label(t0, k), t, h, rk4(system, t, y, h, t1))

        return jax.lax.fori_loop(0, steps, numbered, state)

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        return jnp.zeros_like(t0)

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` counts the steps already made since the last stop."""

        def leg(start: Any, end: Any, done: Any, budget: Any, y: State) -> tuple[State, Any, Any]:
            count = step_count(end - start, self.step)
            now = jnp.minimum(done + budget, count)
            h = (end - start) / count.astype(end.dtype)

            def step(k: Any, z: State) -> State:
                t = start + k.astype(h.dtype) * h
                return system.kick(_label(start, k), t, h, rk4(system, t, z, h, end))

            return jax.lax.fori_loop(done, now, step, y), now, now >= count

        return leg_by_leg(leg, at, times, system.breaks, limit)

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return AbstractIto

    def check(self, until: float, field: AbstractField) -> None:
        """Any span and any field will do."""


def stop_label(t: Any) -> Any:
    """Integers that tell the noise after one stop from that after another: the bits of its time.

    (Stops are given numbers. Times of steps are computed, and a last bit rounded otherwise would be another path.)
    """
    return jax.lax.bitcast_convert_type(t, jnp.uint32)


def _label(stop: Any, k: Any) -> Any:
    """The label of the noise of step k after a stop."""
    return jnp.append(stop_label(stop), jnp.asarray(k, jnp.uint32))


def _labels(grid: Any, breaks: Any) -> Any:
    """The labels of the steps of a grid, whose stops are its beginning and the breaks."""
    k = jnp.arange(grid.shape[0] - 1)
    last = jax.lax.cummax(jnp.where(jnp.isin(grid[:-1], breaks), k, 0))
    return jax.vmap(_label)(grid[last], k - last)


def step_count(span: Any, step: Any) -> Any:
    """How many equal steps of at most `step` make up `span`; a rounding error more does not add one."""
    xp: Any = np if is_concrete(span) and is_concrete(step) else jnp
    return xp.maximum(xp.ceil(span / step - 1e-9), 1).astype(int)


def rk4(system: AbstractSystem, t: Any, y: State, h: Any, end: Any) -> State:
    """One step of the classical Runge-Kutta method, moved back onto the space.

    Stages at `end` or at t, whichever is later, are evaluated just before it: a rate that jumps there is meant from
    the side of the step.
    """
    last = jnp.maximum(t, end)

    def rate(s: Any, k: State, by: Any) -> State:
        moved = jax.tree.map(lambda a, b: a + jnp.asarray(by, a.dtype) * b, y, k)
        return system.rate(not_after(s, last), moved)

    still = jax.tree.map(jnp.zeros_like, y)
    k1 = rate(t, still, 0.0)
    k2 = rate(t + h / 2, k1, h / 2)
    k3 = rate(t + h / 2, k2, h / 2)
    k4 = rate(t + h, k3, h)
    slope = jax.tree.map(lambda a, b, c, d: (a + 2 * (b + c) + d) / 6, k1, k2, k3, k4)
    return system.retract(jax.tree.map(lambda a, b: a + jnp.asarray(h, a.dtype) * b, y, slope))


def not_after(t: Any, end: Any) -> Any:
    """`t`, but no later than just before `end`, where a rate may jump; the derivative is that of `t`."""
    t_, end = jax.lax.stop_gradient((t, end))
    return t + (jnp.minimum(t_, jnp.nextafter(end, -jnp.inf)) - t_)


def leg_by_leg(leg: Any, at: Stretch, times: Any, breaks: Any, limit: Any) -> Stretch:
    """Go from stop to stop by `leg(start, end, steps done, step budget, state)` for `limit` steps.

    Stops are the saved times and the breaks between them; `at.t` is the last stop reached, `at.memory` the number of
    steps made since. Steps end on saved times, so that none has to be shortened for the end of the flow.
    """
    stops = jnp.concatenate([times, jnp.where(breaks < times[-1], breaks, times[-1])]) if breaks.shape[0] else times

    def go_on(carry: Any) -> Any:
        t, _, _, _, used = carry
        return (t < times[-1]) & (used < limit)

    def go(carry: Any) -> Any:
        t, state, done, frames, used = carry
        end = jnp.min(jnp.where(stops > t, stops, times[-1]))
        state, now, arrived = leg(t, end, done, limit - used, state)
        frame = jnp.minimum(jnp.sum(times < end), times.shape[0] - 1)
        return (
            jnp.where(arrived, end, t),
            state,
            jnp.where(arrived, 0, now),
            put(frames, frame, state, arrived & (times[frame] == end)),
            used + now - done,
        )

    begin = (at.t, at.state, at.memory.astype(int), at.frames, jnp.zeros((), int))
    t, state, done, frames, used = jax.lax.while_loop(go_on, go, begin)
    steps = jnp.stack([used, jnp.zeros_like(used)]).astype(at.steps.dtype)
    filled = jnp.sum(times <= t)
    return Stretch(t, state, done.astype(at.memory.dtype), frames, filled, steps, ~finite(state), jnp.asarray(False))


def put(frames: State, index: Any, state: State, when: Any) -> State:
    """`frames` with `state` at `index`, if `when`."""
    return jax.tree.map(lambda f, s: f.at[index].set(jnp.where(when, s, f[index])), frames, state)


def finite(state: State) -> Any:
    """Whether every number of the state is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]))
