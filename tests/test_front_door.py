"""Tests look through public names: what they reach past the doors of rooms is listed with a reason, and only goes down."""

import runpy
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SIZE = runpy.run_path(str(TESTS.parent / "tools" / "suite_size.py"))
MOST_IMPORTS, MOST_PATCHES = 96, 141
"""A third of what there was when the seam for faults was made: 289 imports below a door, 425 lines with monkeypatch."""


@pytest.fixture(scope="module")
def imports():
    return SIZE["below_doors"](TESTS)


@pytest.mark.slow
def test_internals_that_tests_import_are_listed_with_a_reason(imports):
    lines = (TESTS / "internals.txt").read_text(encoding="utf-8").splitlines()
    listed = dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    assert {module for _, module in imports} == set(listed)
    assert all(len(reason.split()) >= 4 for reason in listed.values())


def test_imports_below_doors_and_patches_are_few(imports):
    assert len(imports) <= MOST_IMPORTS
    assert len(SIZE["patches"](TESTS)) <= MOST_PATCHES
