"""The index of a sweep: what its shards hold, in SQLite. It is a cache, made again from the shards at any time."""

import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.parsing import parse_json
from attnflow.sweeps.plan import Plan
from attnflow.sweeps.shards import Shard
from attnflow.sweeps.unit import open_shard, shard_path

TABLES = """
create table if not exists shards (unit text primary key, size integer, changed integer, layout text);
create table if not exists tasks (unit text, row integer, name text, error text, primary key (unit, row));
create table if not exists collected (unit text primary key);
create table if not exists facts (key text primary key, value text);
"""


class Index:
    """The index of one sweep folder; in memory where the folder cannot be written to."""

    def __init__(self, folder: Path, plan: Plan):
        self.folder, self.plan = folder, plan
        self.path = folder / "index.sqlite"
        try:
            self.base = self._open(str(self.path))
        except sqlite3.Error:
            with contextlib.suppress(OSError):
                self.path.unlink()
            try:
                self.base = self._open(str(self.path))
            except sqlite3.Error:
                self.base = self._open(":memory:")

    def _open(self, where: str) -> sqlite3.Connection:
        base = sqlite3.connect(where, timeout=30.0)
        try:
            base.executescript(TABLES)
            for table in ("shards", "tasks", "collected", "facts"):
                base.execute(f"select * from {table} limit 1")
            with base:  # whether it can be written to
                base.execute("insert or replace into facts values ('format', '1')")
        except sqlite3.Error:
            base.close()
            raise
        return base

    def refresh(self) -> list[str]:
        """Look at the shards; the units that have one, in the order of the plan."""
        known = {
            unit: (size, changed) for unit, size, changed in self.base.execute("select unit, size, changed from shards")
        }
        there: list[str] = []
        rows: list[Any] = []
        tasks: list[Any] = []
        for unit in self.plan.units:
            try:
                facts = shard_path(self.folder, unit).stat()
            except OSError:
                continue
            there.append(unit)
            if known.get(unit) == (facts.st_size, facts.st_mtime_ns):
                continue
            shard = open_shard(self.folder, self.plan, unit)
            if shard is None:
                continue
            with shard:
                rows.append((unit, facts.st_size, facts.st_mtime_ns, json.dumps(_layout(shard))))
                tasks += [(unit, k, t, e) for k, (t, e) in enumerate(zip(shard.tasks, shard.errors, strict=True))]
        gone = [(unit,) for unit in known if unit not in set(there)]
        with self.base:
            self.base.executemany("insert or replace into shards values (?, ?, ?, ?)", rows)
            self.base.executemany("insert or replace into tasks values (?, ?, ?, ?)", tasks)
            self.base.executemany("delete from collected where unit = ?", [(row[0],) for row in rows] + gone)
            self.base.executemany("delete from shards where unit = ?", gone)
            self.base.executemany("delete from tasks where unit = ?", gone)
        return there

    def layouts(self) -> list[list[dict[str, Any]]]:
        """The different layouts of the shards."""
        return [parse_json(text) for (text,) in self.base.execute("select distinct layout from shards")]

    def counts(self) -> tuple[int, int]:
        """Tasks that are finished, and how many of them failed."""
        done, failed = self.base.execute("select count(*), sum(error != '') from tasks").fetchone()
        return int(done), int(failed or 0)

    def errors(self) -> list[tuple[str, int, str]]:
        """(unit, row, error) of the tasks that failed."""
        return self.base.execute("select unit, row, error from tasks where error != '' order by unit, row").fetchall()

    def fact(self, key: str) -> str:
        """Something that was remembered."""
        found = self.base.execute("select value from facts where key = ?", (key,)).fetchone()
        return "" if found is None else str(found[0])

    def collected(self) -> set[str]:
        """The units whose results are in the dataset."""
        return {unit for (unit,) in self.base.execute("select unit from collected")}

    def remember(self, units: list[str], key: str, value: str, *, afresh: bool) -> None:
        """Units whose results are in the dataset now, and a fact."""
        with self.base:
            if afresh:
                self.base.execute("delete from collected")
            self.base.executemany("insert or replace into collected values (?)", [(unit,) for unit in units])
            self.base.execute("insert or replace into facts values (?, ?)", (key, value))

    def close(self) -> None:
        """Close the file."""
        self.base.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _layout(shard: Shard) -> list[dict[str, Any]]:
    """Name, dimensions, shape and type of every variable; of labels the values too, as a hash."""
    found = []
    for number, entry in enumerate(shard.layout):
        one = {key: entry[key] for key in ("name", "dims", "shape", "dtype")}
        if entry["label"]:
            one["labels"] = sorted(
                {hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest() for a in shard.arrays(number)}
            )
        found.append(one)
    return sorted(found, key=json.dumps)
