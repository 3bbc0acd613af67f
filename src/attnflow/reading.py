"""Files that a person names, read within bounds: a pipe, a socket or a device is refused, and so is an absurd size.

A link to a file is followed. Whatever is refused is an `OSError` whose `strerror` says why, so that readers tell it in
the sentence in which they tell that a file is missing. Light: the command line needs it before NumPy is imported.
"""

import errno
import io
import os
import stat

from attnflow.wording import bytes_shown

LARGEST_TEXT = 1 << 27
"""Bytes of a text in TOML or JSON; a specification that holds a million coordinates has half as many."""
LARGEST_SOURCE = 1 << 24
"""Bytes of a Python file."""
SMALLEST = 1 << 20
"""Bytes that are read of a file that says that it is empty, as files in /proc do."""
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


class NotRead(OSError):
    """A file that is refused; the text of the error is the reason alone."""

    def __str__(self) -> str:
        return str(self.strerror)


def open_file(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file for reading in binary, without waiting for anybody.

    Raises:
        OSError: if it cannot be opened, or if it is a folder, a pipe, a socket or a device.
    """
    _require_regular(os.stat(path).st_mode, path)  # before it is opened: to open a device can do something
    descriptor = os.open(path, _READ)
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_file(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> bytes:
    """Read a file that has at most `most` bytes.

    Raises:
        OSError: if it cannot be opened, is no file, or is larger.
    """
    with open_file(path) as stream:
        return read_stream(stream, most)


def read_text(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> str:
    """Read a text in UTF-8 of at most `most` bytes, with or without a mark at its start; lines end as those of Unix do.

    Raises:
        OSError: if it cannot be opened, is no file, or is larger.
        UnicodeDecodeError: if it is not UTF-8.
    """
    return read_file(path, most).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def read_stream(stream: io.BufferedReader, most: int) -> bytes:
    """Read an open file to its end, refused before it is read if it has more than `most` bytes."""
    bound = min(most, max(require_size(stream, most), SMALLEST))
    content = stream.read(bound + 1) or b""  # None where there is nothing yet, as in some files of /proc
    if len(content) > bound:
        raise NotRead(errno.EFBIG, f"it has more than {bytes_shown(bound)}", stream.name)
    return content


def require_size(stream: io.BufferedReader, most: int | None) -> int:
    """Size of an open file in bytes, refused as an `OSError` if it is more than `most`; None for any size."""
    size = os.fstat(stream.fileno()).st_size
    if most is not None and size > most:
        raise NotRead(errno.EFBIG, f"it has {bytes_shown(size)}, more than {bytes_shown(most)}", stream.name)
    return size


def _require_regular(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise NotRead(errno.EINVAL, "it is a pipe, a socket or a device, and only files are read", os.fspath(path))
