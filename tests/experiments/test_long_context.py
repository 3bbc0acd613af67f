"""Long context: the core holds, beta off by 1e-6 is found out, and a Gram matrix gives the same cosines."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Mutation, altered, kill_matrix, with_arguments
from attnflow.fields import Unnormalised
from attnflow.theory import uniform
from attnflow_gallery import long_context
from attnflow_gallery.long_context import compare, simulate
from tests.experiments.mutants import mutation

SMALL = dataclasses.replace(long_context.QUICK, counts=(16,), large=(1e12,), iid_count=512, iid_dim=32)


def test_few_tokens_hold_and_a_slightly_wrong_beta_is_found_out():
    """One part in a million of beta moves the cosine at the threshold by some 1e-6."""
    found = kill_matrix(long_context, SMALL, [mutation(long_context, "beta larger by a factor 1 + 1e-6")])
    assert {claim for claim, row in zip(found.claims, found.killed, strict=True) if row == (True,)} >= {
        claim for claim in found.claims if "threshold, against" in claim or "exact" in claim
    }


def test_all_tokens_are_what_numpy_makes_of_them():
    """64 tokens of overlap 1/2 as a 64 x 64 Gram matrix: outputs A G A^T."""
    n, c = 64, simulate.scan(SMALL, 0.5)
    seen = simulate._all(SMALL, n)["cosine"].values[0]
    gram = 0.5 + 0.5 * np.eye(n)
    for k, beta in enumerate(c * np.log(n)):
        weights = np.exp(beta * (gram[:2] - 1))
        outputs = weights @ gram @ weights.T
        assert seen[k] == pytest.approx(outputs[0, 1] / np.sqrt(outputs[0, 0] * outputs[1, 1]), abs=1e-12)


def test_the_denominator_does_not_matter_for_directions():
    """Without softmax outputs have other lengths and the same cosines."""
    right = simulate._mean(SMALL)["cosine"].values
    with Mutation("no softmax", simulate, "Attention", with_arguments(normaliser=Unnormalised())).applied():
        np.testing.assert_allclose(simulate._mean(SMALL)["cosine"].values, right, atol=1e-12)


def test_a_wrong_threshold_is_found_out():
    """1/(1 - rho^2) instead of 1/(1 - rho), for limits computed from it and data at the right places."""
    data = simulate._mean(SMALL)["cosine"]
    assert all(claim.holds for claim in compare._limits(SMALL, data))
    with Mutation(
        "threshold of rho squared", uniform, "long_context_limit", altered("overlap", lambda rho: rho**2)
    ).applied():
        assert not any(claim.holds for claim in compare._limits(SMALL, data))
