"""The driver: one loop for all work. It observes, keeps, stops, reports, cancels, checkpoints and resumes.

A stepper does the work in slices of a fraction of a second. Its state is a pytree of arrays from which the work can be
taken up again: slices may be cut anywhere, and what is computed does not depend on where they were cut. Everything else
belongs to the driver: where rows are stored, what is observed on them, when members stop, progress, Ctrl-C, resumption.
"""

import contextlib
import dataclasses
import time as clock
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import numpy as np

from attnflow.checks import flag, instance, shown
from attnflow.compilations import make_room_at_times
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.flows.heartbeat import Heartbeat, is_wanted
from attnflow.flows.observables import Broken, Observers, Views
from attnflow.flows.outcome import Ending, Outcome, Pace, Progress
from attnflow.flows.sink import AbstractSink, Checkpoint, InMemory, Layout, Tables, Variable
from attnflow.flows.stepper import AbstractStepper, Rows
from attnflow.flows.stopping import Frame
from attnflow.flows.work import AbstractWork, Driven
from attnflow.interrupts import Cancelled, interruptible, raise_if_interrupted
from attnflow.precision import full_precision

SECONDS = 60.0
"""A run folder gets a checkpoint at least so often."""
STILL_FRAMES = 16
"""Consecutive frames without motion after which a flow counts as frozen."""


@dataclasses.dataclass(frozen=True)
class Control:
    """How the user follows work; the same for every kind."""

    sink: AbstractSink | None = None
    on_progress: Callable[[Progress], None] | None = None
    cancel: Callable[[], bool] | None = None
    check: bool = True

    def __post_init__(self) -> None:
        for name, value in (("on_progress", self.on_progress), ("cancel", self.cancel)):
            if value is not None and not callable(value):
                raise InvalidInput(f"`{name}` is {shown(value)}; give a function, or leave it out.")
        flag("check", self.check)
        instance("sink", self.sink, AbstractSink | None, "a sink such as InMemory()")


class _DriveState(NamedTuple):
    """What is checkpointed."""

    work: Any
    still: np.ndarray
    """(member,) consecutive frames without motion."""
    stopped_at: np.ndarray
    """(member,) the time at which a stop condition held; NaN before."""


class Drive:
    """Checked work with its stepper, ready to be carried out; `layout` says what is going to be saved.

    The fields of the work that are called `observe`, `keep` (the variables of frames that are saved, all by default)
    and `stop` are used here. Observables are always saved, and they are tried out on the start.
    """

    def __init__(self, work: AbstractWork):
        self.work = work
        self.stops = tuple(getattr(work, "stop", ()))
        with full_precision():
            self._prepare(getattr(work, "observe", None), getattr(work, "keep", None))

    def _prepare(self, observe: Any, keep: Collection[str] | None) -> None:
        self.stepper: AbstractStepper = self.work.stepper()
        stepper = self.stepper
        layout, start = stepper.layout(), stepper.start()
        self.shape = tuple(layout.sizes[d] for d in stepper.batch)
        self.members = int(np.prod(self.shape, dtype=int))
        if start is None and observe:
            raise InvalidInput("`observe` is given, but there are no frames to observe here; leave it out.")
        taken = {name for table in layout.tables.values() for name in table} | set(layout.static) | set(layout.sizes)
        self.observers = None if start is None else Observers(observe, start, taken, layout.sizes.get("token", 1) ** 2)
        self.layout = self._with_observables(layout, keep)

    def _with_observables(self, layout: Layout, keep: Collection[str] | None) -> Layout:
        """The layout with what observables add and without what is not kept."""
        if self.observers is None or "time" not in layout.tables:
            return layout
        sizes, identity, static = dict(layout.sizes), dict(layout.identity), dict(layout.static)
        frames = layout.tables["time"]
        if keep is not None:
            frames = {name: variable for name, variable in frames.items() if name in keep or name == "time"}
        for name, one in self.observers.watched.items():
            for dim, size in zip(one.dims, one.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise InvalidInput(
                        f"the observable {name!r} has {size} entries along {dim!r}, which has {sizes[dim]} elsewhere; "
                        "use another name in Observable(f, dims=...)."
                    )
            frames = frames | {name: Variable((*self.stepper.batch, "time", *one.dims), one.dtype)}
        identity |= {f"observe.{name}": value for name, value in self.observers.identity().items()}
        tables = layout.tables | {"time": frames}
        return dataclasses.replace(layout, tables=tables, sizes=sizes, identity=identity, static=static)

    def run(self, control: Control | None = None) -> Any:
        """Carry the work to its end: its result. A failed flow raises, with its result inside.

        Without `on_progress` a terminal shows a line after two seconds (`ATTNFLOW_PROGRESS=off`: none).
        """
        control = Control() if control is None else control
        make_room_at_times()
        with contextlib.ExitStack() as stack:
            stack.enter_context(full_precision())
            if control.on_progress is None and is_wanted():
                control = dataclasses.replace(control, on_progress=stack.enter_context(Heartbeat()).update)
            self.control, self.sink = control, InMemory() if control.sink is None else control.sink
            driven = self._drive()
            made = self.work.result(driven)
        if control.check and not driven.outcome.ok:
            raise FlowFailed(driven.outcome.message, made)
        return made

    def _drive(self) -> Driven:
        self.sink.begin(self.layout)
        none = dict.fromkeys(self.layout.tables, 0)
        self.saved = Checkpoint(None, none, none, {}, None)
        self.state: _DriveState | None = None
        self.resume: Any = None
        self.committing, self.stored = False, clock.perf_counter()
        self.outcome: Outcome | None = None
        try:
            with interruptible(self.control.cancel):
                self._work()
        except KeyboardInterrupt as error:
            outcome = self.outcome or self.saved.outcome  # the work may have ended in this slice
            if outcome is None:
                why = "cancelled" if isinstance(error, Cancelled) else "interrupted"
                outcome = Outcome(Ending.INTERRUPTED, f"{why}; the rows saved so far are kept.")
        else:
            outcome = self.outcome
        assert outcome is not None
        if outcome.ending is Ending.INTERRUPTED or (outcome.ending is Ending.FAILED and self.sink.keeps_partial):
            self._salvage()
        if outcome.ending is Ending.INTERRUPTED and not any(self.saved.committed.values()):
            outcome = Outcome(Ending.INTERRUPTED, f"{outcome.message.partition(';')[0]} before anything was saved.")
        return self._end(outcome)

    def _work(self) -> None:
        """Slice after slice, from the start or from the checkpoint of the sink.

        A function of its own: in Python 3.13 an interrupt at the jump back of a loop is not caught by the `try` around
        that loop in the same function.
        """
        blank = _DriveState(self.stepper.begin(), np.zeros(self.members, np.int64), np.full(self.members, np.nan))
        self.saved = self.sink.load(blank) or dataclasses.replace(self.saved, state=blank)
        self.state, self.outcome = self.saved.state, self.saved.outcome
        self.pace = Pace(*self.stepper.goal, self.stepper.reached(self.state.work, self.saved.committed))
        while self.outcome is None:
            raise_if_interrupted()
            self.outcome = self._slice()

    def _slice(self) -> Outcome | None:
        """One slice of work, and what follows from it."""
        assert self.state is not None
        before, piece = self.state, self.stepper.work(self.state.work)
        self.state, self.resume, outcome = before._replace(work=piece.state), piece.resume, piece.outcome
        if piece.rows is not None:
            try:
                outcome = self._take(piece.rows, outcome, piece.resume)
            except BaseException:
                # these rows are not lost: they are computed again
                self.state = self.saved.state if self.committing else before
                raise
        elif (outcome is not None and outcome.complete) or (outcome is None and self._is_due()):
            self._commit({}, outcome, piece.resume)
        if self.control.on_progress is not None:
            where = self.stepper.reached(self.state.work, self.saved.committed)
            self.control.on_progress(self.pace.progress(where))
        return outcome

    def _is_due(self) -> bool:
        """Whether the last checkpoint is so long ago that the state is stored within a chunk, to lose little."""
        return not self.sink.keeps_partial and clock.perf_counter() - self.stored > SECONDS

    def _take(self, rows: Rows, outcome: Outcome | None, resume: Any) -> Outcome | None:
        """Observe rows, look for stops, commit; the outcome if the work ends within them."""
        assert self.state is not None
        tables = rows.tables
        if rows.views is not None and "time" in tables:
            frames, broken = self._observed(tables["time"], rows.views)
            frames, ended = self._look(frames, rows.views)
            tables = tables | {"time": frames}
            if ended is not None:
                outcome = ended
            elif broken is not None:
                self._commit(tables, None, self.saved.state.work)
                return Outcome(Ending.FAILED, broken)
            elif outcome is not None and outcome.ending is Ending.FINISHED:
                outcome = self._frozen(frames["time"], self._flat(frames), 2) or outcome
        self._commit(tables, outcome, resume)
        return outcome

    def _observed(self, frames: dict[str, np.ndarray], views: Views) -> tuple[dict[str, np.ndarray], str | None]:
        """Frames with observables, up to the first row where one cannot be evaluated, and why."""
        assert self.observers is not None
        message = None
        while True:
            try:
                found = self.observers.evaluate(views)
                break
            except Broken as error:
                message = str(error)
                frames, views = {k: self._cut(k, v, error.row) for k, v in frames.items()}, views.first(error.row)
        return frames | {k: v.reshape(*self.shape, *v.shape[1:]) for k, v in found.items()}, message

    def _look(self, frames: dict[str, np.ndarray], views: Views) -> tuple[dict[str, np.ndarray], Outcome | None]:
        """Hold the members that stop within these frames; the outcome if all of them have stopped."""
        assert self.state is not None
        times, count = frames["time"], len(frames["time"])
        flat = self._flat(frames)
        if not self.stops:
            first, frozen = self._first_frozen(times, flat)
            return (frames, None) if frozen is None else (self._shaped(frames, flat, first + 1), frozen)
        for k in range(count):
            frame = Frame(float(times[k]), {name: values[:, k] for name, values in flat.items()})
            at, one = times[k : k + 1], {name: values[:, k : k + 1] for name, values in flat.items()}
            if (counts := self._without_motion(at, one)) is not None:
                self.state = self.state._replace(still=counts[:, 0])
            for stop in self.stops:
                running = np.isnan(self.state.stopped_at)
                now = running & self._per_member(stop.holds(frame))
                if not now.any():
                    continue
                row = jax.tree.map(lambda a, k=k: a[:, k], views.rows)
                self.state = self.state._replace(
                    stopped_at=np.where(now, frame.time, self.state.stopped_at),
                    work=self.stepper.hold(self.state.work, now, frame.time, row),
                )
                for name, values in flat.items():
                    flat[name] = values = np.array(values)
                    values[now, k + 1 :] = values[now, k : k + 1]
                if now.all() or not np.isnan(self.state.stopped_at).any():
                    every = "" if self.members == 1 else " (the last of all members)"
                    message = f"stopped at t = {frame.time:g}{every}: {stop.describe()}."
                    return self._shaped(frames, flat, k + 1), Outcome(Ending.STOPPED, message)
            if counts is not None and (frozen := self._frozen(at, one, STILL_FRAMES)) is not None:
                return self._shaped(frames, flat, k + 1), frozen
        return self._shaped(frames, flat, count), None

    def _first_frozen(self, times: np.ndarray, flat: dict[str, np.ndarray]) -> tuple[int, Outcome | None]:
        """The first of these rows at which the flow is frozen, and the outcome; None if it is frozen at none."""
        assert self.state is not None
        counts = self._without_motion(times, flat)
        if counts is None or not len(times):
            return 0, None
        for k in np.flatnonzero(counts.min(axis=0) >= STILL_FRAMES):
            self.state = self.state._replace(still=counts[:, k])
            one = {name: values[:, k : k + 1] for name, values in flat.items()}
            if (frozen := self._frozen(times[k : k + 1], one, STILL_FRAMES)) is not None:
                return int(k), frozen
        self.state = self.state._replace(still=counts[:, -1])
        return 0, None

    def _without_motion(self, times: np.ndarray, flat: dict[str, np.ndarray]) -> np.ndarray | None:
        """(member, row) how many rows up to each one are without motion; None where that is not known."""
        assert self.state is not None
        found = self.stepper.are_still(times, flat)
        if found is None:
            return None
        rows = np.arange(len(times))
        moved = np.maximum.accumulate(np.where(found[0], -1, rows), axis=1)  # the last row with motion
        return np.where(moved < 0, self.state.still[:, None] + rows + 1, rows - moved)

    def _per_member(self, holds: Any) -> np.ndarray:
        """What a stop condition says, for every member."""
        found = np.asarray(holds, bool)
        if found.shape not in ((), (1,), (self.members,)):
            raise InvalidInput(
                f"a stop condition returns {shown(holds)}, of shape {found.shape}; return one truth value, or one for "
                f"each of the {self.members} members."
            )
        return np.broadcast_to(found, (self.members,))

    def _flat(self, frames: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The variables of frames with one axis of members first."""
        return {k: v.reshape(self.members, *v.shape[len(self.shape) :]) for k, v in frames.items() if k != "time"}

    def _shaped(self, frames: dict[str, np.ndarray], flat: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
        made = {name: values[:, :count].reshape(*self.shape, count, *values.shape[2:]) for name, values in flat.items()}
        return {"time": frames["time"][:count]} | made

    def _frozen(self, times: np.ndarray, flat: dict[str, np.ndarray], least: int) -> Outcome | None:
        """The outcome of a flow in which no motion has been resolved for `least` frames, although tokens are apart."""
        assert self.state is not None
        running = np.isnan(self.state.stopped_at)
        if len(times) == 0 or not running.any() or self.state.still[running].min() < least:
            return None
        last = {name: values[:, -1:] for name, values in flat.items()}
        found = self.stepper.are_still(times[-1:], last)
        if found is None or not (found[1][:, 0] & running).any():
            return None
        return Outcome(
            Ending.FROZEN,
            f"frozen at t = {float(times[-1]):g}: every speed is below the round-off floor {np.max(last['floor']):.1e} "
            "although the tokens have not met. They stand at an equilibrium, or drift too slowly for this clock.",
        )

    def _commit(self, tables: Tables, outcome: Outcome | None, resume: Any) -> None:
        """Store rows and the state after them; with `resume`, the state from which they are computed again."""
        assert self.state is not None
        start, committed = self.saved.committed, dict(self.saved.committed)
        kept: dict[str, dict[str, np.ndarray]] = {}
        for table, variables in tables.items():
            own = {name: values for name, values in variables.items() if name in self.layout.tables[table]}
            name, values = next(iter(own.items()))
            if count := values.shape[self.layout.axis(table, name)]:
                kept[table] = own
                committed[table] += count
        steps = self.stepper.steps(self.state.work)
        if resume is None:
            saved = Checkpoint(self.state, committed, committed, steps, outcome)
        else:
            state = self.saved.state._replace(work=resume)
            saved = Checkpoint(state, self.saved.rows, committed, steps, outcome, earlier=True)
        self.committing, self.stored = True, clock.perf_counter()
        self.sink.commit(start, kept, saved)
        self.saved, self.committing = saved, False

    def _salvage(self) -> None:
        """Keep the state of an interrupted flow, and the complete rows of its last chunk where the sink wants them.

        (A sink that resumes gets these rows again, with the rest of their chunk.)
        """
        if self.state is None or self.committing:  # interrupted in a commit: what is stored is consistent, so leave it
            return
        rows = self.stepper.unfinished(self.state.work) if self.sink.keeps_partial else None
        tables = {} if rows is None else rows.tables
        if rows is not None and rows.views is not None and "time" in tables:
            tables = tables | {"time": self._observed(tables["time"], rows.views)[0]}
        self._commit(tables, None, self.state.work if self.resume is None else self.resume)

    def _cut(self, name: str, values: np.ndarray, rows: int) -> np.ndarray:
        return values.take(range(rows), 0 if name == "time" else len(self.shape))

    def _end(self, outcome: Outcome) -> Driven:
        work = None if self.state is None else self.state.work
        steps = self.saved.steps if self.state is None or outcome.complete else self.stepper.steps(work)
        static = {} if self.state is None else self.stepper.finish(work)
        if self.stops and self.state is not None:
            static = static | {"stopped_at": (self.stepper.batch, self.state.stopped_at.reshape(self.shape))}
        attributes = {"outcome": outcome.ending.value, "message": outcome.message, **steps}
        dataset = self.sink.end(self.saved, static, attributes, outcome.complete)
        return Driven(dataset, outcome, steps, self.saved)
