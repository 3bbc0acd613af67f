"""The blocks of the dataset of a sweep, put together from its shards and written into a Zarr store.

The dimensions are the axes of the sweep, with the swept keys as coordinates, and then those of a task. Arrays of
different sizes are filled up with NaN. Whole numbers and truth values become floats, so that NaN can say "not there".
"""

import functools
import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from zarr.core.buffer import Buffer

from attnflow.errors import RunError
from attnflow.runs.store import checksummed
from attnflow.sweeps.index import Index
from attnflow.sweeps.plan import Plan
from attnflow.sweeps.shards import Shard
from attnflow.sweeps.unit import open_shard
from attnflow.wording import bytes_shown

BLOCK = 1 << 24
"""Bytes of one variable that are put together at a time."""
TEXT = 256
"""Bytes for which a text counts there."""
IN_MEMORY = 1 << 30
"""Bytes of a dataset that is put together in memory, where its folder cannot be written to, at most."""


class Variable(NamedTuple):
    """One variable of the dataset, besides the axes of the sweep."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    """As NumPy writes it; "string" for texts."""
    shared: bool
    """A label that all tasks have in common: it has no axes of the sweep."""


def _variables(layouts: Sequence[list[dict[str, Any]]], keys: Sequence[str]) -> dict[str, Variable]:
    """The variables of the dataset from those of all shards."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for entry in itertools.chain(*layouts):
        entries.setdefault(entry["name"], []).append(entry)
    labels = {name: {label for e in some for label in e.get("labels", [])} for name, some in entries.items()}
    differing = {name for name, hashes in labels.items() if len(hashes) > 1}  # labels that differ from task to task
    taken, variables = {"done", "error", *keys}, {}
    for name, some in sorted(entries.items()):
        rank = max(len(e["dims"]) for e in some)
        if any(len(e["dims"]) != rank for e in some):
            some = [e for e in some if len(e["dims"]) == rank]  # a name that means two things keeps the larger one
        shape = tuple(max(e["shape"][k] for e in some) for k in range(rank))
        dims = tuple(f"{dim}_number" if dim in differing or dim in keys else dim for dim in some[0]["dims"])
        shared = len(labels[name]) == 1 and dims == (name,)
        dtype = _type([e["dtype"] for e in some])
        if shared and dtype != "string":  # a label is there for all tasks
            dtype = np.result_type(*(e["dtype"] for e in some)).newbyteorder("<").str
        variables[f"{name}_of_task" if name in taken else name] = Variable(dims, shape, dtype, shared)
    sizes: dict[str, int] = {}
    for variable in variables.values():
        for dim, size in zip(variable.dims, variable.shape, strict=True):
            sizes[dim] = max(sizes.get(dim, 0), size)
    return {name: v._replace(shape=tuple(sizes[dim] for dim in v.dims)) for name, v in variables.items()}


def _type(types: Sequence[str]) -> str:
    """The type that holds values of all `types`, and a value for "not there"."""
    dtypes = [np.dtype(text) for text in types]
    if any(dtype.kind == "U" for dtype in dtypes):
        return "string"
    floats = [dtype if dtype.kind == "f" else np.dtype(np.float64) for dtype in dtypes]
    widest = np.result_type(*floats)
    return np.dtype(widest if widest.itemsize <= 8 else np.float64).newbyteorder("<").str


class Writer:
    """Writes the dataset of a sweep into a store, block by block.

    Arguments:
        folder: the folder of the sweep.
        plan: its plan.
    """

    def __init__(self, folder: Path, plan: Plan):
        index = Index(folder, plan)
        self.folder, self.plan, self.units = folder, plan, list(index.entries)
        self.contents = {unit: entry.content for unit, entry in index.entries.items()}
        self.shape = tuple(map(len, plan.axes))
        self.dims = tuple(axis.dim for axis in plan.axes)
        total = math.prod(self.shape)
        self.unit = np.full(total, -1, np.int64)
        """The number of the unit of every point, -1 where there is no result yet."""
        self.row = np.zeros(total, np.int64)
        for k, name in enumerate(self.units):
            numbers = plan.numbers(name)
            self.unit[numbers], self.row[numbers] = k, np.arange(len(numbers))
        variables = _variables(index.layouts(), [key for axis in plan.axes for key in axis.keys])
        variables |= {"done": Variable((), (), "|b1", False), "error": Variable((), (), "string", False)}
        self.variables = variables
        self.chunks = _chunks(self.shape, max(1, BLOCK // max(max(map(_bytes, variables.values())), 1)))

    @functools.cached_property
    def fixed(self) -> dict[str, str]:
        """SHA-256 of the files that follow from the plan and from the layouts: metadata, and values along the axes."""
        from zarr.storage import MemoryStore

        files: dict[str, Buffer] = {}
        self.create(MemoryStore(files))
        return {name: hashlib.sha256(content.to_bytes()).hexdigest() for name, content in files.items()}

    def describes(self, files: Mapping[str, tuple[int, str]]) -> bool:
        """True if files, given by size and SHA-256, are those of a store with these variables and axes."""
        metadata = {name for name in files if name.rpartition("/")[2] == "zarr.json"}
        return metadata <= self.fixed.keys() and all(
            name in files and files[name][1] == checksum for name, checksum in self.fixed.items()
        )

    def in_memory(self) -> Any:
        """A store of the whole dataset in memory."""
        from zarr.storage import MemoryStore

        size = sum(_bytes(v) * (1 if v.shared else math.prod(self.shape)) for v in self.variables.values())
        if size > IN_MEMORY:
            raise RunError(
                f"the dataset of the sweep in {str(self.folder)!r} is missing, outdated or damaged, the folder cannot "
                f"be written to, and {bytes_shown(size)} are too much for memory; copy the sweep to where it can be "
                "written to."
            )
        store = MemoryStore()
        self.create(store)
        self.fill(store, None)
        return store

    def create(self, store: Any) -> None:
        """An empty store with all axes."""
        import zarr

        facts = {"made_by": "attnflow sweep", "source": self.plan.source["kind"]}
        facts["coordinates"] = " ".join(key for axis in self.plan.axes for key in axis.keys if key != axis.dim)
        group = zarr.create_group(store, overwrite=True, zarr_format=3, attributes=facts)
        for axis in self.plan.axes:
            for key in axis.keys:
                values = np.ascontiguousarray(axis.coordinate(key))
                is_text = values.dtype.kind == "U"
                array = _array(group, key, (axis.dim,), values.shape, "string" if is_text else values.dtype.str)
                array[...] = values.astype(object) if is_text else values
        for name, v in self.variables.items():
            if v.shared:
                _array(group, name, v.dims, v.shape, v.dtype)
            else:
                _array(group, name, (*self.dims, *v.dims), (*self.shape, *v.shape), v.dtype, self.chunks)

    def fill(self, store: Any, new: Sequence[str] | None) -> None:
        """Write all blocks, or those in which the units `new` have points."""
        import zarr

        selected = None
        if new is not None:
            selected = np.unique(np.concatenate([self._block_of(self.plan.numbers(name)) for name in new]))
        numbers = np.arange(math.prod(self.shape)).reshape(self.shape)
        grid = [range(0, size, step) for size, step in zip(self.shape, self.chunks, strict=True)]
        self.labelled: set[str] = set()
        with zarr.config.set({"array.write_empty_chunks": True}):
            group = zarr.open_group(store, mode="r+")
            for k, corner in enumerate(itertools.product(*grid)):
                if selected is not None and k not in selected:
                    continue
                region = tuple(slice(c, min(c + s, n)) for c, s, n in zip(corner, self.chunks, self.shape, strict=True))
                self._write(group, region, numbers[region])

    def _block_of(self, numbers: np.ndarray) -> np.ndarray:
        places = np.unravel_index(numbers, self.shape)
        grid = tuple(math.ceil(size / step) for size, step in zip(self.shape, self.chunks, strict=True))
        return np.ravel_multi_index([p // s for p, s in zip(places, self.chunks, strict=True)], grid)

    def _write(self, group: Any, region: tuple[slice, ...], numbers: np.ndarray) -> None:
        flat = numbers.reshape(-1)
        blocks = {
            name: np.full((flat.size, *v.shape), _blank(v.dtype), object if v.dtype == "string" else v.dtype)
            for name, v in self.variables.items()
            if not v.shared
        }
        of = self.unit[flat]
        for k in np.unique(of[of >= 0]):
            shard = open_shard(self.folder, self.plan, self.units[k])
            if shard is None:  # removed since the index was made
                self.contents.pop(self.units[k], None)
            else:
                with shard:
                    self._take(group, blocks, shard, np.flatnonzero(of == k), self.row[flat[of == k]])
        for name, block in blocks.items():
            group[name][region] = block.reshape(*numbers.shape, *block.shape[1:])

    def _take(self, group: Any, blocks: dict[str, np.ndarray], shard: Shard, at: np.ndarray, rows: np.ndarray) -> None:
        """Put rows of a shard into places of the blocks."""
        place = dict(zip(rows.tolist(), at.tolist(), strict=True))
        blocks["error"][at] = [shard.errors[row] for row in rows]
        blocks["done"][at] = [not shard.errors[row] for row in rows]
        for number, entry in enumerate(shard.layout):
            name = entry["name"] if entry["name"] in self.variables else f"{entry['name']}_of_task"
            v = self.variables[name]
            if len(entry["dims"]) != len(v.dims):
                continue
            if v.shared:
                if name not in self.labelled:
                    values = shard.arrays(number)[0]
                    part = tuple(slice(0, size) for size in values.shape)
                    group[name][part] = values.astype(object) if v.dtype == "string" else values
                    self.labelled.add(name)
                continue
            chosen = [(k, place[row]) for k, row in enumerate(entry["rows"]) if row in place]
            if chosen:
                inner = tuple(slice(0, size) for size in entry["shape"])
                target: Any = (np.array([there for _, there in chosen]), *inner)
                blocks[name][target] = shard.arrays(number)[[k for k, _ in chosen]]


def _chunks(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """How many points along each axis make a block of at most `most`, whole along the last axes."""
    steps = []
    for size in reversed(shape):
        steps.append(max(1, min(size, most)))
        most //= max(size, 1)
    return tuple(reversed(steps))


def _bytes(variable: Variable) -> int:
    """Bytes of the values of one variable at one point."""
    return math.prod(variable.shape) * (TEXT if variable.dtype == "string" else np.dtype(variable.dtype).itemsize)


def _blank(dtype: str) -> Any:
    """The value for "not there"."""
    return "" if dtype == "string" else False if np.dtype(dtype).kind == "b" else np.nan


def _array(
    group: Any, name: str, dims: Sequence[str], shape: Sequence[int], dtype: str, chunks: Sequence[int] = ()
) -> Any:
    """A new array, in chunks along its first dimensions."""
    return group.create_array(
        name,
        shape=shape,
        chunks=tuple(max(size, 1) for size in (*chunks, *shape[len(chunks) :])),
        dtype=dtype,
        dimension_names=dims,
        compressors=checksummed(),
        fill_value=np.nan if dtype != "string" and np.dtype(dtype).kind == "f" else None,
    )
