"""Files of torch (`pytorch_model.bin`), zipped and of the older kind, without torch."""

import io
import math
import struct
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np

from attnflow.probe.networks.files.base import AbstractWeights, Stored, check_stored, filled, refuse
from attnflow.probe.networks.files.pickles import LARGEST_PICKLE, Refused, Storage, TensorAt, read_pickle

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
"""The first two pickles of a file of the older kind."""
LARGEST_DIRECTORY = 4 << 20
"""Bytes of the table of contents of a zip file; a member takes about 100."""


class TorchWeights(AbstractWeights):
    """The table of tensors that a file of torch holds."""

    form = "torch"

    def __init__(self, path: Path, found: object, offsets: dict[str, tuple[int, int]]):
        """`found` is the unpickled table; `offsets` are (offset, bytes) of every storage in the file."""
        self.path, self.facts, size = path, {}, path.stat().st_size
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise refuse(path, "holds no table of tensors by their names")
        self._tensors = {name: one for name, one in found.items() if isinstance(one, TensorAt)}
        self._offsets = offsets
        self.stored, places = {}, {}
        for name, one in self._tensors.items():
            storage, width = one.storage, _dtype(one.storage).itemsize
            if storage.key not in offsets or storage.length * width > offsets[storage.key][1]:
                raise refuse(path, f"lacks numbers of the tensor {name[:60]!r}")
            self.stored[name] = Stored(one.shape, storage.dtype, math.prod(one.shape) * width)
            places[storage.key, one.offset] = name  # tied weights lie in one place
        check_stored(path, {name: self.stored[name] for name in places.values()}, size)

    def array(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        from attnflow.probe.networks.files import refusing

        one, dtype = self._tensors[name], _dtype(self._tensors[name].storage)
        with refusing(self.path), self.path.open("rb") as stream:
            stream.seek(self._offsets[one.storage.key][0] + one.offset * dtype.itemsize)
            numbers = stream.read(self.stored[name].size)
            return filled(np.frombuffer(numbers, dtype), one.shape, out)


def read_torch(path: Path, zipped: bool) -> TorchWeights:
    """The tensors of a file of torch."""
    try:
        return _zipped(path) if zipped else _legacy(path)
    except Refused as what:
        raise refuse(path, f"asks for more than tensors (refused: {what})") from None


def _zipped(path: Path) -> TorchWeights:
    with path.open("rb") as stream:
        _check_directory(path, stream, path.stat().st_size)
        with zipfile.ZipFile(stream) as archive:
            members = {one.filename: one for one in archive.infolist()}
            tables = [name for name in members if name.endswith("data.pkl") and name.count("/") == 1]
            if len(tables) != 1:
                raise refuse(path, "is a zip file without one data.pkl, so not of torch")
            prefix = tables[0].removesuffix("data.pkl")
            if members[tables[0]].file_size > LARGEST_PICKLE:
                raise refuse(path, f"has a pickle of more than {LARGEST_PICKLE} bytes")
            order = members.get(f"{prefix}byteorder")
            if order is not None and (order.file_size != 6 or archive.read(order) != b"little"):
                raise refuse(path, "has numbers in another byte order")
            found = read_pickle(io.BytesIO(archive.read(tables[0])))
        offsets = {}
        for name, one in members.items():
            if name.startswith(f"{prefix}data/"):
                if one.compress_type != zipfile.ZIP_STORED or one.flag_bits & 1:
                    raise refuse(path, "has compressed or encrypted tensors, which torch never writes")
                offsets[name.removeprefix(f"{prefix}data/")] = (_start(stream, one), one.file_size)
    return TorchWeights(path, found, offsets)


def _check_directory(path: Path, stream: io.BufferedReader, size: int) -> None:
    """Refuse a table of contents that would take much memory; it is described by the last 22 or 98 bytes."""
    stream.seek(max(0, size - 98))
    tail = stream.read(98)
    if tail[-22:-18] != b"PK\5\6":
        raise refuse(path, "is a zip file that does not end as one of torch does")
    lengths = [struct.unpack("<I", tail[-10:-6])[0]]
    if len(tail) == 98 and tail[:4] == b"PK\6\6":
        lengths = [struct.unpack("<Q", tail[40:48])[0]]
    if lengths[0] > min(LARGEST_DIRECTORY, size):
        raise refuse(path, f"says that its table of contents has {lengths[0]} bytes")


def _start(stream: io.BufferedReader, one: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin: after its own header, with a name and extra bytes."""
    stream.seek(one.header_offset)
    header = stream.read(30)
    if header[:4] != b"PK\3\4" or len(header) != 30:
        raise ValueError("a member of the zip file is not where it should be")
    return one.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))


def _legacy(path: Path) -> TorchWeights:
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = io.BytesIO(stream.read(LARGEST_PICKLE))
        if (read_pickle(start), read_pickle(start)) != (MAGIC, PROTOCOL):
            raise refuse(path, "is a pickle, but not one of torch")
        system = read_pickle(start)
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise refuse(path, "has numbers in another byte order")
        found, keys = read_pickle(start), read_pickle(start)
        tensors = found.values() if isinstance(found, dict) else ()
        storages = {one.storage.key: one.storage for one in tensors if isinstance(one, TensorAt)}
        offsets, at = {}, start.tell()
        for key in keys if isinstance(keys, list) else ():
            stream.seek(at)
            count = struct.unpack("<q", stream.read(8))[0]
            if key not in storages or count != storages[key].length:
                raise refuse(path, f"has a storage of {count} numbers that no tensor describes")
            length = count * _dtype(storages[key]).itemsize
            if at + 8 + length > size:
                raise refuse(path, f"is cut off: a storage ends after its {size} bytes")
            offsets[key] = (at + 8, length)
            at += 8 + length
    return TorchWeights(path, found, offsets)


def _dtype(storage: Storage) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if storage.dtype == "bfloat16" else np.dtype(storage.dtype)
