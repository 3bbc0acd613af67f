"""Fixed steps by a rule, with a retraction after every step."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory, require_steps
from attnflow.fields.base import AbstractField
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.step_rules import AbstractRule, Rk4
from attnflow.flows.noises import AbstractIto, AbstractNoise
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class Fixed(AbstractMethod):
    """Equal steps of at most `step` between saved times by `rule`; reproducible, and differentiable in both modes.

    Rates of softmax attention are of order 1 for every beta (clusters contract at rate 1), so that a step of 0.1 to
    0.25 is accurate with the default rule `Rk4()`. Written by hand because a scan of field evaluations compiles and
    runs faster than a general solver. With noise the weak order is 1 for every rule.
    """

    step: Number = eqx.field(converter=positive("step", batch=False), default=0.1)
    rule: AbstractRule = Rk4()

    def __check_init__(self) -> None:
        instance("rule", self.rule, AbstractRule, "a rule such as Rk4()")

    @property
    def layer_step(self) -> float | None:
        return None

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        if not (is_concrete(t0) and is_concrete(t1) and is_concrete(self.step)):
            return None
        check_steps(abs(t1 - t0), self.step, listed=True)
        stops = stops_between(t0, t1, breaks)
        legs = [np.linspace(a, b, int(step_count(b - a, self.step)) + 1)[:-1] for a, b in itertools.pairwise(stops)]
        nodes = np.append(np.concatenate(legs), stops[-1])
        return nodes if t1 >= t0 else nodes[::-1].copy()

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        memory = self._begun(system, t0, state)
        if grid is not None:

            def span(carry: Any, ends: Any) -> Any:
                y, memory = carry
                t, end, label = ends
                memory = self._begun_at_breaks(system, t, y, memory)
                y, memory = self.rule.step(system, t, end - t, y, memory, end)
                return (system.kick(label, t, end - t, y), memory), None

            spans = (grid[:-1], grid[1:], _labels(grid, system.breaks))
            return jax.lax.scan(span, (state, memory), spans)[0][0]
        if system.breaks.shape[0]:
            raise InvalidInput(
                "`Fixed` has to know its steps beforehand where a field jumps in time: give t0, t1 and the step as "
                "plain numbers, or use Adaptive."
            )
        steps = step_count(jnp.abs(t1 - t0), self.step)
        h = (t1 - t0) / jnp.asarray(steps, t0.dtype)

        def one(k: Any, carry: Any) -> Any:
            y, memory = carry
            t = t0 + jnp.asarray(k, h.dtype) * h
            y, memory = self.rule.step(system, t, h, y, memory, t1)
            return system.kick(_label(t0, k), t, h, y), memory

        return jax.lax.fori_loop(0, steps, one, (state, memory))[0]

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        return count_from_stop(self._begun(system, t0, state))

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` is (the number of steps made since the last stop, the memory of the rule)."""

        def leg(start: Any, end: Any, done: Any, budget: Any, y: State, memory: Any) -> Any:
            count = step_count(end - start, self.step)
            now = jnp.minimum(done + budget, count)
            h = (end - start) / count.astype(end.dtype)
            memory = self._begun_at_breaks(system, start, y, memory, done == 0)

            def step(k: Any, carry: Any) -> Any:
                z, memory = carry
                t = start + k.astype(h.dtype) * h
                z, memory = self.rule.step(system, t, h, z, memory, end)
                return system.kick(_label(start, k), t, h, z), memory

            return *jax.lax.fori_loop(done, now, step, (y, memory)), now, now >= count

        return leg_by_leg(leg, at, times, system.breaks, limit)

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return AbstractIto

    def check(self, until: float, field: AbstractField) -> None:
        """Any field will do, and any span that can be stepped through."""
        check_steps(until, self.step)

    def _begun(self, system: AbstractSystem, t: Time, state: State) -> Any:
        return jax.tree.map(jnp.asarray, self.rule.begin(system, t, state))

    def _begun_at_breaks(self, system: AbstractSystem, t: Time, y: State, memory: Any, here: Any = True) -> Any:
        """The memory, begun afresh if `t` is a break and it holds that the step starts `here`."""
        if not system.breaks.shape[0] or not jax.tree.leaves(memory):
            return memory
        jumps = jnp.any(system.breaks == t) & here
        return jax.lax.cond(jumps, lambda: self._begun(system, t, y), lambda: memory)


def check_steps(span: float, step: Any, *, listed: bool = False) -> None:
    """Refuse more steps than anybody waits for; or than memory holds, where their times are `listed`."""
    if not is_concrete(step):
        return
    with np.errstate(over="ignore"):
        count = float(span / np.asarray(step, np.float64))
    require_steps(count, f"`step` is {float(step):g}: a time of {span:g}", "use a larger `step`, or Adaptive()")
    if listed and np.isfinite(count):
        require_memory(int(32 * count), f"a list of {count:.3g} steps", "use a larger `step`, or `solve`")


def stops_between(t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray:
    """The earlier of two times, the breaks between them, the later one."""
    low, high = min(t0, t1), max(t0, t1)
    return np.concatenate([[low], breaks[(breaks > low) & (breaks < high)], [high]])


def count_from_stop(memory: Any = ()) -> Any:
    """The memory with which `leg_by_leg` starts: no steps yet, and what the method remembers besides."""
    return jnp.zeros((), int), memory


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


def leg_by_leg(leg: Any, at: Stretch, times: Any, breaks: Any, limit: Any) -> Stretch:
    """Go from stop to stop by `leg` for `limit` steps.

    leg(start, end, steps done, step budget, state, memory) gives (state, memory, steps done, whether it arrived).
    Stops are the saved times and the breaks between them; `at.t` is the last stop reached, `at.memory` is (the number
    of steps made since, the memory of the legs). Steps end on saved times, so that none has to be shortened for the
    end of the flow.
    """
    stops = jnp.concatenate([times, jnp.where(breaks < times[-1], breaks, times[-1])]) if breaks.shape[0] else times

    def go_on(carry: Any) -> Any:
        t, _, _, _, _, used = carry
        return (t < times[-1]) & (used < limit)

    def go(carry: Any) -> Any:
        t, state, done, memory, frames, used = carry
        end = jnp.min(jnp.where(stops > t, stops, times[-1]))
        state, memory, now, arrived = leg(t, end, done, limit - used, state, memory)
        frame = jnp.minimum(jnp.sum(times < end), times.shape[0] - 1)
        return (
            jnp.where(arrived, end, t),
            state,
            jnp.where(arrived, 0, now),
            memory,
            put(frames, frame, state, arrived & (times[frame] == end)),
            used + now - done,
        )

    begin = (at.t, at.state, *at.memory, at.frames, jnp.zeros((), int))
    t, state, done, memory, frames, used = jax.lax.while_loop(go_on, go, begin)
    steps = jnp.stack([used, jnp.zeros_like(used)]).astype(at.steps.dtype)
    filled = jnp.sum(times <= t)
    return Stretch(t, state, (done, memory), frames, filled, steps, ~finite(state), jnp.asarray(False))


def put(frames: State, index: Any, state: State, when: Any) -> State:
    """`frames` with `state` at `index`, if `when`."""
    return jax.tree.map(lambda f, s: f.at[index].set(jnp.where(when, s, f[index])), frames, state)


def finite(state: State) -> Any:
    """Whether every number of the state is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]))
