"""Consensus: the core holds, a slightly wrong beta is found out, hemispheres and clusters are found."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments.kit import CONFIDENCE, share_interval
from attnflow.spaces import Sphere
from attnflow.tokens import uniform
from attnflow_gallery import consensus
from attnflow_gallery.consensus import compare, simulate
from tests.experiments.mutants import noticed

QUICK = consensus.QUICK


@pytest.mark.slow
def test_few_draws_hold_and_a_slightly_wrong_beta_is_found_out():
    """One part in ten thousand: eigenvalues, threshold and growth rate of the ring notice."""
    few = dataclasses.replace(
        QUICK, dims=(3,), draws=8, until=40.0, counts=(4,), largest_dim=3, hemisphere_draws=50, circle_counts=(4,),
        circle_betas=(-3.0, 0.5), circle_draws=20,
    )  # fmt: skip
    killed = noticed(consensus, few, "beta 0.01 % larger", "ring")
    assert len(killed) == 3
    assert all("three" in claim[:60] and "circle" not in claim for claim in killed)


def test_hemispheres_are_found():
    """Against gaps of angles on the circle, and against normals of all planes through two tokens on the sphere."""
    for x in np.asarray(uniform(Sphere(2), n=5, seed=range(60)).positions):
        angles = np.sort(np.arctan2(x[:, 1], x[:, 0]))
        gap = np.diff(np.append(angles, angles[0] + 2 * np.pi)).max()
        margin = simulate.pole_margin(x)
        assert (margin > 0) == (gap > np.pi)
        assert margin <= max(np.sin((gap - np.pi) / 2), 0) + 1e-12  # the best pole is in the middle of the gap
    for x in np.asarray(uniform(Sphere(3), n=6, seed=range(60)).positions):
        i, j = np.triu_indices(6, 1)
        sides = np.cross(x[i], x[j]) @ x.T
        sides[np.arange(len(i)), i] = sides[np.arange(len(i)), j] = 0
        inside = bool(np.any((sides >= 0).all(axis=1) | (sides <= 0).all(axis=1)))
        assert (simulate.pole_margin(x) > 0) == inside


def test_intervals_are_exact():
    """Nobody of 100: 1 - (alpha/2)^(1/100); all but the end points by the tails of the binomial distribution."""
    from scipy.stats import binom

    low, high = share_interval(np.array([0, 30, 100]), 100, CONFIDENCE)
    assert low[0] == 0
    assert high[2] == 1
    assert high[0] == pytest.approx(1 - 0.0005**0.01)
    assert binom.sf(29, 100, low[1]) == pytest.approx(0.0005)
    assert binom.cdf(30, 100, high[1]) == pytest.approx(0.0005)


def test_clusters_on_the_circle():
    """Sizes in cyclic order with the gap that follows; ends against the stable state of 2, 1 and 1 tokens."""
    sizes, gaps = compare.clusters_of(np.array([3.0, -3.0, 0.0, 1e-5]))
    assert sizes.tolist() == [1, 2, 1]  # -3; 0 and 1e-5; 3
    np.testing.assert_allclose(gaps, [3.0, 3.0 - 1e-5, 2 * np.pi - 6.0])
    assert compare.error_of_end(np.array([1.0, 1.0, 1.0 + 1e-5]), -2.0) == 0
    double, single = 2.350686, 1.966250  # opposite the cluster of two, and opposite each of the others
    for start in (0.0, 2.0, 5.0):
        ends = start + np.array([0.0, 0.0, single, single + double])
        assert compare.error_of_end(np.mod(ends, 2 * np.pi), -3.0) < 2e-6
    assert compare.error_of_end(np.array([0.0, 0.0, np.pi, np.pi]), -3.0) == np.inf
