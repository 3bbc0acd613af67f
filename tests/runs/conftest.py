"""Finished runs that several files compare with."""

import functools

import pytest

from attnflow.runs import execute
from tests.runs.kinds import LATER, of


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Finished runs, made once: of a kind, and longer ones."""

    @functools.cache
    def make(kind, longer=False):
        path = tmp_path_factory.mktemp(kind) / "whole"
        execute(of(kind).extended(LATER[kind]) if longer else of(kind), path)
        return path

    return make
