"""The files of a Zarr store in a `Folder`: links are refused, and no file may be missing that is listed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from attnflow.errors import RunCorrupted
from attnflow.folders import Folder


class FolderStore(Store):
    """A store of Zarr 3 in a folder.

    Arguments:
        folder: the folder of the store, such as "arrays.zarr" inside a run folder.
        listed: names of files that the store is known to have; one of them that is not there is an error and not a
            chunk of zeros.
        read_only: True to refuse writing.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, folder: Folder, *, listed: frozenset[str] = frozenset(), read_only: bool = False):
        super().__init__(read_only=read_only)
        self.folder, self.listed = folder, listed

    def with_read_only(self, read_only: bool = False) -> "FolderStore":
        """The same store, to be read only or not."""
        return FolderStore(self.folder, listed=self.listed, read_only=read_only)

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
        return await asyncio.to_thread(self.folder.is_file, key)

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
        for name in await asyncio.to_thread(self.folder.names):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Names of the files below a folder."""
        for name in await asyncio.to_thread(self.folder.names, prefix.strip("/")):
            yield name

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names in a folder."""
        for name in await asyncio.to_thread(self.folder.entries, prefix.strip("/")):
            yield name

    def _read(self, key: str) -> bytes | None:
        try:
            return self.folder.read(key)
        except (FileNotFoundError, NotADirectoryError):
            if key in self.listed:
                raise RunCorrupted(f"{key!r} is missing from {str(self.folder)!r}; run its spec.toml again.") from None
            return None

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
