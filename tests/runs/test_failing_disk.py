"""A disk that is full or broken at any change: the run says so in one sentence, and resumes bit for bit."""

import json

import pytest

from attnflow.errors import RunError
from attnflow.experiments import reproduce, resume
from tests.experiments.test_execute import results
from tests.experiments.tiny import install
from tests.marks import graded
from tests.runs.boundaries import boundaries
from tests.runs.failing import FAULTS, changes_of, survive
from tests.runs.kinds import KINDS

EVERY = {
    "merge_times": 5,
    "match_measures": 60,
    "probe": 60,
    "fit": 40,
    "train": 60,
    "solve": 24,
    "solve_long": 72,
    "evolve": 30,
    "evolve_placed": 30,
    "gram_layers": 30,
    "conditional_density": 30,
    "retrieval_profile": 30,
}
"""How many changes apart the failures are; other kinds: 12. `campaigns/crash.py` lets every change fail."""


@graded("kind", KINDS, slow=1)
def test_a_change_fails(kind, uninterrupted, tmp_path):
    total = changes_of(kind, tmp_path / "count")
    cases = [(k, tuple(FAULTS)[k % 2], k % 3 == 0) for k in range(0, total, EVERY.get(kind, 12))]
    failed = [survive(kind, *case, tmp_path / str(case[0]), uninterrupted(kind)) for case in cases]
    assert sum(failed) > 0.8 * len(cases)  # the others only tidy up


@graded("lasting", [False, True])
def test_the_first_and_the_last_change_fail(lasting, uninterrupted, tmp_path):
    kind = "merge_times"
    total = changes_of(kind, tmp_path / "count")
    for k in (0, 3, total // 2, total - 3, total - 2, total - 1):
        assert survive(kind, k, "full", lasting, tmp_path / str(k), uninterrupted(kind)), k


@pytest.mark.long
def test_an_experiment_says_so_too(tmp_path, monkeypatch):
    install(tmp_path / "gallery", monkeypatch)
    with boundaries(tmp_path / "whole", lambda k: None) as count:
        reproduce("tiny-mean", tmp_path / "whole", quick=True)
    for number in sorted({*range(0, count[0], 9), *range(count[0] - 8, count[0])}):
        path, said = tmp_path / str(number), ""

        def at(k, number=number):
            if k == number:
                raise OSError(28, "No space left on device")

        with boundaries(path, at):
            try:
                reproduce("tiny-mean", path, quick=True)
            except RunError as error:
                said = str(error)
        if said:
            assert "No space left on device" in said
            resume(path) if (path / "manifest.json").exists() else reproduce("tiny-mean", path, quick=True)
        assert results(path) == results(tmp_path / "whole")
        manifest = json.loads((path / "manifest.json").read_text())
        assert (manifest["status"], manifest["summary"]["failed"]) == ("finished", 0)
