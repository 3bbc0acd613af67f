"""Places: words with additive places follow their two overlaps, and places that are a little too large are found out."""

from types import SimpleNamespace

import pytest

from attnflow_gallery import places
from attnflow_gallery.places import compare, simulate
from tests.experiments.mutants import noticed


@pytest.mark.slow
def test_overlaps_of_words_hold_and_larger_places_are_found_out():
    """Without rotary places, which need more programs."""

    def run(parameters, study):
        return study.parts({"words": (simulate._words, parameters)})

    def claims(parameters, data):
        return [compare.words(parameters, data)]

    part = SimpleNamespace(run=run, claims=claims, MUTATIONS=places.MUTATIONS)
    assert noticed(part, places.QUICK, "additive places 0.1 % larger")
