"""Every function of `special`, which theory and simulator share, against mpmath or exact integers."""

import itertools
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from attnflow import special
from attnflow.special.degrees import multiplicity_ratios

EPS = np.finfo(float).eps


def test_every_public_function_is_tested_here():
    text = Path(__file__).read_text()
    assert [name for name in special.__all__ if f"special.{name}(" not in text] == []


@pytest.mark.parametrize("x", [1e-8, 0.3, 1.0, 20.0, 49.9, 50.0, 50.1, 300.0, 1e4, 1e8])
def test_scaled_exponential_integrals(x):
    with mp.workdps(40):
        exp1 = float(mp.exp(x) * mp.e1(x))
        expi = float(mp.exp(-x) * mp.ei(x))
    assert abs(special.scaled_exp1(x) / exp1 - 1) < 1e-13
    assert abs(special.scaled_expi(x) / expi - 1) < 1e-12
    assert np.isfinite(special.scaled_exp1([x, 1.0])).all()


@pytest.mark.parametrize("order", [0.0, 0.5, 3.0, 31.0, 2047.0])
@pytest.mark.parametrize("x", [1e-6, 1.0, 30.0, 1e3, 1e4])
def test_bessel_ratios_and_logarithms(order, x):
    with mp.workdps(40):
        exact = [mp.besseli(order + j, x) for j in range(5)]
        ratios = [float(b / a) for a, b in itertools.pairwise(exact)]
        log = float(mp.log(exact[0]) - x)
    # the continued fraction forgets its start; each of its steps rounds by two units and shrinks what came before
    np.testing.assert_allclose(special.bessel_ratios(order, x, 4), ratios, rtol=20 * EPS)
    assert abs(special.log_scaled_bessel(order, x) - log) < 1e-12 * max(1.0, abs(log))


@pytest.mark.parametrize("order", [0.0, 1.0, 2.5])
def test_the_gap_of_bessel_ratios_keeps_its_digits(order):
    x = np.array([0.0, 1e-8, 1.0, 50.0, 99.0, 101.0, 1e3, 1e4, 1e8, 1e15])
    with mp.workdps(60):
        exact = [float(1 - mp.besseli(order + 1, v) / mp.besseli(order, v)) for v in map(mp.mpf, x.tolist()) if v]
    # below 100 (order + 1)^2 the difference costs 2 x units in the last place
    np.testing.assert_allclose(special.bessel_gap(order, x)[1:], exact, rtol=1e-11)
    np.testing.assert_allclose(special.bessel_gap(order, x)[-2:], exact[-2:], rtol=4 * EPS)
    assert special.bessel_gap(order, x)[0] == 1


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-12, 1e-8, 0.0999, 0.1001, 3.0])
def test_divided_differences_of_exprel(gap):
    y = np.array([-30.0, -1.0, 0.0, 1e-9, 0.7, 5.0, 40.0])
    x = y + gap
    with mp.workdps(60):
        pairs = [(mp.mpf(a), mp.mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]

        def phi(z):
            return mp.expm1(z) / z if z else mp.mpf(1)

        exact = [
            float((phi(a) - phi(b)) / (a - b) if a != b else mp.diff(phi, a + mp.mpf(10) ** -40)) for a, b in pairs
        ]
    np.testing.assert_allclose(special.divided_exprel(x, y), exact, rtol=1e-13)


def harmonics(k, d):
    """The number of harmonics of degree k on S^(d-1), in exact integers."""
    return 1 if k == 0 else math.comb(k + d - 1, d - 1) - (math.comb(k + d - 3, d - 1) if k > 1 else 0)


@pytest.mark.parametrize("d", [2, 3, 5, 64])
def test_numbers_of_harmonics(d):
    for degree in (0, 1, 2, 7, 30):
        assert special.basis_size(degree, d) == sum(harmonics(k, d) for k in range(degree + 1))
    exact = [harmonics(k, d) / harmonics(k - 1, d) for k in range(1, 30)]
    np.testing.assert_allclose(multiplicity_ratios(d, 29), exact, rtol=4 * EPS)


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("beta", [1e-3, 2.0, 100.0])
def test_degrees_of_the_kernel(beta, d):
    """Weights N(k, d) a_k e^(-beta), a_k = Gamma(d/2) (2/beta)^(d/2-1) I_{k+d/2-1}(beta), and where their tails end."""
    bounds = np.array([1e-3, 1e-6, 1e-10])
    with mp.workdps(40):
        nu = mp.mpf(d) / 2 - 1
        exact = [
            harmonics(k, d) * mp.gamma(nu + 1) * (2 / mp.mpf(beta)) ** nu * mp.besseli(k + nu, beta) * mp.exp(-beta)
            for k in range(110)
        ]
        cuts = [next(k for k in range(110) if mp.fsum(exact[k + 1 :]) <= bound) for bound in bounds]
        large = [float(p) for p in exact if p > 1e-20]
    np.testing.assert_allclose(special.degree_weights(beta, d, 110)[: len(large)], large, rtol=1e-12)
    np.testing.assert_array_equal(special.truncation_degrees(bounds, beta, d), cuts)


@pytest.mark.parametrize(("d", "threshold"), [(2, 2.4469), (3, 1.8162), (8, 1.2666)])
def test_thresholds_of_unnormalised_attention_with_noise(d, threshold):
    """I_{d/2+1}(beta)/I_{d/2}(beta) = 1/d, to the digits that docs/meanfield.md prints (arXiv:2606.05140)."""
    low, high = special.bessel_ratios(d / 2, [threshold - 5e-5, threshold + 5e-5], 1)[:, 0]
    assert low < 1 / d < high
