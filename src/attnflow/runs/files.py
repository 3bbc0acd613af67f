"""Files of a run folder: written whole or not at all, checked by their hashes."""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attnflow.errors import RunError
from attnflow.wording import bytes_shown

ARRAYS = "arrays.zarr"
"""Name of the Zarr store in the folder of a run."""
CHECKPOINT = "checkpoint"
"""Name of the file there that holds the state after the last rows."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn failures of the disk into one sentence."""
    try:
        yield
    except OSError as error:
        saved = (path / "manifest.json").exists()
        advice = f"what was saved before is intact. Free space and `attnflow resume {path}`, or " if saved else ""
        raise RunError(
            f"cannot write to {str(path)!r} ({error.strerror or error}); {advice}choose another --out."
        ) from error


def require_writable(path: Path) -> None:
    """Refuse a folder that cannot be made, before anything is computed for it; `path` need not exist yet."""
    there = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), Path.cwd())
    if not there.is_dir():
        raise RunError(f"cannot write to {str(path)!r}: {str(there)!r} is not a folder; choose another --out.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RunError(f"cannot write to {str(path)!r}: {str(there)!r} may not be written to; choose another --out.")


def require_space(path: Path, needed: int) -> None:
    """Refuse a run whose arrays will not fit on the disk; `path` need not exist yet."""
    there = next((folder for folder in (path, *path.absolute().parents) if folder.is_dir()), Path.cwd())
    free = shutil.disk_usage(there).free
    if needed > free:
        raise RunError(
            f"the arrays need up to {bytes_shown(needed)}, but {str(there)!r} has {bytes_shown(free)} free; "
            "save fewer frames or choose another --out."
        )


def content_hash(table: dict[str, Any], plugins: Sequence[str]) -> str:
    """SHA-256 of a resolved table and of the hashes of its plugins, sorted."""
    content = [table, *plugins] if plugins else table
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
