"""Where rows go. A sink that keeps checkpoints can be resumed from the last one that was committed."""

import abc
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from attnflow.feasible import require_memory
from attnflow.flows.outcome import Outcome


class Variable(NamedTuple):
    """One labelled array: its dimensions in order, and its type."""

    dims: tuple[str, ...]
    dtype: np.dtype


Tables = Mapping[str, Mapping[str, np.ndarray]]
"""Row dimension -> variable -> rows of it, dimensions as in the layout."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """What long work is going to save.

    A table is a set of variables that grow along one row dimension (`time` for frames, `merge` for merges, `step` for
    steps). Variables without rows are `static`.
    """

    tables: dict[str, dict[str, Variable]]
    sizes: dict[str, int]
    """Lengths of all dimensions but the row dimensions."""
    most: dict[str, int]
    """Rows of every table: as many, or at most as many where the number is not known beforehand."""
    coordinates: dict[str, np.ndarray]
    """Labels of dimensions: batch dimensions, cells, harmonics."""
    static: dict[str, tuple[tuple[str, ...], np.ndarray]]
    chunk: dict[str, int]
    """Rows of a table that are usually committed together."""
    attributes: dict[str, Any]
    """What a reader without the specification needs to know (the space); plain JSON."""
    until: float
    """How far the work goes. A finished run of which more is wanted goes on."""
    identity: dict[str, str]
    """What a resumed run must have in common with the one before: observables and their fingerprints."""
    beside: dict[str, tuple[tuple[str, ...], np.ndarray]] = dataclasses.field(default_factory=dict)
    """Coordinates that are not those of a dimension: the labels of tokens."""
    exact: bool = True
    """Whether `most` are the rows that come, unless the work stops early; else far fewer may come."""

    def shape(self, table: str, name: str, rows: int) -> tuple[int, ...]:
        """Shape of `rows` rows of a variable."""
        return tuple(rows if d == table else self.sizes[d] for d in self.tables[table][name].dims)

    @property
    def size(self) -> int:
        """Bytes of `most` rows of all tables."""
        return sum(
            math.prod(self.shape(table, name, self.most[table])) * np.dtype(variable.dtype).itemsize
            for table, variables in self.tables.items()
            for name, variable in variables.items()
        )

    def axis(self, table: str, name: str) -> int:
        """The axis of a variable along which rows are."""
        return self.tables[table][name].dims.index(table)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Everything that the rest of the work depends on."""

    state: Any
    """A pytree of arrays: the state of the stepper and that of the stop conditions."""
    rows: dict[str, int]
    """Rows that come before `state`. Rows that are committed after them are computed again when work goes on."""
    committed: dict[str, int]
    """Rows committed so far."""
    steps: dict[str, int]
    """Counts of steps so far, by kind."""
    outcome: Outcome | None
    """The ending, when the work ended within the committed rows."""
    earlier: bool = False
    """Whether the work ended beyond `state`. What is known only at the end is then computed again from `state`."""


class AbstractSink(abc.ABC):
    """Receives rows in chunks."""

    keeps_partial: bool
    """Whether rows of an interrupted chunk are kept (not where a resumed run computes them again)."""

    @abc.abstractmethod
    def begin(self, layout: Layout) -> None:
        """Prepare to receive."""

    @abc.abstractmethod
    def load(self, state: Any) -> Checkpoint | None:
        """The checkpoint to go on from, if there is one. `state` shows how states are structured."""

    @abc.abstractmethod
    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        """Keep rows, numbered from `start` on in each table, then the checkpoint after them."""

    @abc.abstractmethod
    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        """The committed rows as an xarray Dataset; `complete` says that no more will come.

        `static` are variables without rows that are known only now.
        """


class InMemory(AbstractSink):
    """Keeps all rows as NumPy arrays; goes on from the rows and the checkpoint of `before`, if there is one."""

    keeps_partial = True

    def __init__(self, before: Any = None, checkpoint: Checkpoint | None = None):
        self.before, self.checkpoint = before, checkpoint

    def begin(self, layout: Layout) -> None:
        rows = " and ".join(f"{count} {table}s" for table, count in layout.most.items())
        fix = "save fewer frames, keep fewer variables, or stream them into a run folder"
        require_memory(layout.size if layout.exact else 0, f"what is saved at {rows}", fix)
        self.layout = layout
        self.parts: list[Tables] = []
        if self.checkpoint is not None:
            kept = {
                table: self.before[list(variables)].isel({table: slice(0, self.checkpoint.rows[table])})
                for table, variables in layout.tables.items()
            }
            self.parts.append(
                {t: {name: np.asarray(kept[t][name].values) for name in v} for t, v in layout.tables.items()}
            )

    def load(self, state: Any) -> Checkpoint | None:
        return self.checkpoint

    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        self.parts.append(rows)  # in one piece, so that Ctrl-C leaves all of it or nothing

    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        import xarray as xr

        layout = self.layout
        made: dict[str, Any] = {}
        for table, variables in layout.tables.items():
            for name, (dims, dtype) in variables.items():
                parts = [rows[table][name] for rows in self.parts if table in rows]
                axis = layout.axis(table, name)
                values = np.concatenate(parts, axis) if parts else np.empty(layout.shape(table, name, 0), dtype)
                made[name] = (dims, values.take(range(checkpoint.committed[table]), axis))
        coordinates: Any = layout.coordinates | layout.beside
        coordinates = coordinates | {name: made.pop(name) for name in layout.tables if name in made}
        return xr.Dataset(made | layout.static | static, coordinates, layout.attributes | attributes)
