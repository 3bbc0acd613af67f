"""The record of a campaign of mutants: a JSON file, what it must agree with, and how parts are joined."""

import contextlib
import datetime
import hashlib
import json
import os
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
"""date, commit, source, python, jax, seed, count, only, again (the record whose mutants they are), marks, options,
mutants; `commit` is information for readers, `source` says which package ran."""
SAME = ("seed", "count", "only", "again", "marks", "source")
"""What two parts of one campaign share."""


def digest(blobs: Iterable[tuple[str, str]]) -> str:
    """One number for all Python files of the package, from (path, id of its content in git)."""
    return hashlib.sha256("\n".join(f"{blob} {path}" for path, blob in sorted(blobs)).encode()).hexdigest()[:16]


def of_folder(root: Path) -> str:
    """The digest of `src` as it lies there; needs no git."""
    found = []
    for path in (root / "src").rglob("*.py"):
        content = path.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        found.append((path.relative_to(root).as_posix(), blob))
    return digest(found)


def begin(root: Path, name: str, given: Path | None, **facts: Any) -> tuple[Path, Record]:
    """Where the record of a campaign goes, and its beginning: the commit and its source, which must not be changed."""
    if git(root, "status", "--porcelain", "src"):
        raise SystemExit("src differs from the commit that the record will name; commit first.")
    path = given or root / "campaigns" / "records" / f"{name}-{datetime.date.today()}.json"
    return path, {"commit": git(root, "rev-parse", "HEAD").strip(), "source": of_folder(root), **facts}


def git(root: Path, *arguments: str) -> str:
    """What git answers; raises `CalledProcessError` where it fails."""
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


def equivalents(path: Path) -> dict[tuple[str, str, str], str]:
    """The mutants that a person found to change nothing, and why: (file, before, after) -> reason."""
    if not path.exists():
        return {}
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    return {(one["file"], one["before"].strip(), one["after"].strip()): one["reason"] for one in entries}


def judge(record: Record, known: dict[tuple[str, str, str], str]) -> None:
    """Call the survivors equivalent that a person did, and give the reason; no verdict of a test is touched."""
    for one in record["mutants"]:
        reason = known.get((one["file"], one["before"], one["after"]))
        if one["verdict"] not in ("killed", "gone"):
            one["verdict"], one["why"] = ("equivalent", reason) if reason else ("survived", "")


def load(path: Path) -> Record:
    """Read a record."""
    found: Record = json.loads(path.read_text(encoding="utf-8"))
    return found


def save(record: Record, path: Path) -> None:
    """Write it, all or nothing."""
    record["date"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(
            json.dumps(record, indent=1, ensure_ascii=False).encode(errors="backslashreplace").decode() + "\n",
            encoding="utf-8",
        )
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()


def merge(parts: list[Record]) -> Record:
    """One record of several parts of a campaign; a mutant in two of them keeps the verdict of more tests."""
    parts = sorted(parts, key=lambda one: one["date"])
    for one in parts[1:]:
        for key in SAME:
            if one[key] != parts[0][key]:
                raise SystemExit(f"these are records of two campaigns: {key} is {parts[0][key]} and {one[key]}.")
    found: dict[tuple[Any, ...], Record] = {}
    for mutant in (mutant for one in parts for mutant in one["mutants"]):
        at = tuple(mutant[key] for key in ("file", "line", "before", "after"))
        old = found.get(at)
        if old is None or (old["verdict"] != "killed" and (mutant["verdict"] == "killed" or more(mutant, old))):
            found[at] = mutant
    options = sorted({option for one in parts for option in one["options"]})
    return parts[-1] | {"options": options, "mutants": list(found.values())}


def more(one: Record, other: Record) -> bool:
    """Whether a mutant met no fewer tests than another time."""
    return len(one["met"]) >= len(other["met"])


def lost(before: Record, after: Record) -> list[str]:
    """Sentences about the mutants that tests killed before and that survive now."""
    now = {(one["file"], one["place"], one["before"], one["after"]): one for one in after["mutants"]}
    found = []
    for old in (one for one in before["mutants"] if one["verdict"] == "killed"):
        new = now.get((old["file"], old["place"], old["before"], old["after"]))
        if new and new["verdict"] != "killed":
            found.append(f"{old['file']}:{new['line']}: {old['before']} -> {old['after']}, killed by {old['by']}")
    return found
