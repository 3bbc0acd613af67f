import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import attnflow as af
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.spaces import CentredSphere, Ellipsoid
from tests.marks import graded

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


GAIN = (0.5, 2.0, 1.25, 0.8, 1.6)
IMAGES = {
    "ellipsoid": Ellipsoid(GAIN, 5**0.5),
    "round": Ellipsoid(np.ones(5)),
    "centred": CentredSphere(5, radius=5**0.5),
    "centred with gain": CentredSphere(5, GAIN, 3.0),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images_of_norms_are_what_they_say(name):
    """Points radius gain theta with |theta| = 1, and sum theta = 0 where centred; retraction keeps them."""
    space, rng = IMAGES[name], np.random.default_rng(0)
    moved = space.retract(3 * rng.standard_normal((40, 5)))
    for x in (space.sample(rng, 40), moved, space.retract(moved)):
        theta = x / (space.radius * np.asarray(space.gain))
        assert np.max(np.abs(np.linalg.norm(theta, axis=1) - 1)) < 8 * EPS
        if isinstance(space, CentredSphere):
            assert np.max(np.abs(theta.sum(axis=1))) < 20 * EPS
        assert np.max(space.defect(x)) < 20 * EPS
        assert np.min(space.defect(1.01 * x)) > 0.0099
    # a few roundings of numbers below radius max(gain) = 6
    np.testing.assert_allclose(space.retract(moved), moved, rtol=0, atol=6 * 8 * EPS)


@pytest.mark.parametrize("name", IMAGES)
def test_tangent_is_the_derivative_of_the_retraction(name):
    """At points of the space; so it is idempotent, and the flow of x <- retract(x + h A) is x' = tangent(x, A)."""
    space, rng = IMAGES[name], np.random.default_rng(1)
    x, v = space.sample(rng, 20), rng.standard_normal((20, 5))
    p = space.tangent(x, v)
    derivative = af.in_float64(lambda x, v: jax.jvp(space.retract, (jnp.asarray(x),), (jnp.asarray(v),))[1])(x, v)
    # |v/gain| < 8, stretched by at most 2, some ten roundings
    np.testing.assert_allclose(p, derivative, rtol=0, atol=160 * EPS)
    np.testing.assert_allclose(space.tangent(x, p), p, rtol=0, atol=160 * EPS)
    theta = x / (space.radius * np.asarray(space.gain))
    assert np.max(np.abs(np.sum(theta * p / np.asarray(space.gain), axis=1))) < 160 * EPS


def test_unit_gains_are_the_sphere():
    rng, sphere, space = np.random.default_rng(2), af.Sphere(5), IMAGES["round"]
    x, y, v = sphere.sample(rng, 9), sphere.sample(rng, 9), rng.standard_normal((9, 5))
    np.testing.assert_allclose(space.retract(v), sphere.retract(v), rtol=0, atol=2 * EPS)
    np.testing.assert_allclose(space.tangent(x, v), sphere.tangent(x, v), rtol=0, atol=8 * EPS)
    np.testing.assert_allclose(space.distance(x, y), sphere.distance(x, y), rtol=4 * EPS)
    np.testing.assert_allclose(space.defect(v), sphere.defect(v), rtol=0, atol=8 * EPS)


def test_retraction_is_layer_norm():
    x = np.random.default_rng(3).standard_normal((30, 5)) + 2.0
    expected = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    # the mean is subtracted from numbers below 6, then divided by a deviation above 0.2
    np.testing.assert_allclose(IMAGES["centred"].retract(x), expected, rtol=0, atol=4 * 6 / 0.2 * EPS)


def test_the_centred_sphere_is_a_sphere_of_one_dimension_less():
    """In an orthonormal basis of the hyperplane everything is as on Sphere(d - 1), attention included."""
    basis = np.linalg.qr(np.eye(5) - 1 / 5)[0][:, :4]
    small, large = af.uniform(af.Sphere(4), n=7, seed=0), CentredSphere(5)
    tokens = af.Tokens(small.positions @ basis.T, space=large)
    velocity = af.Attention(2.0).velocity(tokens)
    expected = af.Attention(2.0).velocity(small)
    np.testing.assert_allclose(velocity, expected @ basis.T, rtol=0, atol=60 * EPS)
    np.testing.assert_allclose(
        large.distance(tokens.positions[:3], tokens.positions[3:6]),
        af.Sphere(4).distance(small.positions[:3], small.positions[3:6]),
        rtol=20 * EPS,
    )


def test_distance_does_not_see_the_gain():
    space, rng = IMAGES["ellipsoid"], np.random.default_rng(4)
    x, y = af.Sphere(5).sample(rng, 9), af.Sphere(5).sample(rng, 9)
    scale = np.sqrt(5) * np.asarray(GAIN)
    np.testing.assert_allclose(
        space.distance(scale * x, scale * y), np.sqrt(5) * af.Sphere(5).distance(x, y), rtol=20 * EPS
    )


def test_spaces_with_gains_compare_and_carry_batches():
    assert Ellipsoid([1, 2, 3], 2) == Ellipsoid(np.array([1.0, 2.0, 3.0]), 2.0)
    assert Ellipsoid([1, 2, 3]) != Ellipsoid([1, 2, 4])
    assert Ellipsoid([1, 2, 3]) != Ellipsoid([1, 2, 3], 2.0)
    assert CentredSphere(3) != Ellipsoid([1, 1, 1])
    space = Ellipsoid([1.0, 2.0, 0.5], 3**0.5)
    one = af.Tokens(space.sample(np.random.default_rng(0), 4), space=space)
    both = af.stack("copy", [0, 1], [one, one])
    v = af.Attention(1.0).velocity(both, at=one.positions)
    np.testing.assert_allclose(v[1], af.Attention(1.0).velocity(one), rtol=0, atol=20 * EPS)
    with pytest.raises(InvalidTokens):
        af.Tokens(unit_rows(one.positions), space=space)


def unit_rows(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Ellipsoid([1.0, 0.0, 2.0]), r"`gain\[1\]` of Ellipsoid is 0"),
        (lambda: Ellipsoid([1.0, np.nan]), "nan"),
        (lambda: Ellipsoid(1.0), "shape"),
        (lambda: Ellipsoid("wide"), "'wide'"),
        (lambda: Ellipsoid([1.0]), "at least 2"),
        (lambda: Ellipsoid([1.0, 1.0], -1.0), "`radius` of Ellipsoid is -1"),
        (lambda: CentredSphere(2), "at least 3"),
        (lambda: CentredSphere(3, [1.0, 1.0]), "length 2"),
        (lambda: CentredSphere(3, radius=np.inf), "`radius`"),
    ],
)
def test_bad_gains_are_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


@pytest.mark.parametrize("dim", [1, 0, -3, 2.5, "3", True, None])
def test_bad_dimensions_are_refused(dim):
    with pytest.raises(InvalidInput, match="dim"):
        af.Sphere(dim)


UNEQUAL = np.array([1e-4, 3.0, 1e4, 0.5, 40.0])
FRAMED = {
    "sphere": (af.Sphere(5), 4),
    "circle": (af.Sphere(2), 1),
    "euclidean": (af.Euclidean(5), 5),
    "ellipsoid": (IMAGES["ellipsoid"], 4),
    "centred": (IMAGES["centred"], 3),
    "centred with gain": (IMAGES["centred with gain"], 3),
    "smallest centred": (CentredSphere(3, [1.0, 2.0, 0.5]), 1),
    "very unequal ellipsoid": (Ellipsoid(UNEQUAL), 4),
    "very unequal centred": (CentredSphere(5, UNEQUAL, 2.0), 3),
}


@graded("name", FRAMED, fast=3)
def test_frames_are_orthonormal_bases_of_the_tangent_spaces(name):
    """As many vectors as the space has dimensions, orthonormal in R^d, each its own tangent part."""
    space, dimension = FRAMED[name]
    assert space.dimension == dimension
    points = np.concatenate([space.sample(np.random.default_rng(5), 24), np.asarray(space.retract(np.eye(space.dim)))])
    points = np.concatenate([points, -points])
    frames = space.tangent_basis(points)
    assert frames.shape == (len(points), dimension, space.dim)
    assert frames.dtype == np.float64
    gram = frames @ np.swapaxes(frames, -1, -2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(dimension), gram.shape), atol=20 * EPS)
    # a few roundings relative to the size of the vector, once divided by the gain
    gain = np.asarray(getattr(space, "gain", np.ones(space.dim)))
    off = (space.tangent(points[:, None, :], frames) - frames) / gain
    assert np.max(np.linalg.norm(off, axis=-1) / np.linalg.norm(frames / gain, axis=-1)) < 20 * EPS
    # whatever the leading axes are; a product rounds differently there, which unequal gains magnify
    rounding = 20 * EPS * np.max(gain) / np.min(gain)
    projection = np.swapaxes(frames, -1, -2) @ frames
    for shape in ((2, -1, space.dim), (-1, 1, space.dim)):
        some = space.tangent_basis(points.reshape(shape))
        assert some.shape == (*points.reshape(shape).shape[:-1], dimension, space.dim)
        same = (np.swapaxes(some, -1, -2) @ some).reshape(projection.shape)
        np.testing.assert_allclose(same, projection, rtol=0, atol=rounding)
    assert space.tangent_basis(points[0]).shape == frames[0].shape
    # every tangent vector is a combination of them
    v = space.tangent(points, np.random.default_rng(6).standard_normal(points.shape))
    again = np.einsum("na,nad->nd", np.einsum("nad,nd->na", frames, v), frames)
    np.testing.assert_allclose(again, v, rtol=0, atol=rounding * np.abs(v).max())
