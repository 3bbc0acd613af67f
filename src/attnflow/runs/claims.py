"""Claims: files by which processes and machines on one folder agree who does what.

A claim is a file that only one process can make. Its owner writes a growing number into it every few seconds. Another
process takes a claim over if the file has not changed for a while of its own clock (clocks of machines need not agree),
or at once if the owner was a process of this machine that is gone. There is no lock that a dead machine could keep. A
process that stands still for longer than that while goes on when it wakes up; the work is then done twice, and either
gives the same file.
"""

import contextlib
import functools
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path, PurePath
from typing import Any

from attnflow.errors import RunCorrupted
from attnflow.folders import TEMPORARY, Folder
from attnflow.parsing import parse_json

BEAT = 5.0
"""Seconds between two signs of life."""
PATIENCE = 60.0
"""Seconds without a sign of life after which a claim is taken over."""
LONGEST = 4096
"""Bytes of a claim that are read; its owner writes some 300."""


@functools.lru_cache(maxsize=1)
def _machine() -> str:
    """The machine as process numbers count: name, boot and the name space of processes."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _born(pid: int) -> str:
    """When a process began, so that its number is not taken for that of a later one; empty where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return _alive(pid)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _alive(pid: int) -> str:
    """Where there is no /proc: whether the process is there."""
    if Path("/proc/self/stat").exists():
        return ""
    if os.name == "nt":  # os.kill would end the process there; its claim is taken over when it shows no sign of life
        return "there"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "there"


class Claim:
    """A claim that this process holds; `take` makes it.

    Arguments:
        folder: the folder of the claim.
        name: what its file is called.
        stream: the file, open for writing; whatever its name leads to by now.
        facts: what the file says of its owner.
    """

    def __init__(self, folder: Folder, name: str, stream: FileIO, facts: dict[str, Any]):
        self.folder, self.name, self.stream, self.facts, self.beats = folder, name, stream, facts, 1

    @classmethod
    def take(cls, folder: Folder, name: str) -> "Claim | None":
        """The claim if nobody has it, else None.

        The file appears with its content in one step. Whoever finds its own words in it afterwards has the claim, even
        where the answer of a file server was lost.
        """
        owner = {"machine": _machine(), "pid": os.getpid(), "born": _born(os.getpid()), "id": secrets.token_hex(16)}
        words = _words(owner, 1)
        folder.create(name, words)
        try:
            stream = folder.open_in_place(name)
        except (FileNotFoundError, PermissionError):  # given back in between, or the claim of another user
            return None
        if stream.read() != words:
            stream.close()
            return None
        return cls(folder, name, stream, owner)

    def beat(self) -> None:
        """A sign of life. It is written into the file itself, so that a claim that was taken over stays so."""
        self.beats += 1
        self.stream.seek(0)
        self.stream.write(_words(self.facts, self.beats))
        self.stream.truncate()

    @contextlib.contextmanager
    def beating(self, every: float = BEAT) -> Iterator[None]:
        """Signs of life from a thread of their own, while the block runs."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(every):
                with contextlib.suppress(OSError):
                    self.beat()

        thread = threading.Thread(target=beat, name="claim", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def release(self) -> None:
        """Give the claim back; one that another process has by now stays."""
        try:
            with self.folder.open(self.name) as present:
                if os.path.sameopenfile(self.stream.fileno(), present.fileno()):
                    self.folder.remove(self.name)
        except (OSError, RunCorrupted):  # it stays, and says that nobody has it
            with contextlib.suppress(OSError):
                self.facts = self.facts | {"born": "given back"}
                self.beat()
        self.stream.close()


def _words(facts: dict[str, Any], beats: int) -> bytes:
    """The content of a claim after so many signs of life."""
    return json.dumps(facts | {"beat": f"{beats:09d}"}).encode()


def claim_name(name: str) -> str:
    """What the claim of a file is called that lies beside it."""
    return f".{name}.claim"


def is_claim(path: PurePath) -> bool:
    """Whether a file is such a claim, or one on its way."""
    return path.name.startswith(".") and ".claim" in path.name


def content(folder: Folder, name: str) -> bytes | None:
    """What a claim says; None where there is none. A link, a pipe or a device in its place is refused."""
    try:
        with folder.open(name) as stream:
            return stream.read(LONGEST)
    except OSError:
        return None


def owner_is_gone(seen: bytes) -> bool:
    """Whether the owner was a process of this machine that has ended."""
    try:
        facts = parse_json(seen.decode())
        return facts["machine"] == _machine() and _born(int(facts["pid"])) != facts["born"]
    except (ValueError, KeyError, TypeError, OverflowError):
        return False


def take_away(folder: Folder, name: str, seen: bytes) -> bool:
    """Remove the claim, if it still says what was `seen`: it is moved aside, which only one process can do."""
    aside = TEMPORARY + secrets.token_hex(8)
    try:
        folder.rename(name, aside)
    except OSError:
        return False
    is_same = content(folder, aside) == seen
    if not is_same:  # its owner lives: put it back
        with contextlib.suppress(OSError):
            folder.link(aside, name)
    with contextlib.suppress(OSError):
        folder.remove(aside)
    return is_same


class Watch:
    """Looks at the claims of others, and takes away those that show no sign of life.

    Arguments:
        patience: seconds without a sign of life after which a claim is taken away.
    """

    def __init__(self, patience: float = PATIENCE):
        self.patience = patience
        self.seen: dict[tuple[Folder, str], tuple[bytes, float]] = {}

    def is_free(self, folder: Folder, name: str) -> bool:
        """True if nobody has the claim, or if its owner is dead and the claim was taken away."""
        words = content(folder, name)
        if words is None:
            self.seen.pop((folder, name), None)
            return True
        before, since = self.seen.get((folder, name), (None, 0.0))
        if words != before:
            since = time.monotonic()
            self.seen[folder, name] = (words, since)
        if owner_is_gone(words) or time.monotonic() - since >= self.patience:
            self.seen.pop((folder, name), None)
            return take_away(folder, name, words)
        return False
