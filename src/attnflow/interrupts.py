"""Ctrl-C and cancellation: long work is stopped at once wherever it is, and keeps what was done."""

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Cancelled(KeyboardInterrupt):
    """The `cancel` function of a flow returned True."""


class _Block:
    """One open `interruptible` block: the signals that came within it, and its `cancel` function."""

    def __init__(self, cancel: Callable[[], bool] | None):
        self.cancel, self.signals = cancel, list[int]()


class _Open(threading.local):
    """The open blocks of a thread, outermost first."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []


_OPEN = _Open()


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C came within an open `interruptible` block or its `cancel` returns True."""
    for block in _OPEN.blocks:
        if block.signals:
            raise KeyboardInterrupt
        if block.cancel is not None and block.cancel():
            raise Cancelled


@contextlib.contextmanager
def interruptible(cancel: Callable[[], bool] | None = None) -> Iterator[None]:
    """End the block with KeyboardInterrupt when Ctrl-C comes, or with `Cancelled` when `cancel()` returns True.

    Long work inside the block calls `raise_if_interrupted` often. Ctrl-C is also remembered, because some code catches
    KeyboardInterrupt itself: sums on the host (JAX logs it and raises another error) and callbacks of the garbage
    collector (Python drops it with a message). An error that follows on Ctrl-C counts as the interruption. Signals
    reach the main thread only; `cancel` works in every thread.
    """
    log, hook, previous = logging.getLogger("jax._src.callback"), sys.unraisablehook, signal.getsignal(signal.SIGINT)
    block = _Block(cancel)
    takes_signals = threading.current_thread() is threading.main_thread() and callable(previous)

    def quiet(record: logging.LogRecord) -> bool:
        return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)

    def dropped(exception: Any) -> None:
        if not issubclass(exception.exc_type, KeyboardInterrupt):
            hook(exception)

    def listen(number: int, frame: Any) -> None:
        block.signals.append(number)
        previous(number, frame)  # type: ignore[misc, operator]

    _OPEN.blocks.append(block)
    if takes_signals:
        log.addFilter(quiet)
        sys.unraisablehook = dropped
        signal.signal(signal.SIGINT, listen)
    try:
        yield
        if block.signals:
            raise KeyboardInterrupt
    except Exception as error:
        if block.signals or "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        if takes_signals:
            signal.signal(signal.SIGINT, previous)
            sys.unraisablehook = hook
            log.removeFilter(quiet)
        _OPEN.blocks.remove(block)
