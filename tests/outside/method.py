"""A rule without memory, a rule with memory and a solver, as a user's file would add them."""

import diffrax
import jax

import attnflow as af
from attnflow.flows import AbstractRule, moved_by, rate_until


@af.register("rule", "midpoint")
class Midpoint(AbstractRule):
    """x <- x + h f(t + h/2, x + (h/2) f(t, x)): order 2."""

    def begin(self, system, t, state):
        return ()

    def step(self, system, t, h, state, memory, end):
        rate = rate_until(system, t, end)
        half = moved_by(state, h / 2, rate(t, state))
        return system.retract(moved_by(state, h, rate(t + h / 2, half))), ()


@af.register("rule", "smoothed")
class Smoothed(AbstractRule):
    """Euler's rule with the running mean of the rates: order 1, and a memory that a resumed run must find again."""

    share: float = 0.5

    def begin(self, system, t, state):
        return system.rate(t, state)

    def step(self, system, t, h, state, memory, end):
        now = rate_until(system, t, end)(t, state)
        mean = jax.tree.map(lambda a, b: self.share * a + (1 - self.share) * b, now, memory)
        return system.retract(moved_by(state, h, mean)), mean


@af.register("solver", "half-ralston")
def half_ralston():
    """Diffrax's Ralston method, whose error is estimated by half steps."""
    return diffrax.HalfSolver(diffrax.Ralston())
