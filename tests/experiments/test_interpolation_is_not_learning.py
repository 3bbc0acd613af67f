"""Interpolation is not learning: given tokens arrive, fresh ones do not; equal samples are found out."""

import dataclasses

import pytest

from attnflow.experiments import Study
from attnflow.experiments.kit.statistics import log_rms
from attnflow_gallery import interpolation_is_not_learning as experiment
from attnflow_gallery.interpolation_is_not_learning import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(experiment.QUICK, tokens=(12, 48), repeats=1, pairs=24)


@pytest.mark.slow
def test_the_core_holds_and_equal_samples_are_found_out(tmp_path):
    """The fit for twelve tokens of which the fresh ones are the given ones; clouds do not depend on them."""
    data = experiment.run(CORE, Study(tmp_path / "parts"))
    right = [claim.holds for claim in compare.claims(CORE, data)]
    assert right[0]
    assert right[2:] == [True, True]
    one = dataclasses.replace(CORE, tokens=CORE.tokens[:1])
    with mutation(experiment, "fresh samples are the given ones").applied():
        same = data | {"samples": simulate.samples(one, Study(tmp_path / "same"))}
    assert compare.claims(one, same)[2].holds is False


def test_clouds_shift_like_one_over_root_n():
    level, error = log_rms(simulate.shifts(dataclasses.replace(CORE, pairs=40))["shift"].values ** 2)
    assert abs((level[1] - level[0]) / 1.386 + 0.5) < 4 * (error[0] + error[1]) / 1.386


def test_distributions_do_not_depend_on_the_sample():
    one, other = (simulate.drawn(CORE, 0, 4000, fresh) for fresh in (False, True))
    assert all(abs(a.positions.mean(0) - b.positions.mean(0)).max() < 0.06 for a, b in zip(one, other, strict=True))
    assert abs(one[0].positions - other[0].positions).max() > 0.1
