"""One unit of a sweep, carried out by one process: claim, compute, write the shard, say so in the journal."""

import os
import time
from pathlib import Path
from typing import Any

from attnflow.errors import RunCorrupted
from attnflow.folders import Folder
from attnflow.runs.claims import BEAT, Claim, content, owner_is_gone, take_away
from attnflow.sweeps.grouped import Cancel
from attnflow.sweeps.journal import Journal
from attnflow.sweeps.plan import Plan, read_plan, same_numerics
from attnflow.sweeps.rows import Row
from attnflow.sweeps.shards import Shard, pack, patiently
from attnflow.sweeps.source import AbstractSource, FunctionSource, SpecSource, WorkSource

Record = dict[str, Any]
"""What is known of a unit afterwards: its name, `status` (done, there or busy), tasks, errors, seconds."""
_PLANS: dict[Path, Plan] = {}
_SOURCES: dict[tuple[Path, str], AbstractSource] = {}


def shard_path(folder: Path, unit: str) -> Path:
    """Where the shard of a unit is."""
    return folder / "shards" / f"{unit}.npz"


def is_done(folder: Path, unit: str) -> bool:
    """Whether the shard of a unit is there; it is opened, for a look alone may show what was there before (NFS)."""
    try:
        with Folder(folder).open(f"shards/{unit}.npz"):
            return True
    except OSError:
        return False


def carry_out(folder: Path, plan: Plan, source: AbstractSource, unit: str, cancel: Cancel = None) -> Record:
    """Do the unit if it is missing and nobody is doing it."""
    record: Record = {"unit": unit, "tasks": len(plan.units[unit][1].names), "errors": 0, "seconds": 0.0}
    if is_done(folder, unit):
        return record | {"status": "there"}
    claim = _claim(Folder(folder, "claims"), unit)
    if claim is None:
        return record | {"status": "busy"}
    try:
        if is_done(folder, unit):  # another process finished between the two looks
            return record | {"status": "there"}
        began, journal = time.perf_counter(), Journal.of(folder)
        with claim.beating(BEAT):
            journal.write("start", unit, tasks=record["tasks"])
            rows = source.rows(plan.points(unit), plan.units[unit][1].width, cancel)
            write_shard(folder, plan, unit, rows)
        record |= {"errors": sum(bool(row.error) for row in rows), "seconds": time.perf_counter() - began}
        journal.write("done", unit, tasks=record["tasks"], errors=record["errors"], seconds=round(record["seconds"], 3))
    finally:
        claim.release()
    return record | {"status": "done"}


def write_shard(folder: Path, plan: Plan, unit: str, rows: list[Row]) -> None:
    """Write the rows of a unit; a full disk is waited for."""
    content = pack(plan.units[unit][1].names, rows)
    patiently(lambda: Folder(folder).write(f"shards/{unit}.npz", content), folder)


def _claim(claims: Folder, unit: str) -> Claim | None:
    claim = patiently(lambda: Claim.take(claims, unit), claims.path)
    seen = None if claim else content(claims, unit)
    if seen is not None and owner_is_gone(seen) and take_away(claims, unit, seen):
        return patiently(lambda: Claim.take(claims, unit), claims.path)
    return claim


def open_shard(folder: Path, plan: Plan, unit: str) -> Shard | None:
    """The shard of a unit, if it is there; one that holds other tasks is refused."""
    if not os.path.lexists(shard_path(folder, unit)):
        return None
    shard = Shard(Folder(folder, "shards"), f"{unit}.npz")
    if tuple(shard.tasks) != plan.units[unit][1].names:
        shard.close()
        raise RunCorrupted(f"the shard {str(shard.path)!r} holds other tasks than its name says; remove it.")
    return shard


def carry_out_here(folder: str, unit: str, plugins: list[str], made: Any = None) -> Record:
    """What a worker in another process does: it reads the plan itself, and returns a small record.

    `made` is the function or the work of a sweep that no text describes.
    """
    where = Path(folder)
    if where not in _PLANS or unit not in _PLANS[where].units:
        _PLANS[where] = read_plan(where)
        same_numerics(_PLANS[where], folder)
    plan = _PLANS[where]
    key = (where, "\n".join(plugins))
    if key not in _SOURCES or made is not None:
        kind = plan.source["kind"]
        own = {"function": FunctionSource, "work": WorkSource}
        _SOURCES[key] = own[kind](made) if kind in own else SpecSource.from_facts(plan.source, plugins)
    return carry_out(where, plan, _SOURCES[key], unit)
