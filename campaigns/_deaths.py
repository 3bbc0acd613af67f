"""States of a folder as a death leaves it: between two changes of files, or in the middle of a write."""

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _specimens import ACTIVITIES, Activity, copy

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
MOST_IN_A_ROW = 4


class Died(BaseException):
    """The end of a process that is only imagined."""


class Recorder:
    """Copies a folder or a file before chosen changes to files; changes are what the interpreter announces (PEP 578).

    Arguments:
        path: the folder or the file; whatever lies beside it is copied too.
        into: where copies go, each in a folder with the number of its boundary.
        boundaries: numbers of the changes before which a copy is made.
        last: True to end the process in imagination at the last of them.
    """

    active: "Recorder | None" = None

    def __init__(self, path: Path, into: Path, boundaries: set[int], last: bool = False):
        self.path, self.into, self.boundaries, self.last = path, into, boundaries, last
        self.count, self.busy, self.turn = 0, False, threading.RLock()
        self.opened = ""
        self.copies: dict[int, tuple[Path, str]] = {}

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Called before every change; threads take turns."""
        name = arguments[0]
        if not isinstance(name, str | bytes | os.PathLike):
            return
        text = os.fsdecode(name)
        if os.path.isabs(text) and not text.startswith(str(self.path.parent)):
            return
        with self.turn:
            if self.busy:
                return
            self.busy = True
            try:
                number, self.count = self.count, self.count + 1
                if number in self.boundaries:
                    target = self.into / str(number)
                    with contextlib.suppress(FileNotFoundError, shutil.Error):
                        shutil.copytree(self.path.parent, target, symlinks=True)
                    self.copies[number] = (target, self.opened)
                    if self.last and number == max(self.boundaries):
                        raise Died
            finally:
                self.busy = False
            self.opened = os.path.basename(text) if event == "open" else ""

    @contextlib.contextmanager
    def hearing(self) -> Iterator["Recorder"]:
        """A block in which changes are heard."""
        _hook()
        Recorder.active = self
        try:
            yield self
        except Died:
            pass
        finally:
            Recorder.active = None


_HOOKED: list[bool] = []


def _hook() -> None:
    if not _HOOKED:
        _HOOKED.append(True)
        sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    recorder = Recorder.active
    if recorder is None:
        return
    if event == "open":
        flags = arguments[2]
        if isinstance(flags, int) and flags & WRITING:
            recorder.hear(event, arguments)
    elif event in CHANGES:
        recorder.hear(event, arguments)


def begin(activity: Activity, place: Path, wholes: Path) -> Path:
    """An empty folder with what an activity begins with; gives back the path that it works on.

    Arguments:
        activity: what is going to be done.
        place: the folder, which is made anew.
        wholes: where specimens lie by name.
    """
    os.chdir(wholes)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    path = place / f"it{activity.suffix}"
    if activity.before:
        copy(wholes / f"{activity.before}{activity.suffix}", path)
    return path


def states(
    activity: Activity, fractions: dict[int, float], place: Path, wholes: Path, count: int | None
) -> tuple[int, dict[int, tuple[Path, str]]]:
    """Copies of what deaths leave of an activity, by number of the case.

    Arguments:
        activity: what is done.
        fractions: for each case how far the activity goes, as a share of its changes.
        place: a folder to work in.
        wholes: where specimens lie.
        count: number of changes of the activity; None if it is not known yet.

    Returns:
        The number of changes, and for each case a folder and the name of the file that was being written.
    """
    if count is None:
        path = begin(activity, place / "here", wholes)
        with Recorder(path, place, set()).hearing() as recorder:
            activity.carry_on(path)
        count = recorder.count
    path = begin(activity, place / "here", wholes)
    boundaries = {case: min(int(fraction * count), count - 1) for case, fraction in fractions.items()}
    with Recorder(path, place / "states", set(boundaries.values())).hearing() as recorder:
        activity.carry_on(path)
    copies = {case: recorder.copies[number] for case, number in boundaries.items() if number in recorder.copies}
    return count, copies


def died_again(activity: Activity, place: Path, number: int) -> None:
    """Carry an activity on, and let it die before change number `number`, in place; at its end if it has fewer."""
    path = place / f"it{activity.suffix}"
    into = place.with_name(f"{place.name}-again")
    shutil.rmtree(into, ignore_errors=True)
    with Recorder(path, into, {number}, last=True).hearing() as recorder, contextlib.suppress(Died):
        activity.carry_on(path)
    os.chdir(place.parent)
    for state, _ in recorder.copies.values():
        shutil.rmtree(place)
        shutil.move(state, place)
    forget_owners(place)
    shutil.rmtree(into, ignore_errors=True)


def tear(place: Path, name: str, fraction: float) -> None:
    """Leave of the file that was being written only a part.

    Arguments:
        place: the state.
        name: name of the file, without its folder; empty if none was being written.
        fraction: the share that stays.
    """
    for path in place.rglob(name) if name else ():
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            path.write_bytes(content[: int(fraction * len(content))])


def forget_owners(place: Path) -> None:
    """Make the owners of claims dead: a claim names a process, and that of a copy lives."""
    for path in place.rglob("*"):
        if path.is_file() and ("claims" in path.parts or ".claim" in path.name):
            text = path.read_text(encoding="utf-8", errors="replace")
            path.write_text(re.sub(r'"born": "\d+"', '"born": "0"', text), encoding="utf-8")


def _work(name: str, path: str) -> None:
    """What a process does that is going to be killed."""
    with contextlib.redirect_stderr(None):
        ACTIVITIES[name].carry_on(Path(path))


class Killer:
    """Processes that carry activities out and are killed.

    Arguments:
        times: a JSON file with the seconds that each activity takes, which this class makes.
    """

    def __init__(self, times: Path):
        self.times = times
        self.context: Any = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["attnflow.runs.execution", "_specimens", "tests.runs.kinds"])

    def seconds(self, name: str, place: Path, wholes: Path) -> float:
        """How long a process takes for an activity."""
        known: dict[str, float] = json.loads(self.times.read_text()) if self.times.exists() else {}
        if name not in known:
            for _ in range(2):  # the first one compiles
                path = begin(ACTIVITIES[name], place, wholes)
                began = time.monotonic()
                child = self.context.Process(target=_work, args=(name, str(path)))
                child.start()
                child.join()
                known[name] = time.monotonic() - began
            self.times.write_text(json.dumps(known))
        return known[name]

    def kill(self, name: str, path: Path, after: float) -> bool:
        """Carry an activity on in a process and kill it after so many seconds; False if it had ended."""
        child = self.context.Process(target=_work, args=(name, str(path)))
        child.start()
        child.join(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        child.join()
        return bool(child.exitcode == -signal.SIGKILL)

    def kill_in_a_row(self, name: str, path: Path, chance: random.Random, seconds: float) -> int:
        """Kill one process after another, up to four; gives back how many died."""
        deaths = 0
        for _ in itertools.repeat(None, chance.randint(1, MOST_IN_A_ROW)):
            deaths += self.kill(name, path, chance.uniform(0.0, seconds))
        return deaths
