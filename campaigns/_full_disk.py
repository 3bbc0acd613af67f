"""Preloaded into workers of campaigns/sweeps.py: while a certain file is there, the disk of this process is full."""

import errno
import os
from typing import Any

FLAG = "ATTNFLOW_CAMPAIGN_FULL"
_sync = os.fsync


def _full(descriptor: Any) -> None:
    if os.path.exists(os.environ.get(FLAG, "")):
        raise OSError(errno.ENOSPC, "No space left on device")
    _sync(descriptor)


def dask_setup(*_: Any) -> None:
    """Called by Dask in the process of the worker."""
    os.fsync = _full
