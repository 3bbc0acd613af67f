"""Journals: one file for each process, with a line for everything that it began, finished or could not do."""

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnflow.folders import Folder
from attnflow.parsing import parse_json
from attnflow.sweeps.shards import patiently


class Journal:
    """The journal of this process in one sweep folder."""

    def __init__(self, folder: Path):
        self.folder = Folder(folder)
        host = socket.gethostname().replace("/", "-")
        self.name = f"journal/{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"

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
        patiently(lambda: self.folder.append(self.name, line.encode()), self.folder.where("journal"))


_MINE: dict[tuple[int, Path], Journal] = {}


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines of all journals; what a killed process left unfinished is skipped."""
    journals = Folder(folder, "journal")
    for name in journals.entries():
        for line in journals.read(name).splitlines() if name.endswith(".jsonl") else ():
            try:
                event = parse_json(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event
