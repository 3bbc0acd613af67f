"""Frames on disk: a Zarr store that grows chunk by chunk and can be continued after any death of the process."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.errors import RunCorrupted
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout
from attnflow.runs.folder import require_space, write_atomically, writing

LARGEST_CHUNK = 1 << 25
MAGIC = b"attnflow checkpoint 1 "


class ZarrSink(AbstractSink):
    """Streams frames into `arrays` (a Zarr store) and keeps a checkpoint file beside it.

    Each commit writes the frames first and then replaces the checkpoint in one atomic step. The checkpoint carries
    digests of all frames before it; a store that does not match them is refused.
    """

    keeps_partial = False

    def __init__(self, arrays: str | Path, checkpoint: str | Path):
        self.path, self.checkpoint = Path(arrays), Path(checkpoint)

    def begin(self, layout: Layout) -> Checkpoint | None:
        self.layout = layout
        self.digests: list[str] = []
        self.axis = len(layout.dims)
        if self.checkpoint.exists():
            saved, self.digests = self._load()
            self._verify(saved.frames)
            return saved
        size = sum(
            int(np.prod(layout.shape(name, len(layout.times)))) * np.dtype(dtype).itemsize
            for name, (_, dtype) in layout.variables.items()
        )
        with writing(self.path.parent):
            require_space(self.path.parent, size)
            self._create()
        return None

    def commit(self, start: int, frames: dict[str, np.ndarray], checkpoint: Checkpoint) -> None:
        import zarr

        with writing(self.path.parent):
            group = zarr.open_group(self.path, mode="r+")
            for name, values in frames.items():
                array = group[name]
                stop = start + values.shape[self.axis]
                array[(slice(None),) * self.axis + (slice(start, stop),)] = values  # type: ignore[index]
            self.digests.append(_digest(frames))
            write_atomically(self.checkpoint, self._pack(checkpoint))

    def end(self, frames: int, attributes: dict[str, Any], complete: bool) -> Any:
        import zarr

        if complete:
            with writing(self.path.parent):
                group = zarr.open_group(self.path, mode="r+")
                for name, (dims, _) in self.layout.variables.items():
                    self._shorten(group[name], dims.index("time"), frames)
                self._shorten(group["time"], -self.axis, frames)
                group.attrs.update(attributes)
        return open_arrays(self.path).isel(time=slice(0, frames))

    def _shorten(self, array: Any, axis: int, frames: int) -> None:
        shape = list(array.shape)
        shape[self.axis + axis] = frames
        array.resize(tuple(shape))

    def _create(self) -> None:
        """A fresh store with room for all frames; whatever an uncheckpointed attempt left is overwritten."""
        import zarr

        layout = self.layout
        group = zarr.create_group(self.path, overwrite=True, zarr_format=3)
        batch = tuple(layout.dims)
        for name, (dims, dtype) in layout.variables.items():
            shape = layout.shape(name, len(layout.times))
            per_frame = int(np.prod(shape)) // len(layout.times) * np.dtype(dtype).itemsize
            frames = layout.chunk if per_frame * layout.chunk <= LARGEST_CHUNK else 1
            chunks = tuple(
                frames if d == "time" else max(1, min(s, LARGEST_CHUNK // 256)) if d == "token" else max(s, 1)
                for d, s in zip((*batch, *dims), shape, strict=True)
            )
            group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, dimension_names=(*batch, *dims))
        fixed = {name: ((name,), values) for name, values in layout.dims.items()}
        for name, (dims, values) in ({"time": (("time",), layout.times)} | fixed | layout.static).items():
            chunks = tuple(max(s, 1) for s in values.shape)
            group.create_array(name, data=np.ascontiguousarray(values), chunks=chunks, dimension_names=dims)

    def _pack(self, checkpoint: Checkpoint) -> bytes:
        outcome = checkpoint.outcome
        facts = {
            "digests": self.digests,
            "frames": checkpoint.frames,
            "outcome": [outcome.ending.value, outcome.message] if outcome else None,
        }
        stream = io.BytesIO()
        np.savez(
            stream,
            positions=checkpoint.positions,
            memory=checkpoint.memory,
            steps=checkpoint.steps,
            facts=np.array(json.dumps(facts)),
        )
        payload = stream.getvalue()
        return MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload

    def _load(self) -> tuple[Checkpoint, list[str]]:
        content = self.checkpoint.read_bytes()
        head, _, payload = content.partition(b"\n")
        if head != MAGIC + hashlib.sha256(payload).hexdigest().encode():
            raise RunCorrupted(
                f"{str(self.checkpoint)!r} was truncated or altered; the run cannot be continued. Start it again from "
                "its spec.toml in another folder."
            )
        with np.load(io.BytesIO(payload)) as arrays:
            facts = json.loads(str(arrays["facts"]))
            outcome = Outcome(Ending(facts["outcome"][0]), facts["outcome"][1]) if facts["outcome"] else None
            return (
                Checkpoint(facts["frames"], arrays["positions"], arrays["memory"], arrays["steps"], outcome),
                facts["digests"],
            )

    def _verify(self, committed: int) -> None:
        """Compare the committed chunks with their digests."""
        import zarr

        start = 0
        try:
            group = zarr.open_group(self.path, mode="r")
            for digest in self.digests:
                stop = min(start + self.layout.chunk, committed)
                where = (slice(None),) * self.axis + (slice(start, stop),)
                frames = {name: np.asarray(group[name][where]) for name in self.layout.variables}  # type: ignore[index]
                if _digest(frames) != digest:
                    raise ValueError(f"frames {start} to {stop - 1} have changed")
                start = stop
        except Exception as error:
            raise RunCorrupted(
                f"the arrays in {str(self.path)!r} do not match their checkpoint ({error}); start the run again from "
                "its spec.toml in another folder."
            ) from None


def open_arrays(path: Path) -> Any:
    """The Dataset of a store, loaded as it is used."""
    import xarray as xr

    try:
        return xr.open_zarr(path, chunks=None, consolidated=False)
    except Exception as error:
        raise RunCorrupted(
            f"the arrays in {str(path)!r} cannot be read ({error}); run the spec.toml beside them again."
        ) from None


def _digest(frames: dict[str, np.ndarray]) -> str:
    total = hashlib.sha256()
    for name in sorted(frames):
        total.update(name.encode())
        total.update(np.ascontiguousarray(frames[name]).tobytes())
    return total.hexdigest()
