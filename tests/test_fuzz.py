"""A small part of what `campaigns/fuzz.py` does at length: no traceback, no hang, no stray file, one sentence each."""

import shutil

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import fuzz

QUICK = settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
                 phases=[Phase.generate, Phase.shrink])  # fmt: skip
STUDY = settings(QUICK, max_examples=400)
SMALL_STUDY = settings(QUICK, max_examples=100)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which commands are given, with a run and a broken one."""
    path = tmp_path_factory.mktemp("fuzz") / "here"
    path.mkdir()
    (path / "good.toml").write_text(fuzz.as_toml(fuzz.GOOD["solve"]))
    (path / "bad.toml").write_text("[solve]\nuntil = ")
    assert fuzz.command(["run", "good.toml", "--out", "run"], path)[0] == 0
    shutil.copytree(path / "run", path / "broken")
    (path / "broken" / "manifest.json").write_text("[1, 2]")
    return path


@QUICK
@given(table=fuzz.specifications())
def test_some_specifications(table):
    fuzz.check_specification(table)


@QUICK
@given(call=fuzz.calls(solve=False))
def test_some_calls(call):
    fuzz.check_call(*call)


@pytest.mark.slow
@STUDY
@given(table=fuzz.specifications(5))
def test_specifications(table):
    fuzz.check_specification(table)


@pytest.mark.slow
@STUDY
@given(call=fuzz.calls())
def test_calls(call):
    fuzz.check_call(*call)


@pytest.mark.slow
@SMALL_STUDY
@given(arguments=fuzz.command_lines)
def test_command_lines(place, arguments):
    fuzz.check_command(arguments, place)


@pytest.mark.slow
@SMALL_STUDY
@given(content=fuzz.texts_of_files())
def test_files(place, content):
    (place / "file.toml").write_bytes(content)
    fuzz.check_command(["run", "file.toml"], place)


@pytest.mark.slow
@SMALL_STUDY
@given(change=fuzz.damages(), commands=st.sampled_from([["show"], ["show", "--json"], ["list"], ["resume"]]))
def test_damaged_folders(place, change, commands):
    other = place / "damaged"
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(place / "run", other / "run")
    fuzz.damage(other / "run", *change)
    rest = ["--root", "damaged"] if commands == ["list"] else ["damaged/run"]
    fuzz.check_command([*commands, *rest], place, runs=True)
    shutil.rmtree(other)
