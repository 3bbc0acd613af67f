"""A labelled part of the data in one file: an .npz archive whose entry `header` holds dimensions and attributes."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.archives import DAMAGED, open_npz
from attnflow.errors import InvalidInput, RunCorrupted
from attnflow.parsing import parse_json
from attnflow.reading import open_file

if TYPE_CHECKING:
    import xarray as xr

HEADER = "header"
RESERVED = (HEADER, "file", "allow_pickle")
"""Names that the archive has for itself, and arguments of `numpy.savez`."""


def pack(dataset: "xr.Dataset") -> bytes:
    """The Dataset as the bytes of an .npz file; equal Datasets give equal bytes."""
    header: dict[str, Any] = {"attributes": dict(dataset.attrs), "variables": {}}
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
        text = json.dumps(header, default=_number)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"an attribute cannot be written as JSON ({error}); use numbers, texts or lists.") from None
    stream = io.BytesIO()
    entries: Any = {HEADER: np.array(text), **arrays}
    np.savez(stream, **entries)
    return stream.getvalue()


def open_part(path: str | Path) -> "xr.Dataset":
    """The Dataset in a file that `Study.part` left."""
    import xarray as xr

    try:
        with open_file(path) as stream, open_npz(stream, is_compressed=False) as arrays:
            header = parse_json(str(arrays[HEADER]))
            facts = header["variables"]
            made = {n: xr.Variable(f["dims"], arrays[n], f["attributes"]) for n, f in facts.items()}
    except (*DAMAGED, TypeError) as error:
        raise RunCorrupted(f"{str(path)!r} cannot be read ({error}); remove it and resume the run.") from None
    return xr.Dataset(
        {name: variable for name, variable in made.items() if not facts[name]["coordinate"]},
        {name: variable for name, variable in made.items() if facts[name]["coordinate"]},
        header["attributes"],
    )


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
