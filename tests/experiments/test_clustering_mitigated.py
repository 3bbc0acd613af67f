"""Clustering mitigated: exponents of a few pairs hold, as many keys as dimensions are found out; means by quadrature."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow import theory
from attnflow_gallery import clustering_mitigated
from attnflow_gallery.clustering_mitigated import compare, simulate
from tests.experiments.mutants import mutation

QUICK = clustering_mitigated.QUICK
CORE = dataclasses.replace(QUICK, cases=((4, 64.0),), pairs=400, pair_tau=0.4)


def exponents():
    """The claims about exponents and signs of pairs."""
    data = {f"pairs-{d_k}-{b:g}": simulate.pairs(d_k, b, CORE) for d_k, b in CORE.cases}
    return compare._exponents(CORE, data), compare._signs(CORE, data)


@pytest.mark.slow
def test_nearby_tokens_separate_with_few_keys_and_not_with_as_many_as_dimensions():
    right = exponents()
    assert [claim.holds for claim in right] == [True, True]
    with mutation(clustering_mitigated, "pairs: as many keys as dimensions").applied():
        assert [claim.holds for claim in exponents()] == [False, False]


def test_means_of_a_uniform_population_are_those_of_many_tokens():
    """20000 uniform tokens: errors of a mean of weights e^(a x)/Z, with an effective number of 20000 / E w^2."""
    rng = np.random.default_rng(0)
    tokens = simulate._unit(rng.standard_normal((20000, 8)))
    x, logits = simulate._unit(rng.standard_normal((1, 8))), simulate.keys(1, 8, 4, 2.0, rng)
    weights = np.exp(tokens @ (logits[0] @ x[0]))
    weights /= weights.sum()
    error = np.sqrt(np.sum(weights**2))
    np.testing.assert_allclose(simulate.uniform_mean(x, logits)[0], weights @ tokens, atol=5 * error)
    size = float(np.linalg.norm(logits[0] @ x[0]))
    assert np.linalg.norm(simulate.uniform_mean(x, logits)) == pytest.approx(ive(4, size) / ive(3, size), rel=1e-12)


def test_the_order_of_layers_of_collapsed_tokens():
    """-(d-1)/d plus first order in h, against the expectation over one layer, by 400000 Gaussian vectors."""
    d, h = 8, 0.01
    rng = np.random.default_rng(1)
    g = np.sqrt(h / d) * rng.standard_normal((400_000, d))
    g[:, 0] += 1
    norm = np.sum(g**2, axis=1)
    step = np.log(norm - g[:, 1] ** 2) - 2 * np.log(norm)
    step += 2 * (g[:, 0] - 1)  # its noise of order sqrt(h), of mean 0
    found, error = step.mean() / h, step.std() / h / np.sqrt(len(step))
    assert abs(found - compare.collapsed_exponent(d, h)) < 4 * error + h**2
    assert 4 * error < 0.01
    assert compare.collapsed_exponent(d, 0.0) == pytest.approx(
        float(theory.random_layers.pair_exponent(1.0, 0.0, d)), rel=1e-14
    )


def tokens():
    """The claims about nearly antipodal and about hot pairs."""
    data = {f"antipodal-{beta:g}": simulate.antipodal(beta, QUICK) for beta in QUICK.antipodal_beta}
    data |= {f"hot-{r:g}": simulate.hot(r, QUICK) for r in QUICK.hot_overlaps}
    return compare._antipodal(QUICK, data), compare._hot(QUICK, data)


@pytest.mark.slow
@pytest.mark.long
def test_antipodal_and_hot_pairs_hold_and_are_found_out():
    assert [claim.holds for claim in tokens()] == [True, True]
    with mutation(clustering_mitigated, "antipodal: beta 60 % larger").applied():
        assert not tokens()[0].holds
    with mutation(clustering_mitigated, "tokens: values of mean 0.2").applied():
        assert not tokens()[1].holds
