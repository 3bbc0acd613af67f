"""Shards: the results of a few tasks in one file of plain arrays, written whole or not at all.

A shard is a NumPy archive (.npz) that is read without unpickling. Its array `about` is JSON: the names of the tasks,
their errors, and where the arrays of each variable are. Tasks whose arrays have one shape share one array.
"""

import errno
import hashlib
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from attnflow.archives import open_npz
from attnflow.errors import RunCorrupted
from attnflow.folders import Folder
from attnflow.parsing import parse_json
from attnflow.sweeps.rows import KINDS, Row

FORMAT = 1
FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a full disk answers."""
LONGEST_WAIT = 30.0
"""Seconds between two attempts to write to a full disk, at most."""
R = TypeVar("R")


def pack(names: Sequence[str], rows: Sequence[Row]) -> bytes:
    """The content of a shard."""
    arrays: dict[str, np.ndarray] = {}
    layout: list[dict[str, Any]] = []
    for k, row in enumerate(rows):
        for name, (dims, array) in row.variables.items():
            entry = next((e for e in layout if _fits(e, name, dims, array)), None)
            if entry is None:
                entry = {"name": name, "dims": list(dims), "shape": list(array.shape), "dtype": array.dtype.str}
                entry |= {"label": name in row.coordinates, "rows": []}
                layout.append(entry)
            entry["rows"].append(k)
    for number, entry in enumerate(layout):
        arrays[f"a{number}"] = np.stack([rows[k].variables[entry["name"]][1] for k in entry["rows"]])
    about = {"format": FORMAT, "tasks": list(names), "errors": [row.error for row in rows], "layout": layout}
    stream = io.BytesIO()
    np.savez(stream, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _fits(entry: dict[str, Any], name: str, dims: tuple[str, ...], array: np.ndarray) -> bool:
    same = entry["name"] == name and entry["dims"] == list(dims)
    return same and entry["shape"] == list(array.shape) and entry["dtype"] == array.dtype.str


class Shard:
    """An open shard; arrays are read as they are asked for.

    Arguments:
        folder: the folder of shards.
        name: name of the file.
    """

    def __init__(self, folder: Folder, name: str):
        self.path = folder.where(name)
        try:
            self.stream = folder.open(name)
        except OSError as error:
            raise self._damaged(error.strerror) from None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            archive: Any = open_npz(self.stream, is_compressed=False)  # its `zip` is None once it is closed
            self.file = archive
            about = parse_json(bytes(self._read("about")))
            self.tasks, self.errors = list(map(str, about["tasks"])), list(map(str, about["errors"]))
            self.layout: list[dict[str, Any]] = about["layout"]
            members = [(member.filename, member.CRC, member.file_size) for member in archive.zip.infolist()]
            good = about["format"] == FORMAT and len(self.tasks) == len(self.errors)
            good = good and all(_is_entry(entry, len(self.tasks)) for entry in self.layout)
        except RunCorrupted:
            raise
        except Exception as error:  # zipfile, json and NumPy each raise their own
            raise self._damaged(error) from None
        if not good:
            raise self._damaged("another format")
        self.content = hashlib.sha256(json.dumps(members).encode()).hexdigest()
        """A hash of the checksums of all arrays: shards of equal content have equal hashes."""

    def _damaged(self, why: Any) -> RunCorrupted:
        words = " ".join(str(why).split())[:120]
        return RunCorrupted(
            f"the shard {str(self.path)!r} is damaged ({words}); remove it, and the sweep does it again."
        )

    def _read(self, key: str) -> np.ndarray:
        try:
            array: np.ndarray = self.file[key]
        except Exception as error:  # zlib, zipfile and NumPy each raise their own
            raise self._damaged(error) from None
        if array.dtype.kind not in KINDS:
            raise self._damaged(f"it holds {array.dtype}")
        return array

    def arrays(self, number: int) -> np.ndarray:
        """The arrays of entry number `number` of the layout, one for each of its rows."""
        found, entry = self._read(f"a{number}"), self.layout[number]
        if list(found.shape) != [len(entry["rows"]), *entry["shape"]] or len(entry["dims"]) != len(entry["shape"]):
            raise self._damaged("shapes do not agree")
        return found

    def close(self) -> None:
        """Close the file."""
        self.stream.close()

    def __enter__(self) -> "Shard":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_entry(entry: dict[str, Any], tasks: int) -> bool:
    """True for an entry of a layout whose dimensions, shape and rows fit together."""
    names = [entry["name"], *entry["dims"]]
    return (
        all(isinstance(name, str) for name in names)
        and len(entry["dims"]) == len(entry["shape"])
        and all(isinstance(size, int) and size >= 0 for size in entry["shape"])
        and all(0 <= row < tasks for row in entry["rows"])
        and np.dtype(entry["dtype"]).kind in KINDS
        and isinstance(entry["label"], bool)
    )


def patiently(act: Callable[[], R], where: Path, pause: float = 0.5) -> R:
    """`act()`, again and again while the disk is full; one sentence says that it waits."""
    told = False
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in FULL:
                raise
            if not told:
                print(
                    f"the disk of {str(where)!r} is full; the sweep waits, and goes on when there is room.",
                    file=sys.stderr,
                    flush=True,
                )
                told = True
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_WAIT)
