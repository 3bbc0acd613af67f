"""The arrays of a run as an xarray Dataset that is read as it is used, each piece checked; what its checkpoint says."""

import hashlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from attnflow.archives import DAMAGED, open_npz
from attnflow.errors import RunCorrupted
from attnflow.folders import Folder
from attnflow.parsing import parse_json
from attnflow.reading import LARGEST_TEXT
from attnflow.runs.chunks import FolderStore
from attnflow.runs.files import ARRAYS, CHECKPOINT

SCALAR = "scalar_"
"""How attributes begin that hold single numbers."""
TABLES = "attnflow_tables"
"""The attribute that lists the dimensions of rows."""
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


def open_arrays(folder: Folder, checksums: Mapping[str, str] | None = None) -> Any:
    """The Dataset of the arrays in the folder of a run, and the dimensions of its rows.

    Arguments:
        folder: the folder of the run.
        checksums: SHA-256 of the files by name, where the run is finished: a file that is missing or was altered is
            refused.

    Returns:
        The Dataset, whose arrays are read as they are used, and the list of dimensions along which rows come; None
        where an earlier version did not write them down.
    """
    import xarray as xr
    import zarr

    inside = {
        name.removeprefix(ARRAYS + "/"): value
        for name, value in (checksums or {}).items()
        if name.startswith(ARRAYS + "/")
    }
    store = FolderStore(folder.inside(ARRAYS), checksums=inside or None, read_only=True)
    try:
        names = _names(store)
        group = zarr.open_group(store, mode="r", zarr_format=3)
        attributes = dict(group.attrs)
        arrays = {name: _array(store, group, name) for name in names}
        variables = {
            name: (array.metadata.dimension_names, indexing.LazilyIndexedArray(Piecewise(array, str(store.folder))))
            for name, array in arrays.items()
        }
        beside = str(attributes.pop("coordinates", "")).split()
        is_label = {name: dims == (name,) or name in beside for name, (dims, _) in variables.items()}
        scalars = {
            key.removeprefix(SCALAR): ((), float(str(attributes.pop(key))))
            for key in sorted(attributes)
            if key.startswith(SCALAR)
        }
        tables = attributes.pop(TABLES, None)
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
    except RunCorrupted:
        raise
    except Exception as error:
        raise _unreadable(str(store.folder), error) from None


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
    return RunCorrupted(f"the arrays in {where!r} cannot be read ({error}); {AGAIN}")


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
        raise RunCorrupted(f"{str(folder.where(CHECKPOINT))!r} cannot be read ({error}); {AGAIN}") from None


def reached(folder: Folder) -> str:
    """How far a run that is under way has come at its last checkpoint, such as "time 2.5"; empty before the first.

    Arguments:
        folder: the folder of the run.
    """
    if not folder.is_file(CHECKPOINT):
        return ""
    rows = read_checkpoint(folder)[0]["committed"]
    dataset, _ = open_arrays(folder)
    return ", ".join(
        f"{table} {float(dataset[table][count - 1]):g}" if table in dataset.coords else f"{count} rows of {table}"
        for table, count in rows.items()
        if count
    )
