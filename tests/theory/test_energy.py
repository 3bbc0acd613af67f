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
    found = theory.landscape.energy_of_uniform(BETAS, d)
    for beta, value in zip(BETAS, found, strict=True):
        assert abs(mp.mpf(float(value)) / exact(beta, d) - 1) < 1e-14, (beta, d)
    assert theory.landscape.energy_of_uniform(7.0, d) == found[BETAS.index(7.0)]


def test_the_mean_is_as_small_as_the_shortcut_says():
    with mp.workdps(60):
        assert mp.hyp0f1(50, 2500) * mp.exp(-100) < 1e-26


@pytest.mark.parametrize(
    ("beta", "d", "words"),
    [
        (0.0, 3, "`beta` is 0"),
        (np.inf, 3, "`beta` is inf; give numbers"),
        (np.nan, 3, "`beta` is nan"),
        ([1.0, -2.0], 3, "give numbers in"),
        (1.0, 1, "`d` is 1"),
        (1.0, 2.5, "`d` is 2.5"),
    ],
)
def test_bad_arguments_are_refused(beta, d, words):
    with pytest.raises(ValueError, match=words):
        theory.landscape.energy_of_uniform(beta, d)


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_rates_of_the_energy_are_derivatives_along_the_field(model):
    """A short step of the field, forwards and backwards, in NumPy; one head with B = I is the plain model."""
    rng = np.random.default_rng(3)
    beta, h, n, heads = 1.7, 1e-5, 5, 3
    x = rng.standard_normal((n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    matrices = rng.standard_normal((heads, 3, 3))
    matrices = matrices + np.swapaxes(matrices, 1, 2)

    def derivative(matrices):
        def level(x):
            return (
                np.mean(np.exp(beta * (np.einsum("ia,hab,jb->hij", x, matrices, x) - 1)), axis=(1, 2)).sum() / 2 / beta
            )

        velocity = 0
        for matrix in matrices:
            weights = np.exp(beta * (x @ matrix @ x.T - 1)) / n
            pull = weights @ x @ matrix
            velocity = velocity + pull / (weights.sum(axis=1, keepdims=True) if model == "SA" else 1)
        velocity = velocity - np.sum(velocity * x, axis=1, keepdims=True) * x
        both = [x + sign * h * velocity for sign in (1, -1)]
        both = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in both]
        return (level(both[0]) - level(both[1])) / (2 * h)

    rate, error = theory.landscape.energy_rate_of_heads(matrices, x, np.full(n, 1 / n), beta=beta, model=model)
    assert rate == pytest.approx(derivative(matrices), rel=1e-6)
    assert 0 < error < 1e-8 * abs(rate)
    assert theory.landscape.energy_rate_of_tokens(x, beta, model=model) == pytest.approx(
        derivative(np.eye(3)[None]), rel=1e-6
    )
    with pytest.raises(ValueError, match="USA0"):
        theory.landscape.energy_rate_of_tokens(x, beta, model="USA")
