"""Heun's method of Diffrax: a second, independent way to follow noise in the sense of Stratonovich."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.fixed import Fixed, check_steps, count_from_stop, leg_by_leg, step_count, stop_label
from attnflow.flows.methods.step_rules import not_after
from attnflow.flows.noises import AbstractNoise, AbstractStratonovich
from attnflow.spaces import AbstractSpace


class Heun(AbstractMethod):
    """dX = rate dt + sqrt(2 kappa) P_X G o dW by Heun's method in equal steps of at most `step` between saved times.

    Weak order 1 with noise, order 2 without. W is a Brownian tree between two saved times (or jumps of the field):
    a function of time that the seed fixes, whatever the step, so that halving the step follows the same path more
    closely. That, and the general solver around it, make it slower than `Layers` and `Fixed`, for which it is the
    reference. All steps between two saved times are one slice of work. `advance` is differentiable in reverse
    mode.
    """

    step: Number = eqx.field(converter=positive("step", batch=False), default=0.01)

    @property
    def layer_step(self) -> float | None:
        return None

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        return Fixed(self.step).grid(t0, t1, breaks)

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        # with noise and without jumps all steps are one leg, as in `stretch`, so that W is the same
        known = None if grid is None else grid.shape[0] - 1
        if grid is not None and (system.diffusion is None or system.breaks.shape[0]):
            return jax.lax.scan(
                lambda y, span: (_run(system, *span, span[1] - span[0], y, 1), None), state, (grid[:-1], grid[1:])
            )[0]
        if system.breaks.shape[0]:
            raise InvalidInput(
                "`Heun` has to know its steps beforehand where a field jumps in time: give t0, t1 and the step as "
                "plain numbers, or use Adaptive."
            )
        return _run(system, t0, t1, (t1 - t0) / step_count(jnp.abs(t1 - t0), self.step).astype(t0.dtype), state, known)

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        return count_from_stop()

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` is not needed: a leg is never left half done."""

        def leg(start: Any, end: Any, done: Any, budget: Any, y: State, memory: Any) -> Any:
            # a member of a batch may be at the end already; what is computed for it then is thrown away
            end = jnp.where(end > start, end, start + 1)
            count = step_count(end - start, self.step)
            y = _run(system, start, end, (end - start) / count.astype(end.dtype), y, None)
            return y, memory, count, count > 0

        return leg_by_leg(leg, at, times, system.breaks, limit)

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return AbstractStratonovich

    def check(self, until: float, field: AbstractField) -> None:
        """Any field will do, and any span that can be stepped through."""
        check_steps(until, self.step)


def _run(system: AbstractSystem, start: Time, end: Time, h: Time, state: State, steps: int | None) -> State:
    """From `start` to `end` in steps of h, moved back onto the space; `steps` is their number if it is known."""
    import diffrax
    import lineax

    # Diffrax wants states as precise as times; the field still sees those of the tokens
    given = jax.tree.map(lambda leaf: leaf.dtype, state)
    fine = jax.tree.map(lambda leaf: leaf.astype(start.dtype), state)

    def coarse(y: State) -> State:
        return jax.tree.map(lambda leaf, dtype: leaf.astype(dtype), y, given)

    def rate(t: Any, y: State, _: Any) -> State:
        return jax.tree.map(lambda leaf: leaf.astype(start.dtype), system.rate(not_after(t, last), coarse(y)))

    last = jnp.maximum(start, end)
    terms: Any = diffrax.ODETerm(rate)
    if system.diffusion is not None:
        noise, mu = system.diffusion
        shapes = noise.shapes(mu.moved(state))
        driver = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, start.dtype), shapes)
        path = diffrax.VirtualBrownianTree(start, end, h / 2, driver, noise.key(stop_label(start)))

        def spread(t: Any, y: State, _: Any) -> Any:
            at = mu.moved(system.retract(coarse(y)))

            def push(w: Any) -> Any:
                w = jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), w, shapes)
                return noise.displacement(not_after(t, last), at, w).astype(start.dtype)

            return lineax.FunctionLinearOperator(push, driver)

        terms = diffrax.MultiTerm(terms, diffrax.ControlTerm(spread, path))
    solution = diffrax.diffeqsolve(
        terms, diffrax.Heun(), start, end, h, fine, saveat=diffrax.SaveAt(t1=True), max_steps=steps, throw=False
    )
    return system.retract(coarse(jax.tree.map(lambda leaf: leaf[-1], solution.ys)))
