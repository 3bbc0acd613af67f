"""The law of the first merge: exact cases, sampled points, and simulations."""

import numpy as np
import pytest

import attnflow as af
from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.observe import exit_distribution

M = theory.merging
SHARES = np.linspace(0.0, 0.99, 12)


@pytest.mark.parametrize(("d", "n"), [(2, 2), (2, 7), (3, 2), (3, 8), (6, 30)])
def test_angles_and_probabilities_are_inverse(d, n):
    np.testing.assert_allclose(M.nearest_angle_probability(M.nearest_angle(SHARES, d, n=n), d, n=n), SHARES, atol=1e-12)
    if n == 2:
        angles = np.linspace(0.01, 3.1, 9)
        want = M.pair_angle_probability(angles, d)
        np.testing.assert_allclose(M.nearest_angle_probability(angles, d, n=2), want, atol=1e-12)


@pytest.mark.parametrize(("d", "n", "off"), [(2, 5, 0.0), (3, 3, 0.05), (3, 8, 0.03), (8, 8, 0.02)])
def test_nearest_angles_of_sampled_points(d, n, off):
    """20,000 draws: the band of Dvoretzky, Kiefer and Wolfowitz at level 1e-4, and what the docstring allows."""
    x = np.random.default_rng(100 * d + n).standard_normal((20000, n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    overlap = np.einsum("snd,smd->snm", x, x) - 3 * np.eye(n)
    angles = np.sort(np.arccos(np.clip(overlap.max(axis=(1, 2)), -1, 1)))
    distance = np.abs(M.nearest_angle_probability(angles, d, n=n) - np.arange(1, 20001) / 20000).max()
    band = np.sqrt(np.log(2 / 1e-4) / (2 * 20000)) + 1 / 20000
    assert distance < off + band


def test_the_first_row_of_the_cascade():
    rng = np.random.default_rng(4)
    for masses in (np.full(6, 1 / 6), rng.dirichlet(np.ones(6))):
        x = rng.standard_normal((6, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        for model in ("SA", "USA0"):
            want = M.pair_cascade(x, masses, 30.0, model=model).log_time[0]
            assert M.log_first_merge_time(x, masses, 30.0, model=model) == pytest.approx(want, rel=1e-12)


SEEDS, BETA, END, LEVEL = 200, 100.0, 1e7, 1e-3
"""Fixed before the first run; beta (1 - cos) of the usual nearest angle of 8 tokens is 4.9 on S^2."""


@pytest.mark.long
def test_simulated_first_merges():
    """The law may be off by what the docstring says of 8 points, besides the test at its level."""
    tokens = af.uniform(af.Sphere(3), n=8, seed=range(SEEDS))
    merges = af.merge_times(af.Attention(BETA), tokens, until=END)
    first = merges.log_time.sel(left=7).values
    seen = exit_distribution(first, 1 - LEVEL, until=np.log(END))
    test = seen.kolmogorov(lambda t: M.first_merge_probability(t, BETA, 3, n=8))
    assert test.distance < test.critical + 0.03
    wrong = seen.kolmogorov(lambda t: M.first_merge_probability(t, BETA, 3, n=6))
    assert wrong.rejects
    said = {one.quantity: one for one in theory.predict_particles(BETA, d=3, n=8)}["first merge"]
    found = merges.survival(left=7, confidence=1 - LEVEL)
    assert found.quantile(0.5 - 0.03).low <= said.value * np.log(10) <= found.quantile(0.5 + 0.03).high
    alone = [M.log_first_merge_time(x, np.full(8, 1 / 8), BETA) for x in np.asarray(tokens.positions)]
    made = np.isfinite(first)
    assert np.median(np.abs(first[made] - np.array(alone)[made])) < 1e-3


def test_where_there_is_no_law():
    few = {one.quantity: one for one in theory.predict_particles(2.0, d=3, n=64)}["first merge"]
    assert few.value is None
    assert "do not merge alone" in few.statement
    two = {one.quantity: one for one in theory.predict_particles(2.0, d=3, n=2)}["first merge"]
    median = M.first_merge_probability(two.value * np.log(10), 2.0, 3, n=2)
    assert median == pytest.approx(0.5, abs=1e-5)
    assert "first merge" not in {one.quantity for one in theory.predict_particles(2.0, d=3)}
    with pytest.raises(InvalidInput, match="`q` is 1"):
        M.nearest_angle(1.0, 3, n=4)
    with pytest.raises(InvalidInput, match="`n` is 1"):
        M.first_merge_probability(1.0, 2.0, 3, n=1)
