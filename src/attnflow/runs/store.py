"""Rows on disk: a Zarr store that grows chunk by chunk and can be continued after the process was killed."""

import contextlib
import dataclasses
import hashlib
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnflow.errors import AttnflowError, RunCorrupted, RunError
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout, Tables
from attnflow.folders import Folder
from attnflow.runs.arrays import (
    AGAIN,
    DIGEST,
    MAGIC,
    SCALAR,
    STATIC,
    TABLES,
    digest,
    digest_of_attributes,
    open_arrays,
    read_checkpoint,
    require_digests,
)
from attnflow.runs.chunks import FolderStore
from attnflow.runs.files import ARRAYS, CHECKPOINT, require_space, writing
from attnflow.wording import reason

LARGEST_CHUNK = 1 << 25
SPARE = 1_000_000
"""Rows that an array may have beyond four times those that come, since it grows ahead of them."""


class ZarrSink(AbstractSink):
    """Streams rows into the Zarr store arrays.zarr of a folder and keeps the file checkpoint beside it.

    Each commit writes the rows first and then replaces the checkpoint in one atomic step. The checkpoint carries
    digests of all rows before it; a store that does not match them is refused. A run that was finished goes on when its
    layout goes farther than it did.

    Arguments:
        folder: where both lie; made when the first rows are expected.
    """

    keeps_partial = False

    def __init__(self, folder: Folder | str | Path):
        self.folder = folder if isinstance(folder, Folder) else Folder(Path(folder))
        self.arrays = str(self.folder.where(ARRAYS))
        """The path of the store, for messages."""

    def begin(self, layout: Layout) -> None:
        self.layout = layout
        self.commits: list[dict[str, Any]] = []
        with writing(self.folder.where()):
            if self.folder.is_file(CHECKPOINT):
                self.folder.remove_temporaries(ARRAYS)
                self._grow()
                return
            require_space(self.folder.where(), layout.size)
            self.folder.make()
            self._create()

    def load(self, state: Any) -> Checkpoint | None:
        if not self.folder.is_file(CHECKPOINT):
            return None
        saved = self._read(state)
        if saved.outcome is None:  # rows after the state are computed again
            saved = dataclasses.replace(saved, committed=saved.rows)
            self.commits = [c for c in self.commits if all(c["stop"][t] <= n for t, n in saved.rows.items())]
        self._verify()
        return saved

    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        with self._open_for_writing() as group:
            for table, variables in rows.items():
                for name, values in variables.items():
                    array: Any = group[name]
                    stop = start[table] + values.shape[self.layout.axis(table, name)]
                    if stop > array.shape[self.layout.axis(table, name)]:
                        self._resize(array, table, name, 2 * stop)
                    array[self._where(table, name, start[table], stop)] = values
            if any(variables for variables in rows.values()):
                self.commits.append({"start": start, "stop": checkpoint.committed, "digest": digest(rows)})
            self.folder.write(CHECKPOINT, self._pack(checkpoint))

    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        with self._open_for_writing() as group:
            if complete:
                for table, variables in self.layout.tables.items():
                    for name in variables:
                        self._resize(group[name], table, name, checkpoint.committed[table])
            self._put(group, static, attributes if complete else {})
        return open_arrays(self.folder, rows=checkpoint.committed)[0].assign_attrs(attributes)

    @contextlib.contextmanager
    def _open_for_writing(self) -> Iterator[Any]:
        """The group of the store. Chunks of zeros are written, so that one that is missing is no chunk of zeros."""
        import zarr

        store = FolderStore(self.folder.inside(ARRAYS))
        try:
            with writing(self.folder.where()), zarr.config.set({"array.write_empty_chunks": True}):
                yield zarr.open_group(store, mode="r+", zarr_format=3)
        except (OSError, AttnflowError):
            raise
        except Exception as error:  # Zarr has many for arrays that were damaged
            raise RunCorrupted(f"the arrays in {self.arrays!r} cannot be written ({reason(error)}); {AGAIN}") from None

    def _where(self, table: str, name: str, start: int, stop: int) -> tuple[slice, ...]:
        return (slice(None),) * self.layout.axis(table, name) + (slice(start, stop),)

    def _resize(self, array: Any, table: str, name: str, rows: int) -> None:
        shape = list(array.shape)
        shape[self.layout.axis(table, name)] = rows
        if tuple(shape) != array.shape:
            array.resize(tuple(shape))

    def _grow(self) -> None:
        """Make room for all rows in a store that is there, and bring what does not change along rows up to date."""
        committed = read_checkpoint(self.folder)[0]["committed"]
        with self._open_for_writing() as group:
            for table, variables in self.layout.tables.items():
                for name, (dims, dtype) in variables.items():
                    array: Any = group[name]
                    rows = array.shape[self.layout.axis(table, name)]
                    is_same = array.metadata.dimension_names == tuple(dims) and array.dtype == np.dtype(dtype)
                    if not is_same or array.shape != self.layout.shape(table, name, rows):
                        raise ValueError(f"{name} is not what it was")
                    if rows > SPARE + 4 * max(self.layout.most[table], committed[table]):
                        raise ValueError(f"{name} has {rows} rows, of which {committed[table]} were written")
                    self._resize(array, table, name, max(rows, self.layout.most[table]))
            self._put_static(group)

    def _create(self) -> None:
        """A fresh store with room for all rows; whatever an uncheckpointed attempt left is overwritten."""
        import zarr

        layout = self.layout
        self.folder.remove_folder(ARRAYS)
        store = FolderStore(self.folder.inside(ARRAYS))
        self.folder.make(ARRAYS)
        group = zarr.create_group(store, zarr_format=3)
        _set(group, {TABLES: self._tables()})  # first, so that a reader knows that it comes too early
        for table, variables in layout.tables.items():
            for name, (dims, dtype) in variables.items():
                shape = layout.shape(table, name, layout.most[table])
                per_row = int(np.prod(layout.shape(table, name, 1))) * np.dtype(dtype).itemsize
                rows = layout.chunk[table] if per_row * layout.chunk[table] <= LARGEST_CHUNK else 1
                chunks = tuple(
                    rows if d == table else max(1, min(s, LARGEST_CHUNK // 256)) if d == "token" else max(s, 1)
                    for d, s in zip(dims, shape, strict=True)
                )
                group.create_array(
                    name, shape=shape, chunks=chunks, dtype=dtype, dimension_names=dims, compressors=checksummed()
                )
        self._put_static(group)

    def _tables(self) -> dict[str, dict[str, list[str]]]:
        return {
            table: {name: list(variable.dims) for name, variable in variables.items()}
            for table, variables in self.layout.tables.items()
        }

    def _put_static(self, group: Any) -> None:
        """Write what the layout knows before the first row."""
        layout = self.layout
        labels = {name: ((name,), values) for name, values in layout.coordinates.items()}
        # by `coordinates` xarray knows labels beside those of dimensions
        beside = {"coordinates": " ".join(layout.beside)} if layout.beside else {}
        attributes = {TABLES: self._tables(), **layout.attributes, **beside}
        self._put(group, labels | layout.static | layout.beside, attributes, afresh=True)

    def _put(self, group: Any, static: dict[str, Any], attributes: dict[str, Any], *, afresh: bool = False) -> None:
        """Write what does not change along rows, and say in one step at the end that it is there.

        Entries that are there already, before new ones, stay as they lie.

        Arguments:
            group: the group of the store.
            static: dimensions and values by name.
            attributes: further attributes.
            afresh: True to take everything else off the list: what an earlier end has left does not belong to the rows
                that come.
        """
        arrays = {name: (dims, np.ascontiguousarray(values)) for name, (dims, values) in static.items() if dims}
        # an array without dimensions cannot be told from one whose dimensions have no names
        scalars = {SCALAR + name: repr(float(values)) for name, (dims, values) in static.items() if not dims}
        listed = dict(group.attrs.get(STATIC, {}))
        changed = {name for name, entry in arrays.items() if not (name in listed and _begins(group[name], *entry))}
        if changed & listed.keys():
            _set(group, {STATIC: {name: entry for name, entry in listed.items() if name not in changed}})
        for name, (dims, values) in arrays.items():
            start = 0 if name in changed else group[name].shape[0]
            if name in changed:
                group.create_array(
                    name,
                    shape=values.shape,
                    # texts of one length have no Zarr type
                    dtype="string" if values.dtype.kind == "U" else values.dtype,
                    chunks=tuple(max(s, 1) for s in values.shape),
                    dimension_names=dims,
                    overwrite=True,
                    compressors=checksummed(),
                )
            elif start < len(values):
                group[name].resize(values.shape)
            if start < len(values):
                group[name][start:] = values[start:].astype(object) if values.dtype.kind == "U" else values[start:]
        if afresh:
            listed = {}
        listed |= {name: [list(values.shape), digest({"": {name: values}})] for name, (_, values) in arrays.items()}
        left = {name: None for name in group.attrs if afresh and name.startswith(SCALAR)}
        _set(group, {STATIC: listed, **left, **scalars, **attributes})

    def _pack(self, checkpoint: Checkpoint) -> bytes:
        outcome = checkpoint.outcome
        facts = {
            "commits": self.commits,
            "rows": checkpoint.rows,
            "committed": checkpoint.committed,
            "steps": checkpoint.steps,
            "outcome": [outcome.ending.value, outcome.message] if outcome else None,
            "earlier": checkpoint.earlier,
            "until": None if math.isinf(self.layout.until) else self.layout.until,
            "identity": self.layout.identity,
            "paths": [path for path, _ in _leaves(checkpoint.state)],
        }
        stream = io.BytesIO()
        arrays: Any = {f"leaf{k}": leaf for k, (_, leaf) in enumerate(_leaves(checkpoint.state))}
        np.savez(stream, facts=np.array(json.dumps(facts)), **arrays)
        payload = stream.getvalue()
        return MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload

    def _read(self, state: Any) -> Checkpoint:
        facts, leaves = read_checkpoint(self.folder)
        self._same_functions(facts["identity"])
        self.commits = facts["commits"]
        as_far = self.layout.until == (math.inf if facts["until"] is None else facts["until"])
        ended = facts["outcome"] and as_far and not facts.get("earlier", True)
        outcome = Outcome(Ending(facts["outcome"][0]), facts["outcome"][1]) if ended else None
        made = _restored(state, facts["paths"], leaves, str(self.folder.where(CHECKPOINT)))
        return Checkpoint(made, facts["rows"], facts["committed"], facts["steps"], outcome)

    def _same_functions(self, before: dict[str, str]) -> None:
        now = self.layout.identity
        for name in {**before, **now}:
            if before.get(name) != now.get(name):
                what = "is missing" if name not in now else "was not there before" if name not in before else "differs"
                raise RunError(
                    f"{name!r} {what}: a run goes on with the observables it began with; give the same function, or "
                    "run the spec elsewhere."
                )

    def _verify(self) -> None:
        """Compare the committed rows with their digests."""
        rows = {
            table: max((commit["stop"][table] for commit in self.commits), default=0) for table in self.layout.tables
        }
        require_digests(open_arrays(self.folder, rows=rows)[0], self._tables(), self.commits)


def _set(group: Any, attributes: dict[str, Any]) -> None:
    """Change attributes of the store in one step, with the digest of all; those that become None are removed."""
    changed = json.loads(json.dumps({**group.attrs, **attributes}))
    changed = {name: value for name, value in changed.items() if value is not None}
    group.attrs.put(changed | {DIGEST: digest_of_attributes(changed)})


def _begins(array: Any, dims: tuple[str, ...], values: np.ndarray) -> bool:
    """True if `values` are those of the array, or begin with them."""
    is_text = values.dtype.kind == "U"
    if (array.dtype.kind in "OT") != is_text or not (is_text or array.dtype == values.dtype):
        return False
    if tuple(array.metadata.dimension_names) != tuple(dims) or array.shape[1:] != values.shape[1:]:
        return False
    beginning = np.asarray(array[...])
    if is_text:
        beginning = np.array(beginning.tolist(), np.str_).reshape(beginning.shape)
    return bool(np.array_equal(beginning, values[: len(beginning)], equal_nan=values.dtype.kind == "f"))


def checksummed() -> Any:
    """Zstandard with a checksum in every chunk: whoever reads a damaged chunk gets an error, never other numbers."""
    from zarr.codecs import ZstdCodec

    return ZstdCodec(level=0, checksum=True)


def _leaves(state: Any) -> list[tuple[str, np.ndarray]]:
    """The leaves of a state as plain arrays, by key path; random keys as their data."""
    found = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        found.append((jax.tree_util.keystr(path), np.asarray(jax.random.key_data(leaf) if is_key else leaf)))
    return found


def _restored(state: Any, paths: list[str], leaves: list[np.ndarray], where: str) -> Any:
    """`state` with the stored leaves; an axis of length 0 in `state` may have any length."""
    like = _leaves(state)
    if [path for path, _ in like] != paths:
        raise RunCorrupted(f"{where!r} was written by a stepper with another state; {AGAIN}")
    for (path, own), leaf in zip(like, leaves, strict=True):
        fits = own.ndim == leaf.ndim and all(a in (0, b) for a, b in zip(own.shape, leaf.shape, strict=True))
        if not fits or own.dtype != leaf.dtype:
            raise RunCorrupted(f"{path} in {where!r} is {leaf.dtype}{leaf.shape}, not {own.dtype}{own.shape}; {AGAIN}")
    old, structure = jax.tree.flatten(state)
    made = []
    for leaf, stored in zip(old, leaves, strict=True):
        is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        made.append(
            jax.random.wrap_key_data(jax.numpy.asarray(stored), impl=jax.random.key_impl(leaf)) if is_key else stored
        )
    return jax.tree.unflatten(structure, made)
