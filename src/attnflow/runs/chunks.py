"""The files of a Zarr store in a `Folder`: links are refused, and content is compared with checksums as it is read."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from attnflow.errors import RunCorrupted
from attnflow.folders import Folder


class FolderStore(Store):
    """A store of Zarr 3 in a folder.

    Arguments:
        folder: the folder of the store, such as "arrays.zarr" inside a run folder.
        checksums: SHA-256 of every file of a store that is complete, by name. The store then has these files and no
            others, whatever lies in the folder; one that is missing or altered is refused when it is read. Left out for
            a store that is being written.
        advice: what to do about a file that is missing or altered, as the end of a sentence.
        read_only: True to refuse writing.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(
        self,
        folder: Folder,
        *,
        checksums: Mapping[str, str] | None = None,
        advice: str = "run its spec.toml again",
        read_only: bool = False,
    ):
        super().__init__(read_only=read_only)
        self.folder, self.checksums, self.advice = folder, checksums, advice

    def with_read_only(self, read_only: bool = False) -> "FolderStore":
        """The same store, to be read only or not."""
        return FolderStore(self.folder, checksums=self.checksums, advice=self.advice, read_only=read_only)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderStore) and self.folder == other.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    def __repr__(self) -> str:
        return f"FolderStore({str(self.folder)!r})"

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of a file, or None if there is none."""
        content = await asyncio.to_thread(self._read, key)
        if content is None:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(content[_span(byte_range, len(content))])

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of several files."""
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    async def exists(self, key: str) -> bool:
        """True if there is such a file."""
        return await asyncio.to_thread(self.folder.is_file, key) if self.checksums is None else key in self.checksums

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file in one step."""
        self._check_writable()
        await asyncio.to_thread(self._write, key, value.to_bytes(), False)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write a file in one step if there is none."""
        self._check_writable()
        await asyncio.to_thread(self._write, key, value.to_bytes(), True)

    async def delete(self, key: str) -> None:
        """Remove a file."""
        self._check_writable()
        await asyncio.to_thread(self.folder.remove, key)

    async def delete_dir(self, prefix: str) -> None:
        """Remove a folder with its files."""
        self._check_writable()
        await asyncio.to_thread(self.folder.remove_folder, prefix.strip("/"))

    async def list(self) -> AsyncIterator[str]:
        """Names of all files."""
        for name in await asyncio.to_thread(self._names, ""):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Names of the files below a folder."""
        for name in await asyncio.to_thread(self._names, prefix.strip("/")):
            yield name

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names in a folder."""
        for name in await asyncio.to_thread(self._entries, prefix.strip("/")):
            yield name

    def _entries(self, below: str) -> Sequence[str]:
        """Names in a folder, sorted: those that are listed, or those that are there."""
        if self.checksums is None:
            return self.folder.entries(below)
        start = len(below) + 1 if below else 0
        return sorted({name[start:].partition("/")[0] for name in self._names(below)})

    def _names(self, below: str) -> Sequence[str]:
        """Names of the files below a folder, sorted: those that are listed, or those that are there."""
        if self.checksums is None:
            return self.folder.names(below)
        return sorted(name for name in self.checksums if not below or name.startswith(f"{below}/"))

    def _read(self, key: str) -> bytes | None:
        if self.checksums is not None and key not in self.checksums:
            return None
        try:
            content = self.folder.read(key)
        except (FileNotFoundError, NotADirectoryError):
            if self.checksums is None:
                return None
            raise self._refusal(key, "is missing") from None
        if self.checksums is not None and hashlib.sha256(content).hexdigest() != self.checksums[key]:
            raise self._refusal(key, "was truncated or altered")
        return content

    def _refusal(self, key: str, state: str) -> RunCorrupted:
        return RunCorrupted(f"the file {key!r} of {str(self.folder)!r} {state}; {self.advice}.")

    def _write(self, key: str, content: bytes, only_new: bool) -> None:
        self.folder.make(key.rpartition("/")[0])
        put: Callable[..., Any] = self.folder.create if only_new else self.folder.write
        put(key, content, durable=False)


def _span(byte_range: ByteRequest | None, size: int) -> slice:
    """The part of a file that is asked for."""
    if byte_range is None:
        return slice(None)
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    if isinstance(byte_range, OffsetByteRequest):
        return slice(byte_range.offset, None)
    if isinstance(byte_range, SuffixByteRequest):
        return slice(max(0, size - byte_range.suffix), None)
    raise TypeError(f"unknown part of a file: {byte_range!r}")
