"""Measures to measures: a small version holds, and a shorter attention is found out."""

import dataclasses
import math

import pytest

from attnflow.experiments import Study
from attnflow_gallery import measure_to_measure
from attnflow_gallery.measure_to_measure import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(measure_to_measure.QUICK, cases=((3, 2, 4),), tokens=24)


@pytest.mark.slow
def test_the_core_holds_and_a_shorter_attention_is_found_out(tmp_path):
    data = measure_to_measure.run(CORE, Study(tmp_path / "parts"))
    assert all(claim.holds for claim in compare.claims(CORE, data))
    with mutation(measure_to_measure, "replay: attention 20 % shorter").applied():
        short = data | {"matched": simulate.matched(CORE, Study(tmp_path / "unused"))}
    assert compare.claims(CORE, short)[0].holds is False
    with mutation(measure_to_measure, "attention stays in the schedule that should lack it").applied():
        blind = data | {"shared": simulate.shared(CORE)}
    assert compare.claims(CORE, blind)[1].holds is False


def test_errors_grow_backwards_at_rate_one():
    part = simulate.backwards(dataclasses.replace(CORE, times=(6.0, 8.0)))
    growth = part["error"].values
    assert 1.9 < math.log(growth[1] / growth[0]) < 2.1
    with mutation(measure_to_measure, "backwards: V = I/2").applied():
        slow = simulate.backwards(dataclasses.replace(CORE, times=(6.0, 8.0)))["error"].values
    assert math.log(slow[1] / slow[0]) < 1.5
