"""Correlations of exchangeable tokens, against reference numbers of an independent program, to their digits."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import uniform

LIMITS = [
    (2, "USA", 1.0, 0.5, 1, 0.759728),
    (2, "USA", 1.0, 0.5, 2, 0.721147),
    (2, "SA", 1.0, 0.5, 1, 0.562661),
    (2, "SA", 1.0, 1.0, 1, 1.441909),
    (3, "SA", 1.0, 0.5, 1, 0.870247),
    (3, "USA", 1.0, 0.5, 1, 1.087065),
    (3, "SA", 4.0, 0.5, 1, 0.455480),
    (3, "SA", 4.0, 0.5, 2, 0.926096),
]
CLOSURES = [
    (2, 1.0, 0.5, 1, (0.5034, 0.5315, 0.5467)),
    (2, 1.0, 1.0, 1, (1.2344, 1.3313, 1.3847)),
    (3, 1.0, 0.5, 1, (0.7557, 0.8093, 0.8388)),
    (3, 4.0, 0.5, 1, (0.2935, 0.3572, 0.4005)),
    (3, 4.0, 0.5, 2, (0.5614, 0.7004, 0.7981)),
]


@pytest.mark.parametrize(("d", "model", "beta", "t", "k", "expected"), LIMITS)
def test_pairs_of_many_tokens(d, model, beta, t, k, expected):
    assert uniform.pair_correlation(t, beta, d, k=k, model=model) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(("d", "beta", "t", "k", "expected"), CLOSURES)
def test_pairs_of_some_tokens(d, beta, t, k, expected):
    found = uniform.pair_correlation(t, beta, d, k=k, n=np.array([16, 32, 64]))
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-5)
    assert uniform.pair_correlation(t, beta, d, k=k, n=10**9) == pytest.approx(
        float(uniform.pair_correlation(t, beta, d, k=k)), rel=1e-6
    )


def test_pairs_at_two_times():
    for model, expected in (("USA", 0.326547), ("SA", 0.250064)):
        assert uniform.pair_correlation(0.5, 1.0, 2, from_start=True, model=model) == pytest.approx(expected, abs=6e-7)


def test_triples_and_their_first_terms():
    """At small times: no term of order t for pair forces, -(2 b_1 b_2 + 4 b_1^2) t/beta for softmax."""
    for t, beta, model, expected in (
        (0.5, 1.0, "USA", 1.322182),
        (0.5, 1.0, "SA", -0.251598),
        (0.25, 1.0, "USA", 0.240406),
        (0.25, 1.0, "SA", -0.188635),
        (1.0, 1.0, "SA", 0.603895),
        (0.5, 4.0, "SA", -0.608224),
    ):
        assert uniform.triple_correlation(t, beta, model=model) == pytest.approx(expected, abs=6e-7)
    b1, b2 = (float(uniform.growth_rates(2.0, 2, k=k)) * 2.0 / k**2 for k in (1, 2))
    slope = float(uniform.triple_correlation(1e-6, 2.0)) / 1e-6
    assert slope == pytest.approx(-(2 * b1 * b2 + 4 * b1**2) / 2.0, abs=1e-5)
    assert abs(float(uniform.triple_correlation(1e-6, 2.0, model="USA"))) < 1e-9
    assert uniform.triple_correlation(2.0, 3.0, model="USA0") == pytest.approx(
        float(uniform.triple_correlation(2.0 * np.exp(-3.0), 3.0, model="USA")), rel=1e-12
    )


def test_triples_by_a_gaussian_start():
    """The amplitude equations M_1' = l_1 M_1 + p conj(M_1) M_2, M_2' = l_2 M_2 + q M_1^2, to second order, by hand.

    E M_1^2 conj(M_2) at t from Gaussian M_k(0) of variance 1/n, with the self terms of the sum taken off.
    """
    beta, t, steps = 3.0, 0.8, 4000
    l1, l2 = uniform.growth_rates(beta, 2, k=np.array([1, 2]))
    b1, b2 = beta * l1, beta * l2 / 4
    p, q = (2 * b2 - b1 - b1 * b2) / beta, 2 * b1 * (1 - b1) / beta
    s = (np.arange(steps) + 0.5) * t / steps
    first = np.mean(np.exp(l1 * (t - s)) * np.exp((l1 + l2) * s)) * t  # of M_1, for every conj(M_1) M_2
    second = np.mean(np.exp(l2 * (t - s)) * np.exp(2 * l1 * s)) * t
    moment = np.exp((2 * l1 + l2) * t)  # what iid tokens begin with: E M_1^2 conj(M_2) = 1/n^2
    moment += 2 * p * first * np.exp((l1 + l2) * t) + 2 * q * second * np.exp(2 * l1 * t)
    expected = moment - np.exp(2 * l2 * t) - 2 * np.exp(2 * l1 * t) + 2
    assert uniform.triple_correlation(t, beta) == pytest.approx(expected, rel=1e-5)


def test_the_closure_is_for_softmax():
    with pytest.raises(InvalidInput, match="use 'SA'"):
        uniform.pair_correlation(1.0, 1.0, 2, n=8, model="USA")


def test_long_times_are_infinite_or_refused():
    """Both are meant for e^{2 lambda t} << n; beyond doubles no warning, no NaN."""
    assert uniform.pair_correlation(1e4, 1.0, 3) == np.inf == uniform.pair_correlation(1e4, 1.0, 3, n=10)
    for beta in (1.0, 50.0):  # the largest exponent is 4 l_1 at the first, 2 (l_1 + l_2) at the second
        with pytest.raises(InvalidInput, match=r"`t` is 10000.0; .* beyond doubles: take t <= ") as refused:
            uniform.triple_correlation([0.5, 1e4], beta)
        last = float(str(refused.value).split("<= ")[1].rstrip("."))
        late = np.abs(uniform.triple_correlation([0.9 * last, 0.99 * last], beta))
        assert 1e250 < late[0] < late[1] < 1e300
