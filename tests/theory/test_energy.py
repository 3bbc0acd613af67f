"""The energy of the uniform measure against mpmath, from the smallest beta to the largest."""

import mpmath as mp
import numpy as np
import pytest

from attnflow import theory

BETAS = [1e-300, 1e-160, 1e-12, 1e-8, 1e-6, 1e-3, 0.1, 1.0, 7.0, 30.0, 99.9, 100.0, 100.1, 700.0, 3e3, 1e5, 1e6]


def exact(beta, d):
    """(0F1(; d/2; beta^2/4) e^(-beta) - 1)/(2 beta) with as many digits as the difference loses, and 40 more."""
    with mp.workdps(40 + max(0, int(-2 * np.log10(beta)))):
        b = mp.mpf(beta)
        if d >= 100 and beta >= 100:
            # the mean of e^(beta (<x, y> - 1)) falls in beta and in d, and is 1e-26 at beta = 100, d = 100
            return -1 / (2 * b)
        nu = mp.mpf(d) / 2 - 1
        mean = mp.hyp0f1(nu + 1, b * b / 4) if beta < 1000 else mp.gamma(nu + 1) * (2 / b) ** nu * mp.besseli(nu, b)
        return (mean * mp.exp(-b) - 1) / (2 * b)


@pytest.mark.parametrize("d", [2, 3, 4, 10, 33, 100, 10**4, 10**5])
def test_energy_of_the_uniform_law_agrees_with_mpmath(d):
    """A few roundings; (a_0 e^(-beta) - 1)/(2 beta) taken as it stands loses 1e-16 log(Gamma(d/2))/beta."""
    found = theory.energy_of_uniform(BETAS, d)
    for beta, value in zip(BETAS, found, strict=True):
        assert abs(mp.mpf(float(value)) / exact(beta, d) - 1) < 1e-14, (beta, d)
    assert theory.energy_of_uniform(7.0, d) == found[BETAS.index(7.0)]


def test_the_mean_is_as_small_as_the_shortcut_says():
    with mp.workdps(60):
        assert mp.hyp0f1(50, 2500) * mp.exp(-100) < 1e-26


@pytest.mark.parametrize(
    ("beta", "d", "words"),
    [
        (0.0, 3, "beta is 0"),
        (np.inf, 3, "beta is inf; it must be finite"),
        (np.nan, 3, "beta is nan"),
        ([1.0, -2.0], 3, "it must be finite and above 0"),
        (1.0, 1, "d is 1"),
        (1.0, 2.5, "d is 2.5"),
    ],
)
def test_bad_arguments_are_refused(beta, d, words):
    with pytest.raises(ValueError, match=words):
        theory.energy_of_uniform(beta, d)
