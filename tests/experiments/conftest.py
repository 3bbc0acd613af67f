"""A gallery that holds the tiny experiment alone, the same experiment in a file of the user's, and the command line."""

import contextlib
import os
import sys
from unittest.mock import patch

import pytest

from attnflow.cli import main
from tests.experiments.mutants import changed
from tests.experiments.tiny import SOURCE, install


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The file beside tiny_mean.py, all that the gallery holds, into which every part is logged that is made."""
    return install(tmp_path / "gallery", monkeypatch)


@pytest.fixture
def mine(tmp_path):
    """A file my_mean.py in the working folder; the parts it makes are logged in log.txt."""
    path, log = tmp_path / "my_mean.py", tmp_path / "log.txt"
    path.write_text(SOURCE)
    log.write_text("")
    with contextlib.chdir(tmp_path), patch.dict(os.environ, TINY="", TINY_LOG=str(log)):
        yield path


@pytest.fixture
def attnflow(capsys):
    """The command line: call it with arguments for what it prints on both streams, if it ends with the code `code`."""

    def call(*arguments, code=0):
        # with this variable compiled programs are not kept; that is for a process that runs one command
        unkept = patch.dict(os.environ, EQX_ON_ERROR="raise")
        with unkept, changed(sys, "argv", ["attnflow", *map(str, arguments)]), pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        assert (ended.value.code or 0) == code, errors
        return output, " ".join(errors.split())

    return call
