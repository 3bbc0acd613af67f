"""Measures to measures: a small version holds, a shorter attention and refusals are found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.control import match_measures
from attnflow.experiments import Study
from attnflow.experiments.kit import planned
from attnflow_gallery import measure_to_measure
from attnflow_gallery.measure_to_measure import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(measure_to_measure.QUICK, cases=((3, 2, 4),), tokens=24, instances=2)


def made_up():
    """Data of a run in which all is well."""
    matched = xr.Dataset({"found": ("case", np.ones(1)), "after": (("case", "measure"), np.full((1, 2), 1e-6))})
    shared = xr.Dataset(
        {"w1": (("plan", "measure"), np.array([[1e-6, 1e-6], [1.0, 1.0]]))}, {"plan": ["attention", "blind"]}
    )
    time = np.array(CORE.times)
    back = xr.Dataset({"error": ("time", np.exp(time)), "rate": ("time", 1 - np.exp(-time))}, {"time": time})
    small = xr.Dataset({"refused": ("instance", np.zeros(2))})
    return {"matched": matched, "small": small, "shared": shared.assign(bound=1.5), "backwards": back}


def test_whatever_is_no_number_makes_a_claim_fail():
    """One entry of one array at a time; only the rates at later times are not read."""
    assert all(claim.holds for claim in compare.claims(CORE, made_up()))
    for part, name in (
        ("matched", "found"),
        ("matched", "after"),
        ("small", "refused"),
        ("shared", "w1"),
        ("backwards", "error"),
    ):
        for k in range(made_up()[part][name].size):
            data = made_up()
            data[part][name].values.flat[k] = np.nan
            assert not all(claim.holds for claim in compare.claims(CORE, data)), (part, name, k)


def test_a_refusal_is_counted_and_raises_nothing():
    data = made_up()
    data["matched"]["found"][0] = 0
    data["matched"]["after"][:] = np.nan
    assert [claim.holds for claim in compare.claims(CORE, data)] == [False, False, True, True, True]
    data = made_up()
    data["small"]["refused"][1] = 1
    assert [claim.holds for claim in compare.claims(CORE, data)] == [True, False, True, True, True]
    with mutation(measure_to_measure, "atoms of unequal mass").applied():
        assert planned(match_measures, *simulate.instance(CORE, 0), 0) is None


@pytest.mark.long
def test_the_core_holds_and_a_shorter_attention_is_found_out(tmp_path):
    data = measure_to_measure.run(CORE, Study(tmp_path / "parts"))
    assert all(claim.holds for claim in compare.claims(CORE, data))
    with mutation(measure_to_measure, "replay: attention 20 % shorter").applied():
        short = data | {"matched": simulate.matched(CORE, Study(tmp_path / "unused"))}
    assert compare.claims(CORE, short)[0].holds is False
    with mutation(measure_to_measure, "attention stays in the schedule that should lack it").applied():
        blind = data | {"shared": simulate.shared(CORE)}
    assert compare.claims(CORE, blind)[2].holds is False


def test_errors_grow_backwards_at_rate_one():
    data = made_up() | {"backwards": simulate.backwards(CORE)}
    claim = compare.claims(CORE, data)[-1]
    assert claim.holds
    assert claim.tolerance < 1e-2
    with mutation(measure_to_measure, "backwards: V = I/2").applied():
        slow = made_up() | {"backwards": simulate.backwards(CORE)}
    assert not compare.claims(CORE, slow)[-1].holds
