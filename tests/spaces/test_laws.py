"""What `AbstractSpace` promises, for every space of the package."""

import functools

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.spaces import AbstractSpace, CentredSphere, Ellipsoid, Euclidean, Product, Sphere, Torus
from tests.marks import graded
from tests.outside.space import Rotations

EPS = np.finfo(float).eps
GAIN = (0.5, 2.0, 1.25, 0.8)
SPACES = {
    "circle": Sphere(2),
    "sphere": Sphere(4),
    "euclidean": Euclidean(3),
    "ellipsoid": Ellipsoid(GAIN, 1.5),
    "centred": CentredSphere(4, GAIN, 2.0),
    "torus1": Torus(1),
    "torus": Torus(3),
    "sphere and circle": Product(Sphere(3), Torus(1)),
    "cylinder": Product(Euclidean(1), Sphere(2)),
    "from outside": Rotations(),
    "nested": Product(Torus(2), Product(Ellipsoid(GAIN), Euclidean(2)), CentredSphere(3)),
}
SHAPES = {  # dim, dimension, whether tangent is orthogonal, volume
    "circle": (2, 1, True, 2 * np.pi),
    "sphere": (4, 3, True, 2 * np.pi**2),
    "euclidean": (3, 3, True, np.inf),
    "ellipsoid": (4, 3, False, 2 * np.pi**2 * 1.5**3),
    "centred": (4, 2, False, 4 * np.pi * 2**2),
    "torus1": (2, 1, True, 2 * np.pi),
    "torus": (6, 3, True, (2 * np.pi) ** 3),
    "sphere and circle": (5, 3, True, 8 * np.pi**2),
    "cylinder": (3, 2, True, np.inf),
    "from outside": (9, 3, True, 8 * np.pi**2 * 8**0.5),
    "nested": (13, 8, False, np.inf),
}
EVERY = pytest.mark.parametrize("name", SPACES)


class Compiled:
    """A space whose maps are one program each; operation by operation they would be a dozen."""

    def __init__(self, space):
        self.space = space
        for method in ("tangent", "retract", "distance"):
            setattr(self, method, af.in_float64(jax.jit(lambda *x, method=method: getattr(space, method)(*x))))

    def __getattr__(self, name):
        return getattr(self.space, name)


compiled = functools.cache(lambda name: Compiled(SPACES[name]))


def sampled(name, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return SPACES[name].sample(rng, n), rng


@EVERY
def test_dimensions_and_volumes(name):
    space = SPACES[name]
    dim, dimension, riemannian, volume = SHAPES[name]
    assert (space.dim, space.dimension, space.is_riemannian) == (dim, dimension, riemannian)
    assert space.volume == pytest.approx(volume, rel=20 * EPS)
    assert space == SPACES[name]
    assert space != Sphere(9)
    assert "\n" not in str(space)


@pytest.mark.slow
@EVERY
def test_tangent_is_the_derivative_of_the_retraction(name):
    space, (x, rng) = compiled(name), sampled(name)
    v = rng.standard_normal(x.shape)
    p = space.tangent(x, v)
    derivative = af.in_float64(jax.jit(lambda x, v: jax.jvp(SPACES[name].retract, (x,), (v,))[1]))(x, v)
    # some ten roundings of numbers below |v| max(gain)/min(gain) < 20
    np.testing.assert_allclose(p, derivative, rtol=0, atol=400 * EPS)
    np.testing.assert_allclose(space.tangent(x, p), p, rtol=0, atol=400 * EPS)
    np.testing.assert_allclose(space.retract(x), x, rtol=0, atol=40 * EPS)
    assert space.defect(space.retract(x + v)).max() < 40 * EPS
    moved = x + 0.1 * (v - p)
    assert space.dimension == space.dim or (space.defect(moved) > 1e-4).all()
    assert space.tangent(x[:1], v).shape == v.shape


@EVERY
@pytest.mark.slow
def test_tangent_basis_and_normals_make_a_basis(name):
    """Orthonormal tangent vectors, and vectors that `tangent` removes, in any shape of batches."""
    space, (x, _) = SPACES[name], sampled(name)
    frames, normals = space.tangent_basis(x), space.normals(x)
    assert frames.shape == (40, space.dimension, space.dim)
    assert normals.shape == (40, space.dim - space.dimension, space.dim)
    gram = frames @ np.swapaxes(frames, -1, -2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(space.dimension), gram.shape), atol=20 * EPS)
    np.testing.assert_allclose(space.tangent(x[:, None], frames), frames, rtol=0, atol=400 * EPS)
    np.testing.assert_allclose(space.tangent(x[:, None], normals), np.zeros(normals.shape), rtol=0, atol=400 * EPS)
    assert np.abs(np.linalg.det(np.concatenate([frames, normals], axis=1))).min() > 1e-2
    assert space.tangent_basis(x[0]).shape == frames[0].shape
    assert space.normals(x.reshape(5, 8, -1)).shape == (5, 8, *normals.shape[1:])
    if space.is_riemannian:
        gram = normals @ np.swapaxes(normals, -1, -2)
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=20 * EPS)


@EVERY
def test_normals_give_the_reference_measure(name):
    """Up to a constant det(tangent vectors, normals) is the volume of `distance`, and the trace condition holds."""
    space, (x, rng) = compiled(name), sampled(name)
    if space.dimension == space.dim:
        return
    frames, normals = space.tangent_basis(x), space.normals(x)
    h = 1e-3

    def apart(a, b):  # squared lengths in the metric of the distance, by polarisation
        points = [space.retract(x + h * c) for c in (a + b, a - b)]
        return (space.distance(x, points[0]) ** 2 - space.distance(x, points[1]) ** 2) / (4 * h**2)

    k = space.dimension
    metric = np.stack([np.stack([apart(frames[:, i], frames[:, j]) for j in range(k)], -1) for i in range(k)], -1)
    density = np.sqrt(np.linalg.det(metric))
    ratio = density / np.abs(np.linalg.det(np.concatenate([frames, normals], axis=1)))
    # distances differ from straight lines by h^2 relative to their size, stretched by at most (2/0.5)^2, in k rows
    np.testing.assert_allclose(ratio / ratio[0], 1.0, rtol=0, atol=50 * k * h**2)
    v = space.tangent(x, rng.standard_normal(x.shape))
    change = (space.normals(space.retract(x + h * v)) - space.normals(space.retract(x - h * v))) / (2 * h)
    back = np.linalg.inv(np.concatenate([frames, normals], axis=1))[:, :, k:]
    np.testing.assert_allclose(np.einsum("ncd,ndc->n", change, back), 0.0, atol=100 * h**2)


@EVERY
def test_retraction_is_of_order_two(name):
    """Along a tangent vector distances grow like c h (1 + O(h^2)): halving h divides the rest by four."""
    space, (x, rng) = compiled(name), sampled(name)
    v = space.tangent(x, rng.standard_normal(x.shape))
    v = v / np.linalg.norm(v, axis=-1, keepdims=True)
    speeds = [space.distance(x, space.retract(x + h * v)) / h for h in (0.04, 0.02, 0.01)]
    first, second = np.abs(speeds[0] - speeds[1]), np.abs(speeds[1] - speeds[2])
    bent = first > 1e-6
    assert (second[~bent] < 1e-6).all()
    np.testing.assert_allclose(first[bent] / second[bent], 4.0, atol=0.1)


@pytest.mark.slow
@EVERY
@given(seed=st.integers(0, 2**32 - 1), close=st.sampled_from([0.0, 1e-6, 0.1, 1.0]))
@settings(max_examples=8, deadline=None)
def test_distance_is_a_distance(name, seed, close):
    space, (x, rng) = compiled(name), sampled(name, 12, seed)
    y = space.retract(x + close * rng.standard_normal(x.shape))
    z = space.sample(rng, 12)
    xy, yz, xz = space.distance(x, y), space.distance(y, z), space.distance(x, z)
    np.testing.assert_array_equal(xy, space.distance(y, x))
    assert (space.distance(x, x) == 0).all()
    # the arcsine of the space from outside loses half the digits at its end
    assert (xz <= xy + yz + (1e-7 if name == "from outside" else 40 * EPS)).all()
    assert space.distance(x[:, None], z[None]).shape == (12, 12)


@pytest.mark.slow
@EVERY
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-3, 8.0))
@settings(max_examples=12, deadline=None)
def test_chords_bound_distances(name, seed, scale):
    space, (x, rng) = compiled(name), sampled(name, 64, seed)
    y = np.concatenate([space.retract(x[:32] + scale * rng.standard_normal((32, space.dim))), space.sample(rng, 32)])
    chord, distance = np.linalg.norm(x - y, axis=1), space.distance(x, y)
    sure, possible = space.chords(scale)
    assert 0 < sure <= possible * (1 + 4 * EPS)
    inside = chord <= sure
    assert (distance[inside] <= scale * chord[inside] / sure * (1 + 1e-9) + 40 * EPS).all()
    assert (chord[distance <= scale] <= possible * (1 + 1e-9)).all()


@EVERY
def test_pictures_show_every_point(name):
    space, (x, _) = SPACES[name], sampled(name)
    pictures = space.pictures(x.reshape(4, 10, -1))
    assert pictures
    for picture in pictures:
        assert picture.points.shape[:2] == (4, 10)
        assert picture.points.dtype == np.float64
        assert len(picture.labels) in (0, picture.points.shape[-1])
        if picture.unit:
            np.testing.assert_allclose(np.linalg.norm(picture.points, axis=-1), 1.0, atol=20 * EPS)
        if picture.limits is not None:
            assert picture.limits[0] <= picture.points.min() < picture.points.max() <= picture.limits[1]


@pytest.mark.parametrize(
    ("space", "ball"),
    [
        (Sphere(3), lambda r: 2 * np.pi * (1 - np.cos(r))),
        (Torus(2), lambda r: np.pi * r**2),
        (Ellipsoid((0.5, 2.0, 1.0), 1.5), lambda r: 2 * np.pi * 1.5**2 * (1 - np.cos(r / 1.5))),
        (CentredSphere(4, GAIN, 2.0), lambda r: 2 * np.pi * 2**2 * (1 - np.cos(r / 2))),
        (Product(Sphere(2), Torus(1)), lambda r: np.pi * r**2),
    ],
    ids=lambda given: str(given) if isinstance(given, AbstractSpace) else "ball",
)
def test_volume_distance_and_samples_belong_together(space, ball):
    """The share of samples within r of a point is the volume of the ball over that of the space (five deviations)."""
    rng, n = np.random.default_rng(3), 20_000
    x, y = space.sample(rng, 1), space.sample(rng, n)
    for r in (0.5, 1.5):
        p = ball(r) / space.volume
        share = np.mean(space.distance(x, y) <= r)
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / n)


def test_angles_and_points():
    torus, rng = Torus(3), np.random.default_rng(0)
    angles = rng.uniform(-np.pi, np.pi, (5, 7, 3))
    np.testing.assert_allclose(torus.angles(torus.at(angles)), angles, atol=4 * EPS)
    assert (torus.angles(np.array([[-1.0, -0.0, 1.0, 0.0, -1.0, 0.0]])) == [np.pi, 0.0, np.pi]).all()
    # around the seam at pi, and no more than pi on each circle
    assert torus.distance(torus.at([3.0, 0, 0]), torus.at([-3.0, 0, 0])) == pytest.approx(2 * np.pi - 6, rel=1e-14)
    assert torus.distance(torus.at([0.0, 0, 0]), torus.at([np.pi] * 3)) == pytest.approx(np.pi * 3**0.5, rel=1e-14)


def test_a_torus_is_a_product_of_circles():
    torus, product, rng = Torus(2), Product(Sphere(2), Sphere(2)), np.random.default_rng(1)
    x, y, v = torus.sample(rng, 9), torus.sample(rng, 9), rng.standard_normal((9, 4))
    for one, other in (
        (torus.tangent(x, v), product.tangent(x, v)),
        (torus.retract(v), product.retract(v)),
        (torus.distance(x, y), product.distance(x, y)),
        (torus.normals(x), product.normals(x)),
        (torus.tangent_basis(x), product.tangent_basis(x)),
        (torus.defect(v), product.defect(v)),
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=8 * EPS)
    assert torus.volume == pytest.approx(product.volume)


def test_products_in_products_are_flat():
    assert Product(Product(Sphere(3), Torus(1)), Euclidean(2)) == Product(Sphere(3), Torus(1), Euclidean(2))
    assert Product(Sphere(3), Torus(1)) != Product(Torus(1), Sphere(3))
    assert str(Product(Sphere(3), Torus(2))) == "Product(factors=(Sphere(dim=3), Torus(circles=2)))"


@graded("name", SPACES, fast=4)
def test_float32_stays_float32(name):
    space, (x, rng) = compiled(name), sampled(name)
    v = rng.standard_normal(x.shape)
    x32, v32 = x.astype(np.float32), v.astype(np.float32)
    for call in (space.tangent, space.distance):
        assert call(x32, v32).dtype == np.float32
    assert space.retract(v32).dtype == space.normals(x32).dtype == np.float32
    np.testing.assert_allclose(space.tangent(x32, v32), space.tangent(x, v), atol=2e-5)
    assert space.tangent_basis(x32).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Torus(0), "`circles` of Torus is 0; give an integer of at least 1"),
        (lambda: Torus(1.5), "`circles` of Torus is 1.5"),
        (lambda: Torus(2).at([1.0, 2.0, 3.0]), r"`angles` has shape \(3,\); give a last axis of length 2"),
        (lambda: Product(), "no factors"),
        (lambda: Product(Sphere(3), 2), "factor 1 of Product is 2; give spaces"),
        (lambda: af.Tokens(np.ones((3, 4)), space=Torus(2)), r"away from Torus\(circles=2\)"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()
