"""Long context: the quick version holds; a dropped mass, a wrong beta and a wrong threshold are found out."""

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import long_context
from attnflow.fields import Attention, Unnormalised

QUICK = long_context.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return long_context.run(QUICK, Study(tmp_path_factory.mktemp("long") / "parts"))


def fails(data):
    return [claim.statement for claim in long_context.claims(QUICK, data) if not claim.holds]


def test_the_quick_version_holds(quick):
    assert not fails(quick)
    assert len(long_context.claims(QUICK, quick)) == 1 + 1 + 3 + 1 + 1
    assert len(long_context.draw(QUICK, quick).axes) == 3


def test_all_tokens_are_what_numpy_makes_of_them(quick):
    """256 tokens of overlap 1/2 as a 256 x 256 Gram matrix: outputs A G A^T."""
    n, c = 256, long_context.scan(QUICK, 0.5)
    gram = 0.5 + 0.5 * np.eye(n)
    for k, beta in enumerate(c * np.log(n)):
        weights = np.exp(beta * (gram[:2] - 1))
        outputs = weights @ gram @ weights.T
        cosine = outputs[0, 1] / np.sqrt(outputs[0, 0] * outputs[1, 1])
        assert float(quick["all-256"]["cosine"][0, k]) == pytest.approx(cosine, abs=1e-12)


def test_a_slightly_wrong_beta_is_found_out(quick, monkeypatch):
    """One part in a million of beta moves the cosine at the threshold by some 1e-6."""
    wrong = long_context.Along

    monkeypatch.setattr(long_context, "Along", lambda dim, values: wrong(dim, values * (1 + 1e-6)))
    found = fails(quick | {"lumped": long_context._lumped(QUICK)})
    assert any("others replaced" in words for words in found)
    assert any("at the threshold" in words for words in found)


def test_the_denominator_does_not_matter_for_directions(quick, monkeypatch):
    """Without softmax outputs have other lengths and the same cosines: no claim may fail."""
    monkeypatch.setattr(long_context, "Attention", lambda beta: Attention(beta, normaliser=Unnormalised()))
    assert not fails(quick | {"lumped": long_context._lumped(QUICK)})


def test_a_wrong_threshold_is_found_out(quick, monkeypatch):
    """1/(1 - rho^2) instead of 1/(1 - rho), for limits computed from it and data at the right places."""
    right = long_context.theory.long_context_limit
    monkeypatch.setattr(long_context.theory, "long_context_limit", lambda c, rho: right(c, rho**2))
    assert len([words for words in fails(quick) if "threshold" in words]) == 3


def test_fluctuations_of_overlaps_count(quick, monkeypatch):
    """In infinite dimension iid tokens would behave like tokens of equal overlaps; in dimension 64 they do not."""
    right = long_context.moments
    monkeypatch.setattr(long_context, "moments", lambda b, d: right(b, np.inf))
    (found,) = fails(quick)
    assert "iid" in found
