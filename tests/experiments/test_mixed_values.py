"""Mixed V: limits of a prism hold, and a missing self term and logits that are a little too large are found out."""

from types import SimpleNamespace

import pytest

from attnflow_gallery import mixed_values
from attnflow_gallery.mixed_values import compare, simulate
from tests.experiments.mutants import noticed


@pytest.mark.slow
def test_limits_hold_and_wrong_attention_is_found_out():
    """Without the other parts, which need more programs."""

    def run(parameters, study):
        return study.parts({"prisms": (simulate._prisms, parameters)})

    def claims(parameters, data):
        return [compare.limits(parameters, data)]

    part = SimpleNamespace(run=run, claims=claims, MUTATIONS=mixed_values.MUTATIONS)
    blind, sharper = noticed(part, mixed_values.QUICK, ("tokens do not see themselves", "logits 0.01 % larger"))
    assert len(blind) == len(sharper) == 1
