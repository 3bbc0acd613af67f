"""The causal mean field: exact statements, linear theory, and the oracle of one nonlinear case."""

import numpy as np
import pytest
from scipy import integrate, stats

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from tests.marks import graded
from tests.meanfield.prompts import CIRCLE, ONE, TIGHT, TWO, causal, close, end, formula

# the oracle


def oracle(nodes, degree=40):
    return end(causal(4.0), mf.placed(mf.Places(nodes=nodes), formula, mf.CircleBasis(degree)), 4.0, **TIGHT)


@pytest.mark.slow
def test_oracle():
    """From an independent solver (Fourier in theta, 96 points): ten digits."""
    found = oracle(12)
    assert found.fourier(1) == pytest.approx(0.33751484185833 + 0.01782075215423j, abs=1e-12)
    assert found.fourier(2) == pytest.approx(0.15001111808025 - 0.17242782930490j, abs=1e-12)
    assert found(1.0, angles=0.0) == pytest.approx(2.163673823405, abs=1e-11)


@pytest.mark.slow
def test_the_error_falls_exponentially_with_the_nodes():
    found = np.array([oracle(nodes)(1.0, angles=0.0) for nodes in (4, 6)])
    printed, last_digit = np.array([2.163086, 2.1636759]), np.array([1e-6, 1e-7])
    assert (np.abs(found - printed) <= last_digit).all()
    assert (np.abs(np.diff(np.log(np.abs(found - 2.163673823405)))) > np.log(100)).all()


# exact statements


@graded("kind", ["SA", pytest.param("USA", marks=pytest.mark.slow)])
def test_iid_prompts_do_not_feel_the_mask(kind):
    """A start that does not depend on the place stays so, for every slope, and is the solution of `evolve`."""
    rest = {} if kind == "SA" else {"normaliser": af.Unnormalised(clock="USA")}
    start = mf.from_function(CIRCLE, lambda theta: formula(1.0, theta))
    beta, until = (2.0, 1.5) if kind == "SA" else (1.0, 1.0)
    alone = mf.evolve(af.Attention(beta, **rest), start, until, save=1, **TIGHT).density()
    for slope in (0.0, 3.0):
        found = end(causal(beta, slope, **rest), mf.placed(TWO, start), until)
        # rounding: 30 steps of 6 products with rows of 16 numbers, grown by e^{rate t} < 10
        assert np.max(np.ptp(found.coefficients, axis=0)) < 1e-13
        close(found.mean, alone, 1e-8)  # the errors of 30 steps, 1e-10 each, grown


def test_the_first_place_is_exchangeable():
    for slope in (0.0, 3.0):
        found = end(causal(2.0, slope), mf.placed(ONE, formula, CIRCLE), 2.0)
        start = mf.from_function(CIRCLE, lambda theta: formula(0.0, theta))
        alone = mf.evolve(af.Attention(2.0), start, 2.0, save=1, **TIGHT).density()
        close(found.at(0.0), alone, 1e-9)


def test_a_prefix_depends_on_a_prefix():
    """What comes after 0.25 changes nothing before it, except for the choice of steps (1e-10 each)."""
    early, (calm, loud) = mf.perturbed(CIRCLE, 1, 0.3), (mf.perturbed(CIRCLE, 2, size, -1) for size in (0.1, 0.8))
    ends = [end(causal(2.0, 1.0), mf.placed(TWO, [early, late]), 1.0) for late in (calm, loud)]
    first = TWO.points < 0.25
    rows = [found.coefficients for found in ends]
    np.testing.assert_allclose(rows[0][first], rows[1][first], atol=1e-8)
    assert np.min(np.linalg.norm((rows[0] - rows[1])[~first], axis=1)) > 0.1


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_a_prefix_is_a_prompt_of_its_own(slope):
    """f(t, s sigma) is the solution from f_0(s sigma) with the slope s lambda, for u(s sigma; lambda) is that of it."""
    share, field = 0.4, causal(2.0, slope)
    full = end(field, mf.placed(ONE, formula, CIRCLE), 2.0)
    part = end(causal(2.0, share * slope), mf.placed(ONE, lambda s, x: formula(share * s, x), CIRCLE), 2.0)
    at = np.array([0.0, 0.2, 0.7, 1.0])
    theta = np.linspace(0, 6, 7)
    np.testing.assert_allclose(full(share * at, angles=theta), part(at, angles=theta), atol=1e-8)


def test_the_slope_is_a_change_of_variable():
    """The solution at sigma is that of slope 0 at v = u(sigma)/u(1), from the start at sigma(v)."""
    slope = 1.0
    top = np.expm1(slope)
    one = end(causal(2.0, slope), mf.placed(ONE, formula, CIRCLE), 2.0)
    two = end(causal(2.0), mf.placed(ONE, lambda v, x: formula(np.log1p(top * v) / slope, x), CIRCLE), 2.0)
    at, theta = np.array([0.1, 0.5, 1.0]), np.linspace(0, 6, 7)
    # log(1 + u) is singular at v = -1/u(1): its polynomial errs by 3.5^-16 = 2e-9, and the steps by 1e-12 each
    np.testing.assert_allclose(one(at, angles=theta), two(np.expm1(slope * at) / top, angles=theta), atol=1e-8)
    flat = end(causal(2.0), mf.placed(ONE, formula, CIRCLE), 2.0)
    assert np.max(np.abs(flat(at, angles=theta) - one(at, angles=theta))) > 1e-3  # the slope matters


def test_without_a_mask_all_places_see_the_mean():
    found = end(af.Attention(2.0), mf.placed(ONE, formula, CIRCLE), 2.0)
    start = mf.from_function(CIRCLE, lambda theta: formula(0.5, theta))
    close(found.mean, mf.evolve(af.Attention(2.0), start, 2.0, save=1, **TIGHT).density(), 1e-10)
    assert np.max(np.ptp(found.coefficients, axis=0)) > 0.01


@pytest.mark.slow
def test_against_characteristics():
    """Quadrature tokens at every node, in plain NumPy: masses stay, and every node sees its prefix of the nodes."""
    beta, until, places = 2.0, 1.0, mf.Places((0, 0.4, 1), 3)
    matrix, theta = places.prefix(1.5), 2 * np.pi * np.arange(48) / 48
    masses = np.stack([formula(s, theta) / 48 for s in places.points])

    def velocity(t, angles):
        angles = angles.reshape(masses.shape)
        gap = angles[None, None] - angles[:, :, None, None]  # (node, angle, node seen, angle seen)
        weights = matrix[:, None, :, None] * masses * np.exp(beta * (np.cos(gap) - 1))
        return (np.sum(weights * np.sin(gap), axis=(2, 3)) / np.sum(weights, axis=(2, 3))).reshape(-1)

    begin = np.tile(theta, (places.size, 1)).reshape(-1)
    ends = integrate.solve_ivp(velocity, (0, until), begin, method="DOP853", rtol=1e-9, atol=1e-10).y[:, -1]
    found = end(causal(beta, 1.5), mf.placed(places, formula, CIRCLE), until)
    for k in (1, 2, 3):
        waves = np.sum(masses * np.exp(-1j * k * ends.reshape(masses.shape)), axis=1)
        np.testing.assert_allclose(found.profile(k) - 1j * found.profile(k, -1), waves, atol=1e-8)


# linear theory


def difference(field, places, wave, until, size=1e-4):
    """(f from 1 + size wave, less f from 1 - size wave)/(2 size): the linear theory up to size^2."""
    ends = [end(field, mf.placed(places, lambda s, x, e=e: 1 + e * wave(s, x), CIRCLE), until) for e in (size, -size)]
    return lambda degree, order=0: (ends[0].profile(degree, order) - ends[1].profile(degree, order)) / size


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_powers_grow_by_their_own_rates(slope):
    """g_0 = u^p grows as e^{c/(p+1)}, c = a_k t."""
    beta, until = 2.0, 2.5
    u = (lambda s: np.expm1(slope * s) / np.expm1(slope)) if slope else (lambda s: s)

    def wave(s, x):
        return np.cos(2 * x) + u(s) * np.cos(x) + u(s) ** 2 * np.sin(x) + u(s) ** 3 * np.sin(3 * x)

    found = difference(causal(beta, slope), ONE, wave, until)
    for k, order, p in ((2, 0, 0), (1, 0, 1), (1, -1, 2), (3, -1, 3)):
        expected = np.exp(theory.uniform.growth_rates(beta, 2, k=k) * until / (p + 1)) * u(ONE.points) ** p
        # cubic terms: size^2 growth^3 < 1e-8 15, times a few; the steps: 1e-12/size
        np.testing.assert_allclose(found(k, order), expected, atol=1e-6)


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_a_topic_switch_by_marcum_functions(slope):
    """Early topic e^c P(N_c > N_y), late topic e^c P(N_c <= N_y), y = log(u(sigma)/u(s)), independent Poisson N."""
    switch, beta, until, places = 0.25, 1.0, 4.0, TWO
    found = difference(causal(beta, slope), places, lambda s, x: np.cos(x) if s < switch else np.sin(x), until)
    later = places.points > switch
    u = np.expm1 if slope else (lambda v: v)
    y = np.log(u((slope or 1.0) * places.points[later]) / u((slope or 1.0) * switch))
    c = theory.uniform.growth_rates(beta, 2, k=1) * until
    early = np.exp(c) * stats.ncx2.cdf(2 * c, 2, 2 * y)
    # cubic terms 1e-8 e^{3c} = 2e-6; log(u) is singular at 0, and 8 nodes from 0.25 to 1 leave about 3^-8 = 2e-4
    np.testing.assert_allclose(found(1)[later], early, atol=2e-4)
    np.testing.assert_allclose(found(1, -1)[later], np.exp(c) - early, atol=2e-4)
    np.testing.assert_allclose(found(1)[~later], np.exp(c), atol=1e-5)
    np.testing.assert_allclose(found(1, -1)[~later], 0, atol=1e-12)


def test_the_early_topic_takes_over():
    """Topics 1 + 0.1 cos and, from 0.25 on, 1 + 0.1 sin: their amplitudes over the last 4 percent, over 0.1.

    The values with four digits were computed with another program; tokens (N = 65,536) give 2.782/3.128, 5.085/3.931.
    """
    start = mf.placed(TWO, [mf.perturbed(CIRCLE, 1, 0.1, order) for order in (0, -1)])
    flow = mf.evolve_placed(causal(1.0), start, 5.0, save=[2.0, 4.0, 5.0])
    found = [2 * density.fourier(1, 0.96) / 0.1 for density in flow.densities[1:]]
    np.testing.assert_allclose(found, [0.5978 - 1.8399j, 2.794 - 3.070j, 5.121 - 3.756j], atol=1e-3)
    c = theory.uniform.growth_rates(1.0, 2, k=1) * 2.0
    linear = np.exp(c) * stats.ncx2.cdf(2 * c, 2, 2 * np.log(0.98 / 0.25))
    assert found[0].real == pytest.approx(linear, rel=0.01)  # (0.1 e^c)^2 = 6 %, times less than 0.2
