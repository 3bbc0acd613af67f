"""A sign of life on the terminal or below a cell: one line about work that takes more than two seconds."""

import importlib
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from attnflow.flows.outcome import Progress

AFTER = 2.0
"""Seconds before the first line."""
EVERY = 0.5
"""Seconds between changes of the line."""


def is_wanted() -> bool:
    """Whether a person is watching: a terminal or a notebook, and not `ATTNFLOW_PROGRESS=off`."""
    if os.environ.get("ATTNFLOW_PROGRESS", "on") == "off":
        return False
    try:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    except (AttributeError, OSError, ValueError):  # no terminal, or a closed one
        return False


def cell() -> Any:
    """What writes below the cell of a notebook, in place of what it wrote before; None outside of notebooks."""
    if "ipykernel" not in sys.modules or importlib.import_module("IPython").get_ipython() is None:
        return None
    return importlib.import_module("IPython.display").DisplayHandle()


_ONE = threading.Lock()
"""Held by the one heartbeat that writes: several threads do not share a line."""


class Heartbeat:
    """Writes "attnflow: compiling, 3 s", then how far the work is, from a thread; the line is wiped at the end.

    In a notebook it is one output that changes, so that a notebook which is saved holds one line. A terminal that does
    not take the line, as after Ctrl-S, does not hold the work up.
    """

    def __init__(self) -> None:
        self.began, self.text, self.left, self.width = time.perf_counter(), "compiling", "", 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True, name="attnflow heartbeat")
        self.writes, self.cell = False, cell()

    def __enter__(self) -> "Heartbeat":
        self.writes = _ONE.acquire(blocking=False)
        if self.writes:
            self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.writes:
            return
        try:
            self.done.set()
            self.thread.join(timeout=1.0)
            if self.width and not self.thread.is_alive():
                self._write("", "\r")
        finally:
            _ONE.release()

    def update(self, where: Progress) -> None:
        """Say how far the work is."""
        self.text = where.note or f"t = {where.time:.4g} of {where.until:.4g}"
        self.left = where.left

    def _beat(self) -> None:
        wait = AFTER
        while not self.done.wait(wait):
            spent = f"{time.perf_counter() - self.began:.0f} s"
            self._write(f"attnflow: {self.text}, {f'{spent}, {self.left}' if self.left else spent}")
            wait = EVERY

    def _write(self, text: str, end: str = "") -> None:
        try:
            if self.cell is not None:
                show = self.cell.update if self.width else self.cell.display
                show({"text/plain": text}, raw=True)
            else:
                sys.stderr.write("\r" + text.ljust(self.width) + end)
                sys.stderr.flush()
        except (OSError, ValueError):  # a terminal that is gone does not end the work
            self.done.set()
        self.width = len(text)
