"""Densities under common noise: Mobius flows, another discretisation, sampled matrices."""

import numpy as np
import pytest
from scipy.linalg import solve_banded
from scipy.special import i0e, i1e

from attnflow import theory
from tests.marks import graded

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


def test_printed_means():
    found = theory.random_layers.poisson_order_mean([[0.25], [0.04], [0.64]], [1.0, 2.0])
    printed = [[0.283285, 0.313176], [0.049981, 0.061287], [0.659633, 0.677242]]
    # printed to 5e-7; .283285 and .061287 are one unit too large: they are .28328438 and .06128650
    np.testing.assert_allclose(found, printed, rtol=0, atol=1.1e-6)


def by_crank_nicolson(u0, tau, count, steps):
    """E u(tau) on a grid in u itself, where the generator u^2 (1-u)^2/4 d^2 + u (1-u)^2/4 d vanishes at both ends."""
    u = np.linspace(0, 1, count + 1)
    h, k = 1 / count, tau / steps
    diffusion, drift = (u * (1 - u)) ** 2 / 4 / h**2, u * (1 - u) ** 2 / 4 / (2 * h)
    lower, upper, middle = diffusion - drift, diffusion + drift, -2 * diffusion
    bands = np.zeros((3, count + 1))
    bands[0, 1:], bands[1], bands[2, :-1] = -k / 2 * upper[:-1], 1 - k / 2 * middle, -k / 2 * lower[1:]
    value = u.copy()
    for _ in range(steps):
        right = (1 + k / 2 * middle) * value
        right[:-1] += k / 2 * upper[:-1] * value[1:]
        right[1:] += k / 2 * lower[1:] * value[:-1]
        value = solve_banded((1, 1), bands, right)
    return np.interp(u0, u, value)


@pytest.mark.parametrize(("u0", "tau"), [(0.25, 1.0), (0.04, 2.0), (0.64, 0.5)])
def test_means_by_another_discretisation(u0, tau):
    coarse, fine = by_crank_nicolson(u0, tau, 200, 50), by_crank_nicolson(u0, tau, 400, 100)
    extrapolated = fine + (fine - coarse) / 3
    # the extrapolation is good to a tenth of what it changed
    assert abs(theory.random_layers.poisson_order_mean(u0, tau) - extrapolated) < 0.1 * abs(fine - coarse) + 1e-9


def test_the_poisson_kernel_moves_by_mobius_maps():
    count, steps, tau, u0 = 40_000, 40, 1.0, 0.25
    rng = np.random.default_rng(12)
    w = np.full(count, np.sqrt(u0), dtype=complex)
    for _ in range(steps):
        push = np.abs(w) * np.sqrt(tau / steps / 2) * (rng.normal(size=count) + 1j * rng.normal(size=count))
        t, e = np.tanh(np.abs(push) / 2), push / np.abs(push)
        w = (w + t * e) / (1 + t * e.conj() * w)
    u = np.abs(w) ** 2
    for sample, value in (
        (u, theory.random_layers.poisson_order_mean(u0, tau)),
        (np.log(u), theory.random_layers.poisson_log_order(u0)),
    ):
        # five standard errors, and the weak order 1 of a step of 1/40: its variance is 1/80 a step, its drift error 1/40 of that
        assert abs(sample.mean() - value) < 5 * sample.std() / np.sqrt(count) + 1 / 40 / 80


def test_order_at_its_ends():
    assert theory.random_layers.poisson_order_mean([0, 1, 0.3], [5.0, 5.0, 0.0]).tolist() == [0, 1, 0.3]
    assert theory.random_layers.poisson_log_order(0.25) == np.log(0.25)
    # short times: u + tau u (1-u)^2/4 + tau^2/2 L(u (1-u)^2/4)
    u, tau = 0.3, 1e-3
    np.testing.assert_allclose(
        theory.random_layers.poisson_order_mean(u, tau), u + tau * u * (1 - u) ** 2 / 4, rtol=0, atol=tau**2
    )
    grown = theory.random_layers.poisson_order_mean(0.25, [1.0, 4.0, 16.0])
    assert (np.diff(grown) > 0).all()
    assert grown[-1] < 1
    # a small start: u is e^{log u} with d log u = dB/sqrt(2), so that E u = u_0 e^{tau/4}
    np.testing.assert_allclose(theory.random_layers.poisson_order_mean(1e-9, 2.0), 1e-9 * np.exp(0.5), rtol=1e-6)


@pytest.mark.slow
def test_printed_powers():
    assert abs(theory.random_layers.uniform_start_power(2, 1.0) - 0.1128) < 5.1e-5
    assert abs(theory.random_layers.uniform_start_power(2, 4.0) - 0.3089) < 5.1e-5
    assert theory.random_layers.uniform_start_power(3, 4.0) == 0
    assert theory.random_layers.uniform_start_power(2, 0.0) == 0


@graded(("d_k", "b"), [(1, 2.0), (2, 1.0), (2, 8.0), (3, 4.0), (7, 1.0)], fast=2)
def test_products_at_one_place_are_the_moments(d_k, b):
    a, second = theory.random_layers.attention_moments(b, d=2, d_k=d_k)
    # the stated accuracy of both quadratures; a curvature of s is B = E |dm|^2
    np.testing.assert_allclose(theory.random_layers.uniform_products(0.0, b, d_k=d_k), a, rtol=1e-7)
    if d_k > 1:  # for one row m jumps, and the sum over its Fourier coefficients converges too slowly
        products = theory.random_layers.uniform_products(2 * np.pi * np.arange(1024) / 1024, b, d_k=d_k)
        degrees = np.fft.fftfreq(1024, 1 / 1024)
        np.testing.assert_allclose(np.sum(degrees**2 * np.fft.fft(products).real) / 1024, second, rtol=2e-6)
    np.testing.assert_allclose(
        theory.random_layers.uniform_products([np.pi, np.pi / 2], b, d_k=d_k), [-a, 0], rtol=1e-7, atol=1e-14
    )


@pytest.mark.parametrize(("d_k", "b"), [(2, 4.0), (1, 1.0), (5, 2.0)])
def test_products_agree_with_sampled_matrices(d_k, b):
    count, angle = 100_000, 0.8
    q, k = np.random.default_rng(31).normal(size=(2, count, d_k, 2))
    matrix = b / np.sqrt(d_k) * np.einsum("cka,ckb->cab", q, k)
    means = []
    for phi in (0.0, angle):
        a = matrix @ np.array([np.cos(phi), np.sin(phi)])
        kappa = np.linalg.norm(a, axis=1)
        means.append((i1e(kappa) / i0e(kappa) / kappa)[:, None] * a)
    product = np.sum(means[0] * means[1], axis=1)
    assert abs(product.mean() - theory.random_layers.uniform_products(angle, b, d_k=d_k)) < 5 * product.std() / np.sqrt(
        count
    )


def test_modes_of_one_layer_from_the_uniform_start():
    # E |c_2|^2/tau: labels on a grid are moved by one layer of step sqrt(h), with random Q, K and V
    h, count, b = 1e-4, 4000, 4.0
    rng = np.random.default_rng(9)
    q, k, v = rng.normal(size=(3, count, 2, 2))
    angles = 2 * np.pi * np.arange(64) / 64
    x = np.array([np.cos(angles), np.sin(angles)])
    a = b / np.sqrt(2) * np.einsum("cka,ckb,bl->cal", q, k, x)
    kappa = np.linalg.norm(a, axis=1, keepdims=True)
    moved = x + np.sqrt(h / 2) * np.einsum("cab,cbl->cal", v, i1e(kappa) / i0e(kappa) / kappa * a)
    z = moved[:, 0] + 1j * moved[:, 1]
    power = np.abs(np.mean((z / np.abs(z)) ** 2, axis=1)) ** 2 / h
    # 64 labels alias steep softmax means by 1e-3 at most; the next order is sqrt(h) at most
    assert abs(power.mean() - theory.random_layers.uniform_start_power(2, b)) < 5 * power.std() / np.sqrt(count) + 2e-3


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.random_layers.poisson_order_mean(1.2, 1.0),
        lambda: theory.random_layers.poisson_order_mean(0.2, -1.0),
        lambda: theory.random_layers.poisson_log_order(0.0),
        lambda: theory.random_layers.uniform_start_power(0, 1.0),
        lambda: theory.random_layers.uniform_start_power(1000, 1.0),
        lambda: theory.random_layers.uniform_start_power(2, -1.0),
        lambda: theory.random_layers.uniform_start_power(2, 1.0, d_k=0),
        lambda: theory.random_layers.uniform_products(1.0, 1.0, d_k=[2, 3]),
        lambda: theory.random_layers.uniform_products(np.nan, 1.0),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match=r" is .*(must|number|give)"):
        call()
