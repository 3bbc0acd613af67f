"""Journals: one file for each process, with a line for everything that it began, finished or could not do."""

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnflow.parsing import parse_json
from attnflow.sweeps.shards import patiently


class Journal:
    """The journal of this process in one sweep folder."""

    def __init__(self, folder: Path):
        self.path = folder / "journal" / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"

    @classmethod
    def of(cls, folder: Path) -> "Journal":
        """The journal of this process; a fork gets its own."""
        key = (os.getpid(), folder)
        if key not in _MINE:
            _MINE[key] = cls(folder)
        return _MINE[key]

    def write(self, event: str, unit: str, **facts: Any) -> None:
        """One line: the event, the unit, the time of this machine's clock."""
        line = json.dumps({"event": event, "unit": unit, "at": round(time.time(), 3), **facts}) + "\n"
        patiently(lambda: self._append(line.encode()), self.path.parent)

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


_MINE: dict[tuple[int, Path], Journal] = {}


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines of all journals; what a killed process left unfinished is skipped."""
    for path in sorted((folder / "journal").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                found = parse_json(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found
