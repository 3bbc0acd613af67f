"""Attention without layer norm: the formula, the change of coordinates, the limits of arXiv:2305.05465, extremes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.spatial import ConvexHull

import attnflow as af
from attnflow.errors import InvalidInput, TooLarge
from attnflow.fields import Rescaled
from attnflow.kernels import Gaussian
from attnflow.observe import boolean_rows, convex_hull, distinct, hyperplane_coordinates, leaders
from tests.conftest import rotation
from tests.kit import drive
from tests.marks import graded

EPS = np.finfo(float).eps
GAUSSIAN = np.random.default_rng(2).standard_normal(200)
POLYTOPE = GAUSSIAN[:40].reshape(20, 2)
PLANES = GAUSSIAN[40:100].reshape(30, 2)
SHRINKING = GAUSSIAN[100:140].reshape(20, 2)
LINE = np.array([-1.3, -0.4, -0.05, 0.2, 0.7, 1.9])[:, None]
SIMPLE = np.array([[1.0, 0.3], [0.0, -0.4]])
SHARP = af.Adaptive(rtol=1e-10, atol=1e-12)
VALUES = {
    "identity": None,
    "minus": -np.eye(3),
    "turning": np.array([[0.1, -2.0, 0.3], [2.0, 0.1, 0.0], [0.0, 0.5, -0.7]]),
    "jordan": np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]]),
}


def points(x, masses=None):
    x = np.asarray(x)
    return af.Tokens(x, masses, space=af.Euclidean(x.shape[-1]))


def follow(field, x, times, method=SHARP, masses=None):
    """Positions at the given times, at the first of which they are `x`."""
    tokens, found = points(x, masses), [np.asarray(x)]
    for begin, end in itertools.pairwise(times):
        tokens = af.advance(field, tokens, begin, end, method)
        found.append(tokens.positions)
    return found


def weights(x, m, query, key, seen=None):
    """Softmax of <Qx_i, Kx_j> with masses, over all pairs."""
    logits = (x @ query.T) @ (x @ key.T).T
    if seen is not None:
        logits = np.where(seen, logits, -np.inf)
    a = m[None, :] * np.exp(logits - logits.max(axis=1, keepdims=True))
    return a / a.sum(axis=1, keepdims=True)


def reference(z0, v, times):
    """z of dz_i/dt = sum_j A_ij V (z_j - z_i) by LSODA, with SciPy's matrix exponential."""
    n, d = z0.shape

    def rate(t, state):
        z = state.reshape(n, d)
        a = weights(z @ expm(t * v).T, np.ones(n), np.eye(d), np.eye(d))
        return ((a @ z - z) @ v.T).ravel()

    solution = solve_ivp(rate, (0, times[-1]), z0.ravel(), method="LSODA", t_eval=times, rtol=1e-10, atol=1e-12)
    return solution.y.T.reshape(-1, n, d)


@graded("mask", [af.masks.Everyone(), af.Causal()], ids=["everyone", "causal"])
@pytest.mark.parametrize("value", VALUES)
def test_the_formula(value, mask):
    rng = np.random.default_rng(1)
    z, m = rng.standard_normal((9, 3)), rng.random(9)
    query, key = rng.standard_normal((2, 2, 3))
    tokens, t, beta = points(z, m), 0.7, 0.6
    field = Rescaled(af.Attention(beta, query=query, key=key, value=VALUES[value], mask=mask))
    v = np.eye(3) if VALUES[value] is None else VALUES[value]
    seen = np.tril(np.ones((9, 9), bool)) if isinstance(mask, af.Causal) else None
    x = z @ expm(t * v).T
    a = weights(x, m, beta * query, key, seen)
    # a logit of size L carries a few eps L, and the exponential about as many eps as its condition number
    tolerance = 40 * EPS * (1 + np.abs((x @ query.T) @ (x @ key.T).T).max()) * np.linalg.norm(v, 2) * np.abs(z).max()
    np.testing.assert_allclose(field.matrix(t, tokens), a, atol=tolerance)
    expected = np.einsum("ij,ijk->ik", a, z[None, :, :] - z[:, None, :]) @ v.T
    np.testing.assert_allclose(drive(field, tokens, z, t, tokens.place), expected, atol=4 * tolerance)


def test_the_raw_model():
    """Two tokens a and -a on the line: da/dt = a tanh(a^2); and logits of 1e12 do no harm."""
    raw = af.Attention(1.0)
    for a in (0.3, 1.0, 4.0, 1e6):
        tokens = points([[a], [-a]])
        np.testing.assert_allclose(drive(raw, tokens)[0, 0], a * np.tanh(a * a), rtol=8 * EPS)


def test_permutations_and_rotations():
    z, tokens, r = POLYTOPE, points(POLYTOPE), rotation(2)
    field, order = Rescaled(af.Attention(1.0)), np.random.default_rng(0).permutation(20)
    assert field.laws.exchangeable
    assert field.laws.rotation
    here = drive(field, tokens, z, 1.0)
    # logits up to e^2 6^2 = 270, each with a few eps of its size
    np.testing.assert_allclose(drive(field, points(z[order]), z[order], 1.0), here[order], atol=1e-12)
    np.testing.assert_allclose(drive(field, points(z @ r.T), z @ r.T, 1.0), here @ r.T, atol=1e-12)
    assert not Rescaled(af.Attention(1.0, value=SIMPLE)).laws.rotation
    assert not Rescaled(af.Attention(1.0, mask=af.Causal())).laws.exchangeable


def test_test_particles_exert_nothing():
    m = np.r_[np.zeros(5), np.ones(15)]
    field = Rescaled(af.Attention(1.0, value=SIMPLE))
    elsewhere = np.r_[5 + POLYTOPE[:5], POLYTOPE[5:]]
    here, there = (drive(field, points(x, m), POLYTOPE, 1.0) for x in (POLYTOPE, elsewhere))
    np.testing.assert_allclose(here, there, atol=1e-12)  # logits up to 300, each with a few eps of its size
    heavy = drive(field, points(elsewhere), POLYTOPE, 1.0)
    assert np.abs(heavy - here).max() > 1


def test_a_token_that_sees_nobody_keeps_its_x():
    field = Rescaled(af.Attention(1.0, value=SIMPLE, mask=af.Causal(strict=True)))
    tokens = points(POLYTOPE)
    np.testing.assert_allclose(drive(field, tokens, t=0.5)[0], -SIMPLE @ POLYTOPE[0], rtol=4 * EPS)


@graded(
    ("value", "start"),
    [(None, POLYTOPE), (SIMPLE, PLANES), (-np.eye(2), PLANES)],
    ids=["identity", "simple", "minus"],
    slow=1,
)
def test_both_coordinates_tell_one_story(value, start):
    """Twenty steps with a relative error of 1e-10 each, which the flow multiplies by at most 5 until t = 2."""
    raw = af.Attention(1.0, value=value)
    field = Rescaled(raw)
    x, z = follow(raw, start, [0.0, 2.0])[1], follow(field, start, [0.0, 2.0])[1]
    np.testing.assert_allclose(field.from_raw(2.0, x), z, atol=1e-8)
    np.testing.assert_allclose(field.to_raw(2.0, z), x, atol=1e-8 * np.exp(2.0))
    np.testing.assert_allclose(field.matrix(2.0, points(z)), af.observe.attention_matrix(raw, points(x)), atol=1e-6)
    assert np.abs(x - z).max() > 1


def test_change_of_coordinates():
    field = Rescaled(af.Attention(1.0, value=VALUES["turning"]))
    z = np.random.default_rng(0).standard_normal((2, 4, 3))
    np.testing.assert_allclose(field.to_raw(1.5, z), z @ expm(1.5 * VALUES["turning"]).T, atol=1e-13)
    np.testing.assert_allclose(field.from_raw(1.5, field.to_raw(1.5, z)), z, atol=1e-13)
    np.testing.assert_allclose(Rescaled(af.Attention(1.0)).to_raw(2.0, z), np.exp(2.0) * z, rtol=4 * EPS)
    with pytest.raises(InvalidInput, match="`t` = 800"):
        Rescaled(af.Attention(1.0)).to_raw(800.0, z)


@pytest.mark.slow
def test_boolean_limit_on_the_line():
    """V = QK = 1 at t = 8: tokens 1, 2 follow the first, 3 to 6 the last, and the matrix has rank 2."""
    raw = af.Attention(1.0)
    field = Rescaled(raw)
    limit = np.zeros((6, 6))
    limit[:2, 0] = limit[2:, 5] = 1
    z, x = (follow(f, LINE, [0.0, 8.0], af.Fixed(0.01))[1] for f in (field, raw))
    for a in (field.matrix(8.0, points(z)), af.observe.attention_matrix(raw, points(x))):
        np.testing.assert_allclose(a, limit, atol=1e-6)
        assert np.linalg.matrix_rank(a, tol=1e-6) == 2
        assert boolean_rows(a).all()
        assert leaders(a).tolist() == [0, 5]
    assert not boolean_rows(field.matrix(0.0, points(LINE))).any()


def test_polytope():
    """V = I: the hull shrinks, each hull within the one before, to 4 vertices, one of which every token reaches."""
    field, times = Rescaled(af.Attention(1.0)), [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0]
    frames = dict(zip(times, follow(field, POLYTOPE, times), strict=True))
    areas = [convex_hull(frames[t]).volume for t in (0.0, 0.5, 1.0, 2.0, 4.0)]
    np.testing.assert_allclose(areas, [10.0211, 8.7723, 8.2376, 7.0691, 6.1764], atol=6e-5)  # as printed
    for before, after in itertools.pairwise(times):
        faces = ConvexHull(frames[before]).equations
        # 20 steps with errors of 1e-10 |z|
        assert (frames[after] @ faces[:, :2].T + faces[None, :, 2] < 1e-8).all()
    expected = reference(POLYTOPE, np.eye(2), [4.0])[0]
    np.testing.assert_allclose(frames[4.0], expected, atol=1e-7)  # LSODA: 100 steps of 1e-10, multiplied by at most 10
    limits = distinct(frames[10.0], 1e-2)
    a = field.matrix(10.0, points(frames[10.0]))
    assert len(limits) == len(convex_hull(limits).vertices) == 4
    assert boolean_rows(a).all()
    # tokens approach their leader like e^(-t), so nobody is farther than the diameter times that
    winners = frames[10.0][leaders(a)]
    np.testing.assert_allclose(distinct(winners, 1e-2), limits, atol=10 * np.exp(-10.0))


def test_hyperplanes():
    """A simple leading eigenvalue: the leading coordinate has at most three limits, here two; the other one grows."""
    field = Rescaled(af.Attention(1.0, value=SIMPLE))
    end = follow(field, PLANES, [0.0, 12.0])[1]
    coordinates = hyperplane_coordinates(end, SIMPLE)
    limits = distinct(coordinates, 1e-2)
    # an independent solution to t = 12 (LSODA) has -1.992221 and 2.307841 for a left eigenvector of norm 1; tokens
    # are e^(-12) times the distance of the planes, 3e-5, from them
    np.testing.assert_allclose(limits / np.hypot(1, 0.3 / 1.4), [-1.992221, 2.307841], atol=3e-5)
    assert np.ptp(coordinates[coordinates > 0]) < 1e-3
    assert np.ptp(end[:, 1]) > 100


def test_algebraic_collapse():
    """V = -I: tokens reach 0 only like t^(-1/2), max |x| = .511 at t = 10 and .166 at t = 100."""
    raw = af.Attention(1.0, value=-np.eye(2))
    start, m = np.r_[SHRINKING, PLANES[:10]], np.r_[np.ones(20), np.zeros(10)]  # the shape of the planes: one compile
    _, ten, hundred = (np.abs(x[:20]).max() for x in follow(raw, start, [0.0, 10.0, 100.0], masses=m))
    np.testing.assert_allclose([ten, hundred], [0.511, 0.166], atol=5e-4)
    assert abs(np.log10(ten / hundred) - 0.5) < 0.05
    field = Rescaled(raw)
    assert field.growth == -1
    z = follow(field, start, [0.0, 10.0], masses=m)[1][:20]
    np.testing.assert_allclose(np.abs(field.to_raw(10.0, z)).max(), ten, rtol=1e-6)  # z grows by e^10: 1e-10 a step


@graded("t", [400.0, 1e5])
def test_far_beyond_overflow(t):
    """e^(2t) has no floating-point number; the field is that of the hardmax."""
    field, tokens = Rescaled(af.Attention(1.0)), points(POLYTOPE)
    winner = np.argmax(POLYTOPE @ POLYTOPE.T, axis=1)
    np.testing.assert_array_equal(field.matrix(t, tokens), np.eye(20)[winner])
    np.testing.assert_allclose(drive(field, tokens, POLYTOPE, t), POLYTOPE[winner] - POLYTOPE, atol=4 * EPS)
    slow = Rescaled(af.Attention(1.0, value=SIMPLE))
    assert np.isfinite(drive(slow, tokens, POLYTOPE, t)).all()
    # V = -I at t = 400, where z = e^400 x: the weights are those of x; 400 eps from the exponential, times the logits
    minus = Rescaled(af.Attention(1.0, value=-np.eye(2)))
    z = points(np.exp(400.0) * POLYTOPE)
    expected = af.observe.attention_matrix(af.Attention(1.0), tokens)
    np.testing.assert_allclose(minus.matrix(400.0, z), expected, atol=400 * EPS * 20)


@pytest.mark.long
def test_derivatives_to_any_time():
    field, tokens = Rescaled(af.Attention(1.0)), points(POLYTOPE)
    method = af.Adaptive(rtol=1e-12, atol=1e-14)
    direction = np.random.default_rng(3).standard_normal(POLYTOPE.shape)

    def total(x, t):
        return jnp.sum(af.advance(field, tokens.moved(x), 0.0, t, method).positions ** 2)

    loss = af.in_float64(jax.jit(total))
    gradient = af.in_float64(jax.jit(jax.grad(total)))

    def along(t):
        return float(np.sum(gradient(POLYTOPE, t) * direction))

    def difference(t, h=1e-4):
        near, far = (
            float(loss(POLYTOPE + s * direction, t)) - float(loss(POLYTOPE - s * direction, t)) for s in (h, 2 * h)
        )
        return (8 * near - far) / (12 * h)

    # differences: 1e-10 of integration error over 1e-4, and h^4 f^(5); weights count as constants from t = 8 on
    for t in (4.0, 12.0):
        np.testing.assert_allclose(along(t), difference(t), atol=1e-5)
    np.testing.assert_allclose(along(400.0), along(40.0), atol=1e-3)  # 1e-12 a step, and 1/eps^(1/2) at the threshold
    tied = np.r_[POLYTOPE[:5], POLYTOPE[:15]]
    slope = af.in_float64(jax.jit(jax.grad(lambda z: jnp.sum(field.drive(tokens.moved(z), 400.0, at=z) ** 2))))(tied)
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_derivatives_with_respect_to_value():
    """The split of e^(tV) has no derivative of its own."""
    tokens, direction = points(POLYTOPE), np.array([[0.3, -1.0], [0.7, 0.2]])

    @af.in_float64
    @jax.jit
    @jax.value_and_grad
    def loss(v):
        field = Rescaled(af.Attention(1.0, value=v))
        return jnp.sum(field.drive(tokens, 0.8, at=POLYTOPE) ** 2)

    slope = np.sum(loss(SIMPLE)[1] * direction)
    h = 1e-5
    difference = (float(loss(SIMPLE + h * direction)[0]) - float(loss(SIMPLE - h * direction)[0])) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)  # h^2 and eps/h


@pytest.mark.slow
def test_batches():
    values = np.stack([np.eye(2), SIMPLE, -np.eye(2)])
    tokens = af.stack("seed", [0, 1], [points(POLYTOPE), points(SHRINKING)])
    field = Rescaled(af.Attention(1.0, value=af.Along("v", values)))
    np.testing.assert_array_equal(field.growth.values, [1, 1, -1])
    moved = af.advance(field, tokens, 0.0, 1.0, af.Fixed(0.1)).positions
    assert moved.shape == (3, 2, 20, 2)
    for k, value in enumerate(values):
        for s, x in enumerate((POLYTOPE, SHRINKING)):
            alone = af.advance(Rescaled(af.Attention(1.0, value=value)), points(x), 0.0, 1.0, af.Fixed(0.1))
            # forty evaluations, each with logits of up to 100 eps
            np.testing.assert_allclose(moved[k, s], alone.positions, atol=4000 * EPS)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: af.Perceptron(np.eye(2)), "Perceptron"),
        (lambda: af.Attention(1.0, value=np.ones((2, 2, 2))), "heads"),
        (lambda: af.Attention(kernel=Gaussian(1.0)), "the kernel Gaussian"),
        (lambda: af.Attention(1.0, normaliser=af.Unnormalised()), "Unnormalised"),
        (lambda: af.Attention(1.0, encoding=af.fields.Sinusoidal()), "Sinusoidal"),
        (lambda: af.Attention(1.0, value=lambda t: t * jnp.eye(2)), "changes with time"),
        (lambda: af.Attention(1.0, value=af.fields.PerLayer(np.ones((3, 2, 2)))), "PerLayer"),
        (lambda: af.Attention(1.0, value=np.ones((3, 2))), r"\(3, 2\)"),
    ],
)
def test_refusals(build, match):
    with pytest.raises(InvalidInput, match=match):
        Rescaled(build())


def test_refused_tokens():
    field = Rescaled(af.Attention(1.0))
    with pytest.raises(InvalidInput, match=r"Euclidean\(3\)"):
        field.check(af.uniform(af.Sphere(3), n=4, seed=0))
    with pytest.raises(InvalidInput, match="dimension 1"):
        Rescaled(af.Attention(1.0, value=SIMPLE)).check(points(LINE))
    with pytest.raises(InvalidInput, match="member"):
        field.matrix(0.0, af.stack("seed", [0], [points(LINE)]))
    with pytest.raises(TooLarge, match="8193"):
        field.matrix(0.0, points(np.zeros((8193, 1))))
    with pytest.raises(InvalidInput, match="batch"):
        Rescaled(af.Attention(1.0, value=af.Along("v", [SIMPLE, SIMPLE]))).to_raw(1.0, POLYTOPE)
