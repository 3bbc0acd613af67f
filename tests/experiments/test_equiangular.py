"""Equiangular tokens: the core holds, a slightly wrong beta is found out, and the span changes nothing."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import kill_matrix
from attnflow.experiments.kit import in_span, pair_overlaps
from attnflow.spaces import Sphere
from attnflow.tokens import uniform
from attnflow_gallery import equiangular
from attnflow_gallery.equiangular import simulate
from tests.experiments.mutants import mutation

QUICK = equiangular.QUICK


@pytest.mark.slow
def test_few_draws_hold_and_a_slightly_wrong_beta_is_found_out():
    """One part in a million of beta moves an overlap by some 1e-7, a hundred times what is allowed."""
    few = dataclasses.replace(QUICK, draws=16)
    found = kill_matrix(equiangular, few, [mutation(equiangular, "beta 0.0001 % larger")])
    assert [row == (True,) for row in found.killed] == ["minus γ(t)" in claim for claim in found.claims]


@pytest.mark.slow
def test_iid_tokens_flow_in_their_span_as_in_the_whole_space():
    """Overlaps in R^16 and in the span of 8 tokens, to rounding."""
    whole = uniform(Sphere(16), n=QUICK.n, seed=range(4))
    turned = in_span(QUICK, QUICK.n, (16,), 4)
    seen = [pair_overlaps(simulate.at_overlap(QUICK, "SA", 3.0, tokens).positions) for tokens in (whole, turned)]
    # 128 steps round 16 coordinates, and deviations grow by less than 10
    np.testing.assert_allclose(seen[0], seen[1][0], atol=4 * simulate.STEPS * 16 * 10 * np.finfo(float).eps)


def test_tokens_in_their_span_have_the_overlaps_of_the_draws():
    """Also where d is smaller than n."""
    turned = in_span(QUICK, 5, (3, 40), 2)
    for k, d in enumerate((3, 40)):
        drawn = uniform(Sphere(d), n=5, seed=range(2 * k, 2 * k + 2))
        np.testing.assert_allclose(pair_overlaps(turned.positions[k]), pair_overlaps(drawn.positions), atol=1e-14)
