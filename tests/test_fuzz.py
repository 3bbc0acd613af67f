"""A small part of what `campaigns/fuzz.py` does at length: no traceback, no hang, no stray file, one sentence each."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import fuzz
from tests import fuzz_commands as commands

QUICK = settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
                 phases=[Phase.generate, Phase.shrink])  # fmt: skip
STUDY = settings(QUICK, max_examples=400)
SMALL_STUDY = settings(QUICK, max_examples=100)
FEW = settings(QUICK, max_examples=10)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which commands are given, with a run, a broken one and an unfinished one."""
    path = tmp_path_factory.mktemp("fuzz") / "here"
    commands.furnish(path)
    return path


@pytest.mark.slow
@QUICK
@given(table=fuzz.specifications())
def test_some_specifications(table):
    fuzz.check_specification(table)


@QUICK
@given(call=fuzz.calls(solve=False))
def test_some_calls(call):
    fuzz.check_call(*call)


@pytest.mark.long
@STUDY
@given(table=fuzz.specifications(5))
def test_specifications(table):
    fuzz.check_specification(table)


@pytest.mark.slow
@STUDY
@given(call=fuzz.calls())
def test_calls(call):
    fuzz.check_call(*call)


@pytest.mark.long
@SMALL_STUDY
@given(arguments=commands.command_lines, encoding=commands.ENCODINGS)
def test_command_lines(place, arguments, encoding):
    commands.check_command(arguments, place, encoding=encoding)


@pytest.mark.slow
@SMALL_STUDY
@given(content=commands.texts_of_files())
def test_files(place, content):
    (place / "file.toml").write_bytes(content)
    commands.check_command(["run", "file.toml"], place)


@pytest.mark.slow
@SMALL_STUDY
@given(change=commands.damages(), arguments=st.sampled_from([["show"], ["show", "--json"], ["list"], ["resume"]]))
def test_damaged_folders(place, change, arguments):
    commands.check_damaged(place, change, arguments)


@pytest.mark.slow
@settings(QUICK, max_examples=30)
@given(change=commands.flips, arguments=st.sampled_from(commands.EVERY_COMMAND))
def test_flipped_bits(place, change, arguments):
    commands.check_flipped(place, change, arguments)


@pytest.mark.slow
@FEW
@given(change=commands.flips)
def test_flipped_bits_of_an_unfinished_run(place, change):
    commands.check_unfinished(place, change, commands.resumed(place))


def test_a_flipped_bit_that_is_read_is_a_finding(place, faults):
    faults.replace("verify a run", lambda run: None)
    with pytest.raises(fuzz.Finding, match=r"\['show'\] reads arrays.zarr/energy/c/0 with a flipped bit"):
        commands.check_flipped(place, (0.0, 0.5, 0), ["show"])
