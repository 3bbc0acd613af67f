"""Folders that may come from somebody else: links inside are not followed, files are written whole or not at all.

Every writer of the package goes through `Folder`. A link to the folder, or above it, is followed as usual; what lies
inside must be plain files and folders. Each entry is opened relative to the folder that holds it (`dir_fd`) with
O_NOFOLLOW, so that nothing can be exchanged for a link between a check and its use; where the system knows no `dir_fd`
(Windows), links are looked for before every use.
"""

import contextlib
import dataclasses
import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from io import BufferedReader, FileIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from attnflow.errors import RunCorrupted, RunError
from attnflow.reading import read_stream

TEMPORARY = ".attnflow-"
"""How names of temporary files begin; 16 random digits follow. A process that is killed leaves one."""
FORBIDDEN = set("\0\\:") if os.name == "nt" else set("\0")
"""Characters that lead elsewhere than into the folder."""
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_APPEND = (_NEW & ~os.O_EXCL) | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_RELATIVE = {os.open, os.stat, os.mkdir, os.unlink, os.rmdir, os.rename, os.link} <= os.supports_dir_fd


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder whose entries are read and written by name, such as "figures/summary.png".

    Arguments:
        path: the folder; it may be a link, and need not exist yet.
        below: a folder inside, to which all names refer; the folder itself if left out. It may be no link.
    """

    path: Path
    below: str = ""

    def __str__(self) -> str:
        return str(self.where())

    def inside(self, name: str) -> "Folder":
        """A folder inside, which is reached without following links."""
        return Folder(self.path, f"{self.below}/{name}" if self.below else name)

    def where(self, name: str = "") -> Path:
        """The path of an entry, for messages and for programs that write to paths only."""
        return self.path.joinpath(*self._parts(name))

    def read(self, name: str, most: int | None = None) -> bytes:
        """The content of a file; refused, as an `OSError`, if it has more than `most` bytes."""
        with self.open(name) as stream:
            return stream.read() if most is None else read_stream(stream, most)

    def open(self, name: str) -> BufferedReader:
        """A file, open for reading; refused if it is a link, a pipe or a device."""
        return os.fdopen(self._descriptor(name, _READ), "rb")

    def open_in_place(self, name: str) -> FileIO:
        """A file, open for reading and for writing into it, without a buffer; refused if it is no plain file."""
        return FileIO(self._descriptor(name, _READ | os.O_RDWR), "r+")

    def write(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Put a file there in one step: the old file or the whole new one is there, whatever happens.

        Arguments:
            name: name of the file.
            content: what it holds.
            durable: False for a file that is checked when it is read, which need not survive a loss of power.
        """
        with self.writing(name, durable=durable) as stream:
            stream.write(content)

    def create(self, name: str, content: bytes, *, durable: bool = True) -> bool:
        """Put a file there in one step if there is none; of several processes one succeeds, and gets True."""
        with self._holder(name) as (place, holder), self._temporary(place, holder) as (temporary, stream):
            stream.write(content)
            _finish(stream, durable)
            try:
                os.link(temporary, place, src_dir_fd=holder, dst_dir_fd=holder, follow_symlinks=False)
            except FileExistsError:
                self.require_plain(name)
                return False
            except OSError:  # a file system without hard links
                return self._create_exclusively(place, holder, content)
            else:
                return True
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=holder)

    def append(self, name: str, content: bytes) -> None:
        """Add bytes to the end of a file, in one step; the file is made if there is none."""
        with self._holder(name) as (place, holder):
            try:
                descriptor = os.open(place, _APPEND, 0o666, dir_fd=holder)
            except OSError as error:
                raise self._refusal(name, error) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self._strange(name)
            if os.write(descriptor, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.where(name)))
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def writing(self, name: str, *, durable: bool = True) -> Iterator[BinaryIO]:
        """A stream whose bytes become the file when the block ends; after an error the old file stays."""
        with self._holder(name) as (place, holder), self._temporary(place, holder) as (temporary, stream):
            yield stream
            _finish(stream, durable)
            try:
                os.replace(temporary, place, src_dir_fd=holder, dst_dir_fd=holder)
            except IsADirectoryError:
                raise RunCorrupted(f"{name!r} in {str(self)!r} is a folder, not a file; remove it.") from None

    @contextlib.contextmanager
    def writing_path(self, name: str) -> Iterator[Path]:
        """The path of a new, empty file that becomes the file `name` when the block ends, for writers that need a path.

        Its name is random, so that nobody can have put a link there beforehand.
        """
        with self._holder(name) as (place, holder), self._temporary(place, holder) as (temporary, stream):
            stream.close()
            yield self.where(name).with_name(Path(temporary).name)
            os.replace(temporary, place, src_dir_fd=holder, dst_dir_fd=holder)

    def rename(self, name: str, new_name: str) -> None:
        """Give a file or a folder inside another name in one step; a file of that name is replaced."""
        with self._holder(name) as (place, holder), self._holder(new_name) as (new_place, new_holder):
            os.replace(place, new_place, src_dir_fd=holder, dst_dir_fd=new_holder)

    def link(self, name: str, new_name: str) -> None:
        """Give a file a second name; FileExistsError if there is something of that name."""
        with self._holder(name) as (place, holder), self._holder(new_name) as (new_place, new_holder):
            os.link(place, new_place, src_dir_fd=holder, dst_dir_fd=new_holder, follow_symlinks=False)

    def make(self, name: str = "") -> None:
        """Make a folder inside, and those above it; those that are there stay."""
        parts, root = self._parts(name), Folder(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        for count in range(1, len(parts) + 1):
            part = "/".join(parts[:count])
            with root._holder(part) as (place, holder), contextlib.suppress(FileExistsError):
                os.mkdir(place, dir_fd=holder)
            if not root.is_folder(part):
                raise root._strange(part)

    def is_file(self, name: str) -> bool:
        """True if there is a plain file of this name."""
        return self._is(name, stat.S_ISREG)

    def require_plain(self, name: str) -> None:
        """Refuse a link, a pipe or a device; a plain file, or none, passes."""
        if not self.is_file(name) and self._is(name, lambda mode: True):
            raise self._strange(name)

    def is_folder(self, name: str) -> bool:
        """True if there is a folder of this name, and not a link to one."""
        return self._is(name, stat.S_ISDIR)

    def names(self, below: str = "") -> list[str]:
        """Names of all files below a folder inside, sorted; a link, pipe or device among them is refused.

        Arguments:
            below: a folder inside; the whole folder if left out.
        """
        names: list[str] = []
        waiting = [below]
        while waiting:
            inner = waiting.pop()
            for entry, is_folder, is_file in self._listing(inner):
                name = f"{inner}/{entry}" if inner else entry
                if not (is_folder or is_file):
                    raise self._strange(name)
                (waiting if is_folder else names).append(name)
        return sorted(names)

    def _listing(self, below: str) -> list[tuple[str, bool, bool]]:
        """Name, and whether it is a folder or a plain file, of every entry of one folder inside."""
        try:
            with self._opened(self._parts(below)) as holder, os.scandir(holder or self.where(below)) as entries:
                return [
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                    for entry in entries
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove_temporaries(self, below: str = "", *, except_in: str | None = None, older: float = 0.0) -> None:
        """Remove the temporary files that processes which were killed have left.

        Arguments:
            below: a folder inside; the whole folder if left out.
            except_in: a folder directly in it that is not looked into.
            older: age in seconds below which a file stays.
        """
        waiting = [below]
        while waiting:
            inner = waiting.pop()
            for entry, is_folder, _ in self._listing(inner):
                name = f"{inner}/{entry}" if inner else entry
                if is_folder and entry != except_in:
                    waiting.append(name)
                elif is_temporary(entry) and (not older or time.time() - self._changed(name) > older):
                    self.remove(name)

    def _changed(self, name: str) -> float:
        """When an entry was changed; now if it has gone meanwhile."""
        try:
            with self._holder(name) as (place, holder):
                return os.stat(place, dir_fd=holder, follow_symlinks=False).st_mtime
        except FileNotFoundError:
            return time.time()

    def entries(self, below: str = "") -> list[str]:
        """Names in one folder inside, sorted; none if there is no such folder."""
        return sorted(entry for entry, _, _ in self._listing(below))

    def size(self, name: str) -> int:
        """Number of bytes of a file."""
        with self._holder(name) as (place, holder):
            return os.stat(place, dir_fd=holder, follow_symlinks=False).st_size

    def changed(self, name: str) -> float:
        """When a file was last changed, in seconds of the clock of the file system."""
        with self._holder(name) as (place, holder):
            return os.stat(place, dir_fd=holder, follow_symlinks=False).st_mtime

    def remove(self, name: str) -> None:
        """Remove a file, or a link, if it is there."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._holder(name) as (place, holder):
            os.unlink(place, dir_fd=holder)

    def remove_folder(self, name: str) -> None:
        """Remove a folder inside with all that it holds; links are removed, not followed. "" empties the folder."""
        for entry in self.entries(name):
            inner = f"{name}/{entry}" if name else entry
            (self.remove_folder if self.is_folder(inner) else self.remove)(inner)
        if not self._parts(name):
            return
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._holder(name) as (place, holder):
            os.rmdir(place, dir_fd=holder)

    def checksum(self, name: str) -> str:
        """SHA-256 of a file."""
        with self.open(name) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _is(self, name: str, kind: Callable[[int], bool]) -> bool:
        try:
            if not self._parts(name):
                return kind(os.stat(self.path).st_mode)
            with self._holder(name) as (place, holder):
                return kind(os.stat(place, dir_fd=holder, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _descriptor(self, name: str, flags: int) -> int:
        with self._holder(name) as (place, holder):
            try:
                descriptor = os.open(place, flags, dir_fd=holder)
            except OSError as error:
                raise self._refusal(name, error) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._strange(name)
        return descriptor

    @contextlib.contextmanager
    def _holder(self, name: str) -> Iterator[tuple[str, int | None]]:
        """What the system calls an entry: its last name and a descriptor of the folder that holds it."""
        *above, last = self._parts(name)
        with self._opened(tuple(above)) as holder:
            yield (last if holder is not None else str(self.where(name))), holder

    @contextlib.contextmanager
    def _opened(self, parts: tuple[str, ...]) -> Iterator[int | None]:
        """A descriptor of a folder inside; None where the system knows no `dir_fd`."""
        if not _RELATIVE:
            self._require_no_links(parts)
            yield None
            return
        descriptor = os.open(self.path, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            for count, part in enumerate(parts, start=1):
                try:
                    inner = os.open(part, _FOLDER, dir_fd=descriptor)
                except OSError as error:
                    raise Folder(self.path)._refusal("/".join(parts[:count]), error) from None
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _require_no_links(self, parts: tuple[str, ...]) -> None:
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[:count])
            if (self.path / name).is_symlink():
                raise Folder(self.path)._strange(name)

    @contextlib.contextmanager
    def _temporary(self, place: str, holder: int | None) -> Iterator[tuple[str, BinaryIO]]:
        """A new file beside `place` under a random name; it is removed if the block fails."""
        own = TEMPORARY + secrets.token_hex(8)
        temporary = own if holder is not None else str(Path(place).with_name(own))
        with os.fdopen(os.open(temporary, _NEW, 0o666, dir_fd=holder), "wb") as stream:
            try:
                yield temporary, stream
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=holder)
                raise

    def _create_exclusively(self, place: str, holder: int | None, content: bytes) -> bool:
        try:
            descriptor = os.open(place, _NEW, 0o666, dir_fd=holder)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            _finish(stream, True)
        return True

    def _parts(self, name: str) -> tuple[str, ...]:
        """The parts of a name, counted from `path`; one that leads out of the folder is refused."""
        parts = tuple(part for text in (self.below, name) if text for part in text.split("/"))
        if any(part in ("", ".", "..") or set(part) & FORBIDDEN for part in parts):
            raise RunCorrupted(f"{name!r} is no name inside a folder; give names of files joined by '/'.")
        return parts

    def _refusal(self, name: str, error: OSError) -> Exception:
        """The error to raise: a link inside is refused in a sentence, everything else stays what it is."""
        is_link = error.errno in (errno.ELOOP, errno.EMLINK) or self.where(name).is_symlink()
        return self._strange(name) if is_link or error.errno == errno.ENXIO else error

    def _strange(self, name: str) -> RunCorrupted:
        return RunCorrupted(
            f"{name!r} in {str(self)!r} is a link, a pipe or a device; only files and folders are read or "
            "written there, so remove it or put a copy of the file in its place."
        )


def is_temporary(name: str) -> bool:
    """True for the name of a temporary file of a `Folder`, or of one that earlier versions left."""
    last = PurePosixPath(name).name
    return last.startswith(TEMPORARY) or last.endswith((".tmp", ".partial"))


def file_checksum(path: Path) -> str:
    """SHA-256 of a file anywhere."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_file(path: Path, content: bytes) -> None:
    """Put a file anywhere in one step; if a link is there, it is replaced and not followed."""
    Folder(path.parent).write(path.name, content)


@contextlib.contextmanager
def saving(path: Path) -> Iterator[None]:
    """Turn failures to write one file, such as a full disk, into one sentence that names it."""
    try:
        yield
    except OSError as error:
        why = "there is no such folder" if not path.parent.is_dir() else error.strerror or str(error)
        raise RunError(f"cannot write {str(path)!r} ({why}); give another file.") from None


def _finish(stream: BinaryIO, durable: bool) -> None:
    """Hand everything that was written to the system, and to the disk if it has to be durable."""
    stream.flush()
    if durable:
        os.fsync(stream.fileno())
