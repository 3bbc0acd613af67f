"""Folders of runs: those that are offered open and play, the others say why they do not, and axes are checked."""

import tarfile

import numpy as np
import pytest

import attnflow as af
from attnflow import runs
from tests.kept.test_kept import ARCHIVE
from tests.lab.test_python import SPEC, answered, offered, toml
from tests.runs.kinds import TEXTS

KINDS = ["evolve", "evolve_cells", "solve", "solve_long"]
TOKENS = {"solve": 12, "solve_long": 6}
"""Tokens of the kept runs: of `solve` two members with six each."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One run of every kind, an experiment, and work that was made in Python."""
    unpacked = tmp_path_factory.mktemp("kept")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(unpacked, filter="data")
    root = tmp_path_factory.mktemp("runs")
    sources = {kind: f"runs/{kind}/finished" for kind in TEXTS}
    for name, place in (
        sources | {"clusters": "experiments/two-clusters", "python": "python/c9a5b48c9de3916f"}
    ).items():
        (unpacked / place).rename(root / name)
    return root


def test_folders_that_are_offered_are_those_that_open(folder):
    """The list reads descriptions of arrays alone; opening goes by the work and its data: both say the same."""
    offers = offered(folder)
    assert sorted(offers["runs"]) == KINDS
    assert {*offers["runs"], *offers["undrawn"]} == {path.name for path in folder.iterdir() if path.is_dir()}
    for name in offers["runs"]:
        messages, frames = answered(folder, run=name)
        data = runs.open_run(folder / name).dataset
        assert "error" not in messages
        assert len(frames) == messages["begun"]["frames"] == data.sizes["time"]
        np.testing.assert_allclose([frame["t"] for frame in frames], data["time"].values, rtol=1e-12)
    for name, reason in offers["undrawn"].items():
        messages, frames = answered(folder, run=name)
        assert messages == {"error": reason, "number": None}
        assert frames == []
        assert name in reason


@pytest.mark.parametrize("kind", TOKENS)
def test_the_limit_counts_tokens_of_all_members_and_nothing_else(folder, faults, kind):
    """Merges, their sides and steps are no members: as many tokens as the limit open, in the list and by name."""
    faults.replace("tokens of a lab", TOKENS[kind])
    assert kind in offered(folder)["runs"]
    assert "begun" in answered(folder, run=kind)[0]
    faults.replace("tokens of a lab", TOKENS[kind] - 1)
    refusal = f"there are {TOKENS[kind]} tokens in all members together; the lab takes at most {TOKENS[kind] - 1}."
    assert offered(folder)["undrawn"][kind] == answered(folder, run=kind)[0]["error"] == refusal


@pytest.mark.slow
def test_a_long_run_of_two_hundred_tokens_plays(tmp_path):
    """Two tight clusters of 100 tokens: 198 merges come before the first step of the flow."""
    starts = {"name": "clustered", "n": 200, "spread": 1e-9, "seed": 3, "space": {"name": "sphere", "dim": 3}}
    tokens = starts | {"centres": [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]}
    table = {"tokens": tokens, "field": {"name": "attention", "beta": 25.0}, "solve_long": {"until": 0.5}}
    _, flow = runs.execute(runs.parse_spec(toml(table)), tmp_path / "mine")
    assert dict(flow.dataset.sizes).items() >= {"merge": 198, "token": 200}.items()
    messages, frames = answered(tmp_path, run="mine")
    assert messages["begun"]["n"] == 200
    assert len(frames) == len(flow)
    # float32 keeps 24 bits of numbers of size 1
    np.testing.assert_allclose(
        [frame["positions"] for frame in frames], flow.dataset["positions"].values, rtol=0, atol=2**-24
    )
    assert {frame["count"] for frame in frames} == {2}


@pytest.mark.slow
def test_a_sweep_of_work_without_frames_shows_its_numbers(tmp_path):
    af.sweep(runs.parse_spec(TEXTS["gram_layers"]), {"gram_layers.n": [2, 3]}, tmp_path / "swept")
    messages, frames = answered(tmp_path, run="swept", at=[1])
    assert messages["begun"]["kind"] == "numbers"
    assert messages["begun"]["sweep"]["axes"] == [{"name": "gram_layers.n", "values": [2, 3]}]
    assert "has no frames with positions of tokens or a density" in messages["ended"]
    assert len(frames) == 1


@pytest.mark.parametrize(
    "axes", ["x", "", [[1e300]], [0], [0, 0], [0, 1, 2, 3], [0, 1.0], [0, True], [-1, 0], [0, None], {"0": 1}, 3, False]
)
@pytest.mark.parametrize("run", KINDS)
def test_axes_that_are_none_are_refused_whatever_is_drawn(folder, run, axes):
    messages, frames = answered(folder, run=run, axes=axes)
    assert messages["error"].startswith("`axes` is ")
    assert messages["error"].endswith("; give two or three coordinates, such as [0, 1, 4], or principal.")
    assert "begun" not in messages
    assert frames == []


def test_axes_beyond_the_dimension_are_refused(folder):
    for axes in ([0, 3], [0, 1, 10**6]):
        assert "give coordinates from 0 to 2" in answered(folder, run="solve", axes=axes)[0]["error"]
    assert "give coordinates from 0 to 4" in answered(None, spec=SPEC, axes=[0, 5])[0]["error"]
    for axes in (None, "principal", [0, 2]):
        assert answered(folder, run="solve", axes=axes)[0]["begun"]["shown"] == 3
