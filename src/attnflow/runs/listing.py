"""The table of the runs below a folder, and filters on it.

Manifests and specifications are read once and kept in SQLite (`.runs.sqlite` beside the runs). The file is a cache: it
follows what is on disk, may be removed at any time, and is left out where the folder cannot be written to.
"""

import contextlib
import json
import operator
import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput, RunError
from attnflow.parsing import parse_json, parse_toml
from attnflow.runs.folder import UNDER_WAY, Run
from attnflow.runs.nearest import did_you_mean
from attnflow.wording import shown

CACHE = ".runs.sqlite"
TABLE = "create table if not exists runs (name text primary key, size integer, changed integer, facts text)"
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
Facts = dict[str, Any]


def list_runs(root: str | Path, where: Sequence[str] = ()) -> list[Run]:
    """The run folders directly below `root`, oldest first; damaged ones come before the others.

    Arguments:
        where: filters that must all hold: "status=finished", "field.beta>=4", "experiment!=staircase". Keys are those
            of the specification and of the manifest. A run that lacks the key does not pass.
    """
    filters = [_filter(text) for text in where]
    table = _facts(Path(root))
    for key in {key for key, _, _ in filters}:
        known = sorted({name for facts in table.values() for name in facts})
        if table and key not in known:
            raise InvalidInput(f"no run in {str(root)!r} has the key {key!r}{did_you_mean(key, known)}")
    found = [run for run, facts in table.items() if all(_holds(facts, *one) for one in filters)]
    return sorted(found, key=lambda run: (str(table[run].get("created", "")), str(run.path)))


def _filter(text: str) -> tuple[str, str, Any]:
    parts = (
        re.fullmatch(r"\s*([A-Za-z_][\w.-]*)\s*(<=|>=|!=|=|<|>)\s*(.+?)\s*", text) if isinstance(text, str) else None
    )
    if parts is None:
        raise InvalidInput(f"the filter {shown(text)} cannot be read; write it as field.beta>=4 or status=finished.")
    key, sign, value = parts.groups()
    try:
        return key, sign, parse_toml(f"v = {value}")["v"]
    except ValueError:
        return key, sign, value


def _holds(facts: Facts, key: str, sign: str, value: Any) -> bool:
    if key not in facts:
        return False
    try:
        return SIGNS[sign](facts[key], value)
    except TypeError:  # a text and a number
        return sign == "!="


def _facts(root: Path) -> dict[Run, Facts]:
    """What is known of every run, by run; read anew where a manifest has changed or its run is under way."""
    runs = {file.parent.name: Run(file.parent) for file in sorted(root.glob("*/manifest.json"))}
    if not runs:
        return {}
    base = _open(root)
    try:
        known = {row[0]: row[1:] for row in base.execute("select name, size, changed, facts from runs")}
        found, fresh = {}, []
        for name, run in runs.items():
            state = _state(run)
            size, changed, text = known.get(name, (0, 0, ""))
            if state is not None and (size, changed) == state:
                with contextlib.suppress(ValueError, TypeError):
                    found[run] = dict(parse_json(text))
                    continue
            found[run] = _read(run)
            if state is not None and found[run].get("status") not in (*UNDER_WAY, "interrupted", "damaged"):
                fresh.append((name, *state, json.dumps(found[run])))
        with contextlib.suppress(sqlite3.Error), base:  # another process writes: the next listing does it
            base.executemany("insert or replace into runs values (?, ?, ?, ?)", fresh)
            base.executemany("delete from runs where name = ?", [(name,) for name in known if name not in runs])
        return found
    finally:
        base.close()


def _open(root: Path) -> sqlite3.Connection:
    """The cache; an empty one in memory where there is none and none can be made."""
    path = root / CACHE
    for _ in range(2):
        try:
            base = sqlite3.connect(path, timeout=1.0)
            base.execute(TABLE)
            base.execute("select name, size, changed, facts from runs limit 1")
            return base
        except sqlite3.OperationalError:
            break
        except sqlite3.Error:  # no file of SQLite
            with contextlib.suppress(OSError):
                path.unlink()
    base = sqlite3.connect(":memory:")
    base.execute(TABLE)
    return base


def _state(run: Run) -> tuple[int, int] | None:
    """Size and time of the manifest; the specification is never changed without it."""
    try:
        there = (run.path / "manifest.json").stat()
    except OSError:
        return None
    return there.st_size, there.st_mtime_ns


def _read(run: Run) -> Facts:
    """Entries of the specification and of the manifest by dotted keys; those of a damaged run say so."""
    try:
        manifest = run.facts()
        run.require_same_spec(manifest)
        return _flat(run.table()) | _flat({k: v for k, v in manifest.items() if k not in ("checksums", "versions")})
    except RunError:
        return {"status": "damaged"}


def _flat(table: dict[str, Any], before: str = "") -> Facts:
    found: Facts = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{key}.")
        elif isinstance(value, bool | int | float | str):
            found[f"{before}{key}"] = value
    return found
