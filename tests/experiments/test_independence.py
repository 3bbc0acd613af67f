"""Independence: pairs of few tokens follow the closure, and a softmax without normaliser is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow_gallery import independence
from attnflow_gallery.independence import simulate
from tests.experiments.mutants import changed, mutation

FEW = dataclasses.replace(independence.QUICK, sizes=(16,), batches=(1,))


@changed(simulate, "BATCH", 512)
def test_pairs_follow_the_closure_and_a_missing_normaliser_is_found_out():
    """The closure is 0.503, off by about 1/n of itself at most; without the normaliser the correlation is 0.71."""
    closure = float(theory.uniform.pair_correlation(FEW.until, FEW.beta, 2, n=16))
    found = simulate.circle(FEW, "SA").isel(size=0, quantity=0)
    allowed = 6 * float(found["error"]) + closure / 16
    assert float(found["mean"]) == pytest.approx(closure, abs=allowed)
    with mutation(independence, "softmax without its normaliser").applied():
        wrong = simulate.circle(FEW, "SA").isel(size=0, quantity=0)
    assert float(wrong["mean"]) > closure + allowed


def test_sums_over_distinct_tokens():
    """Against loops over four tokens."""
    angles = np.array([0.3, 1.1, 2.9, 4.0])
    z, before = np.exp(1j * angles), np.exp(1j * angles[::-1])
    found = simulate.statistics(before[None], z[None])[0]
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    triples = [(i, j, k) for i, j in pairs for k in range(4) if k not in (i, j)]
    for k in (1, 2):
        assert found[k - 1] == pytest.approx(4 * np.mean([np.real((z[i] / z[j]) ** k) for i, j in pairs]))
        assert found[k + 1] == pytest.approx(4 * np.mean([np.real((z[i] / before[j]) ** k) for i, j in pairs]))
    assert found[4] == pytest.approx(16 * np.mean([np.real(z[i] * z[j] / z[k] ** 2) for i, j, k in triples]))
    x = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    overlaps = [x[i] @ x[j] for i, j in pairs]
    expected = [4 * np.mean(overlaps), 4 * np.mean([(3 * s**2 - 1) / 2 for s in overlaps])]
    np.testing.assert_allclose(simulate.zonal_pairs(x[None])[0], expected)
