"""Commands in the folder of a test."""

import pytest

from tests.cli import commands


@pytest.fixture
def attnflow(tmp_path):
    """A command in the folder of the test: what it prints, and what it says on one line; `code` is its exit code."""

    def call(*arguments, code=0, **variables):
        done = commands.attnflow(*map(str, arguments), cwd=tmp_path, check=code, **variables)
        return done.stdout, " ".join(done.stderr.split())

    return call
