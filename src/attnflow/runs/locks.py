"""The lock of a run folder: one process holds it, and it ends with that process, however the process ends."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

GLANCE = 0.2
"""Seconds for which a lock is waited for: whoever looks whether it is held (`is_held`) holds it for a moment."""


def take(file: Path) -> "BaseFileLock":
    """Hold the lock `file` until `release` of what is returned; TimeoutError if another process holds it."""
    from filelock import FileLock

    lock = FileLock(str(file), timeout=GLANCE, poll_interval=GLANCE / 10)
    lock.acquire()
    return lock


def is_held(file: Path) -> bool | None:
    """Whether a process holds the lock `file` at this moment; None where the file system does not tell."""
    try:
        import fcntl
    except ImportError:  # Windows
        return _is_refused(file)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe is not waited for
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def _is_refused(file: Path) -> bool | None:
    """The same by taking the lock, for which the folder must be writable."""
    if not file.exists():
        return False
    try:
        take(file).release()
    except TimeoutError:
        return True
    except (OSError, NotImplementedError):
        return None
    return False
