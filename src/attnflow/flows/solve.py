"""Follow tokens along a field: frames, stop conditions, progress, interruption, and resumption."""

import dataclasses
import time as clock
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Members, members, over_members
from attnflow.checks import instance
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.fields import AbstractField, breaks
from attnflow.fields.queries import AtTokens
from attnflow.fields.structure import is_exact, stated_error
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.longtime.frames import follow
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.methods import AbstractMethod, Adaptive, Layers, ProjectRenormalise
from attnflow.flows.noise import Brownian
from attnflow.flows.outcome import Ending, Outcome, Progress
from attnflow.flows.schedules import Save, as_schedule
from attnflow.flows.sink import AbstractSink, Checkpoint, InMemory, Layout
from attnflow.flows.stops import AbstractStop, Frame
from attnflow.flows.system import Particles
from attnflow.flows.trajectory import Trajectory
from attnflow.interrupts import interruptible
from attnflow.observe.energy import lyapunov
from attnflow.precision import full_precision
from attnflow.tokens import Measure, Tokens

FROZEN_SPREAD = 1e-6
SLICE = 1e8
"""Pairs times steps between two looks at the progress. Slices depend on the shapes alone, so that runs repeat."""


def solve(
    field: AbstractField,
    tokens: Tokens,
    until: float,
    *,
    save: Save | None = None,
    method: AbstractMethod | LongTime | None = None,
    noise: Brownian | None = None,
    stop: AbstractStop | Sequence[AbstractStop] = (),
    sink: AbstractSink | None = None,
    chunk: int = 16,
    tol: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    check: bool = True,
) -> Trajectory:
    """Follow `tokens` along `field` from time 0 to `until`.

    Tokens are on their space to rounding at every saved time (with `Layers(update=Project())` they are where that
    rule puts them). Results are float64 whatever the JAX configuration. The energy of a gradient-flow field drops by
    no more than the integration error allows.

    Arguments:
        save: when frames are kept: a schedule, a number of equal intervals (200 unless given), or increasing times.
        method: `Adaptive()` (default), `Fixed(step)`, `Layers(step)`, ... `LongTime()` follows attention to any time,
            `until=math.inf` for consensus; it chooses its frames by itself and takes no `save`, `stop` or `noise`.
        noise: `Brownian(kappa)`; the default method is then `Layers(0.01, ProjectRenormalise())`.
        stop: conditions looked at on every saved frame; the flow ends at the first frame where one holds.
        sink: where frames go; default in memory. A run folder streams them to disk and can resume.
        chunk: frames per chunk. At each chunk end the state is retracted and integration restarts from exactly
            what is saved, so the chunk belongs to the specification of a reproducible run.
        tol: accuracy of the sums over pairs (`field.prepare`), where the field was not given one.
        on_progress: called with a `Progress` several times per chunk.
        check: raise `FlowFailed` when integration cannot go on; False returns what there is.

    Returns a `Trajectory`. Its outcome is `frozen` when all speeds have fallen below round-off although the tokens
    have not met: either they are at an equilibrium or the drift that is left cannot be seen in this clock.
    Ctrl-C ends the flow at the last saved frame, with the outcome `interrupted`.
    """
    instance("field", field, AbstractField, "a field such as Attention(2.0)")
    instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)")
    instance("method", method, AbstractMethod | LongTime | None, "a method such as Adaptive()")
    instance("noise", noise, Brownian | None, "noise such as Brownian(0.1)")
    several = stop if isinstance(stop, Sequence) and not isinstance(stop, str) else (stop,)
    stops = tuple(instance("stop", one, AbstractStop, "a condition such as Consensus(), or a list") for one in several)
    if method is None:
        method = Adaptive() if noise is None else Layers(0.01, ProjectRenormalise())
    sink = InMemory() if sink is None else sink
    if not (isinstance(until, int | float | np.number) and until > 0):
        raise InvalidInput(f"`until` is {until!r}; give a positive time.")
    if isinstance(method, LongTime):
        if save is not None or stops or noise is not None:
            raise InvalidInput(
                "`LongTime` keeps frames of its own choice and has no noise; leave out save, stop, noise."
            )
        field.check(tokens)
        method.check(field, tokens)
        with full_precision():
            return follow(field, tokens, float(until), method, sink, on_progress, check)
    if not np.isfinite(until):
        raise InvalidInput(
            f"`until` is {until!r}; {type(method).__name__} needs a finite time. method=LongTime() goes to consensus."
        )
    if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
        raise InvalidInput(f"`chunk` is {chunk!r}; give a positive integer.")
    on = method.evaluates_on(tokens.space)
    field.check(tokens, on)
    method.check(float(until), field, noise is not None)
    if noise is not None:
        noise.check(tokens.space)
    times = as_schedule(save).times(float(until), method.layer_step)
    field = field.prepare(tokens, tol, flowing=True, on=on)
    with full_precision():
        return _Solver(field, tokens, times, method, noise, stops, sink, chunk, on_progress).run(check)


class _Solver:
    """One call of `solve`, from the first chunk to the outcome.

    Chunk k holds the frames k * chunk, ..., (k + 1) * chunk - 1; it is integrated from the last frame before it (the
    first chunk from its own frame 0, the start) in slices of at most `limit` steps.
    """

    def __init__(
        self,
        field: AbstractField,
        tokens: Tokens,
        times: np.ndarray,
        method: AbstractMethod,
        noise: Brownian | None,
        stops: tuple[AbstractStop, ...],
        sink: AbstractSink,
        chunk: int,
        on_progress: Callable[[Progress], None] | None,
    ):
        self.field, self.tokens, self.times, self.method = field, tokens, times, method
        self.noise, self.stops, self.sink, self.on_progress = noise, stops, sink, on_progress
        self.size = min(chunk, len(times))
        self.systems: Members = members((field, noise), tokens)
        measure = self.systems.measure.moved(None)
        self.plan = _Plan(
            self.systems.field,
            self.systems.field_axes,
            jax.tree.map(jnp.asarray, measure),
            measure.member_axes if self.systems.dims else None,
            method,
            jnp.asarray(breaks(field, times[-1])),
            lyapunov(field, tokens.on(method.evaluates_on(tokens.space), tokens.positions)) is not None,
            int(np.clip(SLICE / (int(np.prod(self.systems.shape)) * tokens.n * max(tokens.n, 64)), 1, 256)),
        )
        self.pace = _Pace(float(times[-1]), len(times))
        self.partial: tuple[int, np.ndarray] | None = None

    def run(self, check: bool) -> Trajectory:
        saved = self.sink.begin(self._layout())
        state = saved or self._nothing()
        outcome = state.outcome
        try:
            with interruptible():
                if saved is None:
                    state = self._start()
                while outcome is None and state.frames < len(self.times):
                    state = self._chunk(state)
                    outcome = state.outcome
        except KeyboardInterrupt:
            state = self._salvage(state, Outcome(Ending.INTERRUPTED, "interrupted; the frames saved so far are kept."))
            outcome = state.outcome
        if outcome is None:
            outcome = Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}.")
        trajectory = self._finish(state, outcome)
        if check and not outcome.ok:
            raise FlowFailed(outcome.message, trajectory)
        return trajectory

    def _nothing(self) -> Checkpoint:
        return Checkpoint(
            0, np.asarray(self.systems.measure.positions), np.zeros(()), np.zeros(2, dtype=np.int64), None
        )

    def _start(self) -> Checkpoint:
        """The state before the first chunk: the tokens, and the memory with which the method begins."""
        positions = jnp.asarray(self.systems.measure.positions)
        memory = wait(_begin(self.plan, positions, jnp.asarray(self.times[0]), jnp.asarray(self.times[-1])))
        return dataclasses.replace(self._nothing(), memory=np.asarray(memory))

    def _chunk(self, state: Checkpoint) -> Checkpoint:
        """Integrate and commit one chunk."""
        first = state.frames
        last = min(first + self.size, len(self.times))
        begin = max(first - 1, 0)
        times = np.concatenate([self.times[begin:last], np.full(self.size + 1 - (last - begin), self.times[last - 1])])
        batch = jnp.asarray(state.positions).shape[:-2]
        t = jnp.full(batch, times[0])
        positions, memory = jnp.asarray(state.positions), jnp.asarray(state.memory)
        frames = jnp.repeat(jnp.expand_dims(positions, len(batch)), self.size + 1, axis=len(batch))
        steps = state.steps
        self.partial = (first, np.asarray(frames))
        self.reached = float(times[0])
        while self.reached < times[-1]:
            stretch = wait(_stretch(self.plan, t, positions, memory, jnp.asarray(times), frames))
            t, positions, memory, frames = stretch.t, stretch.state, stretch.memory, stretch.frames
            steps = steps + np.asarray(stretch.steps).reshape(-1, 2).sum(axis=0)
            self.reached, self.partial = float(jnp.min(t)), (first, np.asarray(frames))
            self._report(first, steps)
            if np.any(stretch.failed):
                return self._salvage(state, self._failure(np.asarray(stretch.failed), steps))
        kept = np.asarray(frames).take(range(first - begin, first - begin + self.size), axis=len(batch))
        variables = self._variables(kept, np.resize(times[first - begin :], self.size), last - first)
        outcome, length = self._look(first, variables)
        done = Checkpoint(first + length, np.asarray(positions), np.asarray(memory), steps, outcome)
        self.sink.commit(first, {k: self._cut(v, length) for k, v in variables.items()}, done)
        return done

    def _salvage(self, state: Checkpoint, outcome: Outcome) -> Checkpoint:
        """Keep the complete frames of an unfinished chunk, where the sink does not need whole chunks to resume."""
        if self.partial is None or not self.sink.keeps_partial or self.partial[0] != state.frames:
            return Checkpoint(state.frames, state.positions, state.memory, state.steps, outcome)
        first, frames = self.partial
        begin = max(first - 1, 0)
        length = int(np.sum(self.times[first : first + self.size] <= self.reached))
        if length == 0:
            return Checkpoint(state.frames, state.positions, state.memory, state.steps, outcome)
        axis = frames.ndim - 3
        kept = frames.take(range(first - begin, first - begin + self.size), axis=axis)
        times = np.resize(self.times[first : first + self.size], self.size)
        variables = self._variables(kept, times, length)
        good = np.isfinite(variables["speed"]).reshape(-1, length).all(axis=0)
        length = int(np.argmin(good)) if not good.all() else length
        done = Checkpoint(first + length, state.positions, state.memory, state.steps, outcome)
        self.sink.commit(first, {k: self._cut(v, length) for k, v in variables.items()}, done)
        return done

    def _variables(self, frames: np.ndarray, times: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """The variables of `length` frames, batch dimensions restored."""
        measured = wait(_measure(self.plan, jnp.asarray(frames), jnp.asarray(times)))
        values = {"positions": frames} | {name: np.asarray(value) for name, value in measured.items()}
        return {name: self._cut(self.systems.unflatten(value), length) for name, value in values.items()}

    def _cut(self, values: np.ndarray, length: int) -> np.ndarray:
        return values.take(range(length), axis=len(self.systems.dims))

    def _look(self, first: int, variables: dict[str, np.ndarray]) -> tuple[Outcome | None, int]:
        """Whether the flow ends within these frames, and how many of them belong to it."""
        axis = len(self.systems.dims)
        length = variables["speed"].shape[axis]
        flat = {name: np.moveaxis(self.systems.flatten(v) if axis else v[None], 1, 0) for name, v in variables.items()}
        for k in range(length):
            frame = Frame(float(self.times[first + k]), flat["positions"][k], flat["speed"][k], flat["spread"][k])
            for stop in self.stops:
                if np.all(stop.holds(frame)):
                    return Outcome(Ending.STOPPED, f"stopped at t = {frame.time:g}: {stop.describe()}."), k + 1
        apart = flat["spread"] > FROZEN_SPREAD
        still = ~flat["resolved"] | ~apart
        if still.all() and apart[-1].any() and length > 1 and self.noise is None:
            return Outcome(
                Ending.FROZEN,
                f"frozen at t = {self.times[first + length - 1]:g}: every speed is below the round-off floor "
                f"{np.max(flat['floor'][-1]):.1e} although the tokens have not met. They stand at an equilibrium, or "
                "drift too slowly for this clock.",
            ), length
        return None, length

    def _report(self, frames: int, steps: np.ndarray) -> None:
        progress = self.pace.progress(self.reached, frames, int(steps.sum()))
        if self.on_progress is not None:
            self.on_progress(progress)

    def _failure(self, failed: np.ndarray, steps: np.ndarray) -> Outcome:
        which = f" in {int(failed.sum())} of {failed.size} members" if failed.ndim else ""
        return Outcome(
            Ending.FAILED,
            f"integration failed near t = {self.reached:g}{which} after {int(steps.sum())} steps: the field is "
            "not finite or needs steps below rounding. Check beta and the matrices, or use a smaller step.",
        )

    def _layout(self) -> Layout:
        floating = np.asarray(self.tokens.positions).dtype
        names = ["speed", "floor", "spread"] + (["energy"] if self.plan.with_energy else [])
        variables: dict[str, tuple[tuple[str, ...], np.dtype]] = {"positions": (("time", "token", "dim"), floating)}
        variables |= dict.fromkeys(names, (("time",), floating))
        variables["resolved"] = (("time",), np.dtype(bool))
        return Layout(
            self.times,
            self.systems.dims,
            variables,
            {"token": self.tokens.n, "dim": self.tokens.dim},
            self._atoms(),
            self.size,
        )

    def _atoms(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """What does not change along the flow: masses, places and, where rows are absent, which are not."""
        mu, dims = self.systems.measure, (*self.systems.dims, "token")
        found = {"masses": (dims, self.systems.unflatten(np.asarray(mu.masses)))}
        shared = np.ndim(self.tokens.place) == 1
        place = np.asarray(self.tokens.place) if shared else self.systems.unflatten(np.asarray(mu.place))
        found["place"] = (("token",) if shared else dims, place)
        if mu.present is not None:
            found["present"] = (dims, self.systems.unflatten(np.asarray(mu.present)))
        return found

    def _finish(self, state: Checkpoint, outcome: Outcome) -> Trajectory:
        steps = {"accepted": int(state.steps[0]), "rejected": int(state.steps[1])}
        attributes = {"outcome": outcome.ending.value, "message": outcome.message, **steps}
        dataset = self.sink.end(state.frames, attributes, outcome.complete)
        return Trajectory(dataset, self.field, self.tokens.space, outcome, steps)


class _Plan(eqx.Module):
    """What compiled code needs to know: numbers are traced, the rest is compiled in."""

    moving: Any
    axes: Any = eqx.field(static=True)
    measure: Measure
    measure_axes: Any = eqx.field(static=True)
    method: AbstractMethod
    jumps: Any
    with_energy: bool = eqx.field(static=True)
    limit: int = eqx.field(static=True)

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
def _begin(plan: _Plan, positions: Any, t0: Any, t1: Any) -> Any:
    return plan.over_members(lambda system, x: plan.method.begin(system, x, t0, t1), positions)


@compiled
def _stretch(plan: _Plan, t: Any, positions: Any, memory: Any, times: Any, frames: Any) -> Any:
    return plan.over_members(
        lambda system, t, x, memory, frames: plan.method.stretch(system, t, x, memory, times, frames, plan.limit),
        t, positions, memory, frames,
    )  # fmt: skip


@compiled
def _measure(plan: _Plan, frames: Any, times: Any) -> Any:
    """Speed, floor, spread, energy of every frame.

    The floor is the size of the error of a velocity. Rounding: a sum of n terms of size |drive| wanders by about
    sqrt(n) units in the last place, and the product, the division and the projection add a few more. Where sums are
    cut at a tolerance, that too.
    """

    def one(system: Particles, frames: Any) -> Any:
        tokens, field = system.tokens, system.field
        energy = lyapunov(field, tokens) if plan.with_energy else None

        def at(frame: Any) -> dict[str, Any]:
            x, t = frame
            moved = tokens.moved(x)
            drive = field.drive(t, AtTokens(), moved)
            velocity = tokens.space.tangent(x, drive)  # 0 at absent rows, like the drive
            speed = jnp.max(jnp.linalg.norm(velocity, axis=1))
            unit = jnp.asarray(jnp.finfo(x.dtype).eps * (8 + jnp.sqrt(moved.count)), x.dtype)
            floor = unit * jnp.max(jnp.linalg.norm(drive, axis=1))
            cut = stated_error(field, t, AtTokens(), moved)
            floor = floor if is_exact(cut) else floor + jnp.max(cut)
            mean = jnp.sum(tokens.masses[:, None] * x, axis=0, keepdims=True)
            away = jnp.where(tokens.masses > 0, jnp.linalg.norm(x - mean, axis=1), 0.0)
            found = {"speed": speed, "floor": floor, "resolved": speed > floor, "spread": jnp.max(away)}
            if energy is not None:
                found["energy"] = energy(x, tokens.masses)
            return found

        return jax.lax.map(at, (frames, times))

    return plan.over_members(one, frames)


class _Pace:
    """Rate and time left, from the last few looks."""

    def __init__(self, until: float, frames: int):
        self.until, self.frames = until, frames
        self.began = clock.perf_counter()
        self.looks: list[tuple[float, float]] = []

    def progress(self, reached: float, frames: int, steps: int) -> Progress:
        elapsed = clock.perf_counter() - self.began
        self.looks = [*self.looks[-19:], (elapsed, reached)]
        (then, at), (now, here) = self.looks[0], self.looks[-1]
        remaining = (self.until - here) * (now - then) / (here - at) if here > at else float("nan")
        if reached >= self.until:
            remaining = 0.0
        return Progress(reached, self.until, frames, self.frames, steps, elapsed, steps / max(elapsed, 1e-9), remaining)
