"""One labelled dataset out of many shards: `results.zarr`, which grows while the sweep runs.

`xarray.open_zarr(folder / "results.zarr", consolidated=False)` reads it without attnflow.

`results.json` beside it has the size and the SHA-256 of every file of the store, and the content of the shards that are
in it. It is written last. A store that does not fit to it, to the plan or to the shards is made anew.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

from attnflow.errors import RunCorrupted, RunError
from attnflow.folders import TEMPORARY, Folder
from attnflow.runs.chunks import FolderStore
from attnflow.runs.claims import PATIENCE, Claim, Watch
from attnflow.sweeps.assembly import Writer
from attnflow.sweeps.plan import Plan, plan_file, read_plan
from attnflow.sweeps.sealed import LARGEST, sealed, unsealed
from attnflow.sweeps.shards import patiently

if TYPE_CHECKING:
    import xarray as xr

STORE = "results.zarr"
RECORD = "results.json"


class Record(NamedTuple):
    """What `results.json` says of the dataset."""

    units: dict[str, str]
    """The content of the shards that are in it, by unit."""
    files: dict[str, tuple[int, str]]
    """Size and SHA-256 of every file of the store."""


def dataset(folder: Path, plan: Plan) -> "xr.Dataset":
    """All results so far, loaded as they are used; made again from the shards where they are missing or damaged.

    Where the folder cannot be written to, a dataset that does not fit to the shards is put together in memory.

    Arguments:
        folder: the folder of the sweep.
        plan: its plan.

    Raises:
        RunCorrupted: if shards are damaged; also later, while values are loaded.
        RunError: if the dataset is too large for memory.
    """
    if _is_writable(folder):
        try:
            if collected := _claimed(folder, plan, wait=True, afresh=False):
                return _opened(_Results(*collected, is_writable=True), collected[0].plan)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
    writer = Writer(folder, _newest(folder, plan))
    record = _fitting_record(writer)
    if record is not None and record.units == writer.contents:
        return _opened(_Results(writer, record, is_writable=False), writer.plan)
    return _opened(writer.in_memory(), writer.plan)


def collect(folder: Path, plan: Plan, *, wait: bool = True, afresh: bool = False) -> bool:
    """Bring `results.zarr` up to date.

    Arguments:
        folder: the folder of the sweep.
        plan: its plan.
        wait: False to leave it to another process that is doing it at this moment; the answer is then False.
        afresh: make it anew from the shards, although it looks whole.
    """
    return _claimed(folder, plan, wait=wait, afresh=afresh) is not None


def _claimed(folder: Path, plan: Plan, *, wait: bool, afresh: bool) -> tuple[Writer, Record] | None:
    """Do what `collect` does; the dataset as it is then, or None where another process is doing it."""
    Folder(folder).make("claims")
    claim_place, watch = (Folder(folder, "claims"), "collect"), Watch(PATIENCE)
    while True:
        claim = patiently(lambda: Claim.take(*claim_place), folder) if watch.is_free(*claim_place) else None
        if claim is not None:
            break
        if not wait:
            return None
        time.sleep(0.1)
    try:
        with claim.beating():
            return _collected(folder, _newest(folder, plan), afresh)
    finally:
        claim.release()


def _collected(folder: Path, plan: Plan, afresh: bool) -> tuple[Writer, Record]:
    """Do what `collect` does, as the only process."""
    entries = Folder(folder)
    for name in entries.entries():
        if is_litter(name) and entries.is_folder(name):  # a store that a killed process was writing
            entries.remove_folder(name)
    writer = Writer(folder, plan)
    record = None if afresh else _fitting_record(writer)
    if record is not None:
        new = [unit for unit in writer.units if unit not in record.units]
        if not new:
            return writer, record
        store = _Recorded(entries.inside(STORE), record.files)
        patiently(lambda: writer.fill(store, new), folder)
    else:
        temporary = TEMPORARY + secrets.token_hex(8)
        store = _Recorded(entries.inside(temporary), {})
        try:
            patiently(lambda: writer.create(store), folder)
            patiently(lambda: writer.fill(store, None), folder)
            _swap(entries, temporary)
        except BaseException:
            with contextlib.suppress(OSError):
                entries.remove_folder(temporary)
            raise
    record = Record(writer.contents, dict(sorted(store.files.items())))
    content = sealed("results", record._asdict())
    patiently(lambda: entries.write(RECORD, content), folder)
    return writer, record


def is_litter(name: str) -> bool:
    """True for the name of a temporary file or folder of a sweep, of this version or an earlier one."""
    return name.startswith(TEMPORARY) or re.fullmatch(r"\..*\.[0-9a-f]{32}", name) is not None


def _swap(entries: Folder, temporary: str) -> None:
    """Put a new store where the old one is, which may be a folder, a file or a link."""
    old = TEMPORARY + secrets.token_hex(8)
    with contextlib.suppress(FileNotFoundError):
        os.rename(entries.where(STORE), entries.where(old))
    os.rename(entries.where(temporary), entries.where(STORE))
    (entries.remove_folder if entries.is_folder(old) else entries.remove)(old)


def _newest(folder: Path, plan: Plan) -> Plan:
    """The plan as it is now: the sweep may have been extended since `plan` was read."""
    return read_plan(folder) if Folder(folder).is_file(plan_file(len(plan.generations) + 1)) else plan


def _is_writable(folder: Path) -> bool:
    try:
        Folder(folder).make("claims")
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK) and os.access(folder / "claims", os.W_OK | os.X_OK)


def _read_record(folder: Path) -> Record | None:
    """What `results.json` says; None if it is missing or damaged."""
    try:
        table = unsealed("results", Folder(folder).read(RECORD, LARGEST))
        files = {name: (int(size), str(checksum)) for name, (size, checksum) in table["files"].items()}
        return Record(dict(table["units"]), files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RunCorrupted):
        return None


def _fitting_record(writer: Writer) -> Record | None:
    """What `results.json` says, if the store fits to it, to the plan and to the shards; contents are checked later."""
    record, store = _read_record(writer.folder), Folder(writer.folder, STORE)
    if record is None or not writer.describes(record.files):
        return None
    if any(writer.contents.get(unit) != content for unit, content in record.units.items()):
        return None
    try:
        is_whole = record.files.keys() == set(store.names())
        is_whole = is_whole and all(store.size(name) == size for name, (size, _) in record.files.items())
    except (OSError, RunCorrupted):
        return None
    return record if is_whole else None


def _opened(store: Any, plan: Plan) -> "xr.Dataset":
    """The Dataset of a store, with sorted variables; texts are loaded, as types that xarray can fill up with NaN."""
    import xarray as xr

    data = xr.open_zarr(store, consolidated=False, chunks=None)
    data = data.set_coords([key for axis in plan.axes for key in axis.keys if key != axis.dim])
    for name, variable in data.variables.items():
        if variable.dtype.kind in "OT":
            dtype = np.str_ if name in data.coords else object
            data[name] = variable.copy(data=np.array(variable.values.tolist(), dtype))
    coordinates, variables = sorted(map(str, data.coords)), sorted(map(str, data.data_vars))
    return data.reset_coords()[[*coordinates, *variables]].set_coords(coordinates)


class _Recorded(FolderStore):
    """A store that notes size and SHA-256 of every file that is written; `files` are those that are there already."""

    def __init__(self, folder: Folder, files: Mapping[str, tuple[int, str]]):
        super().__init__(folder)
        self.files = dict(files)

    def _write(self, key: str, content: bytes, only_new: bool) -> None:
        if not (only_new and key in self.files):
            super()._write(key, content, False)
            self.files[key] = len(content), hashlib.sha256(content).hexdigest()


class _Results(FolderStore):
    """The store of a sweep as it is read: it may grow meanwhile, and files that are damaged are made again."""

    def __init__(self, writer: Writer, record: Record, is_writable: bool):
        advice = "remove it" if is_writable else "copy the sweep to where it can be written to, and open it there"
        checksums = {name: checksum for name, (_, checksum) in record.files.items()}
        super().__init__(Folder(writer.folder, STORE), checksums=checksums, advice=advice, read_only=True)
        self.writer, self.is_writable, self.lock = writer, is_writable, asyncio.Lock()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of a file; the dataset is brought up to date, and then made anew, if they are not as expected."""
        try:
            return await super().get(key, prototype, byte_range)
        except RunCorrupted:
            if not self.is_writable:
                raise
        async with self.lock:
            for afresh in (False, True):
                with contextlib.suppress(RunCorrupted):
                    return await super().get(key, prototype, byte_range)
                await asyncio.to_thread(self._renew, afresh)
            return await super().get(key, prototype, byte_range)

    def _renew(self, afresh: bool) -> None:
        """Collect again, and take the new checksums of what the dataset still is."""
        with contextlib.suppress(OSError):
            collect(self.writer.folder, self.writer.plan, afresh=afresh)
        record = _read_record(self.writer.folder)
        if record is None or not self.writer.describes(record.files):
            raise RunError(
                f"the sweep in {str(self.writer.folder)!r} was extended after its dataset was opened; open it again."
            )
        self.checksums = {name: checksum for name, (_, checksum) in record.files.items()}
