"""Tokens that follow a field, as the driver moves them."""

import functools
import time as clock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Members, members, over_members
from attnflow.fields import breaks
from attnflow.fields.structure import is_exact
from attnflow.flows.compiled import Staged, compiled, wait
from attnflow.flows.methods import AbstractMethod
from attnflow.flows.methods.base import Stretch
from attnflow.flows.observables import Views
from attnflow.flows.outcome import Ending, Outcome, Reached
from attnflow.flows.sink import Layout, Variable
from attnflow.flows.stepper import AbstractStepper, Rows, Slice
from attnflow.flows.stopping import conditions
from attnflow.flows.system import Particles
from attnflow.observe.energy import frame, lyapunov
from attnflow.tokens import Measure
from attnflow.tokens.labels import labels_beside

if TYPE_CHECKING:
    from attnflow.flows.solve import Solve

FROZEN_SPREAD = 1e-6
FIRST_SLICE = 1e8
"""Pairs times steps of the first slice of work; later ones last about `SECONDS`."""
SECONDS = 0.2
BUILT_IN = ("positions", "speed", "floor", "resolved", "spread", "energy")
"""What `solve` can keep of every frame."""


class _TokensState(NamedTuple):
    """Where the tokens are; arrays have the members first if there is a batch."""

    t: Any
    x: Any
    memory: Any
    frames: Any
    """Frames of the current chunk; none between chunks."""
    filled: Any
    steps: np.ndarray
    """Accepted and rejected steps of all members."""
    row: np.ndarray
    """Rows before the current chunk."""
    held: np.ndarray
    """(member,) the time at which a member was held; inf before."""
    path: Any = None
    """The state before the first step that was shortened to end in time, from which a longer flow goes on."""


class FlowingTokens(AbstractStepper):
    """Tokens that follow a field. Chunk k holds the frames k chunk, ..., (k + 1) chunk - 1."""

    def __init__(self, flow: "Solve"):
        self.flow = flow
        tokens, method, field = flow.tokens, flow.method, flow.field
        assert method is not None
        assert flow.chunk is not None
        self.times = flow.times
        self.size = flow.chunk
        self.systems: Members = members((field, flow.noise), tokens)
        self.count = int(np.prod(self.systems.shape)) if self.systems.dims else 1
        on = method.evaluates_on(tokens.space)
        seen = tokens if on is tokens.space else tokens.on(on, tokens.positions)
        has_energy = lyapunov(field, seen) is not None
        names = [name for name in BUILT_IN if name != "energy" or has_energy]
        self.kept = [name for name in names if name in flow.keep]
        needed = {name for stop in conditions(flow.stop) for name in stop.needs} | set(self.kept)
        self.can_freeze = flow.noise is None and {"resolved", "spread"} <= set(self.kept)
        needed |= {"floor"} if self.can_freeze else set()  # which the message names
        measure = self.systems.measure.moved(None)
        jumps = breaks((field, flow.noise), self.times[-1])
        self.last_jump = float(jumps[-1]) if jumps.size else -np.inf
        self.names = tuple(name for name in names if name in needed and name != "positions")
        plan = _Plan(
            self.systems.field,
            self.systems.field_axes,
            jax.tree.map(lambda leaf: leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf), measure),
            measure.member_axes if self.systems.dims else None,
            method,
            jumps,
            self.names,
        )
        self.plan = Staged(plan)
        self.limit = float(np.clip(FIRST_SLICE / (self.count * tokens.n * max(tokens.n, 64)), 1, 256))
        self.scratch: Any = None
        """Room for the frames of a chunk."""
        batch, floating = (self.count,) * bool(self.systems.dims), np.asarray(tokens.positions).dtype
        self.none = np.zeros((*batch, 0, tokens.n, tokens.dim), floating)
        self.unfilled = np.zeros(batch, int)
        self.warm = False
        """Whether a slice has run, so that the next one does not compile."""

    @property
    def batch(self) -> tuple[str, ...]:
        return tuple(self.systems.dims)

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.times[-1]), len(self.times)

    def layout(self) -> Layout:
        floating = np.asarray(self.flow.tokens.positions).dtype
        batch, tokens = self.batch, self.flow.tokens
        frames = {"time": Variable(("time",), np.dtype(np.float64))}
        for name in self.kept:
            own = ("token", "dim") if name == "positions" else ()
            frames[name] = Variable((*batch, "time", *own), np.dtype(bool) if name == "resolved" else floating)
        return Layout(
            {"time": frames},
            {name: len(labels) for name, labels in self.systems.dims.items()} | {"token": tokens.n, "dim": tokens.dim},
            {"time": len(self.times)},
            dict(self.systems.dims),
            self._atoms(),
            {"time": self.size},
            {"space": str(tokens.space)},
            float(self.times[-1]),
            {},
            labels_beside(tokens, self.systems.dims),
        )

    def _atoms(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """What does not change along the flow: masses, places and, where rows are absent, which are not."""
        mu, dims = self.systems.measure, (*self.systems.dims, "token")
        found = {"masses": (dims, self.systems.unflatten(np.asarray(mu.masses)))}
        shared = np.ndim(self.flow.tokens.place) == 1
        place = np.asarray(self.flow.tokens.place) if shared else self.systems.unflatten(np.asarray(mu.place))
        found["place"] = (("token",) if shared else dims, place)
        if mu.present is not None:
            found["present"] = (dims, self.systems.unflatten(np.asarray(mu.present)))
        return found

    def start(self) -> Views:
        positions = np.asarray(self.systems.measure.positions)
        return self._views(self._lift(positions)[:, None], np.zeros((self.count, 1)))

    def begin(self) -> _TokensState:
        x = self.systems.measure.positions
        t = np.full(x.shape[:-2], self.times[0])
        memory = wait(_begin(self.plan, x, np.asarray(self.times[0])))
        return _TokensState(
            t, x, memory, self.none, self.unfilled, np.zeros(2, np.int64), np.zeros((), np.int64),
            np.full(self.count, np.inf),
        )  # fmt: skip

    def work(self, state: _TokensState) -> Slice:
        row = int(state.row)
        if row >= len(self.times):
            return Slice(state, None, self._finished())
        last = min(row + self.size, len(self.times))
        chunk = np.concatenate([self.times[row:last], np.full(self.size - (last - row), self.times[last - 1])])
        after = np.asarray(self.times[last] if last < len(self.times) else -np.inf)  # an array: no weak type
        state = self._with_frames(state)
        began, limit = clock.perf_counter(), np.asarray(int(self.limit))
        done: Stretch = wait(
            _stretch(
                self.plan, state.t, state.x, state.memory, state.frames, state.filled, chunk,
                after, np.asarray(self.times[-1]), np.asarray(state.path is not None), limit,
            )
        )  # fmt: skip
        steps = np.asarray(done.steps).reshape(-1, 2).sum(axis=0)
        self._adapt(clock.perf_counter() - began, int(steps.sum()))
        moved = state._replace(
            t=done.t, x=done.state, memory=done.memory, frames=done.frames, filled=done.filled,
            steps=state.steps + steps,
        )  # fmt: skip
        if (failed := np.asarray(done.failed)).any():
            return Slice(moved, None, self._failure(failed, moved), moved.path)
        full = np.asarray(done.filled) >= self.size
        if not full.all():
            if moved.path is None and np.all(full | np.asarray(done.waiting)):
                moved = moved._replace(path=moved)  # from here on steps are shortened to end in time
            return Slice(moved, None, None, moved.path)
        rows = self._rows(moved, last - row)
        self.scratch = moved.frames
        moved = moved._replace(frames=self.none, filled=self.unfilled, row=np.asarray(last))
        return Slice(moved, rows, self._finished() if last == len(self.times) else None, moved.path)

    def unfinished(self, state: _TokensState) -> Rows | None:
        row = int(state.row)
        length = min(int(np.min(np.asarray(state.filled))), len(self.times) - row)
        if length == 0 or state.frames.shape[-3] == 0:
            return None
        good = np.isfinite(self._lift(np.asarray(state.frames))[:, :length]).all(axis=(0, 2, 3))
        length = length if good.all() else int(np.argmin(good))
        return self._rows(state, length) if length else None

    def hold(self, state: _TokensState, members: np.ndarray, time: float, frame: Any) -> _TokensState:
        if not self.systems.dims:
            return state._replace(x=np.asarray(frame[0]), t=np.asarray(np.inf), held=np.full(1, time))
        return state._replace(
            x=np.where(members[:, None, None], frame, np.asarray(state.x)),
            t=np.where(members, np.inf, np.asarray(state.t)),
            held=np.where(members, time, state.held),
        )

    def are_still(self, times: np.ndarray, frames: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        if not self.can_freeze:
            return None
        apart = frames["spread"] > FROZEN_SPREAD
        later = times >= self.last_jump  # tokens that stand still may move again when the field jumps
        return later & (~frames["resolved"] | ~apart), apart

    def reached(self, state: _TokensState, rows: dict[str, int]) -> Reached:
        time = float(np.min(np.minimum(np.asarray(state.t), self.times[-1])))
        full = int(state.row) >= len(self.times)
        return Reached(float(self.times[-1]) if full else time, rows["time"], int(state.steps.sum()))

    def steps(self, state: _TokensState) -> dict[str, int]:
        return {"accepted": int(state.steps[0]), "rejected": int(state.steps[1])}

    def finish(self, state: _TokensState) -> dict[str, Any]:
        return {}

    def _finished(self) -> Outcome:
        return Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}.")

    def _with_frames(self, state: _TokensState) -> _TokensState:
        """The state with room for the frames of a chunk, which are initialised where they are filled."""
        have = state.frames.shape[-3]
        if have == self.size:
            return state
        if have == 0 and self.scratch is not None:
            return state._replace(frames=self.scratch)
        axis = state.x.ndim - 2
        more = np.zeros((*state.x.shape[:axis], self.size - have, *state.x.shape[axis:]), state.x.dtype)
        return state._replace(frames=np.concatenate([np.asarray(state.frames), more], axis=axis) if have else more)

    def _adapt(self, elapsed: float, steps: int) -> None:
        """Slices that last about as long as they should; the first one, which compiles, tells nothing."""
        if steps and self.warm:
            self.limit = float(np.clip(steps / self.count * SECONDS / max(elapsed, 1e-6), 1, 4 * self.limit))
        self.warm = True

    def _rows(self, state: _TokensState, length: int) -> Rows:
        """The first `length` frames of the current chunk, measured."""
        row = int(state.row)
        frames = self._lift(np.asarray(state.frames))
        times = np.resize(self.times[row : row + length], self.size)
        own = np.minimum(times[None, :], state.held[:, None])
        measured = {}
        if self.names:
            at = own if self.systems.dims else own[0]
            measured = {
                name: self._lift(np.asarray(value))[:, :length]
                for name, value in wait(_measure(self.plan, state.frames, at, np.asarray(length))).items()
            }
        variables = {"positions": frames[:, :length]} | measured
        shaped = {name: value.reshape(*self.systems.shape, *value.shape[1:]) for name, value in variables.items()}
        views = self._views(frames[:, :length], own[:, :length])
        return Rows({"time": {"time": times[:length]} | shaped}, views)

    def _views(self, frames: np.ndarray, times: np.ndarray) -> Views:
        return Views(times, frames, self._fixed if self.flow.observe else None, _moved)

    @functools.cached_property
    def _fixed(self) -> Measure:
        """What observables see next to positions, with the members first."""
        measure = self.systems.measure.moved(None)
        own = jax.tree.map(lambda leaf: self._lift(np.asarray(leaf)), measure)
        everywhere = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (self.count, *np.shape(leaf))), measure.space)
        return own.on(everywhere, None)

    def _lift(self, array: np.ndarray) -> np.ndarray:
        """With the members first, also where there is no batch."""
        return array if self.systems.dims else array[None]

    def _failure(self, failed: np.ndarray, state: _TokensState) -> Outcome:
        which = f" in {int(failed.sum())} of {failed.size} members" if failed.ndim else ""
        t = float(np.min(np.asarray(state.t)))
        return Outcome(
            Ending.FAILED,
            f"integration failed near t = {t:g}{which} after {int(state.steps.sum())} steps: the field is not finite "
            "or needs steps below rounding. Check beta and the matrices, or use a smaller step.",
        )


def _moved(x: Any, measure: Any) -> Any:
    return measure.moved(x)


class _Plan(eqx.Module):
    """What compiled code needs to know: numbers are traced, the rest is compiled in."""

    moving: Any
    axes: Any = eqx.field(static=True)
    measure: Measure
    measure_axes: Any = eqx.field(static=True)
    method: AbstractMethod
    breaks: Any
    names: tuple[str, ...] = eqx.field(static=True)
    """What is measured of every frame."""

    def over_members(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(system, *args)` for each member; `args` have the members first."""

        def one(moving: Any, measure: Measure, *args: Any) -> Any:
            field, noise = moving
            return function(Particles(field, measure, self.breaks, noise), *args)

        if self.measure_axes is None:
            return one(self.moving, self.measure, *args)
        axes = (self.axes, self.measure_axes, *[0] * len(args))
        return over_members(one, axes, (self.moving, self.measure, *args), self.measure.masses.shape[-1] ** 2)


@compiled
def _begin(plan: _Plan, positions: Any, t0: Any) -> Any:
    return plan.over_members(lambda system, x: plan.method.begin(system, x, t0), positions)


@compiled
def _stretch(
    plan: _Plan, t: Any, x: Any, memory: Any, frames: Any, filled: Any, times: Any, after: Any, end: Any, landing: Any,
    limit: Any,
) -> Any:  # fmt: skip
    def one(system: Particles, t: Any, x: Any, memory: Any, frames: Any, filled: Any) -> Stretch:
        no = jnp.asarray(False)
        frames = jnp.where(filled > 0, frames, x)  # of a member that is held, or at the start, it is what is there
        at = Stretch(t, x, memory, frames, filled, jnp.zeros(2, int), no, no)
        return plan.method.stretch(system, at, times, after, end, landing, limit)

    return plan.over_members(one, t, x, memory, frames, filled)


@compiled
def _measure(plan: _Plan, frames: Any, times: Any, length: Any) -> Any:
    """Speed, floor, resolved, spread, energy of the first `length` frames, as far as the plan names them.

    The floor is the size of the error of a velocity. Rounding: a sum of n terms of size |drive| wanders by about
    sqrt(n) units in the last place, and the product, the division and the projection add a few more. Where sums are
    cut at a tolerance, that too.
    """
    moving = {"speed", "floor", "resolved"} & set(plan.names)

    def one(system: Particles, frames: Any, times: Any) -> Any:
        tokens, field = system.tokens, system.field

        def at(x: Any, t: Any) -> dict[str, Any]:
            found = {}
            moved = tokens.moved(x)
            if moving:
                drive, cut, energy = frame(field, t, moved, "energy" in plan.names)
                found["energy"] = energy
                velocity = tokens.space.tangent(x, drive)  # 0 at absent rows, like the drive
                speed = jnp.max(jnp.linalg.norm(velocity, axis=1))
                unit = jnp.finfo(x.dtype).eps * (8 + jnp.sqrt(jnp.asarray(moved.count, x.dtype)))
                floor = unit * jnp.max(jnp.linalg.norm(drive, axis=1))
                floor = floor if is_exact(cut) else floor + jnp.max(cut)
                found |= {"speed": speed, "floor": floor, "resolved": speed > floor}
            if "spread" in plan.names:
                mean = jnp.sum(tokens.masses[:, None] * x, axis=0, keepdims=True)
                found["spread"] = jnp.max(jnp.where(tokens.masses > 0, jnp.linalg.norm(x - mean, axis=1), 0.0))
            if "energy" in plan.names and not moving:
                own = lyapunov(field, tokens)
                assert own is not None
                found["energy"] = own(x, tokens.masses)
            return {name: found[name] for name in plan.names}

        def put(k: Any, found: dict[str, Any]) -> dict[str, Any]:
            return jax.tree.map(lambda all_, one: all_.at[k].set(one), found, at(frames[k], times[k]))

        shapes = jax.eval_shape(at, frames[0], times[0])
        none = {name: jnp.zeros((frames.shape[0], *like.shape), like.dtype) for name, like in shapes.items()}
        return jax.lax.fori_loop(0, length, put, none)

    return plan.over_members(one, frames, times)
