"""Changing weights: the winner of a ramp holds, and a ramp that is three times as fast is found out."""

from types import SimpleNamespace

import pytest

from attnflow_gallery import changing_weights
from attnflow_gallery.changing_weights import compare, simulate
from tests.experiments.mutants import noticed


@pytest.mark.slow
def test_the_winner_holds_and_a_faster_ramp_is_found_out():
    """Without the other parts, which need more programs."""

    def run(parameters, study):
        return study.parts({"ramps": (simulate._ramps, parameters)})

    def claims(parameters, data):
        return [compare.winners(parameters, data)]

    part = SimpleNamespace(run=run, claims=claims, MUTATIONS=changing_weights.MUTATIONS)
    assert noticed(part, changing_weights.QUICK, "ramps of modes three times as fast")
