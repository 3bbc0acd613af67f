"""Causal attention: printed tables, mpmath, dense matrices, the Volterra equation, and discrete against continuous."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from attnflow import theory

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


def panels(low, high, count, order=20):
    """Nodes and weights of Gauss's rule on `count` panels."""
    points, weights = np.polynomial.legendre.leggauss(order)
    half = (high - low) / count / 2
    middles = low + (2 * np.arange(count)[:, None] + 1) * half
    return (middles + half * points).ravel(), np.tile(half * weights, count)


def over_sources(f, slope, place=1.0, top=900.0, count=60):
    """The integral of f(s) over 0 < s < place, in y = Y(place, s), where ds = (1 - e^{-slope s})/slope dy."""
    y, weights = panels(0.0, np.sqrt(top), count)
    y, weights = y**2, 2 * y * weights
    grown = np.expm1(slope * place) * np.exp(-y) if slope else place * np.exp(-y)
    s = np.log1p(grown) / slope if slope else grown
    near = s > 1e-300
    speed = -np.expm1(-slope * s) / slope if slope else s
    return np.sum((weights * speed)[near] * f(s[near]))


# rates

RATES = [
    (2, 1.0, "USA", [0.56515910, 0.54299068, 0.19951582]),
    (2, 1.0, "SA", [0.44638997, 0.42888027, 0.15758724]),
    (2, 4.0, "USA", [2.43986629, 6.42218938, 7.50887050]),
    (2, 4.0, "SA", [0.21588065, 0.56823869, 0.66438881]),
    (3, 1.0, "USA", [0.73575888, 0.42937722, 0.12078109]),
    (3, 1.0, "SA", [0.62607057, 0.36536486, 0.10277482]),
    (3, 4.0, "USA", [2.56071919, 4.47210077, 4.18406324]),
    (3, 4.0, "SA", [0.37533558, 0.65549496, 0.61327606]),
    (8, 1.0, "USA", [0.91967239, 0.20848370, 0.02914531]),
    (8, 1.0, "SA", [0.86428520, 0.19592779, 0.02739003]),
]


@pytest.mark.parametrize(("d", "beta", "model", "printed"), RATES)
def test_printed_rates(d, beta, model, printed):
    np.testing.assert_allclose(theory.causal.rates([1, 2, 3], beta, d, model=model), printed, rtol=0, atol=5.1e-9)


@pytest.mark.parametrize(("beta", "d"), [(0.3, 2), (4.0, 3), (1.0, 4096), (50.0, 64)])
def test_rates_agree_with_mpmath_on_every_clock(beta, d):
    with mp.workdps(30):
        nu, b = mp.mpf(d) / 2 - 1, mp.mpf(beta)
        mean = [mp.gamma(mp.mpf(d) / 2) * (2 / b) ** nu * mp.besseli(k + nu, b) for k in range(4)]
        usa = [k * (k + d - 2) * mean[k] / b for k in (1, 2, 3)]
        exact = {
            "USA": usa,
            "SA": [a / mean[0] for a in usa],
            "USA0": [a * mp.exp(-b) for a in usa],
            "grad": [a * b for a in usa],
        }
        dilution = float(mp.exp(b) / mean[0])
    for model, values in exact.items():
        values = [float(v) for v in values]
        # the mean of the kernel is a logarithm of size up to beta, or a log gamma of size d log d
        np.testing.assert_allclose(theory.causal.rates([1, 2, 3], beta, d, model=model), values, rtol=1e-11)
        np.testing.assert_allclose(
            theory.causal.log_rates([1, 2, 3], beta, d, model=model), np.log(values), rtol=0, atol=1e-11
        )
    np.testing.assert_allclose(theory.causal.softmax_dilution(beta, d), dilution, rtol=1e-11)


def test_limits_of_rates():
    np.testing.assert_allclose(theory.causal.rates([1, 2], 0.0, 3, model="SA"), [2 / 3, 0.0], rtol=EPS)
    np.testing.assert_array_equal(theory.causal.rates([1, 2], 0.0, 3, model="grad"), 0.0)
    np.testing.assert_allclose(theory.causal.rates(1, 1.0, 64, model="SA"), 0.98414206, atol=5.1e-9)
    np.testing.assert_allclose(
        theory.causal.log_rates(1, 2000.0, 2, model="grad"), 2000 - 0.5 * np.log(4000 * np.pi), atol=2e-4
    )
    assert theory.causal.softmax_dilution(0.0, 5) == 1.0
    np.testing.assert_allclose(theory.causal.log_softmax_dilution(2000.0, 2), 0.5 * np.log(4000 * np.pi), atol=1e-4)
    for call in (
        lambda: theory.causal.rates(1, 2000.0, 2, model="USA"),
        lambda: theory.causal.softmax_dilution(5000.0, 4096),
    ):
        with pytest.raises(ValueError, match="use log_"):
            call()


# weights, places, sums over paths


@given(place=st.floats(1e-3, 1.0), part=st.floats(1e-8, 1.0), slope=st.floats(0, 1e4))
@settings(max_examples=60, deadline=None)
def test_places_agree_with_mpmath(place, part, slope):
    source = place * part
    with mp.workdps(60):
        p, s, rate = mp.mpf(place), mp.mpf(source), mp.mpf(slope)
        if slope > 0:
            weight = mp.log(rate) - rate * (p - s) - mp.log(-mp.expm1(-rate * p))
            ratio = mp.log(mp.expm1(rate * p) / mp.expm1(rate * s))
        else:
            weight, ratio = -mp.log(p), mp.log(p / s)
        weight, ratio = float(weight), float(ratio)
    # the gap p - s is exact to a unit of p, times the slope; dense subnormal slopes are as good as 0
    found = theory.causal.log_place_ratio(place, source, slope)
    assert abs(found - ratio) <= 8 * EPS * (ratio + 4) + 1e-300
    assert abs(found - ratio) <= 20 * EPS * ratio + 4 * EPS * slope * place + 1e-300 or part < 0.5
    if weight > -700:
        np.testing.assert_allclose(
            theory.causal.graphon(place, source, slope), np.exp(weight), rtol=8 * EPS * (abs(weight) + slope + 4)
        )


def test_extreme_places():
    found = theory.causal.log_place_ratio(1.0, [1e-300, 1e-5, 0.5], [[0.0], [1e4]])
    exact = [[690.77552789821370, np.log(1e5), np.log(2.0)], [1e4 + 681.5651875262, 1e4 + 2.2521684610, 5000.0]]
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    assert theory.causal.log_place_ratio(0.3, 0.3, 5.0) == 0
    assert theory.causal.graphon(0.3, 0.4, 5.0) == 0


@pytest.mark.parametrize("slope", [0.0, 1e-9, 1.0, 40.0, 1e4])
def test_weights_integrate_to_one(slope):
    for place in (0.1, 1.0):
        total = (
            over_sources(lambda s, p=place: theory.causal.graphon(p, s, slope), slope, place) if slope < 700 else None
        )
        if total is None:  # e^{slope} leaves float range: integrate over the layer before the place
            total = quad(lambda x, p=place: float(theory.causal.graphon(p, p - x / slope, slope)) / slope, 0, 40)[0]
        assert abs(total - 1) < 1e-11


PSI = {
    0.1: [0.10000000, 0.10252092, 0.10508403, 0.11033894, 0.12717235, 0.23948331],
    0.5: [0.50000000, 0.56515910, 0.63586173, 0.79531843, 1.44705216, 13.11992939],
    1.0: [1.00000000, 1.27172346, 1.59063685, 2.39483310, 6.70929029, 218.63841322],
    2.0: [2.00000000, 3.18127371, 4.78966620, 9.75946515, 52.47971756, 10712.61352186],
}


@pytest.mark.parametrize("c", PSI)
def test_printed_hop_sums(c):
    np.testing.assert_allclose(theory.causal.hop_sum(c, [0, 0.5, 1, 2, 5, 20]), PSI[c], rtol=0, atol=5.1e-9)


@given(log_c=st.floats(-8, 4), log_y=st.floats(-12, 4))
@settings(max_examples=60, deadline=None)
def test_hop_sums_agree_with_mpmath(log_c, log_y):
    c, y = 10.0**log_c, 10.0**log_y
    with mp.workdps(30):
        exact = float(mp.log(c * mp.hyp0f1(2, mp.mpf(c) * y)))
        ratio = float(mp.mpf(c) / 2 * mp.hyp0f1(3, mp.mpf(c) * y) / mp.hyp0f1(2, mp.mpf(c) * y))
        third = float(mp.mpf(c) / 3 * mp.hyp0f1(4, mp.mpf(c) * y) / mp.hyp0f1(3, mp.mpf(c) * y))
    # the exponent 2 sqrt(cy) to a few units, Bessel's functions of scipy to 1e-14
    assert abs(theory.causal.log_hop_sum(c, y) - exact) <= 4 * EPS * (abs(exact) + 2 * np.sqrt(c * y)) + 2e-14
    np.testing.assert_allclose(theory.causal.hop_ratios(c, y, 3)[1:], [ratio, third], rtol=1e-13)


def test_hop_sums_at_their_ends():
    np.testing.assert_allclose(theory.causal.hop_sum([0.0, 3.0], [5.0, 0.0]), [0.0, 3.0], rtol=4 * EPS)
    np.testing.assert_allclose(theory.causal.hop_ratios(3.0, 0.0, 4), [3, 3 / 2, 1, 3 / 4], rtol=2 * EPS)
    # beyond 1e8 by the expansion of Bessel's function: z^(-2) is below rounding
    c, y = 1e8, 1e12
    z = 2e10
    with mp.workdps(40):
        exact = float(
            mp.log(mp.mpf(c)) + mp.log(2 / mp.mpf(z)) + z - mp.log(2 * mp.pi * z) / 2 - mp.mpf(3) / (8 * mp.mpf(z))
        )
    np.testing.assert_allclose(theory.causal.log_hop_sum(c, y), exact, rtol=4 * EPS)
    with pytest.raises(ValueError, match="use log_hop_sum"):
        theory.causal.hop_sum(1e4, 1e4)


# the correlation with an earlier token

PROFILES = [  # slope, c, at the sources .02, .1, .25, .5, .75, .9, 1
    (0.0, 0.5, [1.177119, 0.848667, 0.694503, 0.591795, 0.536833, 0.513286, 0.500000]),
    (0.5, 0.5, [0.962811, 0.722667, 0.633942, 0.604284, 0.611932, 0.624603, 0.635374]),
    (1.0, 0.25, [0.247633, 0.223873, 0.232126, 0.270297, 0.324893, 0.365206, 0.395494]),
    (1.0, 0.5, [0.774056, 0.604997, 0.568975, 0.606467, 0.684773, 0.745310, 0.790988]),
    (1.0, 1.0, [3.344992, 2.072134, 1.654752, 1.509176, 1.517094, 1.551427, 1.581977]),
    (2.0, 1.0, [2.222203, 1.505303, 1.379576, 1.546255, 1.874096, 2.125431, 2.313035]),
]


@pytest.mark.parametrize(("slope", "c", "printed"), PROFILES)
def test_printed_profiles(slope, c, printed):
    found = theory.causal.correlation(c, 1.0, [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0], slope=slope)
    np.testing.assert_allclose(found, printed, rtol=0, atol=5.1e-7)


@pytest.mark.parametrize("slope", [0.0, 1e-6, 0.1, 1.0, 2.0, 10.0, 100.0, 600.0])
@pytest.mark.parametrize("c", [0.01, 1.0, 6.0])
def test_sum_rule(c, slope):
    total = over_sources(lambda s: theory.causal.correlation(c, 1.0, s, slope=slope), slope)
    assert abs(total / np.expm1(c) - 1) < 1e-11


@pytest.mark.parametrize("slope", [1e3, 1e4])
def test_sum_rule_of_steep_slopes(slope):
    # all of it lies in a layer before the place, s = 1 - x/slope: the rest is e^{-x + 2 sqrt(c x)}
    x, weights = panels(0.0, 12.0, 30)
    g = theory.causal.correlation(1.0, 1.0, 1 - x**2 / slope, slope=slope) / slope
    assert abs(np.sum(2 * x * weights * g) / np.expm1(1.0) - 1) < 1e-9


def volterra_residual(c, place, source, slope, q=0.0):
    """dg/dc - k(p, s) - integral of k(p, p') g(p', s) over s < p' < p, relative to the right side."""
    x, weights = panels(source, place, 40)
    seen = (1 - np.exp(-slope * place)) / slope if slope else place
    slowed = seen / (seen + q)  # dilution lowers the weights
    right = slowed * theory.causal.graphon(place, source, slope)
    inner = theory.causal.graphon(place, x, slope) * theory.causal.correlation(
        c, x, source, slope=slope, relative_dilution=q
    )
    right += slowed * np.sum(weights * inner)
    step = 1e-3 * c
    g = theory.causal.correlation(
        c + step * np.array([-2.0, -1, 1, 2]), place, source, slope=slope, relative_dilution=q
    )
    left = (g @ [1, -8, 8, -1]) / (12 * step)  # an error of step^4 g^(5)/30
    return left / right - 1


@pytest.mark.parametrize("q", [0.0, 0.02, 3.0])
@pytest.mark.parametrize(
    ("c", "place", "source", "slope"), [(0.91, 0.9, 0.2, 1.5), (0.3, 1.0, 0.05, 0.0), (3.0, 0.7, 0.3, 20.0)]
)
def test_volterra_equation(c, place, source, slope, q):
    assert abs(volterra_residual(c, place, source, slope, q)) < 1e-10


def test_printed_value_of_the_volterra_case():
    np.testing.assert_allclose(theory.causal.correlation(0.91, 0.9, 0.2, slope=1.5), 1.4917211, atol=5.1e-8)


@pytest.mark.parametrize("slope", [0.0, 1.0, 30.0])
def test_semigroup_in_time(slope):
    a, b, place, source = 0.4, 0.7, 0.9, 0.3
    x, weights = panels(source, place, 40)
    through = theory.causal.correlation(a, place, x, slope=slope) * theory.causal.correlation(b, x, source, slope=slope)
    both = theory.causal.correlation([a, b], place, source, slope=slope).sum() + np.sum(weights * through)
    np.testing.assert_allclose(theory.causal.correlation(a + b, place, source, slope=slope), both, rtol=1e-12)


def test_correlations_outside_float_range():
    logs = theory.causal.log_correlation(1e4, 1.0, [1e-300, 0.5], slope=1e4)
    assert np.isfinite(logs).all()
    # the expansion of Bessel's function, with Y = 10^4 + log of (1e-300 * 1e4) inverse
    y = 1e4 - np.log(1e-296)
    z = 2 * np.sqrt(1e4 * y)
    exact = np.log(1e4) - 1e4 + np.log(1e4) + z + np.log(2 / z) - 0.5 * np.log(2 * np.pi * z) - 0.375 / z
    np.testing.assert_allclose(logs[0], exact, rtol=1e-12)
    assert theory.causal.log_correlation(0.0, 1.0, 0.5, slope=1.0) == -np.inf
    with pytest.raises(ValueError, match="use log_correlation"):
        theory.causal.correlation(1e4, 1.0, 1e-300, slope=1e4)


def test_refusals():
    for call, word in [
        (lambda: theory.causal.rates(1, 1.0, 2, model="usa"), "`model` is 'usa'; use 'SA'"),
        (lambda: theory.causal.rates(1, -1.0, 2, model="SA"), "`beta` is -1.0; give numbers in"),
        (lambda: theory.causal.graphon(0.0, 0.5, 1.0), "`place` is 0.0; give numbers in"),
        (lambda: theory.causal.graphon(0.5, 1.5, 1.0), "`source` is 1.5; give numbers in"),
        (lambda: theory.causal.graphon(0.5, 0.1, -1.0), "`slope` is -1.0; give numbers in"),
        (lambda: theory.causal.graphon(0.5, 0.1, "a"), "`slope` is 'a'; give numbers in"),
        (lambda: theory.causal.log_place_ratio(0.2, 0.3, 1.0), "give source <= place"),
        (lambda: theory.causal.hop_sum(-1.0, 1.0), "`c` is -1.0; give numbers in"),
        (lambda: theory.causal.hop_sum(1.0, np.nan), "`y` is nan; give numbers in"),
        (lambda: theory.causal.pair_correlation(200.0, 1.0, 0.5, slope=1.0), "`c` is 200.0; give numbers in"),
    ]:
        with pytest.raises(ValueError, match=word):
            call()
