"""A disk that fails: an error of the file system at the k-th change below the folder of a run."""

import errno
import os

from attnflow.errors import RunError
from attnflow.runs import execute, resume
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
