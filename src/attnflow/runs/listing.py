"""The table of the runs below a folder, and filters on it.

Manifests and specifications are read once, and what they say is kept in the user's cache folder: a file beside the runs
could come from somebody else together with them. It follows what is on disk and may be removed at any time.
"""

import contextlib
import hashlib
import json
import operator
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnflow.compilations import user_cache
from attnflow.errors import InvalidInput, RunError
from attnflow.folders import Folder
from attnflow.parsing import parse_toml
from attnflow.runs.folder import UNDER_WAY, Run
from attnflow.runs.nearest import did_you_mean
from attnflow.wording import shown

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
    cached = _read_cache(root) if runs else {}
    table: dict[Run, Facts] = {}
    settled: dict[str, Any] = {}
    for name, run in runs.items():
        state = _state(run)
        if state is not None and name in cached and cached[name][:2] == state:
            table[run], settled[name] = cached[name][2], cached[name]
            continue
        table[run] = _read(run)
        if state is not None and table[run].get("status") not in (*UNDER_WAY, "interrupted", "damaged"):
            settled[name] = [*state, table[run]]
    if settled != cached:
        with contextlib.suppress(OSError, RunError, InvalidInput):  # no home, or one that cannot be written to
            folder, file = _cache_file(root)
            folder.make()
            folder.write(file, json.dumps(settled).encode(), durable=False)
    return table


def _cache_file(root: Path) -> tuple[Folder, str]:
    """The folder and the name of the file in the user's cache that holds the facts of the runs below `root`."""
    return Folder(user_cache("listings")), f"{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()}.json"


def _read_cache(root: Path) -> dict[str, Any]:
    """Read the cache: name of a run -> [size and time of its manifest, facts]; empty if it cannot be read."""
    try:
        folder, file = _cache_file(root)
        table = json.loads(folder.read(file))
        return {name: [size, changed, dict(facts)] for name, (size, changed, facts) in table.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, RunError, InvalidInput):
        return {}


def _state(run: Run) -> list[int] | None:
    """Size and time of the manifest; the specification is never changed without it."""
    try:
        there = (run.path / "manifest.json").stat()
    except OSError:
        return None
    return [there.st_size, there.st_mtime_ns]


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
