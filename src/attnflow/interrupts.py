"""Ctrl-C that is heard wherever it strikes."""

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

_LISTENING: list[list[int]] = []
"""The signals that came within each `interruptible` block that is open."""


def heed() -> None:
    """Raise the KeyboardInterrupt that came within the innermost `interruptible` block and did not get through."""
    if _LISTENING and _LISTENING[-1] and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let every Ctrl-C end the block as KeyboardInterrupt; long work inside calls `heed` now and then.

    Some code takes the exception for itself: a sum on the host (JAX logs it and raises an error of its own), callbacks
    of the garbage collector, of which JAX has one (Python drops it with a message). So it is remembered, and `heed`
    raises it again.
    """
    import jax

    log, hook, previous = logging.getLogger("jax._src.callback"), sys.unraisablehook, signal.getsignal(signal.SIGINT)
    heard: list[int] = []

    def quiet(record: logging.LogRecord) -> bool:
        return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)

    def dropped(exception: Any) -> None:
        if not issubclass(exception.exc_type, KeyboardInterrupt):
            hook(exception)

    def listen(number: int, frame: Any) -> None:
        heard.append(number)
        previous(number, frame)  # type: ignore[misc, operator]

    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    log.addFilter(quiet)
    sys.unraisablehook = dropped
    _LISTENING.append(heard)
    signal.signal(signal.SIGINT, listen)
    try:
        yield
        heed()
    except jax.errors.JaxRuntimeError as error:
        if "KeyboardInterrupt" not in str(error):
            raise
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, previous)
        _LISTENING.remove(heard)
        sys.unraisablehook = hook
        log.removeFilter(quiet)
