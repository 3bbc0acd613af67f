"""Interpolation is not learning: given tokens arrive, fresh ones do not; equal samples are found out."""

import dataclasses

import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import interpolation_is_not_learning as experiment
from attnflow.experiments.gallery.interpolation_is_not_learning import compare, simulate
from attnflow.experiments.statistics import log_rms
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(experiment.QUICK, tokens=(40, 160), repeats=1, pairs=24)


def core(folder):
    data = experiment.run(CORE, Study(folder / "parts"))
    return [claim.holds for claim in compare.claims(CORE, data)]


@pytest.mark.slow
def test_the_core_holds_and_equal_samples_are_found_out(tmp_path):
    right = core(tmp_path / "right")
    assert right[0]
    assert right[2:] == [True, True]
    with mutation(experiment, "fresh samples are the given ones").applied():
        assert core(tmp_path / "same")[2] is False


def test_clouds_shift_like_one_over_root_n():
    level, error = log_rms(simulate.shifts(dataclasses.replace(CORE, pairs=40))["shift"].values ** 2)
    assert abs((level[1] - level[0]) / 1.386 + 0.5) < 4 * (error[0] + error[1]) / 1.386


def test_distributions_do_not_depend_on_the_sample():
    one, other = (simulate.drawn(CORE, 0, 4000, fresh) for fresh in (False, True))
    assert all(abs(a.positions.mean(0) - b.positions.mean(0)).max() < 0.06 for a, b in zip(one, other, strict=True))
    assert abs(one[0].positions - other[0].positions).max() > 0.1
