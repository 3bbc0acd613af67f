"""A labelled part of the data in one file: an .npz archive whose entry `header` holds dimensions and attributes."""

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.archives import open_npz
from attnflow.errors import InvalidInput, RunCorrupted
from attnflow.folders import Folder
from attnflow.parsing import parse_json
from attnflow.wording import reason, shown

if TYPE_CHECKING:
    import xarray as xr

ENDING = ".npz"
HEADER = "header"
RESERVED = (HEADER, "file", "allow_pickle")
"""Names that the archive has for itself, and those that earlier versions could not write."""
NO_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of the archive, the first that it can hold."""
UNIX = 3
"""The system that every entry names, whatever wrote it."""


def pack(dataset: "xr.Dataset", part: str = "", settings: str = "") -> bytes:
    """The Dataset as the bytes of an .npz file; equal Datasets give equal bytes.

    Variables and attributes are written in the order of their names, arrays row by row, and entries of the archive
    without a time.

    Arguments:
        dataset: the data of the part.
        part: the name of the part, which `read_part` compares together with the settings.
        settings: the hash of the settings it was computed with; empty if there are none.
    """
    header: dict[str, Any] = {"attributes": dict(dataset.attrs), "variables": {}}
    if settings:
        header |= {"part": part, "settings": settings}
    arrays: dict[str, np.ndarray] = {}
    for name, variable in dataset.variables.items():
        if not isinstance(name, str) or name in RESERVED:
            raise InvalidInput(f"a variable is called {name!r}; use a text other than {', '.join(RESERVED)}.")
        arrays[name] = _plain(name, np.asarray(variable.values))
        header["variables"][name] = {
            "dims": list(variable.dims),
            "coordinate": name in dataset.coords,
            "attributes": dict(variable.attrs),
        }
    try:
        text = json.dumps(header, default=_number, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"an attribute cannot be written as JSON ({reason(error)}); use numbers, texts or lists."
        ) from None
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in [(HEADER, np.array(text)), *sorted(arrays.items())]:
            entry = zipfile.ZipInfo(f"{name}.npy", NO_TIME)
            entry.create_system, entry.external_attr = UNIX, 0o600 << 16
            with archive.open(entry, "w", force_zip64=True) as target:
                np.lib.format.write_array(target, np.asarray(array, order="C"), allow_pickle=False)
    return stream.getvalue()


def open_part(path: str | Path) -> "xr.Dataset":
    """The Dataset in a file that `Study.part` left."""
    return read_part(Folder(Path(path).parent), Path(path).name)


def read_part(folder: Folder, name: str, settings: str = "") -> "xr.Dataset":
    """The Dataset in a part of a study; one that is damaged, or was made with other settings, is refused.

    Arguments:
        folder: the folder of the parts.
        name: name of the file.
        settings: the hash of the settings it must have been made with; empty to take any. Parts of versions that did
            not write the hash are taken, too.
    """
    import xarray as xr

    part = name.removesuffix(ENDING)
    try:
        with folder.open(name) as stream, open_npz(stream, is_compressed=False) as arrays:
            header = parse_json(str(arrays[HEADER]))
            if settings and header.get("settings", settings) != settings:
                raise ValueError("it was made with other settings")
            if settings and header.get("part", part) != part:
                raise ValueError(f"it is the part {shown(header['part'])}")
            facts = header["variables"]
            variables = {n: xr.Variable(f["dims"], arrays[n], f["attributes"]) for n, f in facts.items()}
        return xr.Dataset(
            {name: variable for name, variable in variables.items() if not facts[name]["coordinate"]},
            {name: variable for name, variable in variables.items() if facts[name]["coordinate"]},
            header["attributes"],
        )
    except RunCorrupted:
        raise
    except Exception as error:  # zlib, zipfile, NumPy and xarray each raise their own
        where = str(folder.where(name))
        raise RunCorrupted(f"{where!r} cannot be read ({reason(error)}); remove it and resume the run.") from None


def _plain(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype != object:
        return values
    if all(isinstance(value, str) for value in values.flat):
        return values.astype(str)
    raise InvalidInput(f"the variable {name!r} holds Python objects; use numbers or texts.")


def _number(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}")
