"""Three clusters on the circle: printed thresholds, forces, and a simulation in NumPy."""

import numpy as np
import pytest

from attnflow import theory


def end(counts, beta, gaps, until=200.0, step=0.1):
    """Angles of three weighted clusters under SA, by RK4, from gaps between clusters 1, 2 and 2, 3."""
    masses = np.array(counts) / np.sum(counts)
    theta = np.array([0.0, gaps[0], gaps[0] + gaps[1]])

    def velocity(theta):
        away = theta[None, :] - theta[:, None]
        weights = masses * np.exp(beta * np.cos(away))
        return np.sum(weights * np.sin(away), axis=1) / weights.sum(axis=1)

    for _ in range(round(until / step)):
        k1 = velocity(theta)
        k2 = velocity(theta + step / 2 * k1)
        k3 = velocity(theta + step / 2 * k2)
        theta = theta + step / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(theta + step * k3))
    return np.mod([theta[2] - theta[1], theta[0] - theta[2], theta[1] - theta[0]], 2 * np.pi)


@pytest.mark.parametrize(("counts", "beta"), [((2, 1, 1), -3.0), ((2, 2, 1), -2.0), ((3, 3, 1), -2.0)])
def test_a_simulation_ends_in_the_stable_state(counts, beta):
    (state,) = theory.merging.three_clusters(counts, beta)
    assert state.sum() == pytest.approx(2 * np.pi, abs=1e-10)
    found = end(counts, beta, (state[2] + 0.05, state[0] - 0.08))
    np.testing.assert_allclose(found, state, atol=1e-6)


def test_equal_clusters_are_stable_below_minus_two_thirds():
    np.testing.assert_allclose(theory.merging.three_clusters((2, 2, 2), -0.7), [[2 * np.pi / 3] * 3], atol=1e-10)
    assert theory.merging.three_clusters((1, 1, 1), -0.6).shape == (0, 3)
    assert theory.merging.three_cluster_threshold(9) == -2 / 3


def test_printed_thresholds():
    """On both sides, one part in a thousand away."""
    for counts, threshold in (
        ((2, 1, 1), -2.2124),
        ((2, 2, 1), -1.4429),
        ((3, 3, 1), -1.7169),
        ((34, 33, 33), -0.8987),
    ):
        assert len(theory.merging.three_clusters(counts, 1.001 * threshold)) == 1
        assert len(theory.merging.three_clusters(counts, 0.999 * threshold)) == 0


@pytest.mark.slow
def test_thresholds_by_bisection():
    for n, threshold in ((4, -2.2124), (5, -1.4429)):
        assert theory.merging.three_cluster_threshold(n) == pytest.approx(threshold, abs=2e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.merging.three_clusters((1, 1), -1.0), "`counts` is"),
        (lambda: theory.merging.three_clusters((1, 1, 1), 0.5), "`beta` is 0.5"),
        (lambda: theory.merging.three_cluster_threshold(2), "`n` is 2"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
