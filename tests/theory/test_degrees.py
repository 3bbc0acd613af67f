"""The kernel by degrees: printed cuts, mpmath, the kernel itself."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import eval_gegenbauer, eval_legendre

from attnflow.theory import uniform

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps
CUTS = {
    2: [[7, 10, 13], [17, 23, 28], [49, 66, 79], [155, 205, 245], [489, 647, 774]],
    3: [[7, 10, 13], [17, 24, 29], [53, 69, 82], [166, 214, 254], [525, 678, 803]],
    4: [[7, 10, 13], [18, 24, 30], [55, 71, 84], [174, 222, 261], [553, 703, 826]],
    8: [[8, 11, 14], [20, 26, 31], [62, 77, 90], [199, 244, 282], [634, 778, 896]],
}
BETAS = np.array([1, 10, 100, 1000, 10000])
TOLERANCES = np.array([1e-6, 1e-10, 1e-14])


@pytest.mark.parametrize("d", [2, 3, 4, 8])
def test_printed_cuts(d):
    found = uniform.truncation_degree(TOLERANCES, BETAS[:, None], d)
    np.testing.assert_array_equal(found, CUTS[d])
    # large beta: sqrt(beta) times a chi quantile, within 4
    near = np.sqrt(BETAS[2:, None]) * stats.chi.isf(TOLERANCES, d - 1) - (d - 2) / 2
    assert (np.abs(found[2:] - near) <= 4).all()
    # the error of the cut, summed on its own: at most the tolerance, and more than it one degree earlier. The
    # weights are good to 1e-12 relative
    for i, beta in enumerate(BETAS):
        weights = uniform.degree_weights(float(beta), d, 2000)
        for j, tolerance in enumerate(TOLERANCES):
            tail = weights[: found[i, j] : -1].sum()
            assert tail <= tolerance * (1 + 1e-10) < (tail + weights[found[i, j]]) * (1 + 2e-10)


def test_printed_basis_sizes():
    sizes = {
        2: [21, 47, 133, 411, 1295],
        3: [121, 625, 4900, 46225, 461041],
        4: [506, 5.5e3, 1.3e5, 3.7e6, 1.2e8],
        8: [5.1e4, 7.6e6, 8.7e9, 2e13, 7e16],
    }
    for d, row in sizes.items():
        found = uniform.basis_size(np.array(CUTS[d])[:, 1], d)
        # exact on the circle and on S^2, else printed to two digits (one for the last two)
        assert np.allclose(found, row, rtol=0 if d < 4 else 0.05, atol=0) or (
            d == 8 and np.allclose(found, row, rtol=0.15)
        )
        assert found.dtype == np.int64
        for degree, size in zip(np.array(CUTS[d])[:, 1], found, strict=True):
            assert size == sum(uniform.multiplicity(np.arange(degree + 1), d).tolist())
    assert uniform.basis_size(0, 7) == 1
    assert uniform.basis_size(500, 20).dtype == np.float64
    assert uniform.basis_size([[1, 2]], 3).shape == (1, 2)


@given(
    log_beta=st.floats(np.log(1e-6), np.log(1e4)),
    d=st.sampled_from([2, 3, 4, 8, 65, 4096]),
    place=st.floats(0, 1),
)
@settings(max_examples=30, deadline=None)
def test_weights_agree_with_mpmath(log_beta, d, place):
    beta = float(np.exp(log_beta))
    k = int(place * uniform.truncation_degree(1e-12, beta, d))
    with mp.workdps(40):
        nu, b = mp.mpf(d) / 2 - 1, mp.mpf(beta)
        # log N + log a_k - beta; N from factorials, with its value at k = 0
        count = (2 * k + d - 2) * mp.rf(k + 1, d - 3) / mp.factorial(d - 2) if d > 2 else mp.mpf(2)
        count = count if k else mp.mpf(1)
        exact = count * mp.gamma(nu + 1) * (2 / b) ** nu * mp.besseli(k + nu, b) * mp.exp(-b)
        log_exact = float(mp.log(exact))
    if log_exact < -690:
        return
    found = uniform.degree_weights(beta, d, k + 1)[k]
    # from the peak at most m logarithms are added, m the number of weights on the way, to half a unit of a partial
    # sum (at most 690 + 60), each from a ratio good to a few units; the same in the norm, near the peak
    way = 64 + 10 * np.sqrt(beta) + k + beta
    assert abs(np.log(found) - log_exact) < EPS * way * (abs(log_exact) / 2 + 8)


@pytest.mark.parametrize("d", [2, 3, 4, 9])
@pytest.mark.parametrize("beta", [0.3, 7.0, 500.0])
def test_the_weights_build_the_kernel(d, beta):
    top = int(uniform.truncation_degree(1e-15, beta, d))
    cosines = np.linspace(-1, 1, 41)
    k = np.arange(top + 1)[:, None]
    if d == 2:
        basis = np.cos(k * np.arccos(cosines))
    elif d == 3:
        basis = eval_legendre(k, cosines)
    else:
        basis = eval_gegenbauer(k, d / 2 - 1, cosines) / eval_gegenbauer(k, d / 2 - 1, 1.0)
    kernel = uniform.degree_weights(beta, d, top + 1) @ basis
    # polynomials of degree k by recurrence: k^2 units at most, weights sum to 1
    np.testing.assert_allclose(kernel, np.exp(beta * (cosines - 1)), rtol=0, atol=1e-15 + 8 * EPS * (top + 1) ** 2)


def test_a_probability_on_degrees():
    for d in (2, 3, 64, 4096):
        for beta in (0.0, 1e-8, 1.0, 100.0, 1e4):
            weights = uniform.degree_weights(beta, d, 12000)
            assert (weights >= 0).all()
            assert weights.sum() == pytest.approx(1, abs=1e-12)
            # below Poisson(beta): the quotient of neighbours is at most beta/k
            cut = uniform.truncation_degree(1e-8, beta, d)
            assert cut <= stats.poisson.isf(1e-8, beta) + 1 if beta else cut == 0
    # the circle: |Skellam|, and its bound on the cut
    weights = uniform.degree_weights(30.0, 2, 40)
    distribution = stats.skellam.pmf(np.arange(40), 15.0, 15.0) * np.where(np.arange(40), 2, 1)
    np.testing.assert_allclose(weights, distribution, rtol=1e-9, atol=1e-14)
    ell = np.log(2 / TOLERANCES)
    for beta in BETAS:
        bound = ell / 3 + np.sqrt(ell**2 / 9 + 2 * beta * ell)
        assert (uniform.truncation_degree(TOLERANCES, beta, 2) <= bound).all()
    # very small tails are still resolved
    assert uniform.truncation_degree(1e-280, 100.0, 3) > uniform.truncation_degree(1e-200, 100.0, 3)
    assert uniform.degree_weights(np.ones((2, 3)), 4, 5).shape == (2, 3, 5)
    assert uniform.truncation_degree(0.5, np.ones((2, 1)), 4).shape == (2, 1)
    assert uniform.truncation_degree([], 1.0, 4).shape == (0,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uniform.degree_weights(-1.0, 3, 5), "`beta` is -1.0"),
        (lambda: uniform.degree_weights(1.0, 1, 5), "`d` is 1"),
        (lambda: uniform.degree_weights(1.0, 3, 0), "`count` is 0"),
        (lambda: uniform.degree_weights(1.0, 3, [1, 2]), "`count` is"),
        (lambda: uniform.truncation_degree(0.0, 1.0, 3), "`tol` is 0.0"),
        (lambda: uniform.truncation_degree(1.0, 1.0, 3), "`tol` is 1.0"),
        (lambda: uniform.truncation_degree(np.nan, 1.0, 3), "`tol` is nan"),
        (lambda: uniform.truncation_degree(0.1, np.inf, 3), "`beta` is inf"),
        (lambda: uniform.basis_size(-1, 3), "`degree` is -1"),
        (lambda: uniform.basis_size(3, 1), "`d` is 1"),
        (lambda: uniform.basis_size(4000, 4096), "`degree` is 4000"),
    ],
)
def test_out_of_range_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
