import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import attnflow as af
from attnflow.errors import InvalidInput

EPS = np.finfo(float).eps
DIMS = [2, 3, 8, 64]


@pytest.mark.parametrize("d", DIMS)
def test_tangent_is_orthogonal_and_idempotent(d):
    space, rng = af.Sphere(d), np.random.default_rng(0)
    x, v = space.sample(rng, 50), rng.standard_normal((50, d))
    p = space.tangent(x, v)
    # each inner product is a sum of d rounded terms
    assert np.max(np.abs(np.sum(p * x, axis=1))) < 4 * d * EPS
    assert np.max(np.abs(space.tangent(x, p) - p)) < 4 * d * EPS


@pytest.mark.parametrize("d", DIMS)
def test_retraction_lands_on_the_sphere(d):
    space = af.Sphere(d)
    y = space.retract(np.random.default_rng(1).standard_normal((100, d)) * 1e3)
    assert np.max(space.defect(y)) < 4 * EPS


@given(angle=st.floats(1e-12, np.pi - 1e-12), d=st.sampled_from(DIMS), near_antipodal=st.booleans())
@settings(max_examples=60, deadline=None)
def test_distance_is_accurate_everywhere(angle, d, near_antipodal):
    """The angle of two points made at that angle, near 0 and near pi included."""
    small = min(angle, 1.0)
    x, y = np.zeros(d), np.zeros(d)
    x[0] = 1.0
    y[0], y[1] = np.cos(small), np.sin(small)
    measured = float(af.Sphere(d).distance(x, -y if near_antipodal else y))
    if near_antipodal:
        # pi - angle is what carries the information: an absolute error of a few eps
        assert abs(measured - (np.pi - small)) < 8 * EPS
    else:
        # relative accuracy: cos(small) is rounded, which moves the point by eps/2 along x and by nothing across
        assert abs(measured - small) < 8 * EPS * small + EPS**2


def test_distance_beats_arccos():
    x, y = np.array([1.0, 0.0]), np.array([np.cos(1e-9), np.sin(1e-9)])
    assert abs(float(af.Sphere(2).distance(x, y)) - 1e-9) < 1e-24
    assert np.arccos(np.clip(x @ y, -1, 1)) == 0.0


def test_uniform_samples_have_uniform_moments():
    n, d = 200_000, 5
    x = af.Sphere(d).sample(np.random.default_rng(2), n)
    # E x = 0 with variance 1/d per entry; E x_i x_j = delta/d, variance at most 3/(d(d+2))
    assert np.max(np.abs(x.mean(axis=0))) < 5 / np.sqrt(n * d)
    assert np.max(np.abs(x.T @ x / n - np.eye(d) / d)) < 5 * np.sqrt(3 / (d * (d + 2) * n))


def test_euclidean_is_plain():
    space, rng = af.Euclidean(3), np.random.default_rng(3)
    x, v = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    assert np.array_equal(space.tangent(x, v), v)
    assert np.array_equal(space.retract(x), x)
    np.testing.assert_allclose(space.distance(x, v), np.linalg.norm(x - v, axis=1), rtol=1e-15)


@pytest.mark.parametrize("dim", [1, 0, -3, 2.5, "3", True, None])
def test_bad_dimensions_are_refused(dim):
    with pytest.raises(InvalidInput, match="dim"):
        af.Sphere(dim)
