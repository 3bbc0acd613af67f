"""Arrays of NumPy in files that may come from somebody else: what a header promises is compared with what is there.

An archive `.npz` is a zip file whose members are files `.npy`. Whatever is refused is a `ValueError` whose text is a
reason, "`positions` promises 24 TB and has 72 bytes", which readers put into their sentence; arrays that the machine
cannot hold are refused as `TooLarge`.
"""

import io
import math
import os
import struct
import zipfile
import zlib
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from attnflow.feasible import require_memory
from attnflow.wording import bytes_shown, shown

DAMAGED = (ValueError, EOFError, OSError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What NumPy and the library of zip files raise on archives that are damaged."""
LARGEST_HEADER = 10_000
"""Bytes of the header of an array, as NumPy takes them."""
LARGEST_DIRECTORY = 1 << 24
"""Bytes of the table of contents of an archive; a member takes about 100."""
FREELY, RATIO = 1 << 26, 100
"""Bytes to which an archive may unpack in any case, and how many times its size beyond; numbers shrink by 2."""


def load_npy(stream: BinaryIO) -> np.ndarray:
    """Load the array of an open file `.npy`.

    Raises:
        ValueError: if it is no array of plain values, or promises more than the file has.
        TooLarge: if the machine cannot hold the array.
    """
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    _check_header(stream, "the file", size)
    stream.seek(0)
    require_memory(size, "the array", "save fewer rows in a file")
    array: np.ndarray = np.load(stream, allow_pickle=False)
    return array


def open_npz(stream: BinaryIO, *, is_compressed: bool = True) -> Any:
    """Open an archive `.npz` whose arrays are loaded one by one, after every header was compared with its member.

    Arguments:
        stream: the open file; it is not closed with the archive.
        is_compressed: whether members may be compressed; an archive of `numpy.savez` is not.

    Returns:
        The archive as `numpy.load` gives it, a context manager.

    Raises:
        ValueError: if it is no archive of arrays of plain values, or an array promises more than there is, or it
            unpacks to more than 100 times its size.
        TooLarge: if the machine cannot hold the arrays.
    """
    _check_directory(stream)
    stream.seek(0)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        allowed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if is_compressed else (zipfile.ZIP_STORED,)
        if any(member.compress_type not in allowed or member.flag_bits & 1 for member in members):
            raise ValueError("it is packed in another way than NumPy packs arrays")
        unpacked, size = sum(member.file_size for member in members), stream.seek(0, os.SEEK_END)
        if unpacked > (max(FREELY, RATIO * size) if is_compressed else size):
            raise ValueError(f"its {bytes_shown(size)} unpack to {bytes_shown(unpacked)}; save it without compression")
        require_memory(unpacked, "the arrays of the file", "save fewer of them in a file")
        for member in members:
            with archive.open(member) as entry:
                _check_header(entry, f"`{member.filename.removesuffix('.npy')}`", member.file_size)
    stream.seek(0)
    return np.load(stream, allow_pickle=False)


def _check_header(stream: IO[bytes], what: str, size: int) -> None:
    """Refuse an array that is no table of plain values, or of which its `size` bytes are a part."""
    first = stream.read(8)
    width = {b"\x01\x00": 2, b"\x02\x00": 4}.get(first[6:])
    if first[:6] != npy.MAGIC_PREFIX or width is None:
        raise ValueError(f"{what} is no array of NumPy")
    start = stream.read(width)
    length = int.from_bytes(start, "little")
    if length > min(LARGEST_HEADER, size):
        raise ValueError(f"{what} has a header of {bytes_shown(length)}")
    read_header = npy.read_array_header_1_0 if width == 2 else npy.read_array_header_2_0
    try:
        shape, _, dtype = read_header(io.BytesIO(start + stream.read(length)))
    except Exception as error:  # the header is an expression of Python
        raise ValueError(f"{what} has a header that cannot be read ({shown(str(error))})") from None
    if dtype.hasobject or dtype.itemsize == 0:
        raise ValueError(f"{what} holds objects of Python")
    promised = math.prod(shape) * dtype.itemsize
    held = size - len(first) - width - length
    if min(shape, default=0) < 0 or promised > held:
        raise ValueError(f"{what} promises {bytes_shown(promised)} and has {bytes_shown(held)}")
    if math.prod(max(axis, 1) for axis in shape) * dtype.itemsize > max(held, FREELY):  # an empty array of huge axes
        raise ValueError(f"{what} has the shape {shown(shape)}")


def _check_directory(stream: BinaryIO) -> None:
    """Refuse a table of contents that would take much memory; the last 22 bytes, or 98, tell how long it is."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    start = stream.read(4)
    stream.seek(max(0, size - 98))
    tail = stream.read(98)
    if start not in (b"PK\3\4", b"PK\5\6") or tail[-22:-18] != b"PK\5\6":
        raise ValueError("it is no archive of NumPy, or cut off")
    length = struct.unpack("<I", tail[-10:-6])[0]
    if len(tail) == 98 and tail[:4] == b"PK\6\6":
        length = struct.unpack("<Q", tail[40:48])[0]
    if length > min(LARGEST_DIRECTORY, size):
        raise ValueError(f"it says that its table of contents has {bytes_shown(length)}")
