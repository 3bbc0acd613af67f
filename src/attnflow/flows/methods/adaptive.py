"""Adaptive steps: Dormand-Prince 8(7) of Diffrax, with its dense output."""

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.checks import flag, whole
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.fixed import not_after
from attnflow.spaces import AbstractSpace


class Adaptive(AbstractMethod):
    """Error per step below atol + rtol |x| in every coordinate of every token (a maximum, not a mean).

    The field is extended off the space as a constant along normals and states are moved back onto the space at every
    saved time and at slice ends. The nearest point of the space is at most as far again from the solution, so the
    order of the method is kept. The method is Dormand-Prince 8(7); `implicit=True` takes Kvaerno 5(4) instead, which
    factorises a matrix of (n d)^2 entries per step and whose steps are not bounded by the contraction inside clusters
    (a reference for few tokens and long times; see `LongTime`). `advance` is differentiable in reverse mode (recursive
    checkpoints), up to `max_steps` steps; use `Fixed` for forward mode.
    """

    rtol: Number = eqx.field(converter=positive("rtol"), default=1e-8)
    atol: Number = eqx.field(converter=positive("atol"), default=1e-10)
    max_steps: int = eqx.field(static=True, default=4096, converter=lambda count: whole("max_steps", count, 1))
    implicit: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        flag("implicit", self.implicit)

    @property
    def layer_step(self) -> float | None:
        return None

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        return None

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        import diffrax

        solution = diffrax.diffeqsolve(
            _term(system, jnp.maximum(t0, t1)), self._solver(), t0, t1, None, state,
            stepsize_controller=self._controller(system), saveat=diffrax.SaveAt(t1=True), max_steps=self.max_steps,
        )  # fmt: skip
        return system.retract(jax.tree.map(lambda leaf: leaf[-1], solution.ys))

    def begin(self, system: AbstractSystem, state: State, t0: Time, t1: Time) -> Time:
        solver = self._solver()
        first, _ = (
            self._controller(system)
            .wrap(1)
            .init(_term(system, t1), t0, t1, state, None, None, solver.func, solver.error_order(_term(system, t1)))
        )
        return first - t0

    def stretch(
        self,
        system: AbstractSystem,
        t: Time,
        state: State,
        memory: Time,
        times: Any,
        frames: State,
        limit: int,
    ) -> Stretch:
        import diffrax

        solution = diffrax.diffeqsolve(
            _term(system, times[-1]), self._solver(), t, times[-1], memory, state,
            stepsize_controller=_remembering()(self._controller(system)),
            saveat=diffrax.SaveAt(
                subs=[diffrax.SubSaveAt(ts=jnp.maximum(times, t)), diffrax.SubSaveAt(t1=True)], controller_state=True
            ),
            max_steps=limit, throw=False,
        )  # fmt: skip
        reached = solution.ts[1][-1]
        fresh = (times > t) & (times <= reached)

        def fill(old: Any, new: Any) -> Any:
            return jnp.where(fresh.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        saved = jax.vmap(system.retract)(solution.ys[0])
        end = system.retract(jax.tree.map(lambda leaf: leaf[-1], solution.ys[1]))
        # a member of a batch may be at the end already: Diffrax takes an empty interval for a backward one
        memory = jnp.where(t < times[-1], solution.controller_state[1], memory)
        accepted = solution.stats["num_accepted_steps"]
        fine = (solution.result == diffrax.RESULTS.successful) | (solution.result == diffrax.RESULTS.max_steps_reached)
        return Stretch(
            reached,
            end,
            memory,
            jax.tree.map(fill, frames, saved),
            jnp.stack([accepted, solution.stats["num_rejected_steps"]]),
            ~fine | ~(reached + memory > reached),  # the next step would be lost in rounding, or is not a number
        )

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space

    def check(self, until: float, field: AbstractField, noisy: bool) -> None:
        if noisy:
            raise InvalidInput("`Adaptive` has no noise; use Layers(step), Fixed(step) or Heun(step) with `noise`.")
        if not field.laws.lipschitz:
            raise InvalidInput(
                "`Adaptive` cannot follow a discontinuous field (hardmax): its steps shrink to nothing where the "
                "winner changes. Use Layers(step) or Fixed(step)."
            )

    def _solver(self) -> Any:
        import diffrax

        if not self.implicit:
            return diffrax.Dopri8()
        import optimistix

        # Diffrax's own VeryChord gives up early here: six times the steps
        rtol, atol = cast(Any, self.rtol), cast(Any, self.atol)
        return diffrax.Kvaerno5(root_finder=optimistix.Chord(rtol, atol, norm=_largest))

    def _controller(self, system: AbstractSystem) -> Any:
        import diffrax

        rtol, atol = cast(Any, self.rtol), cast(Any, self.atol)
        controller = diffrax.PIDController(rtol=rtol, atol=atol, norm=_largest)
        if system.breaks.shape[0] == 0:
            return controller
        return diffrax.ClipStepSizeController(controller, jump_ts=system.breaks)


def _largest(tree: Any) -> Any:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))


def _term(system: AbstractSystem, end: Time) -> Any:
    """The rate up to `end`; one that jumps there is meant from before (Diffrax looks to that at inner jumps only)."""
    import diffrax

    return diffrax.ODETerm(lambda t, state, _: system.rate(not_after(t, end), state))


def _remembering() -> Any:
    """A controller that also remembers the step it would take next if the end of the interval did not cut it short.

    (Diffrax does not tell it. Made on first use, because importing Diffrax takes as long as importing JAX.)
    """
    global _Remembering
    if _Remembering is not None:
        return _Remembering
    import diffrax

    class Remembering(diffrax.AbstractStepSizeController):
        inner: Any

        def wrap(self, direction: Any) -> Any:
            return Remembering(self.inner.wrap(direction))

        def init(self, terms: Any, t0: Any, t1: Any, y0: Any, dt0: Any, args: Any, func: Any, error_order: Any) -> Any:
            first, state = self.inner.init(terms, t0, t1, y0, dt0, args, func, error_order)
            return first, (state, first - t0)

        def adapt_step_size(
            self, t0: Any, t1: Any, y0: Any, y1_candidate: Any, args: Any, y_error: Any, error_order: Any, state: Any
        ) -> Any:
            inner, planned = state
            keep, start, end, jump, inner, result = self.inner.adapt_step_size(
                t0, t1, y0, y1_candidate, args, y_error, error_order, inner
            )
            cut_short = (t1 - t0) < 0.999 * planned
            ahead = jnp.where(keep & cut_short, jnp.maximum(end - start, planned), end - start)
            return keep, start, end, jump, (inner, ahead), result

    _Remembering = Remembering
    return Remembering


_Remembering: Any = None
