"""Adaptive steps: a solver of Diffrax, with its dense output."""

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.checks import whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_clock
from attnflow.fields.base import AbstractField
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.fixed import finite
from attnflow.flows.methods.solvers import as_plain_loop, check_solver, inside, is_coarse, with_tolerances
from attnflow.flows.methods.step_rules import not_after
from attnflow.flows.noises import AbstractNoise
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class Adaptive(AbstractMethod):
    """Error per step below atol + rtol |x| in every coordinate of every token (a maximum, not a mean).

    The field is extended off the space as a constant along normals; states are moved back onto the space after every
    step, frames at saved times. The nearest point of the space is at most as far again from the solution, so the
    order of the method is kept. `advance` is differentiable in reverse mode (recursive checkpoints), up to `max_steps`
    steps; use `Fixed` for forward mode.

    Arguments:
        solver: a solver of Diffrax for one ODE that estimates its error, such as `diffrax.Tsit5()`; left out,
            `diffrax.Dopri8()` (Dormand-Prince 8(7)). An implicit one such as `diffrax.Kvaerno5()` factorises a matrix
            of (n d)^2 entries per step, and its steps are not bounded by the contraction inside clusters: a reference
            for few tokens and long times (see `solve_long`). A root finder without tolerances of its own gets those
            of the steps. Every step of a given solver evaluates its first stage, so that members of a batch do not
            depend on when others start or pass a jump.
    """

    rtol: Number = eqx.field(converter=positive("rtol", batch=False), default=1e-8)
    atol: Number = eqx.field(converter=positive("atol", batch=False), default=1e-10)
    max_steps: int = eqx.field(static=True, default=4096, converter=lambda count: whole("max_steps", count, 1, 10**9))
    solver: Any = None

    def __check_init__(self) -> None:
        if self.solver is not None:
            check_solver(self.solver)
        rounding = float(np.finfo(np.float64).eps)
        if is_concrete(self.rtol) and is_concrete(self.atol) and max(self.rtol, self.atol) < rounding:
            raise InvalidInput(
                f"`rtol` is {float(self.rtol):g} and `atol` is {float(self.atol):g}, both below the rounding of a "
                f"float64, {rounding:.1e}, so that no step would pass; give an `rtol` of at least 1e-14."
            )

    @property
    def layer_step(self) -> float | None:
        return None

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        return None

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        import diffrax

        solution = diffrax.diffeqsolve(
            _term(system, jnp.maximum(t0, t1)),
            self._solver(),
            t0,
            t1,
            None,
            state,
            stepsize_controller=self._controller(system),
            saveat=diffrax.SaveAt(t1=True),
            max_steps=self.max_steps,
        )
        return system.retract(jax.tree.map(lambda leaf: leaf[-1], solution.ys))

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        term, solver, controller = _term(system, jnp.inf), self._solver(), self._inner()
        order = solver.error_order(term)
        first, control = controller.init(term, t0, t0 + 1, state, None, None, solver.func, order)
        memory = first - t0, solver.init(term, t0, first, state, None), control
        return jax.tree.map(jnp.asarray, memory)

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` is (the next step, the state of the solver, the state of the controller).

        Steps end where they please; frames are read off the dense output of the step that passes them, or, where that
        is of lower order than the solver, come from a shorter step of their own. The step that passes the last frame
        of a chunk is made again for the next chunk if that has frames within it.
        """
        import diffrax

        solver, controller = inside(self._solver(), as_plain_loop), self._inner()  # no reverse mode is needed here
        count, size = times.shape[0], jnp.asarray(times.shape[0])

        def blocked(t: Any, h: Any) -> Any:
            """The next step has to be shortened for the end, and may not be."""
            return (t < end) & (t + h > end) & ~landing & (_next_break(system.breaks, t) > end)

        def going(carry: Stretch) -> Any:
            h = carry.memory[0]
            unfinished = (carry.filled < size) & (carry.t < end) & (jnp.sum(carry.steps) < limit)
            return unfinished & ~carry.failed & ~blocked(carry.t, h)

        def go(carry: Stretch) -> Stretch:
            t, y, (planned, solver_state, control) = carry.t, carry.state, carry.memory
            wall = jnp.minimum(_next_break(system.breaks, t), end)
            cut = t + planned > wall
            then = jnp.where(cut, wall, t + planned)
            term = _term(system, wall)
            if self.solver is not None:
                # Diffrax decides for all members of a batch together whether the first stage is that of the last step
                jumped = jnp.asarray(True)
            else:
                jumped = jnp.any(system.breaks == t) if system.breaks.shape[0] else jnp.asarray(False)
            y1, error, dense, solver_after, result = solver.step(term, t, then, y, None, solver_state, jumped)
            keep, start, stop, _, control_after, _ = controller.adapt_step_size(
                t, then, y, y1, None, error, solver.error_order(term), control
            )
            keep = keep & (result == diffrax.RESULTS.successful) & finite(y1)
            ahead = stop - start
            ahead = jnp.where(keep & cut, jnp.maximum(ahead, planned), ahead)
            step = solver.interpolation_cls(t0=t, t1=then, **dense)

            def passed(inner: Any) -> Any:
                filled, _ = inner
                return keep & (filled < size) & (times[jnp.minimum(filled, count - 1)] <= then)

            def fill(inner: Any) -> Any:
                filled, frames = inner
                if is_coarse(step, solver.order(term)):
                    frame, _, _, _, made = solver.step(term, t, times[filled], y, None, solver_state, jumped)
                    frame = jax.tree.map(lambda x: jnp.where(made == diffrax.RESULTS.successful, x, jnp.nan), frame)
                else:
                    frame = step.evaluate(times[filled])
                frame = system.retract(frame)
                return filled + 1, jax.tree.map(lambda f, x: f.at[filled].set(x), frames, frame)

            filled, frames = jax.lax.while_loop(passed, fill, (carry.filled, carry.frames))
            move = keep & ((filled < size) | (after > then))

            def chosen(new: Any, old: Any) -> Any:
                return jax.tree.map(lambda a, b: jnp.where(move, a, b), new, old)

            again = keep & ~move  # the same step once more, for the next chunk
            return Stretch(
                jnp.where(move, then, t),
                chosen(system.retract(y1), y),
                (
                    jnp.where(again, planned, ahead),
                    chosen(solver_after, solver_state),
                    jax.tree.map(lambda a, b: jnp.where(again, b, a), control_after, control),
                ),
                frames,
                filled,
                carry.steps + jnp.stack([move, ~keep]).astype(carry.steps.dtype),
                ~(t + ahead > t),  # the next step would be lost in rounding, or is not a number
                carry.waiting,
            )

        begun = at._replace(filled=jnp.maximum(at.filled, jnp.sum(times <= at.t)), steps=jnp.zeros_like(at.steps))
        done = jax.lax.while_loop(going, go, begun)
        return done._replace(waiting=(done.filled < size) & blocked(done.t, done.memory[0]))

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return None

    def check(self, until: float, field: AbstractField) -> None:
        if not field.laws.lipschitz:
            raise InvalidInput(
                "`Adaptive` cannot follow a discontinuous field (hardmax): its steps shrink to nothing where the "
                "winner changes. Use Layers(step) or Fixed(step)."
            )
        require_clock(until)

    def _solver(self) -> Any:
        import diffrax

        solver = diffrax.Dopri8() if self.solver is None else self.solver
        return inside(solver, lambda one: with_tolerances(one, self.rtol, self.atol, _largest))

    def _inner(self) -> Any:
        import diffrax

        rtol, atol = cast(Any, self.rtol), cast(Any, self.atol)
        return diffrax.PIDController(rtol=rtol, atol=atol, norm=_largest)

    def _controller(self, system: AbstractSystem) -> Any:
        import diffrax

        if system.breaks.shape[0] == 0:
            return self._inner()
        return diffrax.ClipStepSizeController(self._inner(), jump_ts=system.breaks)


def _largest(tree: Any) -> Any:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))


def _term(system: AbstractSystem, end: Time) -> Any:
    """The rate up to `end`; at a jump there the left limit is used (Diffrax does so at inner jumps only)."""
    import diffrax

    return diffrax.ODETerm(lambda t, state, _: system.rate(not_after(t, end), state))


def _next_break(breaks: Any, t: Time) -> Any:
    """The first break after `t`; inf if there is none."""
    return jnp.min(jnp.where(breaks > t, breaks, jnp.inf), initial=jnp.inf)
