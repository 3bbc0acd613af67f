"""One labelled dataset out of many shards: `results.zarr`, which grows while the sweep runs.

The dimensions are the axes of the sweep, with the swept keys as coordinates, and then those of a task. Arrays of
different sizes are filled up with NaN. Whole numbers and truth values become floats, so that NaN can say "not there".
`xarray.open_zarr(folder / "results.zarr", consolidated=False)` reads it without attnflow.
"""

import hashlib
import itertools
import json
import math
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnflow.folders import Folder
from attnflow.runs.claims import PATIENCE, Claim, Watch
from attnflow.sweeps.index import Index
from attnflow.sweeps.plan import Plan
from attnflow.sweeps.shards import Shard, patiently
from attnflow.sweeps.unit import open_shard

STORE = "results.zarr"
BLOCK = 1 << 24
"""Bytes of one variable that are put together at a time."""
TEXT = 64
"""Texts have room for a multiple of so many characters."""


class Variable(NamedTuple):
    """One variable of the dataset, besides the axes of the sweep."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    shared: bool
    """A label that all tasks have in common: it has no axes of the sweep."""


def collect(folder: Path, plan: Plan, *, wait: bool = True) -> bool:
    """Bring `results.zarr` up to date; False where another process is doing it and `wait` is not asked for."""
    claim_place, watch = (Folder(folder, "claims"), "collect"), Watch(PATIENCE)
    while True:
        claim = patiently(lambda: Claim.take(*claim_place), folder) if watch.is_free(*claim_place) else None
        if claim is not None:
            break
        if not wait:
            return False
        time.sleep(0.1)
    try:
        with claim.beating(), Index(folder, plan) as index:
            _collect(folder, plan, index)
    finally:
        claim.release()
    return True


def _collect(folder: Path, plan: Plan, index: Index) -> None:
    there = index.refresh()
    variables = _variables(index.layouts(), [key for axis in plan.axes for key in axis.keys])
    longest = TEXT * math.ceil(max([1, *(len(error) for _, _, error in index.errors())]) / TEXT)
    variables |= {"done": Variable((), (), "|b1", False), "error": Variable((), (), f"<U{longest}", False)}
    state = _digest([[axis.to_json() for axis in plan.axes], {name: list(v) for name, v in variables.items()}])
    store = folder / STORE
    known = index.collected() if store.exists() and index.fact("store") == f"{state} {_stamp(store)}" else None
    new = [unit for unit in there if known is None or unit not in known]
    if known is not None and not new and known <= set(there):
        return
    afresh = known is None or not known <= set(there)
    writer = _Writer(folder, plan, variables, there)
    if afresh:
        target = folder / f".{STORE}.{uuid.uuid4().hex}"
        try:
            patiently(lambda: writer.create(target), folder)
            patiently(lambda: writer.fill(target, None), folder)
            _swap(target, store)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
    else:
        patiently(lambda: writer.fill(store, new), folder)
    index.remember(there, "store", f"{state} {_stamp(store)}", afresh=afresh)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _stamp(store: Path) -> str:
    """What tells one store from another at the same place."""
    import zarr

    try:
        return str(zarr.open_group(store, mode="r").attrs.get("stamp", ""))
    except Exception:  # a damaged store is made again
        return uuid.uuid4().hex


def _swap(new: Path, store: Path) -> None:
    old = store.with_name(f".old.{uuid.uuid4().hex}")
    if store.exists():
        os.rename(store, old)
    os.rename(new, store)
    shutil.rmtree(old, ignore_errors=True)


def _variables(layouts: Sequence[list[dict[str, Any]]], keys: Sequence[str]) -> dict[str, Variable]:
    """The variables of the dataset from those of all shards."""
    entries: dict[str, list[dict[str, Any]]] = {}
    for entry in itertools.chain(*layouts):
        entries.setdefault(entry["name"], []).append(entry)
    labels = {name: {one for e in some for one in e.get("labels", [])} for name, some in entries.items()}
    own = {name for name, found in labels.items() if len(found) > 1}  # labels that differ from task to task
    taken, made = {"done", "error", *keys}, {}
    for name, some in sorted(entries.items()):
        rank = max(len(e["dims"]) for e in some)
        dims = next(tuple(e["dims"]) for e in some if len(e["dims"]) == rank)
        if any(len(e["dims"]) != rank for e in some):
            some = [e for e in some if len(e["dims"]) == rank]  # a name that means two things keeps the larger one
        shape = tuple(max(e["shape"][k] for e in some) for k in range(rank))
        dims = tuple(f"{dim}_number" if dim in own or dim in keys else dim for dim in dims)
        shared = len(labels[name]) == 1 and dims == (name,)
        made[f"{name}_of_task" if name in taken else name] = Variable(
            dims, shape, _type([e["dtype"] for e in some]), shared
        )
    sizes: dict[str, int] = {}
    for variable in made.values():
        for dim, size in zip(variable.dims, variable.shape, strict=True):
            sizes[dim] = max(sizes.get(dim, 0), size)
    return {name: v._replace(shape=tuple(sizes[dim] for dim in v.dims)) for name, v in made.items()}


def _type(types: Sequence[str]) -> str:
    found = [np.dtype(one) for one in types]
    if any(one.kind == "U" for one in found):
        longest = max(one.itemsize // 4 if one.kind == "U" else 24 for one in found)
        return f"<U{max(1, math.ceil(longest / TEXT)) * TEXT}"
    floats = [one if one.kind == "f" else np.dtype(np.float64) for one in found]
    return np.result_type(*floats).str


class _Writer:
    """Writes the blocks of a store."""

    def __init__(self, folder: Path, plan: Plan, variables: dict[str, Variable], there: Sequence[str]):
        self.folder, self.plan, self.units = folder, plan, list(there)
        self.shape = tuple(map(len, plan.axes))
        self.dims = tuple(axis.dim for axis in plan.axes)
        total = math.prod(self.shape)
        self.unit = np.full(total, -1, np.int64)
        """The number of the unit of every point, -1 where there is no result yet."""
        self.row = np.zeros(total, np.int64)
        for k, name in enumerate(self.units):
            numbers = plan.numbers(name)
            self.unit[numbers], self.row[numbers] = k, np.arange(len(numbers))
        self.variables = variables
        largest = max(math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in self.variables.values())
        self.chunks = _chunks(self.shape, max(1, BLOCK // max(largest, 1)))

    def create(self, target: Path) -> None:
        """An empty store with all axes."""
        import zarr

        group = zarr.create_group(target, overwrite=True, zarr_format=2)
        source = self.plan.source
        group.attrs.update({"stamp": uuid.uuid4().hex, "made_by": "attnflow sweep", "source": source["kind"]})
        for axis in self.plan.axes:
            for key in axis.keys:
                _put(group, key, (axis.dim,), axis.coordinate(key))
        for name, v in self.variables.items():
            if v.shared:
                continue
            shape, dims = (*self.shape, *v.shape), (*self.dims, *v.dims)
            chunks = (*self.chunks, *(max(size, 1) for size in v.shape))
            array = group.create_array(name, shape=shape, chunks=chunks, dtype=v.dtype, fill_value=_fill(v.dtype))
            array.attrs["_ARRAY_DIMENSIONS"] = list(dims)
        group.attrs["coordinates"] = " ".join(key for axis in self.plan.axes for key in axis.keys if key != axis.dim)

    def fill(self, target: Path, new: Sequence[str] | None) -> None:
        """Write all blocks, or those in which the units `new` have points."""
        import zarr

        group = zarr.open_group(target, mode="r+")
        wanted = None
        if new is not None:
            wanted = np.unique(np.concatenate([self._block_of(self.plan.numbers(name)) for name in new]))
        numbers = np.arange(math.prod(self.shape)).reshape(self.shape)
        grid = [range(0, size, step) for size, step in zip(self.shape, self.chunks, strict=True)]
        for k, corner in enumerate(itertools.product(*grid)):
            if wanted is not None and k not in wanted:
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
            name: np.full((flat.size, *v.shape), _blank(v.dtype), v.dtype)
            for name, v in self.variables.items()
            if not v.shared
        }
        of = self.unit[flat]
        for k in np.unique(of[of >= 0]):
            shard = open_shard(self.folder, self.plan, self.units[k])
            if shard is not None:
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
                if name not in group:
                    _put(group, name, v.dims, shard.arrays(number)[0])
                continue
            chosen = [(k, place[row]) for k, row in enumerate(entry["rows"]) if row in place]
            if chosen:
                inner = tuple(slice(0, size) for size in entry["shape"])
                target: Any = (np.array([there for _, there in chosen]), *inner)
                blocks[name][target] = shard.arrays(number)[[k for k, _ in chosen]]


def _chunks(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """How many points along each axis make a block of at most `most`, whole along the last axes."""
    found = []
    for size in reversed(shape):
        found.append(max(1, min(size, most)))
        most //= max(size, 1)
    return tuple(reversed(found))


def _blank(dtype: str) -> Any:
    kind = np.dtype(dtype).kind
    return "" if kind == "U" else False if kind == "b" else np.nan


def _fill(dtype: str) -> Any:
    """The value that readers take for "not there": none but NaN."""
    return np.nan if np.dtype(dtype).kind == "f" else None


def _put(group: Any, name: str, dims: Sequence[str], values: np.ndarray) -> None:
    values = np.ascontiguousarray(values)
    array = group.create_array(
        name, shape=values.shape, chunks=tuple(max(s, 1) for s in values.shape), dtype=values.dtype, fill_value=None
    )
    array[...] = values
    array.attrs["_ARRAY_DIMENSIONS"] = list(dims)
