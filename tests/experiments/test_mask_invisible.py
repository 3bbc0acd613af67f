"""The mask is invisible to iid prompts: densities agree, one that differs between places is found out; noise."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.meanfield import CircleBasis, uniform
from attnflow.theory.causal import discrete_prefix_noise
from attnflow.theory.causal import weights as causal_weights
from attnflow_gallery import mask_invisible
from attnflow_gallery.mask_invisible import compare, simulate
from attnflow_gallery.mask_invisible.linear import carried
from tests.experiments.mutants import changed, mutation

CORE = dataclasses.replace(mask_invisible.QUICK, degree=24, strong_beta=1.0, strong_until=0.5, slopes=(2.0,))


@pytest.mark.slow
@changed(simulate, "MODELS", ("SA",))
def test_densities_do_not_see_the_mask_and_places_that_differ_are_found_out():
    assert all(claim.holds for claim in compare._densities(simulate.densities(CORE)))
    with mutation(mask_invisible, "densities with places differ by 1e-6").applied():
        assert not any(claim.holds for claim in compare._densities(simulate.densities(CORE)))


@pytest.mark.slow
def test_noise_of_a_uniform_start_is_that_of_the_matrix_exponential():
    """Both are first order in 1/N; steps of 1/4 err by less than 1e-6."""
    n, beta, t = 24, 1.0, 2.0
    found = carried(beta, [uniform(CircleBasis(12))] * n, causal_weights(n, 0.0), np.full(n, 1 / n), t)
    c = ive(1, beta) / ive(0, beta) / beta * t
    # E|z|^2 over both components
    assert n * found.noise == pytest.approx(discrete_prefix_noise(c, n), rel=1e-5)
    np.testing.assert_allclose(found.order, 0, atol=1e-12)


def test_prompts_hold_the_topics_in_order():
    topics = [(0.25, simulate.topic(CORE)), (1.0, simulate.topic(CORE, np.pi))]
    found = np.asarray(simulate.prompts(8, 2000, topics, 0).positions)
    assert found.shape == (2000, 8, 2)
    # the first harmonic is lean/2; 4 standard errors of 4000 tokens with variance 1/2
    assert found[:, :2, 0].mean() == pytest.approx(CORE.lean / 2, abs=4 * np.sqrt(0.5 / 4000))
    assert found[:, 2:, 0].mean() == pytest.approx(-CORE.lean / 2, abs=4 * np.sqrt(0.5 / 12000))
