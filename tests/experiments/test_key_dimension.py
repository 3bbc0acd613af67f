"""The key dimension: exponents hold on a small version, a wrong matrix is found out; images by hand."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import ks_2samp

from attnflow.experiments import Study
from attnflow_gallery import key_dimension
from attnflow_gallery.key_dimension import compare, simulate
from tests.experiments.mutants import mutation

QUICK = key_dimension.QUICK
CORE = dataclasses.replace(
    QUICK, keys=(4, 8, 16), pairs=40_000, cosine_dims=(64,), images=10_000, cold_overlaps=(0.6,), cold_pairs=20_000
)


def core(folder):
    """Claims of zero temperature, cosines and the drift constant."""
    study = Study(folder / "parts")
    return [
        *compare._cold(CORE, simulate.zero_temperature(CORE, study)),
        compare._cosines(CORE, simulate.cosines(CORE, study)),
        compare._drift(CORE, simulate.cold_drift(CORE, study)),
    ]


@pytest.mark.slow
def test_the_core_holds_and_another_matrix_is_found_out(tmp_path):
    assert [claim.statement for claim in core(tmp_path / "right") if not claim.holds] == []
    with mutation(key_dimension, "cosines and drift: one Gaussian matrix in place of QᵀK").applied():
        wrong = [claim.statement for claim in core(tmp_path / "wrong") if not claim.holds]
    assert len(wrong) == 2
    with mutation(key_dimension, "exponents: d_k larger by 2").applied():
        assert not any(claim.holds for claim in compare._cold(CORE, simulate.zero_temperature(CORE, Study(tmp_path))))


def pair(overlap, count, d):
    x, apart = simulate.tokens(overlap, count, d)
    return x, x + apart


def test_images_have_the_distribution_of_those_of_whole_matrices():
    """Angles and lengths of Q^T K x and Q^T K y from two columns, against all entries: Kolmogorov-Smirnov, level 0.001."""
    d, keys, count, rng = 5, 3, 4000, np.random.default_rng(0)
    x, y = pair(0.4, count, d)
    q, k = rng.standard_normal((2, count, keys, d))
    want = [np.einsum("rka,rk->ra", q, np.einsum("rka,ra->rk", k, one)) for one in (x, y)]
    numbers = rng.standard_normal((2, count, d)), rng.standard_normal((2, count, keys))
    first, apart = simulate.images((x, y - x), *numbers)
    found = [first, first + apart]
    for look in (
        lambda pair: np.sum(pair[0] * pair[1], axis=1),
        lambda pair: np.linalg.norm(pair[1], axis=1),
        lambda pair: pair[0][:, 1] - pair[1][:, 1],
    ):
        assert ks_2samp(look(found), look(want)).pvalue > 1e-3


def test_weights_restore_the_degrees_of_freedom():
    """Weighted means of powers of |Kx|^2 are those of chi^2 with d_k degrees; the second image is not changed across."""
    keys, count = 6, 200_000
    (first, apart), weights = simulate.keyed(np.random.default_rng(1), simulate.tokens(0.3, count, 4), keys)
    square = np.sum(first**2, axis=1)
    for power, want in ((0, 1.0), (1, keys), (-1, 1 / (keys - 2))):
        values = weights * square**power
        assert values.mean() == pytest.approx(want, abs=4.5 * values.std() / np.sqrt(count))
    second = first + apart
    values = weights * np.sum(first * second, axis=1)
    assert values.mean() == pytest.approx(0.3 * keys, abs=4.5 * values.std() / np.sqrt(count))


def test_the_layer_by_hand():
    """Tokens that are pushed along themselves stay; a common push turns them by the same tangent."""
    two = simulate.tokens(0.5, 1, 3)
    np.testing.assert_allclose(simulate.layer(two, two, 0.7), 0.5, rtol=1e-12)
    push = np.array([[0.0, 0.0, 1.0]])
    x, y = two[0] + push, two[0] + two[1] + push
    np.testing.assert_allclose(simulate.layer(two, (push, 0 * push), 1.0), 1 - np.sum(x * y) / 2, rtol=1e-12)


@pytest.mark.slow
def test_wide_tails_do_not_spoil_the_exponent_at_four_keys():
    """Two halves of the batches agree, and their spread is that of the standard errors."""
    part = simulate.zero_temperature(dataclasses.replace(QUICK, keys=(4,)), Study("unused"))
    rows = part["exponent"].values[0]
    halves = rows[: simulate.BATCHES // 2], rows[simulate.BATCHES // 2 :]
    error = rows.std(ddof=1) * 2 / np.sqrt(simulate.BATCHES)
    assert abs(halves[0].mean() - halves[1].mean()) < 4 * error
    assert np.abs(rows - rows.mean()).max() < 5 * rows.std()
