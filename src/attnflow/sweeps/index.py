"""The index of a sweep: what its shards hold, in `index.json`, a cache that is made again at any time."""

import contextlib
import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.errors import RunCorrupted
from attnflow.folders import Folder
from attnflow.sweeps.plan import Plan
from attnflow.sweeps.sealed import LARGEST, sealed, unsealed
from attnflow.sweeps.shards import Shard
from attnflow.sweeps.unit import open_shard, shard_path

FILE = "index.json"
Layout = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Entry:
    """What one shard holds."""

    size: int
    changed: int
    """Time of its last change, in nanoseconds: with the size, what tells that the shard is still the same file."""
    content: str
    """A hash of its arrays."""
    tasks: int
    errors: list[tuple[int, str]]
    """Row and reason of every task that failed."""
    layout: Layout
    """Name, dimensions, shape and type of every variable."""


class Index:
    """What the shards of one sweep folder hold; kept in the folder where it can be written to.

    Arguments:
        folder: the folder of the sweep.
        plan: its plan.
    """

    def __init__(self, folder: Path, plan: Plan):
        self.folder, self.plan = folder, plan
        self.entries: dict[str, Entry] = {}
        """What each shard holds, by the name of its unit, in the order of the plan."""
        kept = self._read()
        names = set(Folder(folder).entries("shards"))
        for unit in plan.units:
            if f"{unit}.npz" in names and (entry := self._entry(unit, kept.get(unit))) is not None:
                self.entries[unit] = entry
        if self.entries != kept:
            self._write()

    def layouts(self) -> list[Layout]:
        """The different layouts of the shards, in a fixed order."""
        texts = {json.dumps(entry.layout, sort_keys=True) for entry in self.entries.values()}
        return [json.loads(text) for text in sorted(texts)]

    def counts(self) -> tuple[int, int]:
        """Tasks that are finished, and how many of them failed."""
        entries = self.entries.values()
        return sum(entry.tasks for entry in entries), sum(len(entry.errors) for entry in entries)

    def errors(self) -> list[tuple[str, int, str]]:
        """(unit, row, error) of the tasks that failed."""
        return sorted((unit, row, error) for unit, entry in self.entries.items() for row, error in entry.errors)

    def _entry(self, unit: str, kept: Entry | None) -> Entry | None:
        """What the shard of a unit holds: as it was kept, if the file is still the same."""
        try:
            facts = os.lstat(shard_path(self.folder, unit))
        except OSError:
            return None
        if kept is not None and (kept.size, kept.changed) == (facts.st_size, facts.st_mtime_ns):
            return kept
        shard = open_shard(self.folder, self.plan, unit)
        if shard is None:
            return None
        with shard:
            errors = [(row, error) for row, error in enumerate(shard.errors) if error]
            tasks = len(shard.tasks)
            return Entry(facts.st_size, facts.st_mtime_ns, shard.content, tasks, errors, _layout(shard))

    def _read(self) -> dict[str, Entry]:
        try:
            table = unsealed("index", Folder(self.folder).read(FILE, LARGEST))["shards"]
            return {
                unit: Entry(**entry | {"errors": [(row, error) for row, error in entry["errors"]]})
                for unit, entry in table.items()
            }
        except (OSError, ValueError, KeyError, TypeError, RunCorrupted):  # made again
            return {}

    def _write(self) -> None:
        table = {unit: dataclasses.asdict(entry) for unit, entry in self.entries.items()}
        with contextlib.suppress(OSError):  # the folder cannot be written to, or is full
            Folder(self.folder).write(FILE, sealed("index", {"shards": table}), durable=False)


def _layout(shard: Shard) -> Layout:
    """Name, dimensions, shape and type of every variable; of labels the values too, as a hash."""
    variables = []
    for number, entry in enumerate(shard.layout):
        variable = {key: entry[key] for key in ("name", "dims", "shape", "dtype")}
        if entry["label"]:
            variable["labels"] = sorted(
                {hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest() for a in shard.arrays(number)}
            )
        variables.append(variable)
    return sorted(variables, key=json.dumps)
