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
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

BEAT = 5.0
"""Seconds between two signs of life."""
PATIENCE = 60.0
"""Seconds without a sign of life after which a claim is taken over."""


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
    """A claim that this process holds."""

    def __init__(self, path: Path, descriptor: int):
        self.path, self.descriptor, self.beats = path, descriptor, 0

    @classmethod
    def take(cls, path: Path) -> "Claim | None":
        """The claim, if nobody has it.

        The file appears with its content, by a link: a file system without links gets an exclusive creation.
        """
        own = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        descriptor = os.open(own, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        claim = cls(path, descriptor)
        try:
            claim.beat()
            os.fsync(descriptor)
            if claim._link(own):
                return claim
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            with contextlib.suppress(OSError):
                own.unlink()
        os.close(descriptor)
        return None

    def _link(self, own: Path) -> bool:
        try:
            os.link(own, self.path)
        except FileExistsError:
            return os.stat(own).st_nlink == 2  # an answer of the server was lost: the link is there all the same
        except OSError:
            try:
                exclusive = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
            except FileExistsError:
                return False
            os.close(self.descriptor)
            self.descriptor = exclusive
            self.beat()
        return True

    def beat(self) -> None:
        """A sign of life. It is written into the file itself, so that a claim that was taken over stays so."""
        self.beats += 1
        facts = {"machine": _machine(), "pid": os.getpid(), "born": _born(os.getpid()), "beat": f"{self.beats:09d}"}
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        os.write(self.descriptor, json.dumps(facts).encode())

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
        with contextlib.suppress(OSError):
            mine, there = os.fstat(self.descriptor), os.stat(self.path)
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                self.path.unlink()
        os.close(self.descriptor)


def claim_name(name: str) -> str:
    """What the claim of a file is called that lies beside it."""
    return f".{name}.claim"


def is_claim(path: Path) -> bool:
    """Whether a file is such a claim, or one on its way."""
    return path.name.startswith(".") and ".claim" in path.name


def content(path: Path) -> bytes | None:
    """What a claim says; None where there is none."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def owner_is_gone(seen: bytes) -> bool:
    """Whether the owner was a process of this machine that has ended."""
    try:
        facts = json.loads(seen)
        return facts["machine"] == _machine() and _born(int(facts["pid"])) != facts["born"]
    except (ValueError, KeyError, TypeError):
        return False


def take_away(path: Path, seen: bytes) -> bool:
    """Remove the claim, if it still says what was `seen`: it is moved aside, which only one process can do."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        os.rename(path, aside)
    except OSError:
        return False
    same = content(aside) == seen
    if not same:  # its owner lives: put it back
        with contextlib.suppress(OSError):
            os.link(aside, path)
    with contextlib.suppress(OSError):
        aside.unlink()
    return same


class Watch:
    """Looks at the claims of others, and takes away those that show no sign of life."""

    def __init__(self, patience: float = PATIENCE):
        self.patience = patience
        self.seen: dict[Path, tuple[bytes, float]] = {}

    def is_free(self, path: Path) -> bool:
        """Whether nobody has the claim, or its owner is dead and the claim was taken away."""
        found = content(path)
        if found is None:
            self.seen.pop(path, None)
            return True
        before, since = self.seen.get(path, (None, 0.0))
        if found != before:
            since = time.monotonic()
            self.seen[path] = (found, since)
        if owner_is_gone(found) or time.monotonic() - since >= self.patience:
            self.seen.pop(path, None)
            return take_away(path, found)
        return False
