"""Interpolation is not learning: given tokens arrive, fresh ones do not; equal samples are found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments import Study
from attnflow.experiments.kit import log_rms
from attnflow_gallery import interpolation_is_not_learning as experiment
from attnflow_gallery.interpolation_is_not_learning import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(experiment.QUICK, tokens=(12, 48), repeats=2, pairs=24)


def made_up():
    """Data of a run in which all is well: fresh samples miss four atoms, and one in four misses one atom."""
    dims = ("atoms", "n", "repeat", "measure")
    fresh = np.full((2, 2, 2, 2), 1.0)
    fresh[0] = 1e-6
    fresh[0, :, 0, 0] = 0.5
    noise = 1e-3 * np.arange(16.0).reshape(fresh.shape)
    rows = {"fresh": fresh, "wrong": 0.5 + noise, "shift": 2 + noise}
    found = {"found": (dims[:3], np.ones((2, 2, 2))), "given": (("atoms", "repeat", "measure"), np.zeros((2, 2, 2)))}
    labels = {"atoms": [1, 4], "n": list(CORE.tokens)}
    samples = xr.Dataset({name: (dims, values) for name, values in rows.items()} | found, labels)
    shift = np.random.default_rng(0).rayleigh(size=(2, 24)) / np.array([[12.0], [48.0]]) ** 0.5
    return {"samples": samples, "shifts": xr.Dataset({"shift": (("n", "pair"), shift)}, {"n": list(CORE.tokens)})}


def verdicts(data):
    return [claim.holds for claim in compare.claims(CORE, data)]


def test_whatever_is_no_number_makes_a_claim_fail():
    """Masses and shifts are read for four atoms alone."""
    assert verdicts(made_up()) == [True] * 6
    for part, name in (("samples", "found"), ("samples", "given"), ("samples", "fresh"), ("shifts", "shift")):
        for k in range(made_up()[part][name].size):
            data = made_up()
            data[part][name].values.flat[k] = np.nan
            assert not all(verdicts(data)), (name, k)
    for name in ("wrong", "shift"):
        data = made_up()
        data["samples"][name].values[1, 0, 1, 1] = np.nan
        assert not all(verdicts(data)), name


def test_a_refusal_is_counted_and_raises_nothing():
    data = made_up()
    for name in ("fresh", "wrong", "shift"):
        data["samples"][name].values[1, 0, 1] = np.nan
    data["samples"]["given"].values[1, 1] = np.nan
    data["samples"]["found"].values[1, 0, 1] = 0
    assert verdicts(data) == [True, False, True, True, True, True]


def test_fresh_samples_that_do_as_the_given_ones_show_no_difference():
    data = made_up()
    data["samples"]["fresh"].values[1] = data["samples"]["fresh"].values[0]
    assert verdicts(data)[3] is False


@pytest.mark.long
def test_equal_samples_are_found_out(tmp_path):
    """Of twelve tokens the fresh ones are the given ones: they arrive."""
    one = dataclasses.replace(CORE, tokens=CORE.tokens[:1], repeats=1)
    with mutation(experiment, "fresh samples are the given ones").applied():
        same = simulate.samples(one, Study(tmp_path / "same"))
    assert (same["found"].values == 1).all()
    assert same["fresh"].values.max() < compare.TOL
    assert np.abs(same["shift"].values).max() == 0
    other = simulate.samples(dataclasses.replace(one, atoms=(4,)), Study(tmp_path / "other"))
    assert other["fresh"].values.min() > compare.TOL


@pytest.mark.long
def test_clouds_shift_like_one_over_root_n():
    level, error = log_rms(simulate.shifts(dataclasses.replace(CORE, pairs=40))["shift"].values ** 2)
    log_ratio = np.log(CORE.sizes[1] / CORE.sizes[0])
    assert abs((level[1] - level[0]) / log_ratio + 0.5) < 4 * (error[0] + error[1]) / log_ratio


def test_distributions_do_not_depend_on_the_sample():
    one, other = (simulate.drawn(CORE, 0, 4000, fresh) for fresh in (False, True))
    assert all(abs(a.positions.mean(0) - b.positions.mean(0)).max() < 0.06 for a, b in zip(one, other, strict=True))
    assert abs(one[0].positions - other[0].positions).max() > 0.1
