"""Shuffled text: changes of known numbers, and texts of two words are found out."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from attnflow.experiments.kit import shuffled
from attnflow_gallery import shuffled_text_collapses
from attnflow_gallery.shuffled_text_collapses import compare
from tests.experiments.mutants import noticed


def test_changes_are_those_of_the_last_state():
    ranks = [[[9.0, 8.0], [9.0, 4.0]], [[9.0, 2.0], [9.0, 2.0]]]
    part = xr.Dataset({"rank_centred": (("order", "text", "state"), ranks)}, {"order": ["text", "shuffled"]})
    assert compare.change(part, "fall") == pytest.approx(np.log([4.0, 2.0]))
    assert compare.change(part, "rank_centred").tolist() == [-6.0, -2.0]


def test_special_tokens_stay_where_they_are():
    ids = np.arange(20)
    order = shuffled(ids, [0, -1], 3)
    assert sorted(order) == ids.tolist()
    assert (order[0], order[-1]) == (0, 19)
    assert (order != ids).sum() > 10


def test_two_words_in_place_of_shuffled_text_are_found_out():
    few = dataclasses.replace(shuffled_text_collapses.QUICK, nulls=(), texts=14, tokens=24)
    assert noticed(shuffled_text_collapses, few, "two words in place of shuffled text")


@pytest.mark.long
def test_claims_about_a_decoder_notice_broken_physics():
    """Texts through SmolLM2 and a null. The numbers of the second claim scatter by 0.21 around 0.25, so that the lower
    end of its interval is near 0.25 - 3.4 0.21/sqrt(28) = 0.11; ten texts (4.3 0.21/sqrt(10) = 0.29) are too few.
    """
    few = dataclasses.replace(shuffled_text_collapses.QUICK, networks=("smollm2",), nulls=("permuted",), texts=28)
    wrong = ("the trained network has permuted weights", "nothing is shuffled")
    assert [len(one) for one in noticed(shuffled_text_collapses, few, wrong, "*-network")] == [2, 2]
