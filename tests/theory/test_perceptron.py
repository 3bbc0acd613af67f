"""Attention with a perceptron block: variations, bounds, critical measures, the repulsive problem (arXiv:2601.21366)."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.theory.landscape import (
    Landscape,
    circle_points,
    critical_residuals,
    dirac_bound,
    dirac_stability,
    first_variation,
    largest_potential,
    non_atomic_density,
    non_atomic_threshold,
    perceptron_energy,
    repulsive_minimiser,
)

pytestmark = pytest.mark.filterwarnings("error")
EPS = np.finfo(float).eps
NETWORK = (np.array([[1, 0], [-1, 0.2]]), np.array([-0.2, -0.2]), np.array([0.5, 0.4]))
ACTIVATIONS = ["relu", "gelu", "tanh"]
seeds = st.integers(0, 2**32 - 1)
betas = st.floats(-2, 4).map(lambda e: 10.0**e)


def _random(seed, d=2, n=7, m=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    network = (rng.normal(size=(m, d)), rng.normal(size=m) / 2, rng.normal(size=m))
    return x / np.linalg.norm(x, axis=1, keepdims=True), rng.dirichlet(np.ones(n)), network


def _on_circle(angles):
    return Landscape(*NETWORK).potential(circle_points(angles))


@given(z=st.floats(-12, 12), activation=st.sampled_from(ACTIVATIONS))
@settings(max_examples=30, deadline=None)
def test_potential_agrees_with_mpmath(z, activation):
    """The antiderivative by quadrature from its zero: minus infinity for relu and gelu, 0 for tanh.

    Rounding: the terms of gelu's s are of size z^2/2 <= 72, so that 1e-13 is 6 ulp of the largest.
    """
    sigma = {"relu": lambda y: max(y, 0), "gelu": lambda y: y * mp.ncdf(y), "tanh": mp.tanh}[activation]
    start = 0 if activation == "tanh" else -40
    with mp.workdps(25):
        knots = sorted({mp.mpf(start), mp.mpf(z), *(mp.mpf(k) for k in range(-40, 13, 4) if start < k < z)})
        exact = mp.quad(sigma, knots) if z >= start else -mp.quad(sigma, [z, z / 2, start])
    assert abs(Landscape([[1.0]], [0.0], [1.0], activation).potential([z]) - float(exact)) < 1e-13


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_potential_far_out(activation):
    assert Landscape([[1.0]], [0.0], [1.0], activation).potential([1e6]) == pytest.approx(
        1e6 - np.log(2) if activation == "tanh" else 5e11, rel=1e-12
    )
    far = Landscape([[1.0]], [0.0], [1.0], activation).potential([-1e6])
    assert far == (pytest.approx(1e6 - np.log(2)) if activation == "tanh" else 0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("d", [2, 5])
def test_gradient_by_central_differences(activation, d):
    x, _, network = _random(1, d)
    # h^2/6 times the third derivative (below 2 |omega| |a|^3 < 100) and EPS/h: 2e-9 and 2e-11 at h = 1e-5;
    # relu's second derivative jumps, but none of these points is within h of a kink
    h = 1e-5
    found = Landscape(*network, activation).gradient(x)
    for k in range(d):
        step = h * np.eye(d)[k]
        slope = (
            Landscape(*network, activation).potential(x + step) - Landscape(*network, activation).potential(x - step)
        ) / (2 * h)
        np.testing.assert_allclose(slope, found[:, k], rtol=0, atol=3e-9)


@given(seed=seeds, beta=betas, activation=st.sampled_from(ACTIVATIONS), d=st.sampled_from([2, 3, 8]))
@settings(max_examples=30, deadline=None)
def test_first_variation_is_the_slope_of_the_energy(seed, beta, activation, d):
    """E((1-s) mu + s delta_x) is quadratic in s, so two values give its slope Phi(x) - mean of Phi at s = 0 exactly."""
    x, masses, network = _random(seed, d)
    point = np.roll(x[:1], 1, axis=1)
    landscape = Landscape(*network, activation)

    def energy(s):
        return perceptron_energy(np.vstack([x, point]), np.append((1 - s) * masses, s), beta, landscape=landscape)

    slope = 4 * energy(0.5) - energy(1.0) - 3 * energy(0.0)
    phi = first_variation(np.vstack([x, point]), x, masses, beta=beta, landscape=landscape)
    # eight energies, each a sum of some tens of terms of the size below; beta multiplies the rounding of <x, y>
    size = 1 / beta + 1 + np.abs(Landscape(*network, activation).potential(np.vstack([x, point]))).max()
    assert abs(slope - (phi[-1] - masses @ phi[:-1])) < 400 * EPS * size


@given(seed=seeds, beta=betas, model=st.sampled_from(["USA0", "USA"]))
@settings(max_examples=30, deadline=None)
def test_no_measure_exceeds_the_dirac_bound(seed, beta, model):
    beta = min(beta, 700.0) if model == "USA" else beta
    x, masses, network = _random(seed)
    height, angle = largest_potential(Landscape(*network))
    bound = dirac_bound(beta, height, model=model)
    rest = {"landscape": Landscape(*network), "model": model}
    assert perceptron_energy(x, masses, beta, **rest) <= bound
    top = perceptron_energy(circle_points([angle]), [1.0], beta, **rest)
    # the Dirac reaches it: |x|^2 rounds to 1 - EPS, which beta multiplies in the exponent
    assert top == pytest.approx(float(bound), rel=4 * EPS * (1 + beta), abs=1e-14)


def test_printed_example():
    height, angle = largest_potential(Landscape(*NETWORK))
    assert height == pytest.approx(0.16, abs=1e-15)
    assert min(angle, 2 * np.pi - angle) < 1e-12
    assert abs(dirac_bound(9.0, height) - 0.215556) < 5e-7
    second = np.pi - np.arctan(0.2)
    # both peaks of U; with masses on both, the pull over the distance is e^{-9 (1 - cos 2.944)} < 2e-8
    for atom in (0.0, second):
        assert critical_residuals(circle_points([atom]), [1.0], 9.0, landscape=Landscape(*NETWORK))[0] < 1e-15
    assert critical_residuals(circle_points([0.0, second]), [0.6, 0.4], 9.0, landscape=Landscape(*NETWORK)).max() < 2e-8
    assert critical_residuals(circle_points([0.3]), [1.0], 9.0, landscape=Landscape(*NETWORK))[0] > 0.05


@given(seed=seeds, activation=st.sampled_from(ACTIVATIONS))
@settings(max_examples=30, deadline=None)
def test_largest_potential_is_largest(seed, activation):
    _, _, network = _random(seed, m=6)
    height, angle = largest_potential(Landscape(*network, activation))
    assert Landscape(*network, activation).potential(circle_points(angle)) == pytest.approx(height, abs=1e-14)
    dense = np.linspace(0, 2 * np.pi, 50_001)
    assert Landscape(*network, activation).potential(circle_points(dense)).max() <= height + 1e-13


def test_residual_is_the_derivative_of_the_first_variation():
    x, masses, network = _random(3)
    angles = np.arctan2(x[:, 1], x[:, 0])
    found = critical_residuals(x, masses, 4.0, landscape=Landscape(*network, "gelu"))
    h = 1e-5
    up, down = (
        first_variation(circle_points(angles + s), x, masses, beta=4.0, landscape=Landscape(*network, "gelu"))
        for s in (h, -h)
    )
    # h^2/6 times Phi''' (of the order of beta^2 + |omega||a|^3 < 100), and EPS/h
    np.testing.assert_allclose(np.abs(up - down) / (2 * h), found, rtol=0, atol=3e-9)


@pytest.mark.parametrize("model", ["USA0", "USA"])
@pytest.mark.parametrize("beta", [0.5, 3.0, 9.0])
@pytest.mark.parametrize("share", [-1.0, 0.0, 0.3, 1.0])
def test_non_atomic_density_does_not_move(beta, share, model):
    """Phi is constant, by the trapezoidal rule, which converges faster than any power: 128 points leave I_127 < 1e-90."""
    limit = float(non_atomic_threshold(beta, model=model))
    theta = 2 * np.pi * np.arange(128) / 128
    mass = 2 * np.pi / 128 * non_atomic_density(theta, share * limit, beta, model=model)
    assert mass.min() >= 0
    assert mass.sum() == pytest.approx(1, abs=1e-14)
    factor = np.exp(beta) if model == "USA" else 1.0
    kernel = factor * np.exp(beta * (np.cos(theta[:, None] - theta) - 1))
    phi = kernel @ mass / beta + share * limit * np.cos(theta)
    # rounding of a sum whose largest terms are factor/(128 beta), some 30 of them, each with relative error beta EPS
    assert np.ptp(phi) < 4 * EPS * factor / beta * (1 + beta / 4)


def test_non_atomic_oscillation_of_the_printed_case():
    theta = 2 * np.pi * np.arange(256) / 256
    mass = 2 * np.pi / 256 * non_atomic_density(theta, 0.01, 9.0)
    phi = np.exp(9 * (np.cos(theta[:, None] - theta) - 1)) @ mass / 9 + 0.01 * np.cos(theta)
    assert np.ptp(phi) < 1e-15


def test_non_atomic_threshold():
    assert abs(non_atomic_threshold(9.0) - 0.0141361) < 5.1e-8
    for beta in (1e-3, 0.7, 30.0, 1e4):
        with mp.workdps(25):
            exact = mp.exp(-mp.mpf(beta)) * mp.besseli(1, beta) / beta
        assert non_atomic_threshold(beta) == pytest.approx(float(exact), rel=1e-13)
    assert non_atomic_threshold(3.0, model="USA") == pytest.approx(np.exp(3) * non_atomic_threshold(3.0))
    assert non_atomic_density([0.0, np.pi], [[0.0], [1e-3]], 9.0).shape == (2, 2)


def test_dirac_stability_by_hand():
    # U = omega (x_1 + b)^2/2 near x_1 = 1: grad U = omega (1+b) e_1 there, so e_1 is critical and the Hessian on the
    # sphere is -omega (1+b) in each of the d-1 directions
    for d in (2, 3, 6):
        pole = np.eye(d)[0]
        peak = dirac_stability(pole, 2.0, Landscape(pole[None], [0.5], [0.4]))
        assert (peak.critical, peak.against_splitting, peak.against_translation) == (True, True, True)
        np.testing.assert_allclose(peak.hessian_eigenvalues, np.full(d - 1, -0.6), atol=1e-15)
        valley = dirac_stability(pole, 2.0, Landscape(pole[None], [0.5], [-0.4]))  # Hessian +0.6: below 1, above 0
        assert (valley.critical, valley.against_splitting, valley.against_translation) == (True, True, False)
        deep = dirac_stability(pole, 2.0, Landscape(pole[None], [0.5], [-2.0]))  # Hessian 3: above 1 but below e^2
        assert not deep.against_splitting
        assert dirac_stability(pole, 2.0, Landscape(pole[None], [0.5], [-2.0]), model="USA").against_splitting
        assert not dirac_stability(pole, 1.0, Landscape(pole[None], [0.5], [-2.0]), model="USA").against_splitting
        assert dirac_stability(pole, 1e4, Landscape(pole[None], [0.5], [-2.0]), model="USA").against_splitting
        # across: x_1 = 0 with b = 0.5 has gradient omega b e_1, tangent to the sphere
        across = dirac_stability(np.eye(d)[1], 2.0, Landscape(pole[None], [0.5], [0.4]))
        assert not across.critical
        assert across.residual == pytest.approx(0.2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_hessian_is_the_second_derivative_along_great_circles(activation):
    x, _, network = _random(11, d=3)
    found = dirac_stability(x[0], 1.0, Landscape(*network, activation))
    tangent = np.linalg.svd(x[:1])[2][1:]
    h = 1e-4
    phis = np.linspace(0, np.pi, 181)
    second = []
    for phi in phis:
        v = np.cos(phi) * tangent[0] + np.sin(phi) * tangent[1]
        ends = [np.cos(s) * x[0] + np.sin(s) * v for s in (-h, 0, h)]
        second.append(np.array([1, -2, 1]) @ Landscape(*network, activation).potential(np.array(ends)) / h**2)
    # the extreme directions are missed by at most half a degree: (pi/360)^2 times the spread; plus 4 EPS/h^2 = 1e-7
    spread = np.ptp(found.hessian_eigenvalues)
    np.testing.assert_allclose(
        [min(second), max(second)], found.hessian_eigenvalues, atol=(np.pi / 360) ** 2 * spread + 5e-7
    )


def test_splitting_changes_the_energy_as_the_second_variation_says():
    """Halves at +-h: E changes by (Hess - 1) h^2/2 under USA0, up to O(h^4) (relative h^2 (1 + beta))."""
    network, beta, h = (np.array([[1.0, 0.0]]), np.array([0.5]), np.array([-2.0])), 2.0, 1e-3
    hessian = dirac_stability([1.0, 0.0], beta, Landscape(*network)).hessian_eigenvalues[0]
    whole = perceptron_energy(circle_points([0.0]), [1.0], beta, landscape=Landscape(*network))
    halves = perceptron_energy(circle_points([h, -h]), [0.5, 0.5], beta, landscape=Landscape(*network))
    # rounding: 4 EPS/(h^2/2) = 2e-9; next order: some 10 h^2 = 1e-5
    assert (halves - whole) / (h**2 / 2) == pytest.approx(hessian - 1, abs=2e-5)


@pytest.mark.slow  # the experiment perceptron-landscape finds a minimiser with its certificate
def test_repulsive_minimiser_of_the_printed_example():
    """The printed constant is that of 360 points, 5 of them atoms; the circle's own is 6e-5 below."""
    printed = repulsive_minimiser(_on_circle, 9.0, points=360)
    assert len(printed.angles) == 5
    assert abs(printed.constant - 0.036899) < 5.1e-7
    fine = repulsive_minimiser(_on_circle, 9.0)
    assert abs(fine.constant - 0.036899) < 1e-4
    for found in (printed, fine):
        assert found.weights.sum() == pytest.approx(1, abs=1e-14)
        assert found.weights.min() > 0
        assert found.violation < 1e-14
        # the certificate of the circle bounds the distance of the two energies, whichever grid is the better one
        assert found.energy - min(printed.energy, fine.energy) <= found.circle_gap
    points = circle_points(fine.angles)
    assert perceptron_energy(points, fine.weights, 9.0, landscape=Landscape(*NETWORK)) == pytest.approx(
        fine.energy, rel=1e-13
    )
    phi = first_variation(
        circle_points(np.linspace(0, 2 * np.pi, 5001)), points, fine.weights, beta=9.0, landscape=Landscape(*NETWORK)
    )
    # Phi may dip between the 16-fold finer points by |Phi''| h^2/8, with h = 2 pi/11520 and |Phi''| below 2
    assert fine.constant - phi.min() <= fine.circle_gap + 2 * (2 * np.pi / 11520) ** 2 / 8
    # 1/(2 beta) + max U bounds every energy, the smallest one included
    assert fine.energy < 0.215556


@given(seed=seeds, beta=st.floats(0.1, 50.0), shift=st.integers(1, 99))
@settings(max_examples=10, deadline=None)
def test_repulsive_minimiser_is_unique_and_minimal(seed, beta, shift):
    """A rotated start gives the rotated measure, and no random measure on the grid lies below by more than the gap."""
    _, _, network = _random(seed)
    count = 100

    def field(angles):
        return Landscape(*network).potential(circle_points(angles))

    found = repulsive_minimiser(field, beta, points=count)
    turned = repulsive_minimiser(lambda t: field(t + 2 * np.pi * shift / count), beta, points=count)
    scale = 1 / beta + np.ptp(field(np.linspace(0, 6.28, 629)))
    # energies agree within the two gaps. In the norm of k/beta a measure is within sqrt(2 gap) of the minimiser, k/beta is
    # at most 1/beta <= scale, so that Phi is within sqrt(2 gap scale) of its own; the constant is min Phi + gap.
    # The gaps themselves are rounded at some EPS * scale.
    gaps = np.array([found.gap, turned.gap]) + 8 * EPS * scale
    assert abs(found.energy - turned.energy) <= gaps.sum()
    assert abs(found.constant - turned.constant) <= gaps.sum() + np.sqrt(2 * gaps * scale).sum()
    rng = np.random.default_rng(seed)
    for _ in range(5):
        chosen = 2 * np.pi * rng.integers(0, count, 6) / count
        other = perceptron_energy(circle_points(chosen), rng.dirichlet(np.ones(6)), beta, landscape=Landscape(*network))
        assert other >= found.energy - found.gap - 1e-13 * scale


@pytest.mark.parametrize("beta", [0.5, 9.0, 400.0])
@pytest.mark.parametrize("model", ["USA0", "USA"])
def test_repulsive_minimiser_finds_the_non_atomic_density(beta, model):
    """Below the threshold the density is the minimiser: Phi is the constant I_0(beta)/beta (times e^{-beta} on USA0)."""
    u = 0.5 * float(non_atomic_threshold(beta, model=model))
    found = repulsive_minimiser(lambda t: u * np.cos(t), beta, model=model, points=240)
    with mp.workdps(25):
        exact = mp.besseli(0, beta) / beta * (1 if model == "USA" else mp.exp(-beta))
        size = (mp.exp(beta) if model == "USA" else 1) / mp.mpf(beta)
    # the grid of 240 integrates the kernel exactly up to I_240(400)/I_0(400) = e^{-72}; the solver stops at 1e-13
    assert abs(found.constant - float(exact)) < 1e-10 * float(size)
    assert found.circle_gap < 1e-10 * float(size)
    # the first moment is -u/(2 threshold); a moment off by x costs threshold * x^2 of energy, which the gap bounds
    moment = found.weights @ np.cos(found.angles)
    assert abs(moment + 0.25) < np.sqrt(
        (found.gap + 8 * EPS * float(size)) / float(non_atomic_threshold(beta, model=model))
    )


def test_repulsive_minimiser_at_the_ends_of_the_range():
    # a deep valley wins over the repulsion: one atom at its bottom
    lone = repulsive_minimiser(np.cos, 1e4, points=400)
    np.testing.assert_allclose(lone.angles, [np.pi], atol=1e-12)
    assert lone.constant == pytest.approx(-0.9999, abs=1e-12)
    free = repulsive_minimiser(np.zeros_like, 0.01, points=60)
    np.testing.assert_allclose(free.weights, 1 / 60, rtol=1e-9)
    assert repulsive_minimiser(_on_circle, 1e3, points=480).violation < 1e-8


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Landscape(*NETWORK).potential([1.0, 0.0, 0.0]), "`x` has shape"),
        (lambda: Landscape(*NETWORK).potential(1.0), "`x` has shape"),
        (lambda: Landscape(*NETWORK).potential([np.nan, 0.0]), "`x` is"),
        (lambda: Landscape([[1.0, 0.0]], [0.0, 1.0], [1.0]).potential([1.0, 0.0]), "`biases`"),
        (lambda: Landscape([[1.0, 0.0]], [0.0], [np.inf]).potential([1.0, 0.0]), "`weights` is"),
        (lambda: Landscape(*NETWORK, "swish").potential([1.0, 0.0]), "`activation` is"),
        (lambda: perceptron_energy([[1.0, 1.0]], [1.0], 1.0, landscape=Landscape(*NETWORK)), "`positions` is"),
        (lambda: perceptron_energy([[1.0, 0.0]], [0.5], 1.0, landscape=Landscape(*NETWORK)), "`masses` is"),
        (lambda: perceptron_energy([[1.0, 0.0]], [0.5, 0.5], 1.0, landscape=Landscape(*NETWORK)), "`masses` have"),
        (lambda: perceptron_energy([[1.0, 0.0]], [1.0], 0.0, landscape=Landscape(*NETWORK)), "`beta` is"),
        (
            lambda: perceptron_energy([[1.0, 0.0]], [1.0], 800.0, landscape=Landscape(*NETWORK), model="USA"),
            "`beta` is",
        ),
        (lambda: first_variation([2.0, 0.0], [[1.0, 0.0]], [1.0], beta=1.0, landscape=Landscape(*NETWORK)), "`x` is"),
        (lambda: critical_residuals([[1.0, 0.0]], [1.0], 1.0, landscape=Landscape(*NETWORK), model="SA"), "`model` is"),
        (lambda: dirac_bound(-1.0, 0.0), "`beta` is"),
        (lambda: largest_potential(Landscape(np.eye(3), np.zeros(3), np.ones(3))), "`directions` have shape"),
        (lambda: dirac_stability([[1.0, 0.0]], 1.0, Landscape(*NETWORK)), "`x0` has"),
        (lambda: dirac_stability([0.2, np.sqrt(0.96)], 1.0, Landscape(*NETWORK)), "kink"),
        (lambda: dirac_stability([1.0, 0.0], 1.0, Landscape(*NETWORK), model="SA"), "`model` is"),
        (lambda: non_atomic_density(0.0, 0.0142, 9.0), "`u` is"),
        (lambda: non_atomic_density(0.0, np.nan, 9.0), "`u` is"),
        (lambda: non_atomic_threshold(0.0), "`beta` is"),
        (lambda: repulsive_minimiser(np.cos, -1.0), "`beta` is"),
        (lambda: repulsive_minimiser(np.cos, 1.0, points=2), "`points` is"),
        (lambda: repulsive_minimiser(np.cos, 1.0, tol=0.0), "`tol` is"),
        (lambda: repulsive_minimiser(lambda t: t[:3], 1.0), "`field` returned"),
        (lambda: repulsive_minimiser(lambda t: t * np.nan, 1.0), "`field` returned"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_the_equations_of_the_atoms_are_solved_exactly():
    """The interior point method alone leaves 6e-14 here."""
    found = repulsive_minimiser(lambda t: 0.3 * np.cos(t) + 0.2 * np.cos(2 * t + 1), 30.0, points=240)
    assert len(found.weights) == 3
    assert found.violation <= 1e-15


def test_repulsion_that_is_nearly_the_same_everywhere():
    """(k - 1)/beta tends to cos - 1: E - 1/(2 beta) + 1/2 is |m|^2/2 + u m_1, whose minimiser has the moment m = -u."""
    measure = repulsive_minimiser(lambda t: 0.5 * np.cos(t), 1e-12, points=60)
    assert measure.gap <= 1e-10
    # E'' = 1: a gap of 1e-14 leaves a moment of 1e-7
    np.testing.assert_allclose(measure.weights @ circle_points(measure.angles), [-0.5, 0.0], atol=1e-6)
    lone = repulsive_minimiser(lambda t: 2 * np.cos(t), 1e-12, points=60)
    np.testing.assert_allclose(lone.angles, [np.pi])
