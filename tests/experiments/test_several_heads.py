"""Several heads: thresholds of axis heads hold and notice softmax; merge times notice a slightly wrong beta."""

import dataclasses
from types import SimpleNamespace

import pytest

from attnflow_gallery import several_heads
from attnflow_gallery.several_heads import compare, simulate
from tests.experiments.mutants import noticed

STATES = dataclasses.replace(several_heads.QUICK, betas=(1.0,))


@pytest.mark.slow
def test_thresholds_hold_and_softmax_and_whole_values_are_found_out():
    """Without the merging clusters and the random starts, which need more programs."""

    def run(parameters, study):
        return study.parts({"rates": (simulate._rates, parameters), "thresholds": (simulate._thresholds, parameters)})

    part = SimpleNamespace(run=run, claims=compare._states, MUTATIONS=several_heads.MUTATIONS)
    softmax, whole = noticed(part, STATES, ("softmax for USA", "V_h = I"))
    assert len(softmax) == len(whole) == 2
