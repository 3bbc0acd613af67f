"""Work that is carried out frame by frame, and goes on at another beta where a reader changes it."""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from attnflow import fields
from attnflow.axes import Along, dimensions, random_key
from attnflow.errors import InvalidInput
from attnflow.fields.timed import AbstractTimed
from attnflow.flows import Solve, SolveLong
from attnflow.flows.driver import Control, Drive
from attnflow.flows.saving import At
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout, Tables
from attnflow.flows.work import AbstractWork
from attnflow.interrupts import raise_if_interrupted
from attnflow.lab.forms import offered_spec
from attnflow.lab.limits import CHANGES, check_tokens, checked_beta
from attnflow.lab.rows import AbstractPicture, first_member, picture_of
from attnflow.lab.sources import AbstractSource
from attnflow.meanfield import Evolve
from attnflow.wording import shown


class Change(NamedTuple):
    """Another beta from the first frame on that is not before t."""

    t: float
    beta: float


class Changes:
    """Changes of beta: those that an address asks for, and the one that the reader asks for now."""

    def __init__(self, planned: Any = ()):
        good = isinstance(planned, list | tuple) and len(planned) <= CHANGES
        if not good or not all(isinstance(one, list) and len(one) == 2 and _are_times(one) for one in planned):
            raise InvalidInput(
                f"`then` is {shown(planned)}; give at most {CHANGES} pairs [t, beta], numbers from 0 on."
            )
        self.planned = sorted(Change(float(t), checked_beta(beta)) for t, beta in planned)
        self.now: float | None = None
        """Asked for by the reader; holds from the last frame on that was given."""

    def taken(self) -> float | None:
        """What the reader asks for, once; later changes that an address asked for are forgotten then."""
        found, self.now = self.now, None
        if found is not None:
            self.planned = []
        return found

    def due(self, t: float) -> float | None:
        """The beta that holds after the frame at the time t, if it is another one."""
        found = None
        while self.planned and self.planned[0].t <= t:
            found = self.planned.pop(0).beta
        return found


def _are_times(pair: Sequence[Any]) -> bool:
    are_numbers = all(isinstance(number, int | float) and not isinstance(number, bool) for number in pair)
    return are_numbers and all(0 <= number <= sys.float_info.max for number in pair)


class Carried(AbstractSource):
    """Work that is carried out; `changed(t, beta, planned)` is called where beta changes."""

    def __init__(
        self,
        work: AbstractWork,
        name: str,
        axes: Any,
        cancel: Callable[[], bool],
        changes: Changes | None = None,
        changed: Callable[[float, float, bool], None] = lambda t, beta, planned: None,
    ):
        kept = {one.name: one.default for one in dataclasses.fields(work) if one.name == "keep"}  # type: ignore[arg-type]
        self.work = dataclasses.replace(work, **kept) if kept else work  # type: ignore[type-var]
        super().__init__(name, axes)
        self.cancel, self.changed = cancel, changed
        self.changes = Changes() if changes is None else changes
        if (tokens := getattr(work, "tokens", None)) is not None:
            check_tokens(int(np.prod(np.shape(tokens.positions)[:-1])))

    @classmethod
    def of_table(cls, table: Any, axes: Any, cancel: Callable[[], bool], *how: Any) -> "Carried":
        """The work of a specification that a client sends."""
        spec = offered_spec(table)
        return cls(spec.work, spec.name, axes, cancel, *how)

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Rows go through a sink that waits until a frame may be given, so that nothing is computed far ahead."""
        sink, count = _Giving(self, begun, give), 0
        while True:
            try:
                Drive(sink.work.checked()).run(
                    Control(sink, cancel=self._is_interrupted, on_progress=lambda _: None, check=False)
                )
            except Turn as turn:
                count += 1
                work = turned(sink.work, sink.row, turn.beta, count)
                self.changed(sink.t, turn.beta, turn.planned)
                if work is None:
                    return f"the end, at t = {sink.t:g}."
                sink.work, sink.start, sink.row = work, sink.t, None
            except _Over as over:
                return f"the end, at t = {sink.t:g}, with β changed on the way." if count else str(over)
            else:
                raise AssertionError("a sink that gives frames ends by Turn or _Over")

    def _is_interrupted(self) -> bool:
        return self.cancel() or self.changes.now is not None


def turned(work: Any, row: dict[str, np.ndarray] | None, beta: float, count: int) -> Any:
    """What is left of work after a row, at another beta; None where nothing is left."""
    field = work.field
    timed = [one for one in jax.tree.leaves(field, is_leaf=_is_timed) if _is_timed(one)]
    plain = isinstance(field, fields.Attention) and not timed and _is_number(getattr(field.kernel, "beta", None))
    tokens: Any = getattr(work, "tokens", None)
    if not plain or (tokens is not None and dimensions((field, getattr(work, "noise", None)), tokens)):
        raise InvalidInput("beta changes on the way for one system of attention that has one beta and no other clock.")
    changes: dict[str, Any] = {"field": eqx.tree_at(lambda one: one.kernel.beta, field, np.asarray(beta))}
    if row is None:
        return dataclasses.replace(work, **changes)
    if isinstance(work, Solve | SolveLong):
        changes["tokens"] = tokens.moved(row["positions"])
    elif isinstance(work, Evolve):
        changes["density"] = work.density.moved(row["coefficients"])
    else:
        raise InvalidInput(f"beta does not change on the way of {type(work).__name__}; start again with another one.")
    t = float(row["time"])
    changes["until"] = work.until - t
    if hasattr(work, "save"):
        left = work.times[work.times > t] - t
        if not left.size:
            return None
        changes["save"] = At(left)
        if isinstance(work, Solve):  # chunks of the same size, so that no program is compiled again
            changes["chunk"] = work.checked().chunk
    if getattr(work, "noise", None) is not None:  # other random numbers than before
        key = jax.random.fold_in(random_key(work.noise.seed), count)
        changes["noise"] = eqx.tree_at(lambda one: one.seed, work.noise, key)
    return dataclasses.replace(work, **changes)


def _is_timed(one: Any) -> bool:
    return isinstance(one, AbstractTimed)


def _is_number(beta: Any) -> bool:
    return beta is not None and not isinstance(beta, Along) and np.ndim(beta) == 0


class Turn(Exception):
    """Beta changes after the last frame that was given."""

    def __init__(self, beta: float, planned: bool = False):
        self.beta, self.planned = beta, planned


class _Over(Exception):
    """The end of work of which no result is kept."""


def shapes_of(layout: Layout) -> dict[str, dict[str, int]]:
    """Shapes of the variables that work is going to save at each frame; none where it saves no frames."""
    table = layout.tables.get("time", {})
    return {
        name: {dim: layout.most["time"] if dim == "time" else layout.sizes[dim] for dim in variable.dims}
        for name, variable in table.items()
    }


class _Giving(AbstractSink):
    """Gives frames away and keeps nothing."""

    keeps_partial = True

    def __init__(self, source: Carried, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]):
        self.source, self.begun, self.give = source, begun, give
        self.work: Any = source.work
        self.start, self.t = 0.0, 0.0
        """When `work` began, and the time of the last frame."""
        self.row: dict[str, np.ndarray] | None = None
        """The last row of `work` that was given."""
        self.picture: AbstractPicture | None = None

    def begin(self, layout: Layout) -> None:
        self.layout = layout
        before = self.picture
        self.picture = picture_of(self.source.name, self.work, self.source.axes, shapes_of(layout))
        if before is not None:
            self.picture.look_as(before)
            return
        frames = layout.most["time"] if layout.exact else None
        self.begun(self.picture.facts() | {"name": self.source.name, "frames": frames})

    def load(self, state: Any) -> Checkpoint | None:
        return None

    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        table, changes = rows.get("time", {}), self.source.changes
        if not table:
            return
        dims = {name: self.layout.tables["time"][name].dims for name in table}
        for k in range(len(table["time"])):
            raise_if_interrupted()
            row = {name: first_member(values, dims[name], k) for name, values in table.items()}
            if self.start and not row["time"]:
                continue  # the frame at which beta changed
            assert self.picture is not None
            self.give(self.picture.frame(row | {"time": self.start + row["time"]}))
            self.row, self.t = row, self.start + float(row["time"])
            if (beta := changes.due(self.t)) is not None:
                raise Turn(beta, planned=True)

    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        if not complete and not self.source.cancel() and (beta := self.source.changes.taken()) is not None:
            raise Turn(beta)
        raise _Over(attributes["message"])
