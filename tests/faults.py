"""The one seam through which tests make operations fail and turn settings that no user turns.

A point is a place of the package or of the standard library, named in `POINTS` by what it does; where code moves, its
row here follows and no test changes. The fixture `faults` undoes everything at the end of a test:

    def test_a_full_disk_is_said_in_one_sentence(faults):
        faults.fail("rename a file", OSError(errno.ENOSPC, "No space left on device"), call=3)

`replace` puts a value or function in the place of a point, `fail` raises at its k-th call, `calls` watches it.
A death or an error of the disk between any two changes of files comes from `tests/runs/boundaries.py` and `failing.py`.
"""

import importlib

import pytest

POINTS = {
    # the file system
    "access of a file": ("os", "access"),
    "disk usage": ("shutil", "disk_usage"),
    "flush a file": ("os", "fsync"),
    "home folder": ("pathlib:Path", "home"),
    "link a file": ("os", "link"),
    "lock a descriptor": ("fcntl", "flock"),
    "lock a file": ("filelock:FileLock", "acquire"),
    "open a file": ("os", "open"),
    "rename a file": ("os", "replace"),
    "write a file of a folder": ("attnflow.folders:Folder", "write"),
    # the process
    "change a setting of JAX": ("jax:config", "update"),
    "command line": ("sys", "argv"),
    "find a package": ("importlib.util", "find_spec"),
    "memory of the machine": ("attnflow.feasible", "machine_memory"),
    "sleep": ("time", "sleep"),
    "standard output": ("sys", "stdout"),
    # cli
    "keep compiled programs": ("attnflow.cli.console", "use_compilation_cache"),
    "messages of commands": ("attnflow.cli.console", "say"),
    "tables of commands": ("attnflow.cli.tables", "out"),
    # fields
    "prepare a field": ("attnflow.fields:AbstractField", "prepare"),
    # flows
    "clock of progress": ("attnflow.flows.outcome", "clock"),
    "first slice": ("attnflow.flows.particles", "FIRST_SLICE"),
    "seconds of a slice": ("attnflow.flows.particles", "SECONDS"),
    "set up flowing tokens": ("attnflow.flows.particles:FlowingTokens", "__init__"),
    # plots
    "draw a run": ("attnflow.plots", "draw_run"),
    # runs
    "commit rows to a run": ("attnflow.runs:ZarrSink", "commit"),
    "facts about the machine": ("attnflow.runs.folder", "environment"),
    "lock a run": ("attnflow.runs.locks", "take"),
    "make a part of a specification": ("attnflow.runs.spec", "build_part"),
    "numbers of a file of tokens": ("attnflow.runs.token_files", "MOST_NUMBERS"),
    "plugins that were executed": ("attnflow.runs.plugins", "_EXECUTED"),
    "verify a run": ("attnflow.runs:Run", "verify"),
    # sweeps
    "bytes of a block of results": ("attnflow.sweeps.assembly", "BLOCK"),
    "bytes of results in memory": ("attnflow.sweeps.assembly", "IN_MEMORY"),
    "deaths of a worker": ("attnflow.sweeps.cluster", "DEATHS"),
    "seconds between collections": ("attnflow.sweeps.execution", "COLLECT_EVERY"),
    "seconds until a scheduler answers": ("attnflow.sweeps.cluster", "CONNECT"),
    "share of time between collections": ("attnflow.sweeps.execution", "COLLECT_SHARE"),
    "versions that decide bits": ("attnflow.sweeps.plan", "numerics"),
}
"""Name of every point -> (module or class in a module, attribute)."""


class Faults:
    """Changes of points, undone at the end of a test."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def replace(self, point, value):
        """Put a value or function in the place of a point; return what stood there."""
        place, attribute = POINTS[point]
        module, _, owner = place.partition(":")
        target = importlib.import_module(module)
        target = getattr(target, owner) if owner else target
        original = getattr(target, attribute)
        self.monkeypatch.setattr(target, attribute, value)
        return original

    def fail(self, point, error, call=1):
        """Raise an error at the k-th call of a point and at all later ones; earlier calls go through."""
        count = 0

        def failing(*arguments, **keywords):
            nonlocal count
            count += 1
            if count >= call:
                raise error
            return original(*arguments, **keywords)

        original = self.replace(point, failing)

    def calls(self, point):
        """Watch a point, which goes on to work; return the growing list of (arguments, keywords) of its calls."""
        watched = []

        def watching(*arguments, **keywords):
            watched.append((arguments, keywords))
            return original(*arguments, **keywords)

        original = self.replace(point, watching)
        return watched


@pytest.fixture
def faults(monkeypatch):
    """The seam for faults and settings; see `tests/faults.py`."""
    return Faults(monkeypatch)
