"""Runs that fail: an error of the file system at the k-th change of files, of a write or of a commit of rows."""

import contextlib
import errno
import os

import zarr

from attnflow.errors import RunError
from attnflow.runs import execute, resume
from tests.faults import temporary_faults
from tests.fuzz import sentence
from tests.runs.boundaries import boundaries
from tests.runs.kinds import is_the_run, of

FAULTS = {"full": errno.ENOSPC, "broken": errno.EIO}


def carried_on(path, kind, **options):
    """Go on with what an accident left; before there is a manifest, that is nothing yet."""
    if (path / "manifest.json").exists():
        resume(path, **options)
    else:
        execute(of(kind), path, **options)


def changes_of(kind, path):
    """How many changes a run makes to its files."""
    with boundaries(path, lambda k: None) as count:
        execute(of(kind), path)
    return count[0]


def survive(kind, number, fault, lasting, path, expected):
    """Let the change `number` of a run fail, and with `lasting` all later ones; the run says so, and then resumes.

    Gives back whether the run failed: some changes only tidy up, and may fail in silence.
    """

    def at(k):
        if k == number or (lasting and k > number):
            raise OSError(FAULTS[fault], os.strerror(FAULTS[fault]))

    said = ""
    with boundaries(path, at):
        try:
            execute(of(kind), path)
        except RunError as error:
            said = str(error)
    if said:
        sentence(said)
        assert os.strerror(FAULTS[fault]) in said, said
    carried_on(path, kind)
    is_the_run(path, expected)
    return bool(said)


class Stop(Exception):
    """An error that no code of the package knows."""


@contextlib.contextmanager
def stopping_after(chunks, kind=Stop):
    """Let runs die just after (or, with a half, just before) the checkpoint of a chunk."""
    starts = []

    def dying(sink, start, rows, checkpoint):
        starts.append(start)
        if chunks % 1 and len(starts) > chunks:  # the arrays are written, the checkpoint is not
            group = zarr.open_group(sink.arrays, mode="r+")
            group["positions"][:, start["time"] : start["time"] + 2] = -1.0
            raise kind
        commit(sink, start, rows, checkpoint)
        if len(starts) == chunks:
            raise kind

    with temporary_faults() as faults:
        commit = faults.replace("commit to a folder", dying)
        yield


@contextlib.contextmanager
def writes_failing(error, concerns, call=1):
    """Let the k-th write of a file for which `concerns(folder, name)` is true raise an error."""
    count = 0

    def failing(folder, name, content, **options):
        nonlocal count
        count += concerns(folder, name)
        if concerns(folder, name) and count == call:
            raise error
        return write(folder, name, content, **options)

    with temporary_faults() as faults:
        write = faults.replace("write a file of a folder", failing)
        yield


def is_checkpoint(folder, name):
    """True for the file that a run resumes from."""
    return name == "checkpoint"
