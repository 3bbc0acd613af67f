"""Next token: the staircase holds, other read-outs are found out, and the closed forms are those of plain NumPy."""

import dataclasses

import numpy as np
import pytest
from scipy.special import entr

from attnflow.experiments import Study
from attnflow_gallery import next_token
from attnflow_gallery.next_token import compare, simulate
from tests.experiments.mutants import mutation

FEW = dataclasses.replace(next_token.QUICK, draws=3, vocabulary=50, frames=4, until=4.0)


@pytest.mark.slow
def test_orthonormal_words_follow_the_closed_form_and_a_slightly_wrong_beta_does_not(tmp_path):
    for name in (None, "beta 0.1 % larger"):
        study = Study(tmp_path / str(name))
        if name is None:
            part = study.refined("orthonormal", simulate._orthonormal(FEW))
        else:
            with mutation(next_token, name).applied():
                part = study.refined("orthonormal", simulate._orthonormal(FEW))
        assert compare._orthonormal(FEW, {"orthonormal": part})[0].holds == (name is None)


@pytest.mark.parametrize(("beta", "expected"), [(1.0, 0.15159592), (4.0, 1.08246166), (16.0, 2.46573590)])
def test_divergence_of_one_token_from_uniform_words(beta, expected):
    """Eight digits of an independent derivation."""
    assert compare.divergence(beta) == pytest.approx(expected, abs=5.1e-9)


def test_the_overlap_bounds_what_clusters_lose():
    """200 random cases: 0 <= H(M) - I <= bound; rounding 1e-12."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        count, beta = rng.integers(2, 6), 10 ** rng.uniform(-1, 2)
        masses, x = rng.dirichlet(np.ones(count)), rng.standard_normal((count, 3))
        words = simulate.evenly(60)
        weights = np.exp(beta * (x @ words.T - np.max(x @ words.T, axis=1, keepdims=True)))
        each = weights / weights.sum(axis=1, keepdims=True)
        lost = entr(masses).sum() - entr(masses @ each).sum() + masses @ entr(each).sum(axis=1)
        assert -1e-12 <= lost <= compare.overlap(masses, x, words, beta) + 1e-12
