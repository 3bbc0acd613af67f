"""Follow tokens along a field: frames, observables, stop conditions, progress, interruption, continuation."""

import dataclasses
import time as clock
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Members, members, over_members
from attnflow.checks import instance, shown
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, breaks
from attnflow.fields.queries import AtTokens
from attnflow.fields.structure import is_exact, stated_error
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.continuing import go_on, recipe_of
from attnflow.flows.driver import AbstractStepper, Control, Driven, Rows, Slice, drive
from attnflow.flows.methods import AbstractMethod, Adaptive, Layers, ProjectRenormalise
from attnflow.flows.methods.base import Stretch
from attnflow.flows.noise import Brownian
from attnflow.flows.observables import Observe, Views
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.schedules import Save, as_schedule, continued
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stops import AbstractStop, Frame, conditions
from attnflow.flows.system import Particles
from attnflow.flows.trajectory import Trajectory
from attnflow.observe.energy import lyapunov
from attnflow.precision import full_precision
from attnflow.tokens import Measure, Tokens

FROZEN_SPREAD = 1e-6
FIRST_SLICE = 1e8
"""Pairs times steps of the first slice of work; later ones last about `SECONDS`."""
SECONDS = 0.2
LARGEST_CHUNK, FEWEST, MOST = 1 << 24, 4, 16
"""Numbers that a chunk of frames may hold, and its least and largest length."""
BUILT_IN = ("positions", "speed", "floor", "resolved", "spread", "energy")
"""What `solve` can keep of every frame."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a flow was made: what `solve(from_=flow)` goes on with."""

    field: AbstractField
    tokens: Tokens
    times: np.ndarray
    method: AbstractMethod
    noise: Brownian | None
    stops: tuple[AbstractStop, ...]
    observe: Observe
    keep: tuple[str, ...]
    chunk: int


def solve(
    field: AbstractField | None = None,
    tokens: Tokens | None = None,
    until: float | None = None,
    *,
    save: Save | None = None,
    method: AbstractMethod | None = None,
    noise: Brownian | None = None,
    stop: AbstractStop | Sequence[AbstractStop] = (),
    observe: Observe | None = None,
    keep: Collection[str] = BUILT_IN,
    sink: AbstractSink | None = None,
    chunk: int | None = None,
    tol: float | None = None,
    from_: Trajectory | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Trajectory:
    """Follow `tokens` along `field` from time 0 to `until`.

    Tokens are on their space to rounding at every saved time (with `Layers(update=Project())` they are where that
    rule puts them). Results are float64 whatever the JAX configuration. The energy of a gradient-flow field drops by
    no more than the integration error allows. For times beyond any clock, see `solve_long`.

    Arguments:
        save: when frames are kept: a schedule, a number of equal intervals (200 unless given), or increasing times.
        method: `Adaptive()` (default), `Fixed(step)`, `Layers(step)`, ...
        noise: `Brownian(kappa)`; the default method is then `Layers(0.01, ProjectRenormalise())`.
        stop: conditions looked at on every saved frame. A member of a batch stops where one holds: its later frames
            repeat that frame, `stopped_at` has the time. The flow ends when all members have stopped.
        observe: functions of (t, measure) by name, evaluated on every saved frame while the flow runs, as in
            `observe={"order": lambda t, mu: jnp.linalg.norm(mu.masses @ mu.positions)}`. See `Observable`.
        keep: which built-in variables are saved, of positions, speed, floor, resolved, spread, energy. With `keep=()`
            and `observe` a flow of any size needs the memory of a few frames. What is neither kept nor needed by a stop
            condition is not computed; without `resolved` and `spread` a flow is never called frozen.
        sink: where frames go; default in memory. A run folder streams them to disk and can resume.
        chunk: frames that are measured and stored together; it does not change results.
        tol: accuracy of the sums over pairs (`field.prepare`), where the field was not given one.
        from_: a flow to be continued to a later `until`, as in `solve(from_=flow, until=20)`. The result has all frames
            and is bit by bit that of one call with the concatenated save times. All else is as it was there. An
            interrupted flow goes on to its own end by `solve(from_=flow)`.
        on_progress: called with a `Progress` several times a second.
        cancel: called several times a second; when it returns True the flow ends as after Ctrl-C. Works in any thread.
        check: raise `FlowFailed` when integration cannot go on; False returns what there is.

    Returns a `Trajectory`. Its outcome is `frozen` when all speeds have been below round-off for 16 frames although the
    tokens have not met: either they are at an equilibrium or the drift that is left cannot be seen in this clock.
    Ctrl-C ends the flow at the last saved frame, with the outcome `interrupted`; `from_` goes on from there.
    """
    control = Control(sink, on_progress, cancel, check)
    if from_ is not None:
        old: Recipe = recipe_of(from_, Trajectory, "solve")
        last = float(old.times[-1])
        given = {"field": field, "tokens": tokens, "method": method, "noise": noise, "stop": stop, "observe": observe,
                 "chunk": chunk, "tol": tol}  # fmt: skip
        control = go_on(from_, last if until is None else until, last, given, control)
        end = last if until is None else float(until)
        old.method.check(end, old.field, old.noise is not None)
        times = continued(old.times, save, end, old.method.layer_step)
        return _run(dataclasses.replace(old, times=times), control)
    recipe = _recipe(field, tokens, until, save, method, noise, stop, observe, keep, chunk, tol)
    return _run(recipe, control)


def _recipe(
    field: Any, tokens: Any, until: Any, save: Any, method: Any, noise: Any, stop: Any, observe: Any, keep: Any,
    chunk: Any, tol: float | None,
) -> Recipe:  # fmt: skip
    """The checked arguments of `solve`."""
    instance("field", field, AbstractField, "a field such as Attention(2.0)")
    instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)")
    if not isinstance(method, AbstractMethod | None) and hasattr(method, "physics"):
        raise InvalidInput("`method` is LongTime, which is not a method of `solve`; use solve_long(field, tokens).")
    instance("method", method, AbstractMethod | None, "a method such as Adaptive()")
    instance("noise", noise, Brownian | None, "noise such as Brownian(0.1)")
    stops = conditions(stop)
    if method is None:
        method = Adaptive() if noise is None else Layers(0.01, ProjectRenormalise())
    if not (isinstance(until, int | float | np.number) and until > 0):
        raise InvalidInput(f"`until` is {until!r}; give a positive time.")
    if not np.isfinite(until):
        raise InvalidInput(
            f"`until` is {until!r}; {type(method).__name__} needs a finite time. solve_long goes to consensus."
        )
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise InvalidInput(f"`chunk` is {chunk!r}; give a positive integer.")
    if isinstance(keep, str) or not isinstance(keep, Collection) or not set(keep) <= set(BUILT_IN):
        raise InvalidInput(f"`keep` is {shown(keep)}; give names out of {', '.join(BUILT_IN)}.")
    on = method.evaluates_on(tokens.space)
    field.check(tokens, on)
    method.check(float(until), field, noise is not None)
    if noise is not None:
        noise.check(tokens.space)
    times = as_schedule(save).times(float(until), method.layer_step)
    field = field.prepare(tokens, tol, flowing=True, on=on)
    kept = tuple(name for name in BUILT_IN if name in keep)
    if chunk is None:
        numbers = int(np.prod([len(c) for c in members((field, noise), tokens).dims.values()])) * tokens.n * tokens.dim
        chunk = int(np.clip(LARGEST_CHUNK // numbers, FEWEST, MOST))
    return Recipe(field, tokens, times, method, noise, stops, dict(observe or {}), kept, chunk)


def _run(recipe: Recipe, control: Control) -> Trajectory:
    def result(driven: Driven) -> Trajectory:
        return Trajectory(
            driven.dataset, recipe.field, recipe.tokens.space, driven.outcome, driven.steps, driven.checkpoint, recipe
        )

    with full_precision():
        stepper = _Tokens(recipe)
        return drive(stepper, control, result, observe=recipe.observe, keep=recipe.keep, stops=recipe.stops)


class _State(NamedTuple):
    """Where the tokens are; arrays have the members first if there is a batch."""

    t: Any
    x: Any
    memory: Any
    frames: Any
    """Frames of the chunk in hand; none between chunks."""
    filled: Any
    steps: np.ndarray
    """Accepted and rejected steps of all members."""
    row: np.ndarray
    """Rows before the chunk in hand."""
    held: np.ndarray
    """(member,) the time at which a member was held; inf before."""


class _Tokens(AbstractStepper):
    """Tokens that follow a field. Chunk k holds the frames k chunk, ..., (k + 1) chunk - 1."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        tokens, method, field = recipe.tokens, recipe.method, recipe.field
        self.times = recipe.times
        self.size = min(recipe.chunk, len(self.times))
        self.systems: Members = members((field, recipe.noise), tokens)
        self.count = int(np.prod(self.systems.shape)) if self.systems.dims else 1
        has_energy = lyapunov(field, tokens.on(method.evaluates_on(tokens.space), tokens.positions)) is not None
        names = [name for name in BUILT_IN if name != "energy" or has_energy]
        self.kept = [name for name in names if name in recipe.keep]
        needed = {name for stop in recipe.stops for name in stop.needs} | set(self.kept)
        self.can_freeze = recipe.noise is None and {"resolved", "spread"} <= set(self.kept)
        measure = self.systems.measure.moved(None)
        self.plan = _Plan(
            self.systems.field,
            self.systems.field_axes,
            jax.tree.map(jnp.asarray, measure),
            measure.member_axes if self.systems.dims else None,
            method,
            jnp.asarray(breaks(field, self.times[-1])),
            tuple(name for name in names if name in needed and name != "positions"),
        )
        axes = measure.member_axes if self.systems.dims else jax.tree.map(lambda _: None, measure)

        def each(axis: Any, leaf: Any) -> Any:
            if leaf is None or axis == 0:
                return None if leaf is None else np.asarray(leaf)
            return np.broadcast_to(leaf, (self.count, *np.shape(leaf)))

        self.measure = jax.tree.map(each, axes, measure, is_leaf=lambda node: node is None)
        self.limit = float(np.clip(FIRST_SLICE / (self.count * tokens.n * max(tokens.n, 64)), 1, 256))
        self.path: _State | None = None
        """The state before the last steps, which were shortened."""
        self.warm = False
        """Whether a slice has run, so that the next one does not compile."""

    @property
    def batch(self) -> tuple[str, ...]:
        return tuple(self.systems.dims)

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.times[-1]), len(self.times)

    def layout(self) -> Layout:
        floating = np.asarray(self.recipe.tokens.positions).dtype
        batch, tokens = self.batch, self.recipe.tokens
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
        )

    def _atoms(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """What does not change along the flow: masses, places and, where rows are absent, which are not."""
        mu, dims = self.systems.measure, (*self.systems.dims, "token")
        found = {"masses": (dims, self.systems.unflatten(np.asarray(mu.masses)))}
        shared = np.ndim(self.recipe.tokens.place) == 1
        place = np.asarray(self.recipe.tokens.place) if shared else self.systems.unflatten(np.asarray(mu.place))
        found["place"] = (("token",) if shared else dims, place)
        if mu.present is not None:
            found["present"] = (dims, self.systems.unflatten(np.asarray(mu.present)))
        return found

    def start(self) -> Views:
        positions = np.asarray(self.systems.measure.positions)
        return self._views(self._lift(positions)[:, None], np.zeros((self.count, 1)))

    def begin(self) -> _State:
        x = jnp.asarray(self.systems.measure.positions)
        batch = x.shape[:-2]
        t = jnp.asarray(np.full(batch, self.times[0]))
        memory = wait(_begin(self.plan, x, jnp.asarray(self.times[0])))
        none = jnp.zeros((*batch, 0, *x.shape[-2:]), x.dtype)
        return _State(
            t, x, memory, none, jnp.zeros(batch, int), np.zeros(2, np.int64), np.zeros((), np.int64),
            np.full(self.count, np.inf),
        )  # fmt: skip

    def work(self, state: _State) -> Slice:
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
                self.plan, state.t, state.x, state.memory, state.frames, state.filled, jnp.asarray(chunk),
                after, np.asarray(self.times[-1]), np.asarray(self.path is not None), limit,
            )
        )  # fmt: skip
        steps = np.asarray(done.steps).reshape(-1, 2).sum(axis=0)
        self._adapt(clock.perf_counter() - began, int(steps.sum()))
        moved = state._replace(
            t=done.t, x=done.state, memory=done.memory, frames=done.frames, filled=done.filled,
            steps=state.steps + steps,
        )  # fmt: skip
        if np.any(done.failed):
            return Slice(moved, None, self._failure(np.asarray(done.failed), moved), self.path)
        full = np.asarray(done.filled) >= self.size
        if not full.all():
            if self.path is None and np.all(full | np.asarray(done.waiting)):
                self.path = moved  # from here on steps are shortened to end in time
            return Slice(moved, None, None, self.path)
        rows = self._rows(moved, last - row)
        empty = moved.frames[..., :0, :, :]
        moved = moved._replace(frames=empty, filled=jnp.zeros_like(moved.filled), row=np.asarray(last))
        return Slice(moved, rows, self._finished() if last == len(self.times) else None, self.path)

    def unfinished(self, state: _State) -> Rows | None:
        row = int(state.row)
        length = min(int(np.min(np.asarray(state.filled))), len(self.times) - row)
        if length == 0 or state.frames.shape[-3] == 0:
            return None
        good = np.isfinite(self._lift(np.asarray(state.frames))[:, :length]).all(axis=(0, 2, 3))
        length = length if good.all() else int(np.argmin(good))
        return self._rows(state, length) if length else None

    def hold(self, state: _State, members: np.ndarray, time: float, frame: Any) -> _State:
        if not self.systems.dims:
            return state._replace(x=jnp.asarray(frame[0]), t=jnp.asarray(np.inf), held=np.full(1, time))
        held = jnp.asarray(members)
        return state._replace(
            x=jnp.where(held[:, None, None], jnp.asarray(frame), state.x),
            t=jnp.where(held, jnp.inf, state.t),
            held=np.where(members, time, state.held),
        )

    def is_still(self, frame: Frame) -> tuple[np.ndarray, np.ndarray] | None:
        if not self.can_freeze:
            return None
        apart = frame["spread"] > FROZEN_SPREAD
        return ~frame["resolved"] | ~apart, apart

    def reached(self, state: _State, rows: dict[str, int]) -> Reached:
        time = float(np.min(np.minimum(np.asarray(state.t), self.times[-1])))
        full = int(state.row) >= len(self.times)
        return Reached(float(self.times[-1]) if full else time, rows["time"], int(state.steps.sum()))

    def steps(self, state: _State) -> dict[str, int]:
        return {"accepted": int(state.steps[0]), "rejected": int(state.steps[1])}

    def finish(self, state: _State) -> dict[str, Any]:
        return {}

    def _finished(self) -> Outcome:
        return Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}.")

    def _with_frames(self, state: _State) -> _State:
        """The state with room for the frames of a chunk: those that are there, and copies of the state."""
        have = state.frames.shape[-3]
        if have == self.size:
            return state
        axis = state.x.ndim - 2
        more = jnp.repeat(jnp.expand_dims(state.x, axis), self.size - have, axis=axis)
        return state._replace(frames=jnp.concatenate([state.frames, more], axis=axis))

    def _adapt(self, elapsed: float, steps: int) -> None:
        """Slices that last about as long as they should; the first one, which compiles, tells nothing."""
        if steps and self.warm:
            self.limit = float(np.clip(steps / self.count * SECONDS / max(elapsed, 1e-6), 1, 4 * self.limit))
        self.warm = True

    def _rows(self, state: _State, length: int) -> Rows:
        """The first `length` frames of the chunk in hand, measured."""
        row = int(state.row)
        frames = self._lift(np.asarray(state.frames))
        times = np.resize(self.times[row : row + length], self.size)
        own = np.minimum(times[None, :], state.held[:, None])
        measured = {}
        if self.plan.names:
            at = own if self.systems.dims else own[0]
            measured = {
                name: self._lift(np.asarray(value))[:, :length]
                for name, value in wait(_measure(self.plan, state.frames, jnp.asarray(at))).items()
            }
        variables = {"positions": frames[:, :length]} | measured
        shaped = {name: value.reshape(*self.systems.shape, *value.shape[1:]) for name, value in variables.items()}
        views = self._views(frames[:, :length], own[:, :length])
        return Rows({"time": {"time": times[:length]} | shaped}, views)

    def _views(self, frames: np.ndarray, times: np.ndarray) -> Views:
        return Views(times, frames, self.measure, _moved)

    def _lift(self, array: np.ndarray) -> np.ndarray:
        """With the members first, also where there is no batch."""
        return array if self.systems.dims else array[None]

    def _failure(self, failed: np.ndarray, state: _State) -> Outcome:
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
    jumps: Any
    names: tuple[str, ...] = eqx.field(static=True)
    """What is measured of every frame."""

    def over_members(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(system, *args)` for each member; `args` have the members first."""

        def one(moving: Any, measure: Measure, *args: Any) -> Any:
            field, noise = moving
            return function(Particles(field, measure, self.jumps, noise), *args)

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
        at = Stretch(t, x, memory, frames, filled, jnp.zeros(2, int), no, no)
        return plan.method.stretch(system, at, times, after, end, landing, limit)

    return plan.over_members(one, t, x, memory, frames, filled)


@compiled
def _measure(plan: _Plan, frames: Any, times: Any) -> Any:
    """Speed, floor, resolved, spread, energy of every frame, as far as the plan names them.

    The floor is the size of the error of a velocity. Rounding: a sum of n terms of size |drive| wanders by about
    sqrt(n) units in the last place, and the product, the division and the projection add a few more. Where sums are
    cut at a tolerance, that too.
    """
    moving = {"speed", "floor", "resolved"} & set(plan.names)

    def one(system: Particles, frames: Any, times: Any) -> Any:
        tokens, field = system.tokens, system.field
        energy = lyapunov(field, tokens) if "energy" in plan.names else None

        def at(frame: Any) -> dict[str, Any]:
            x, t = frame
            found = {}
            if moving:
                moved = tokens.moved(x)
                drive = field.drive(t, AtTokens(), moved)
                velocity = tokens.space.tangent(x, drive)  # 0 at absent rows, like the drive
                speed = jnp.max(jnp.linalg.norm(velocity, axis=1))
                unit = jnp.asarray(jnp.finfo(x.dtype).eps * (8 + jnp.sqrt(moved.count)), x.dtype)
                floor = unit * jnp.max(jnp.linalg.norm(drive, axis=1))
                cut = stated_error(field, t, AtTokens(), moved)
                floor = floor if is_exact(cut) else floor + jnp.max(cut)
                found = {"speed": speed, "floor": floor, "resolved": speed > floor}
            if "spread" in plan.names:
                mean = jnp.sum(tokens.masses[:, None] * x, axis=0, keepdims=True)
                found["spread"] = jnp.max(jnp.where(tokens.masses > 0, jnp.linalg.norm(x - mean, axis=1), 0.0))
            if energy is not None:
                found["energy"] = energy(x, tokens.masses)
            return {name: found[name] for name in plan.names}

        return jax.lax.map(at, (frames, times))

    return plan.over_members(one, frames, times)
