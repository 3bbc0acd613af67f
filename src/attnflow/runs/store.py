"""Rows on disk: a Zarr store that grows chunk by chunk and can be continued after the process was killed."""

import dataclasses
import hashlib
import io
import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnflow.errors import RunCorrupted, RunError
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout, Tables
from attnflow.runs.files import require_space, write_atomically, writing

LARGEST_CHUNK = 1 << 25
MAGIC = b"attnflow checkpoint 2 "
SCALAR = "scalar_"
"""How attributes begin that hold single numbers."""
AGAIN = "start the run again from its spec.toml in another folder."


class ZarrSink(AbstractSink):
    """Streams rows into `arrays` (a Zarr store) and keeps a checkpoint file beside it.

    Each commit writes the rows first and then replaces the checkpoint in one atomic step. The checkpoint carries
    digests of all rows before it; a store that does not match them is refused. A run that was finished goes on when its
    layout goes farther than it did.
    """

    keeps_partial = False

    def __init__(self, arrays: str | Path, checkpoint: str | Path):
        self.path, self.checkpoint = Path(arrays), Path(checkpoint)

    def begin(self, layout: Layout) -> None:
        self.layout = layout
        self.commits: list[dict[str, Any]] = []
        with writing(self.path.parent):
            if self.checkpoint.exists():
                for left in self.path.rglob("*.partial"):  # files that Zarr was writing when the process died
                    left.unlink()
                self._grow()
                return
            require_space(self.path.parent, layout.size)
            self._create()

    def load(self, state: Any) -> Checkpoint | None:
        if not self.checkpoint.exists():
            return None
        saved = self._read(state)
        if saved.outcome is None:  # rows after the state are computed again
            saved = dataclasses.replace(saved, committed=saved.rows)
            self.commits = [c for c in self.commits if all(c["stop"][t] <= n for t, n in saved.rows.items())]
        self._verify()
        return saved

    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        import zarr

        with writing(self.path.parent):
            group = zarr.open_group(self.path, mode="r+")
            for table, variables in rows.items():
                for name, values in variables.items():
                    array: Any = group[name]
                    stop = start[table] + values.shape[self.layout.axis(table, name)]
                    if stop > array.shape[self.layout.axis(table, name)]:
                        self._resize(array, table, name, 2 * stop)
                    array[self._where(table, name, start[table], stop)] = values
            if any(variables for variables in rows.values()):
                self.commits.append({"start": start, "stop": checkpoint.committed, "digest": _digest(rows)})
            write_atomically(self.checkpoint, self._pack(checkpoint))

    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        import zarr

        with writing(self.path.parent):
            group = zarr.open_group(self.path, mode="r+")
            self._put(group, static)
            if complete:
                for table, variables in self.layout.tables.items():
                    for name in variables:
                        self._resize(group[name], table, name, checkpoint.committed[table])
                group.attrs.update(attributes)
        rows = {table: slice(0, count) for table, count in checkpoint.committed.items()}
        found = open_arrays(self.path).assign_attrs(attributes)
        return found.isel({table: part for table, part in rows.items() if table in found.dims})

    def _where(self, table: str, name: str, start: int, stop: int) -> tuple[slice, ...]:
        return (slice(None),) * self.layout.axis(table, name) + (slice(start, stop),)

    def _resize(self, array: Any, table: str, name: str, rows: int) -> None:
        shape = list(array.shape)
        shape[self.layout.axis(table, name)] = rows
        if tuple(shape) != array.shape:
            array.resize(tuple(shape))

    def _grow(self) -> None:
        """Room for all rows in a store that is there already; what does not change along rows is written again."""
        import zarr

        try:
            group = zarr.open_group(self.path, mode="r+")
            for table, variables in self.layout.tables.items():
                for name, (dims, dtype) in variables.items():
                    array: Any = group[name]
                    if array.metadata.dimension_names != tuple(dims) or array.dtype != np.dtype(dtype):
                        raise ValueError(f"{name} is not what it was")
                    rows = array.shape[self.layout.axis(table, name)]
                    self._resize(array, table, name, max(rows, self.layout.most[table]))
            self._put_static(group)
        except OSError:
            raise
        except Exception as error:
            raise RunCorrupted(f"the arrays in {str(self.path)!r} cannot be opened ({error}); {AGAIN}") from None

    def _create(self) -> None:
        """A fresh store with room for all rows; whatever an uncheckpointed attempt left is overwritten."""
        import zarr

        layout = self.layout
        group = zarr.create_group(self.path, overwrite=True, zarr_format=3)
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

    def _put_static(self, group: Any) -> None:
        """What the layout knows before the first row."""
        layout = self.layout
        own = {name: ((name,), labels) for name, labels in layout.coordinates.items()}
        self._put(group, own | layout.static | layout.beside)
        group.attrs.update(layout.attributes)
        if layout.beside:
            group.attrs["coordinates"] = " ".join(layout.beside)  # by which xarray knows them

    def _put(self, group: Any, static: dict[str, Any]) -> None:
        for name, (dims, values) in static.items():
            if not dims:  # an array without dimensions cannot be told from one whose dimensions have no names
                group.attrs[SCALAR + name] = repr(float(values))
                continue
            values = np.ascontiguousarray(values)
            chunks = tuple(max(s, 1) for s in values.shape)
            kind: Any = "string" if values.dtype.kind == "U" else values.dtype  # texts of one length have no Zarr type
            made = group.create_array(
                name,
                shape=values.shape,
                dtype=kind,
                chunks=chunks,
                dimension_names=dims,
                overwrite=True,
                compressors=checksummed(),
            )
            made[...] = values.astype(object) if kind == "string" else values

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
        facts, leaves = read_checkpoint(self.checkpoint)
        self._same_functions(facts["identity"])
        self.commits = facts["commits"]
        as_far = self.layout.until == (math.inf if facts["until"] is None else facts["until"])
        ended = facts["outcome"] and as_far and not facts.get("earlier", True)
        outcome = Outcome(Ending(facts["outcome"][0]), facts["outcome"][1]) if ended else None
        made = _restored(state, facts["paths"], leaves, str(self.checkpoint))
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
        import zarr

        try:
            group = zarr.open_group(self.path, mode="r")
            for commit in self.commits:
                rows: dict[str, dict[str, np.ndarray]] = {}
                for table, variables in self.layout.tables.items():
                    start, stop = commit["start"][table], commit["stop"][table]
                    if stop > start:
                        rows[table] = {n: np.asarray(group[n][self._where(table, n, start, stop)]) for n in variables}  # type: ignore[index]
                if _digest(rows) != commit["digest"]:
                    raise ValueError(f"rows {commit['start']} to {commit['stop']} have changed")
        except Exception as error:
            raise RunCorrupted(
                f"the arrays in {str(self.path)!r} do not match their checkpoint ({error}); {AGAIN}"
            ) from None


def checksummed() -> Any:
    """Zstandard with a checksum in every chunk: whoever reads a damaged chunk gets an error, never other numbers."""
    from zarr.codecs import ZstdCodec

    return ZstdCodec(level=0, checksum=True)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What a checkpoint says of the run, and the leaves of its state."""
    head, _, payload = path.read_bytes().partition(b"\n")
    if head != MAGIC + hashlib.sha256(payload).hexdigest().encode():
        raise RunCorrupted(f"{str(path)!r} was truncated or altered; the run cannot go on: {AGAIN}")
    with np.load(io.BytesIO(payload)) as arrays:
        facts = json.loads(str(arrays["facts"]))
        return facts, [arrays[f"leaf{k}"] for k in range(len(facts["paths"]))]


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


def open_arrays(path: Path) -> Any:
    """The Dataset of a store, loaded as it is used."""
    import xarray as xr

    try:
        found = xr.open_zarr(path, chunks=None, consolidated=False)
        names = [str(name) for name in found.attrs if str(name).startswith(SCALAR)]
        scalars = {name.removeprefix(SCALAR): ((), float(found.attrs.pop(name))) for name in names}
        texts = {  # coordinates: labels of tokens and of members
            name: one.copy(data=np.array(one.values.tolist(), np.str_))
            for name, one in found.coords.items()
            if one.dtype.kind in "OT"
        }
        return found.assign(scalars).assign_coords(texts)
    except Exception as error:
        raise RunCorrupted(
            f"the arrays in {str(path)!r} cannot be read ({error}); run the spec.toml beside them again."
        ) from None


def _digest(rows: Tables) -> str:
    total = hashlib.sha256()
    for table in sorted(rows):
        for name in sorted(rows[table]):
            if rows[table][name].size:
                total.update(name.encode())
                total.update(np.ascontiguousarray(rows[table][name]).tobytes())
    return total.hexdigest()
