"""Every moment at which a process can die: the boundaries between its changes to the files below a folder.

A change is what the file system does in one piece: a folder made or removed, a file opened to be written (it is then
empty), one half of its content, a rename, a link, a removal. Threads take turns, so that boundaries are numbered.
"""

import ast
import contextlib
import functools
import io
import os
import shutil
import sys
import threading
from pathlib import Path

from attnflow.folders import is_temporary

CHANGES = ("replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")


@contextlib.contextmanager
def boundaries(root, at):
    """Call `at(k)` before the k-th change below `root`, k = 0, 1, ..., with all threads held; what it does is free."""
    root, turn, count, busy = Path(root).absolute(), threading.RLock(), [0], [False]
    kept, opened, made = {name: getattr(os, name) for name in (*CHANGES, "open")}, io.open, set()

    def concerns(path, *others, **places):
        is_relative = any(places.get(key) is not None for key in ("dir_fd", "src_dir_fd"))
        return is_relative or Path(os.fspath(path)).absolute().is_relative_to(root)

    def boundary():
        busy[0] = True
        try:
            at(count[0])
        finally:
            count[0] += 1
            busy[0] = False

    def change(name, *args, **keywords):
        with turn:
            if not busy[0] and concerns(*args, **keywords):
                boundary()
            return kept[name](*args, **keywords)

    def make(path, flags, mode=0o777, *, dir_fd=None):
        """`os.open`, which makes a file with O_EXCL."""
        with turn:
            if busy[0] or not flags & os.O_EXCL or not concerns(path, dir_fd=dir_fd):
                return kept["open"](path, flags, mode, dir_fd=dir_fd)
            boundary()
            descriptor = kept["open"](path, flags, mode, dir_fd=dir_fd)
            made.add(descriptor)
            return descriptor

    def open_(file, mode="r", *args, **keywords):
        if file in made:
            made.remove(file)
            return Stream(opened(file, mode, buffering=0))
        if "b" not in mode or "r" in mode or isinstance(file, int):
            assert set(mode) <= set("rbt") or not concerns(file), f"opened as {mode!r}"
            return opened(file, mode, *args, **keywords)
        with turn:
            if busy[0] or not concerns(file):
                return opened(file, mode, *args, **keywords)
            boundary()
            return Stream(opened(file, mode, buffering=0))

    class Stream:
        """A file without a buffer, written in halves."""

        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, content):
            content = bytes(content)
            for part in (content[: len(content) // 2], content[len(content) // 2 :]):
                with turn:
                    boundary()
                    assert self.file.write(part) == len(part)
            return len(content)

    try:
        for name in CHANGES:
            setattr(os, name, functools.partial(change, name))
        os.open = make
        io.open = open_
        yield count
    finally:
        io.open = opened
        for name, function in kept.items():
            setattr(os, name, function)


def remains(root, into, halves=False):
    """What a death at each boundary leaves of `root`: a function for `boundaries`, and the copies it makes in `into`.

    States that differ only in how much of an unfinished file was written count as one, unless `halves` are wanted too.
    """
    found, seen = {}, set()

    def copy(k):
        state = hash(frozenset(_contents(Path(root), halves)))
        if state not in seen:
            seen.add(state)
            found[k] = Path(into) / str(k)
            if Path(root).exists():
                shutil.copytree(root, found[k], ignore=shutil.ignore_patterns(".lock"))

    return copy, found


APART = {
    "solve": 24, "solve_long": 40, "evolve": 10, "evolve_cells": 4, "evolve_placed": 10, "gram_layers": 10,
    "conditional_density": 10, "match_measures": 24, "retrieval_profile": 10, "fit": 8, "merge_times": 3,
    "probe": 120, "train": 80,
}  # fmt: skip
"""Every how many states a study looks at where each takes long; `campaigns/crash.py` looks at more."""


def some(found, kind):
    """(boundary, copy) of the states that `remains` found: the first and the last three, and those `APART` between."""
    states = list(found.items())
    return states[:3] + states[3 : -3 : APART.get(kind, 1)] + states[-3:]


def _contents(root, halves):
    """Names and contents; the names of unfinished files are random and do not matter."""
    for file in root.rglob("*"):
        unfinished = is_temporary(file.name)
        name = str(file.parent.relative_to(root) / "unfinished" if unfinished else file.relative_to(root))
        if file.name != ".lock":
            yield name, unfinished, file.read_bytes() if file.is_file() and (halves or not unfinished) else None


def main(what, spec, path, until, die_at):
    """Execute, resume or extend a run and die at a boundary; say how many there were if there was no such one."""
    from attnflow.runs import execute, extend, load_spec, resume

    def at(k):
        if k == int(die_at):
            os._exit(9)

    print("ready", flush=True)
    with boundaries(path, at) as count:
        if what == "execute":
            execute(load_spec(spec), path)
        elif what == "extend":
            extend(path, ast.literal_eval(until))
        else:
            resume(path)
    print(count[0], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
