"""Boosts of the sphere and Poisson kernels: exact flows, their group, and noise that all tokens share."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.random_layers import PoissonKernel, boost, boost_log_det, poisson_path
from tests.marks import graded

RNG = np.random.default_rng(0)


def sphere(d, n=4, seed=0):
    return np.asarray(af.uniform(af.Sphere(d), n=n, seed=seed).positions)


@pytest.mark.parametrize("d", [2, 3])
def test_a_boost_is_the_flow_of_a_constant_drive(d):
    """Against DOP853 at 1e-12, on the sphere (x' = P_x b) and inside (w' = (1+|w|^2) b/2 - <w, b> w)."""
    b = 1.7 * RNG.standard_normal(d)
    x = np.concatenate([sphere(d), 0.6 * sphere(d, seed=1)])

    def rate(t, flat):
        w = flat.reshape(-1, d)
        return ((1 + np.sum(w**2, axis=1, keepdims=True)) / 2 * b - (w @ b)[:, None] * w).ravel()

    want = solve_ivp(rate, (0, 1), x.ravel(), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1].reshape(-1, d)
    found = np.concatenate([boost(x[:4], b), boost(x[4:], b)])
    np.testing.assert_allclose(found, want, atol=2e-11)
    np.testing.assert_allclose(np.linalg.norm(found[:4], axis=1), 1, atol=1e-15 * 4)
    e = np.cosh(np.linalg.norm(b)) + x[:4] @ b / np.linalg.norm(b) * np.sinh(np.linalg.norm(b))
    np.testing.assert_allclose(boost_log_det(x[:4], b), -(d - 1) * np.log(e), atol=1e-13)


def test_on_the_circle_it_is_a_moebius_map():
    b, x = RNG.standard_normal((4, 2)), np.concatenate([sphere(2, 3), 0.3 * sphere(2, 1, 1)])
    z, c = x @ [1, 1j], b @ [1, 1j]
    t, e = np.tanh(np.abs(c) / 2), c / np.abs(c)
    want = (z + t * e) / (1 + t * e.conj() * z)
    np.testing.assert_allclose(boost(x, b) @ [1, 1j], want, atol=1e-14)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([2, 3]), st.integers(0, 10**6), st.floats(0.0, 8.0), st.floats(-8.0, 8.0))
def test_the_group(d, seed, first, second):
    """Boosts along one axis add, and cross-ratios |x-y||z-u|/(|x-z||y-u|) are kept by all.

    Rounding of positions near the goal is multiplied by e^|b| on the way back, at most e^16.
    """
    x = sphere(d, 4, seed)
    e = sphere(d, 1, seed + 1)[0]
    amplified = 1e-15 * np.exp(2 * max(abs(first), abs(second), abs(first + second)))
    np.testing.assert_allclose(
        boost(boost(x, first * e), second * e), boost(x, (first + second) * e), atol=1e-14 + amplified
    )
    other = sphere(d, 1, seed + 2)[0]
    moved = boost(boost(x, e), 0.7 * other)

    def ratio(x):
        return np.linalg.norm(x[0] - x[1]) * np.linalg.norm(x[2] - x[3]) / np.linalg.norm(x[0] - x[2])

    def last(x):
        return np.linalg.norm(x[1] - x[3])

    np.testing.assert_allclose(ratio(moved) / last(moved), ratio(x) / last(x), rtol=1e-10)


@pytest.mark.parametrize("d", [3])
def test_the_jacobian_and_derivatives(d):
    """The determinant on the tangent space by automatic differentiation; a boost of 0 is smooth."""
    x, b = sphere(d, 1)[0], 0.8 * RNG.standard_normal(d)

    @af.in_float64
    @jax.jit
    def slopes(x, b):
        return jax.jacfwd(boost, (0, 1))(x, b)

    of_x, _ = slopes(x, b)
    frame = np.linalg.svd(x[None])[2][1:]
    gram = frame @ of_x.T @ of_x @ frame.T
    np.testing.assert_allclose(0.5 * np.linalg.slogdet(gram)[1], boost_log_det(x, b), atol=1e-13)
    assert np.array_equal(boost(x, np.zeros(d)), x)
    assert boost_log_det(x, np.zeros(d)) == 0
    assert np.isfinite(slopes(x, np.zeros(d))[0]).all()


def test_long_boosts_keep_their_digits():
    """Near the point opposite to the goal, with 40 digits: x = -e + delta, whose image turns on e^|b| delta."""
    e = np.array([0.0, 0.0, 1.0])
    for r, delta in ((30.0, 1e-13), (700.0, 1e-9), (40.0, 1e-3)):
        x = np.array([np.sin(delta), 0.0, -np.cos(delta)])
        with mpmath.workdps(400):
            angle = 2 * mpmath.atan(mpmath.exp(mpmath.mpf(r)) * mpmath.tan(mpmath.mpf(delta) / 2))
            want = [float(mpmath.sin(angle)), 0.0, float(-mpmath.cos(angle))]
        np.testing.assert_allclose(boost(x, r * e), want, atol=1e-14)
    np.testing.assert_allclose(boost(-e, 30 * e), -e, atol=1e-7)  # e is rounded: by 10^-17, times e^30
    np.testing.assert_allclose(np.abs(boost(-e, 1e6 * e)), e, atol=1e-15)  # a fixed point, if e had no rounding
    np.testing.assert_allclose(boost(e, 1e6 * e), e, atol=1e-15)


@pytest.mark.parametrize("d", [2, 3])
def test_boosts_carry_poisson_kernels_to_poisson_kernels(d):
    """rho_w'(x') = rho_w(x)/det for the kernel after 20 boosts of any directions, pathwise.

    The sum of 20 logarithms is off by the rounding of positions times the slope of log rho, which is at most
    4 (d-1)/gap: 1e-13 where the gap is not small.
    """
    rng = np.random.default_rng(d)
    kernel, x, log_rho = PoissonKernel(0.3 * sphere(d, 1)[0]), sphere(d, seed=2), 0.0
    log_rho = kernel.log_density(x)
    for _ in range(20):
        b = 0.15 * rng.standard_normal(d)
        log_rho = log_rho - boost_log_det(x, b)
        x, kernel = boost(x, b), kernel.moved(b)
    assert kernel.gap > 0.05
    np.testing.assert_allclose(kernel.log_density(x), log_rho, atol=1e-13 * 4 * (d - 1))
    np.testing.assert_allclose(kernel.gap, 1 - kernel.w @ kernel.w, atol=1e-14)


@pytest.mark.parametrize(("d", "size"), [(2, 0.7), (3, 0.99), (7, 0.2)])
def test_mass_and_mean_of_a_poisson_kernel(d, size):
    """By quadrature in s = <x, w>/|w|, whose density is (1-s^2)^((d-3)/2); s = cos theta removes its edge."""
    w = size * sphere(d, 1, 3)[0]
    kernel, e = PoissonKernel(w), w / size
    across = np.linalg.svd(e[None])[2][1]

    def weigh(function):
        def integrand(theta):
            x = np.cos(theta) * e + np.sin(theta) * across
            return (
                function(np.cos(theta)) * np.sin(theta) ** (d - 2) * ((1 - size**2) / np.sum((x - w) ** 2)) ** (d - 1)
            )

        return quad(integrand, 0, np.pi, epsabs=1e-13, epsrel=1e-12, points=[0.01, 0.1], limit=200)[0]

    mass = weigh(lambda s: 1.0)
    volume = quad(lambda theta: np.sin(theta) ** (d - 2), 0, np.pi, epsabs=1e-13)[0]
    np.testing.assert_allclose(mass / volume, 1, atol=1e-10)
    np.testing.assert_allclose(kernel.mean, weigh(lambda s: s) / mass * e, atol=1e-10)
    if d == 3:  # 1/t - (1-t^2) atanh(t)/t^2 with t = tanh of the length of the boost, 2 atanh |w|
        t = np.tanh(2 * np.arctanh(size))
        np.testing.assert_allclose(np.linalg.norm(kernel.mean), 1 / t - (1 - t**2) * np.arctanh(t) / t**2, atol=1e-9)
    x = sphere(d, seed=4)
    np.testing.assert_allclose(kernel.density(x), ((1 - size**2) / np.sum((x - w) ** 2, axis=1)) ** (d - 1), rtol=1e-12)


@pytest.mark.slow
def test_the_order_parameter_is_a_martingale_in_its_logarithm():
    """d = 2, u = |w|^2: E log u is kept by every step, however long; E u(1), E u(2) = .283285, .313176 from u = 1/4.

    4 standard errors of 20,000 paths, and for E u the weak error of steps h = .05: rates are at most 1/4, so 1% of the
    growth. (With the amplitude taken inside the step, E log u(1) is -1.320, 20 standard errors off.)
    """
    path = poisson_path([0.3, -0.4], 2.0, 0.05, replicas=20_000, save=2, seed=1)
    u = np.sum(path.w**2, axis=-1)
    np.testing.assert_allclose(path.gap, 1 - u, atol=1e-13)
    logs = np.log(u)
    error = logs.std(axis=0) / np.sqrt(len(u))
    assert (np.abs(logs.mean(axis=0) - np.log(0.25))[1:] < 4 * error[1:]).all()
    assert error[1] < 0.005
    error = u.std(axis=0) / np.sqrt(len(u))
    growth = np.array([0.283285, 0.313176])
    assert (np.abs(u.mean(axis=0)[1:] - growth) < 4 * error[1:] + 0.01 * (growth - 0.25)).all()
    np.testing.assert_allclose(path.tau, [0, 1, 2], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_points_and_kernel_share_the_noise(d):
    """Points carried along keep log rho - log rho_0 = minus the stretching: seen by finite sums over the measure.

    Points with the masses of the start (equal angles; on S^2 a Gauss grid) give the mean of the kernel at the end.
    """
    w0 = np.zeros(d)
    w0[0] = 0.4
    if d == 2:
        angles = 2 * np.pi * np.arange(64) / 64
        x, masses = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.full(64, 1 / 64)
    else:
        s, weights = np.polynomial.legendre.leggauss(24)
        angles = 2 * np.pi * np.arange(48) / 48
        ring = np.sqrt(1 - s**2)[:, None]
        x = np.stack([ring * np.cos(angles), ring * np.sin(angles), np.broadcast_to(s[:, None], (24, 48))], -1).reshape(
            -1, 3
        )
        masses = np.repeat(weights / 2 / 48, 48)
    masses = masses * PoissonKernel(w0).density(x)
    path = poisson_path(w0, 0.5, 0.05, replicas=2, points=x, seed=3)
    assert path.points.shape == (2, 2, len(x), d)
    for replica in range(2):
        kernel = path.kernel(replica)
        assert np.linalg.norm(kernel.w - w0) > 0.02
        np.testing.assert_allclose(masses @ path.points[replica, -1], kernel.mean, atol=1e-8)
    again = poisson_path(w0, 0.5, 0.05, replicas=1, save=5, seed=3)
    np.testing.assert_allclose(again.w[0, -1], path.w[0, -1], atol=1e-13)
    np.testing.assert_allclose(path.kernel(0).gap, 1 - np.sum(path.w[0, -1] ** 2), atol=1e-14)


def test_one_step_of_the_path():
    """b = sqrt(h/d) |mean| xi: the amplitude of the start, and a mean of its own in three dimensions."""
    w0, h = np.array([0.5, 0.2, -0.1]), 0.04
    w = poisson_path(w0, h, h, replicas=4000, seed=2).w[:, -1]
    # to first order dw = (1+|w|^2)/2 b - <w, b> w: E |dw|^2 = (h/d) |mean|^2 tr(M M^T), off by O(h)
    u = w0 @ w0
    matrix = (1 + u) / 2 * np.eye(3) - np.outer(w0, w0)
    want = h / 3 * np.sum(PoissonKernel(w0).mean ** 2) * np.sum(matrix**2)
    squares = np.sum((w - w0) ** 2, axis=1)
    assert abs(squares.mean() - want) < 4 * squares.std() / np.sqrt(4000) + h * want


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: boost(np.eye(2) * 2, [1.0, 0.0]), "outside the unit ball"),
        (lambda: boost(np.eye(3), [1.0, 0.0]), "do not fit"),
        (lambda: boost(np.eye(2), np.nan), "not finite"),
        (lambda: boost([1.0], [1.0]), "d of at least 2"),
        (lambda: boost_log_det([[0.5, 0.0]], [1.0, 0.0]), "inside the ball"),
        (lambda: PoissonKernel([1.0, 0.0]), "inside the unit ball"),
        (lambda: PoissonKernel(np.zeros((2, 2))), "one point of the unit ball"),
        (lambda: PoissonKernel([0.1, 0.0]).moved(np.zeros(3)), "a vector of R\\^2"),
        (lambda: PoissonKernel([0.1, 0.0]).density(np.eye(3)), "do not fit"),
        (lambda: poisson_path([0.1, 0.0], 1.0, 0.3), "whole number"),
        (lambda: poisson_path([0.1, 0.0], 1.0, 0.1, replicas=0), "`replicas` is 0"),
        (lambda: poisson_path([0.1, 0.0], 1.0, 0.1, points=np.eye(3)), "unit vectors of R\\^2"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        call()
    assert 20 <= len(str(caught.value)) <= 400
    assert str(caught.value).endswith(".")


def test_in_the_transformations_of_jax():
    """A kernel can be made, moved and differentiated inside compiled code."""

    @af.in_float64
    @jax.jit
    @jax.grad
    def slope(b):
        return jnp.sum(jnp.asarray(PoissonKernel(jnp.asarray([0.2, 0.1])).moved(b).log_density(jnp.eye(2))))

    b, h = np.array([0.3, -0.2]), 1e-6
    moved = [np.sum(PoissonKernel([0.2, 0.1]).moved(b + s * h * np.eye(2)[0]).log_density(np.eye(2))) for s in (1, -1)]
    np.testing.assert_allclose(slope(b)[0], (moved[0] - moved[1]) / (2 * h), atol=1e-8)


def test_memory_is_asked_for_the_points_too(faults):
    """Two frames of three replicas in R^2, with five points each: 6 (1 + 5) vectors of two numbers."""

    def refuse(count, *words):
        raise MemoryError(count)

    faults.replace("memory of paths under boosts", refuse)
    with pytest.raises(MemoryError, match=str(8 * 3 * 2 * 2 * (1 + 5))):
        poisson_path([0.3, 0.0], 0.1, 0.1, replicas=3, points=sphere(2, 5))


@graded("d", [3, 4, 9, 33, 44, 101, 10_000], fast=3)
def test_the_mean_of_a_poisson_kernel_is_a_hypergeometric_function(d):
    """|mean| = |w| 2 (d-1)/d 2F1(1 - d/2, 1; 1 + d/2; |w|^2), also where the kernel is almost a point."""
    half = mpmath.mpf(d) / 2
    for gap in (1.0, 0.5, 1e-2, 1e-8, 1e-300):
        share = 2 * (d - 1) / mpmath.mpf(d) * mpmath.hyp2f1(1 - half, 1, 1 + half, 1 - mpmath.mpf(gap))
        kernel = PoissonKernel(np.eye(d)[0] * np.sqrt(1 - gap), gap)
        assert kernel.mean[0] == pytest.approx(float(np.sqrt(1 - gap) * share), rel=4e-15, abs=0)
