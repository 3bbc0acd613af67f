"""One step of a method with equal steps: classical Runge-Kutta, Euler, Adams-Bashforth."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from attnflow.flows.methods.base import AbstractSystem, State, Time
from attnflow.lazy import listing

__all__ = ["AbstractRule", "AdamsBashforth", "Euler", "Rk4", "moved_by", "rate_until"]
__dir__ = listing(__all__)


class AbstractRule(eqx.Module):
    """The step of `Fixed`: from the state at t to the state at t + h, with any pytree of arrays as memory."""

    @abc.abstractmethod
    def begin(self, system: AbstractSystem, t: Time, state: State) -> Any:
        """The memory with which the rule starts at time t; () if it has none.

        `Fixed` asks for it at the start of a flow and wherever the rate jumps. Saved times leave the memory alone, and
        checkpoints hold it.
        """

    @abc.abstractmethod
    def step(self, system: AbstractSystem, t: Time, h: Time, state: State, memory: Any, end: Time) -> tuple[State, Any]:
        """The state at t + h, moved back onto the space, and the memory of the next step.

        The rate does not jump between t and `end`, which is at or after t + h (h < 0 runs backwards, and `end` is then
        before t). `rate_until(system, t, end)` evaluates it on the right side of a jump at either of them.
        """


class Rk4(AbstractRule):
    """The classical Runge-Kutta rule: order 4, four rates a step, stable for rates up to 2.78/h."""

    def begin(self, system: AbstractSystem, t: Time, state: State) -> Any:
        return ()

    def step(self, system: AbstractSystem, t: Time, h: Time, state: State, memory: Any, end: Time) -> tuple[State, Any]:
        rate = rate_until(system, t, end)
        still = jax.tree.map(jnp.zeros_like, state)
        k1 = rate(t, moved_by(state, 0.0, still))
        k2 = rate(t + h / 2, moved_by(state, h / 2, k1))
        k3 = rate(t + h / 2, moved_by(state, h / 2, k2))
        k4 = rate(t + h, moved_by(state, h, k3))
        slope = jax.tree.map(lambda a, b, c, d: (a + 2 * (b + c) + d) / 6, k1, k2, k3, k4)
        return system.retract(moved_by(state, h, slope)), memory


class Euler(AbstractRule):
    """x <- N(x + h P_x A): order 1, one rate a step, stable for rates up to 2/h.

    The layer `ProjectRenormalise` of `Layers`, but with steps that end on saved times and jumps of the field.
    """

    def begin(self, system: AbstractSystem, t: Time, state: State) -> Any:
        return ()

    def step(self, system: AbstractSystem, t: Time, h: Time, state: State, memory: Any, end: Time) -> tuple[State, Any]:
        return system.retract(moved_by(state, h, rate_until(system, t, end)(t, state))), memory


class AdamsBashforth(AbstractRule):
    """The two-step rule of Adams and Bashforth: order 2, one rate a step, stable for rates up to 1/h.

    With the rates f of this step and f' of the last one, and r = h/h' the ratio of their lengths,
    x <- x + h (f + (r/2) (f - f')): the integral of the line through the two rates. The memory is (f', h'). Steps
    change their length where saved times or jumps cut them, which r accounts for. A start (h' = inf, so r = 0) is a
    step of Euler's rule; its error h^2 x''/2 is made once and keeps the order. (Hairer, Norsett, Wanner: Solving
    Ordinary Differential Equations I, section III.5.)
    """

    def begin(self, system: AbstractSystem, t: Time, state: State) -> Any:
        return jax.tree.map(jnp.zeros_like, state), jnp.full_like(t, jnp.inf)

    def step(self, system: AbstractSystem, t: Time, h: Time, state: State, memory: Any, end: Time) -> tuple[State, Any]:
        before, last = memory
        now = rate_until(system, t, end)(t, state)
        slope = moved_by(now, h / last / 2, jax.tree.map(jnp.subtract, now, before))
        return system.retract(moved_by(state, h, slope)), (now, jnp.asarray(h, t.dtype))


def rate_until(system: AbstractSystem, t: Time, end: Time) -> Callable[[Time, State], State]:
    """The rate as a function of a time from t to `end` and a state.

    At the later of the two, where it may jump, it is evaluated just before: from the side of the step.
    """
    last = jnp.maximum(t, end)
    return lambda s, state: system.rate(not_after(s, last), state)


def moved_by(state: State, by: Any, rate: State) -> State:
    """state + by * rate, in the precision of the state."""
    return jax.tree.map(lambda a, b: a + jnp.asarray(by, a.dtype) * b, state, rate)


def not_after(t: Any, end: Any) -> Any:
    """`t`, but no later than just before `end`, where a rate may jump; the derivative is that of `t`."""
    t_, end = jax.lax.stop_gradient((t, end))
    return t + (jnp.minimum(t_, jnp.nextafter(end, -jnp.inf)) - t_)
