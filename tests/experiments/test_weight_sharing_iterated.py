"""A weight-shared network iterated: numbers of known tokens, and a layer without biases is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import weight_sharing_iterated
from attnflow_gallery.weight_sharing_iterated import compare, simulate
from tests.experiments.mutants import noticed, only


def test_numbers_of_known_tokens():
    """Two clusters of three and one token, at right angles: pairs 3 + 3 of 21 coincide, shares 3/7, 3/7, 1/7."""
    x = 5 * np.repeat(np.eye(3), [3, 3, 1], axis=0)
    overlap, rank, glued, clusters = simulate.numbers(x)
    shares = np.array([3, 3, 1]) / 7
    assert overlap == pytest.approx(6 / 21, rel=1e-12)
    assert glued == pytest.approx(6 / 21, rel=1e-12)
    assert clusters == 3
    assert rank == pytest.approx(np.exp(-np.sum(shares * np.log(shares))), rel=1e-9)


def test_a_full_layer_without_biases_is_found_out():
    few = dataclasses.replace(weight_sharing_iterated.QUICK, cases=(), texts=7, depths=(12, 64))
    module = only(weight_sharing_iterated, lambda *given: [compare._apart(*given)])
    assert noticed(module, few, "the full layer has no biases")
