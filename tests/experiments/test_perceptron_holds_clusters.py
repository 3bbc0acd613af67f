"""Held clusters: the separation at rest holds, and neurons with a bias and swapped models are found out."""

from types import SimpleNamespace

import pytest

from attnflow_gallery import perceptron_holds_clusters as held
from attnflow_gallery.perceptron_holds_clusters import compare, simulate
from tests.experiments.mutants import noticed


@pytest.mark.slow
def test_separations_hold_and_biases_and_swapped_models_are_found_out():
    """Without the other parts, which need more programs."""

    def run(parameters, study):
        return study.parts({"held": (simulate._held, parameters)})

    def claims(parameters, data):
        return [compare.held(parameters, data)]

    part = SimpleNamespace(run=run, claims=claims, MUTATIONS=held.MUTATIONS)
    biased, swapped = noticed(part, held.QUICK, ("biases 0.1", "SA and USA0 swapped"))
    assert len(biased) == len(swapped) == 1
