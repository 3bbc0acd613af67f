"""The arrays of a run as an xarray Dataset that is read as it is used, each piece checked; what its checkpoint says."""

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from attnflow.archives import DAMAGED, open_npz
from attnflow.errors import RunCorrupted, RunError
from attnflow.folders import Folder
from attnflow.parsing import parse_json
from attnflow.reading import LARGEST_TEXT
from attnflow.runs.chunks import FolderStore
from attnflow.runs.files import ARRAYS, CHECKPOINT
from attnflow.wording import reason

SCALAR = "scalar_"
"""How attributes begin that hold single numbers."""
TABLES = "attnflow_tables"
"""The attribute that lists, for each dimension of rows, the variables that have such rows and their dimensions."""
STATIC = "attnflow_static"
"""The attribute that lists the shape and the digest of every other array. It is written after their values; until then
a reader takes them for absent, or for as long as they were."""
DIGEST = "attnflow_digest"
"""The attribute that holds the digest of all others."""
CODECS = {"bytes", "vlen-utf8", "zstd"}
"""What decodes the chunks of a run; a store that names something else is refused before that is looked up."""
MAGIC = b"attnflow checkpoint 2 "
"""How a checkpoint begins."""
AGAIN = "start the run again from its spec.toml in another folder."


class Piecewise(BackendArray):
    """A Zarr array for xarray; what cannot be decoded is refused in a sentence.

    Arguments:
        array: the array.
        where: the path of its store, for messages.
    """

    def __init__(self, array: Any, where: str):
        self.array, self.where = array, where
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        try:
            is_basic = all(isinstance(part, int | np.integer | slice) for part in key)
            return self.array[key] if is_basic else self.array.oindex[key]
        except RunCorrupted:
            raise
        except Exception as error:
            raise _unreadable(self.where, error) from None


def open_arrays(
    folder: Folder, checksums: Mapping[str, str] | None = None, rows: Mapping[str, int] | None = None
) -> Any:
    """The Dataset of the arrays in the folder of a run, and its tables.

    Arguments:
        folder: the folder of the run.
        checksums: SHA-256 of the files by name, where the run is finished: a file that is missing or was altered is
            refused.
        rows: how many rows to give of each table, where the run is not finished; 0 of those that are not named.

    Returns:
        The Dataset, whose arrays are read as they are used, and the attribute `TABLES`; an empty one where an earlier
        version did not write it.

    Raises:
        RunCorrupted: if the arrays cannot be read.
        RunError: if a run that is under way has not made its arrays yet.
    """
    import xarray as xr
    import zarr

    inside = {
        name.removeprefix(ARRAYS + "/"): value
        for name, value in (checksums or {}).items()
        if name.startswith(ARRAYS + "/")
    }
    store = FolderStore(folder.inside(ARRAYS), checksums=inside or None, read_only=True)
    if not (checksums or folder.is_file(CHECKPOINT) or store.folder.is_file("zarr.json")):
        raise _too_early(folder)
    try:
        names = _names(store)
        group = zarr.open_group(store, mode="r", zarr_format=3)
        attributes: dict[str, Any] = dict(group.attrs)
        if attributes.pop(DIGEST, None) not in (None, digest_of_attributes(attributes)):
            raise ValueError("their attributes were altered")
        tables, static = attributes.pop(TABLES, {}), attributes.pop(STATIC, None)
        if static is None and (tables or not (names or checksums)):
            raise _too_early(folder)
        if tables:
            names = sorted({name for variables in tables.values() for name in variables} | static.keys())
        counts = {} if rows is None else {**dict.fromkeys(tables, 0), **rows}
        variables = {}
        for name in names:
            array = _array(store, group, name)
            variable = xr.Variable(
                array.metadata.dimension_names, indexing.LazilyIndexedArray(Piecewise(array, str(store.folder)))
            )
            if tables and name in static:
                shape, expected = static[name]
                variable = variable.isel({dim: slice(0, size) for dim, size in zip(variable.dims, shape, strict=True)})
                if rows is not None and digest({"": {name: variable.values}}) != expected:
                    raise ValueError(f"{name} has changed")
            parts = {dim: slice(0, count) for dim, count in counts.items() if dim in variable.dims}
            variables[name] = variable.isel(parts)
        for variables_of_table in tables.values():
            for name, dims in variables_of_table.items():
                if list(variables[name].dims) != dims:
                    raise ValueError(f"{name} has other dimensions than it had")
        beside = str(attributes.pop("coordinates", "")).split()
        is_label = {name: variable.dims == (name,) or name in beside for name, variable in variables.items()}
        scalars = {
            key.removeprefix(SCALAR): ((), float(str(attributes.pop(key))))
            for key in sorted(attributes)
            if key.startswith(SCALAR)
        }
        dataset = xr.Dataset(
            {name: value for name, value in variables.items() if not is_label[name]} | scalars,
            {name: value for name, value in variables.items() if is_label[name]},
            attributes,
        )
        texts = {  # coordinates: labels of tokens and of members
            name: labels.copy(data=np.array(labels.values.tolist(), np.str_))
            for name, labels in dataset.coords.items()
            if labels.dtype.kind in "OT"
        }
        return dataset.assign_coords(texts), tables
    except RunError:
        raise
    except Exception as error:
        raise _unreadable(str(store.folder), error) from None


def require_digests(dataset: Any, tables: Mapping[str, Iterable[str]], commits: Iterable[Mapping[str, Any]]) -> None:
    """Refuse rows that do not have the digests which the checkpoint lists for each commit.

    Arguments:
        dataset: the committed rows.
        tables: the variables of each table, by the dimension of its rows.
        commits: the entries of the checkpoint: first row, last row and digest.

    Raises:
        RunCorrupted: if rows have changed, or cannot be read.
    """
    try:
        for commit in commits:
            rows: dict[str, dict[str, np.ndarray]] = {}
            for table, names in tables.items():
                start, stop = commit["start"][table], commit["stop"][table]
                if stop > start:
                    rows[table] = {name: dataset[name].isel({table: slice(start, stop)}).values for name in names}
            if digest(rows) != commit["digest"]:
                raise ValueError(f"rows {commit['start']} to {commit['stop']} have changed")
    except Exception as error:
        raise RunCorrupted(f"the arrays do not match their checkpoint ({reason(error)}); {AGAIN}") from None


def digest(rows: Mapping[str, Mapping[str, np.ndarray]]) -> str:
    """SHA-256 of rows of several tables."""
    total = hashlib.sha256()
    for table in sorted(rows):
        for name in sorted(rows[table]):
            values = rows[table][name]
            if values.size:
                total.update(name.encode())
                is_text = values.dtype.kind in "OTU"
                total.update(
                    json.dumps(values.tolist()).encode() if is_text else np.ascontiguousarray(values).tobytes()
                )
    return total.hexdigest()


def digest_of_attributes(attributes: Mapping[str, Any]) -> str:
    """SHA-256 of the attributes of a store, apart from `DIGEST`."""
    entries = {name: value for name, value in attributes.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _too_early(folder: Folder) -> RunError:
    return RunError(f"{str(folder)!r} has no arrays yet; open it when it has made some, or `attnflow resume` it.")


def _names(store: FolderStore) -> list[str]:
    """The names of the arrays of a store, sorted; refused if it lacks a file that it is known to have."""
    names = store.folder.names()
    if missing := sorted((store.checksums or {}).keys() - set(names)):
        raise RunCorrupted(f"{missing[0]!r} is missing from {str(store.folder)!r}; {AGAIN}")
    return [
        name.removesuffix("/zarr.json")
        for name in store.checksums or names
        if name.count("/") == 1 and name.endswith("/zarr.json")
    ]


def _array(store: FolderStore, group: Any, name: str) -> Any:
    """An array of the store, if it is written as those of a run are."""
    metadata = parse_json(store.folder.read(f"{name}/zarr.json", LARGEST_TEXT))
    codecs = {codec["name"] for codec in metadata["codecs"]}
    if not codecs <= CODECS:
        raise ValueError(f"{name} is written with {', '.join(sorted(codecs - CODECS))}")
    array = group[name]
    if not all(array.metadata.dimension_names or [None]):
        raise ValueError(f"{name} has dimensions without names")
    return array


def _unreadable(where: str, error: Exception) -> RunCorrupted:
    return RunCorrupted(f"the arrays in {where!r} cannot be read ({reason(error)}); {AGAIN}")


def read_checkpoint(folder: Folder) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What the checkpoint in the folder of a run says of it, and the leaves of the state."""
    head, _, payload = folder.read(CHECKPOINT).partition(b"\n")
    if head != MAGIC + hashlib.sha256(payload).hexdigest().encode():
        where = str(folder.where(CHECKPOINT))
        raise RunCorrupted(f"{where!r} was truncated or altered; the run cannot go on: {AGAIN}")
    try:
        with open_npz(io.BytesIO(payload), is_compressed=False) as arrays:
            facts = parse_json(str(arrays["facts"]))
            return facts, [arrays[f"leaf{k}"] for k in range(len(facts["paths"]))]
    except (*DAMAGED, TypeError) as error:
        raise RunCorrupted(f"{str(folder.where(CHECKPOINT))!r} cannot be read ({reason(error)}); {AGAIN}") from None


def reached(folder: Folder) -> str:
    """How far a run that is under way has come at its last checkpoint, such as "time 2.5"; empty before the first.

    Arguments:
        folder: the folder of the run.
    """
    if not folder.is_file(CHECKPOINT):
        return ""
    rows = read_checkpoint(folder)[0]["committed"]
    dataset, _ = open_arrays(folder, rows=rows)
    return ", ".join(
        f"{table} {float(dataset[table][count - 1]):g}" if table in dataset.coords else f"{count} rows of {table}"
        for table, count in rows.items()
        if count
    )
