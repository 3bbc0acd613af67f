"""The threshold of a jump and the coefficient of third order."""

import numpy as np
import pytest
from scipy.special import ive

from attnflow import theory


def test_the_threshold_of_the_jump():
    """arXiv:2606.05140 (d = 2: arXiv:2604.16288): I_{d/2+1}/I_{d/2} = 1/d."""
    found = theory.uniform.jump_threshold([2, 3, 8])
    np.testing.assert_allclose(found, [2.4469183, 1.8161545, 1.2665530], atol=5e-8)
    for d, beta in zip((2, 3, 8), found, strict=True):
        assert ive(d / 2 + 1, beta) / ive(d / 2, beta) == pytest.approx(1 / d, rel=1e-13)


def test_the_third_order_of_unnormalised_attention_vanishes_at_the_threshold():
    beta = theory.uniform.jump_threshold(2)
    assert abs(theory.uniform.landau_coefficient(beta, model="USA0")) < 1e-15
    assert (
        theory.uniform.landau_coefficient(beta * 1.01, model="USA0")
        > 0
        > theory.uniform.landau_coefficient(beta * 0.99, model="USA0")
    )
    assert theory.uniform.landau_coefficient(1.0, model="USA") == pytest.approx(
        np.e * theory.uniform.landau_coefficient(1.0, model="USA0")
    )


def test_the_onset_of_softmax_is_continuous():
    assert all(theory.uniform.landau_coefficient(beta, model="SA") < 0 for beta in np.geomspace(0.01, 500, 50))


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize("beta", [0.5, 4.0, 30.0])
def test_the_third_order_against_the_fixed_point_on_a_grid(model, beta):
    """At an order m near 0 the noise whose fixed point rho ~ exp(Phi/kappa) has this order, by quadrature on a grid."""
    from scipy.optimize import fsolve

    theta = 2 * np.pi * np.arange(128) / 128
    k = np.arange(1, 13)
    waves, kernel, level = np.cos(k[:, None] * theta), ive(k, beta), ive(0, beta)

    def moments(others, kappa, m):
        smooth = level + 2 * (kernel * np.append(m, others)) @ waves
        potential = np.log(smooth) / beta if model == "SA" else smooth / beta
        rho = np.exp((potential - potential.max()) / kappa)
        return waves @ rho / rho.sum()

    def bend(m):
        onset = float(theory.uniform.critical_noise(beta, 2, model=model))
        start = np.append(onset, 0 * k[1:])
        found = fsolve(lambda v: moments(v[1:], v[0], m) - np.append(m, v[1:]), start, xtol=1e-12)
        return (found[0] - onset) / (2 * m**2)

    # errors are of second order in m, and extrapolation leaves the fourth
    assert (4 * bend(0.01) - bend(0.02)) / 3 == pytest.approx(
        float(theory.uniform.landau_coefficient(beta, model=model)), rel=1e-4
    )


def test_no_beta_below_zero():
    with pytest.raises(ValueError, match="`beta` is 0.0"):
        theory.uniform.landau_coefficient(0.0)
