"""Growth rates at the uniform measure and on rings: printed values, mpmath, the field itself."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from attnflow.theory import landscape, uniform

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps
BETAS = [0.5, 1, 2, 5, 9, 20, 100]
RATES = {
    2: [
        [0.484999, 0.240012, 0.044770, 0.004959, 0.000387, 0.000023],
        [0.446390, 0.428880, 0.157587, 0.034591, 0.005360, 0.000639],
        [0.348887, 0.604451, 0.419958, 0.178027, 0.053879, 0.012635],
        [0.178677, 0.514117, 0.682678, 0.600089, 0.396106, 0.209416],
        [0.104743, 0.351339, 0.591351, 0.704497, 0.664173, 0.522442],
        [0.048734, 0.180507, 0.357374, 0.531427, 0.660563, 0.720105],
        [0.009950, 0.039204, 0.086021, 0.147641, 0.220491, 0.300440],
    ],
    3: [
        [0.655814, 0.195354, 0.027798, 0.002567, 0.000175, 0.000009],
        [0.626071, 0.365365, 0.102775, 0.018843, 0.002552, 0.000273],
        [0.537315, 0.582084, 0.313470, 0.111707, 0.029652, 0.006260],
        [0.320036, 0.623935, 0.672349, 0.510968, 0.301257, 0.145163],
        [0.197531, 0.469136, 0.663923, 0.703145, 0.605091, 0.441226],
        [0.095000, 0.257250, 0.441375, 0.600031, 0.698416, 0.722285],
        [0.019800, 0.058218, 0.112978, 0.180879, 0.258027, 0.340110],
    ],
}
log_betas = st.floats(np.log(1e-6), np.log(1e4)).map(lambda x: float(np.exp(x)))


@pytest.mark.parametrize("d", [2, 3])
def test_printed_rates(d):
    # six decimals: half a unit in the last
    found = uniform.growth_rates(np.array(BETAS)[:, None], d, k=np.arange(1, 7))
    np.testing.assert_allclose(found, RATES[d], rtol=0, atol=5.1e-7)
    for beta, row in zip(BETAS, found, strict=True):
        np.testing.assert_array_equal(uniform.growth_rates(beta, d)[:6][:4], row[:4])


def test_printed_rates_of_usa():
    for beta, rates in [
        (1, [0.565159, 0.542991, 0.199516]),
        (5, [4.86713, 14.0045, 18.5961, 16.3464]),
        (9, [114.546, 384.221, 646.694, 770.430, 726.331]),
    ]:
        found = uniform.growth_rates(beta, 2, k=np.arange(1, len(rates) + 1), model="USA")
        np.testing.assert_allclose(found, rates, rtol=5.1e-6)  # six digits


def test_dominant_degrees_and_the_largest_rate():
    betas = [0.5, 1, 2, 5, 9, 20, 100, 1000, 10000]
    for d, degrees in [
        (2, [1, 1, 2, 3, 4, 6, 14, 45, 141]),
        (3, [1, 1, 2, 3, 4, 6, 14, 44, 141]),
        (4, [1, 1, 1, 2, 3, 5, 13, 44, 140]),
        (8, [1, 1, 1, 1, 2, 4, 11, 42, 138]),
        (64, [1, 1, 1, 1, 1, 1, 3, 23, 114]),
    ]:
        np.testing.assert_array_equal(uniform.dominant_degree(betas, d), degrees)
    assert uniform.dominant_degree(0.0, 2) == 1
    with mp.workdps(30):
        rates = [k * (k + 4094) * mp.besseli(k + 2047, 10**4) for k in range(1, 12)]
    assert uniform.dominant_degree(1e4, 4096) == 1 + rates.index(max(rates))
    assert uniform.dominant_degree(np.zeros((0, 3)), 2).shape == (0, 3)


@given(beta=log_betas, d=st.sampled_from([2, 3, 5, 64, 4096]))
@settings(max_examples=30, deadline=None)
def test_dominant_degree_is_the_largest_rate(beta, d):
    # ties are of measure zero, but two logarithms may agree to the last digits
    logs = uniform.log_growth_rates(beta, d, np.arange(1, 400))
    assert logs[uniform.dominant_degree(beta, d) - 1] >= logs.max() - 1e-10
    k = np.arange(1.0, 400)
    peak = -(d - 2) / 2 + np.sqrt((d - 2) ** 2 / 4 + 2 * beta)  # s = 2 beta; integers round it
    if k[-1] > 2 * peak and d <= 5:
        assert abs(uniform.dominant_degree(beta, d) - max(peak, 1)) <= 1


@pytest.mark.parametrize(
    ("d", "thresholds"),
    [
        (2, [1.044457, 3.165434, 6.211298, 10.228483, 15.236277, 21.240452, 28.242957, 36.244583]),
        (3, [1.816155, 4.425293, 7.962380, 12.477433, 17.984894]),
        (4, [2.528520, 5.655823, 9.698786, 14.717612, 20.727556]),
    ],
)
def test_switching_thresholds(d, thresholds):
    k = np.arange(1, len(thresholds) + 1)
    found = uniform.switching_threshold(k, d)
    np.testing.assert_allclose(found, thresholds, rtol=0, atol=5.1e-7)
    # they are where the dominant degree steps
    np.testing.assert_array_equal(uniform.dominant_degree(found * (1 - 1e-9), d), k)
    np.testing.assert_array_equal(uniform.dominant_degree(found * (1 + 1e-9), d), k + 1)


def test_switching_thresholds_broadcast_and_reach_high_dimension():
    found = uniform.switching_threshold(np.array([[1], [140]]), np.array([2, 64, 4096]))
    assert found.shape == (2, 3)
    for (i, j), beta in np.ndenumerate(found):
        k, d = [1, 140][i], [2, 64, 4096][j]
        # equal to within what 1e-13 in beta does to a logarithm of slope at most k/beta, plus rounding of k logs
        logs = uniform.log_growth_rates(beta, d, [k, k + 1])
        assert abs(logs[1] - logs[0]) < 1e-12 + 4 * EPS * (k + 1) * abs(logs[0])


@given(
    beta=log_betas,
    d=st.sampled_from([2, 3, 4, 17, 300, 4096]),
    k=st.one_of(st.integers(1, 20), st.integers(1, 500)),
    model=st.sampled_from(["SA", "USA0", "USA"]),
)
@settings(max_examples=40, deadline=None)
def test_rates_agree_with_mpmath(beta, d, k, model):
    with mp.workdps(40):
        nu, b = mp.mpf(d) / 2 - 1, mp.mpf(beta)
        exact = mp.log(k * (k + d - 2)) + mp.log(mp.besseli(k + nu, b)) - mp.log(b)
        if model == "SA":
            exact -= mp.log(mp.besseli(nu, b))
        else:
            exact += mp.loggamma(nu + 1) + nu * mp.log(2 / b) - (b if model == "USA0" else 0)
        size = float(abs(mp.loggamma(nu + 1)) + abs(nu * mp.log(2 / b)) + b)
        exact = float(exact)
    # k additions round by half a unit of a partial sum each, k ratios carry a few units each; the clock is a sum of
    # terms no larger than `size`, or a series of as many, and I_nu comes from AMOS with eps * max(order, beta)
    partial = abs(float(uniform.log_growth_rates(beta, d, k))) + np.log(k * (k + d - 2.0)) + np.log(d)
    tolerance = EPS * (k * partial + 8 * k + 8)
    if model != "SA":
        tolerance += EPS * (8 * size + max(beta, d / 2))
    assert abs(uniform.log_growth_rates(beta, d, k, model=model) - exact) < tolerance
    if exact < 709:
        found = uniform.growth_rates(beta, d, k=k, model=model)
        # exp(700 + x) is off by 700 units at most where it replaces the product; below 1e-308 digits go
        if exact > -700:
            assert abs(np.log(found) - exact) < tolerance + 1e3 * EPS
        else:
            assert 0 <= found < 1e-300
    else:
        with pytest.raises(ValueError, match="log_growth_rates"):
            uniform.growth_rates(beta, d, k=k, model=model)


def test_rates_in_limits():
    # beta -> 0: (d-1)/d for k = 1, nothing else; all clocks agree there
    for model in ("SA", "USA0", "USA"):
        np.testing.assert_allclose(uniform.growth_rates(0.0, 5, k=[0, 1, 2], model=model), [0, 0.8, 0], atol=1e-16)
        np.testing.assert_array_equal(uniform.log_growth_rates(0.0, 5, [0, 2], model=model), [-np.inf, -np.inf])
    # k^2 << beta: k(k+d-2)/beta, relative correction about s/(2 beta)
    assert uniform.growth_rates(1e4, 3, k=2) == pytest.approx(6e-4, rel=6 / 2e4 * 1.1)
    # the largest rate tends to 2/e with a correction of order (d-1)/beta
    for d in (2, 3, 8):
        assert uniform.growth_rates(1e4, d).max() == pytest.approx(2 / np.e, abs=d / 1e4)
    # a value out of reach of floats: log(e^{-beta} I_141(1e4)), ten decimals
    found = uniform.log_growth_rates(1e4, 2, 141, model="USA0") - np.log(141**2 / 1e4)
    assert abs(found + 6.5181794536) < 1e-10
    assert np.isfinite(uniform.log_growth_rates(1e4, 4096, [1, 700], model="USA")).all()
    # the degrees listed do not depend on the clock
    assert len({len(uniform.growth_rates(50.0, 3, model=m)) for m in ("SA", "USA0", "USA")}) == 1
    assert uniform.growth_rates(np.ones((2, 1)), 3, k=[1, 2, 3]).shape == (2, 3)
    assert uniform.growth_rates([], 3, k=[[1], [2]]).shape == (2, 0)


def test_multiplicities():
    np.testing.assert_array_equal(uniform.multiplicity(np.arange(5), 2), [1, 2, 2, 2, 2])
    np.testing.assert_array_equal(uniform.multiplicity(np.arange(5), 3), [1, 3, 5, 7, 9])
    np.testing.assert_array_equal(uniform.multiplicity([[0, 1], [2, 3]], 4), [[1, 4], [9, 16]])
    assert uniform.multiplicity(1, 4096) == 4096
    assert uniform.multiplicity(3, 4).dtype == np.int64
    large = uniform.multiplicity(500, 20)
    exact = mp.mpf(1018) * mp.factorial(517) / (mp.factorial(500) * mp.factorial(18))
    assert large.dtype == np.float64
    assert abs(large / float(exact) - 1) < 4 * EPS
    with pytest.raises(ValueError, match="`k` is 4000"):
        uniform.multiplicity(4000, 4096)


def test_linear_modes():
    np.testing.assert_allclose(uniform.linear_modes([0, 2, 6, 20], 100.0), [12.242, 13.208, 13.751, 14.012], atol=6e-4)
    np.testing.assert_allclose(uniform.linear_modes(0.0, [5, 9, 25, 100]), [2.72, 3.66, 6.11, 12.24], atol=6e-3)
    # late, the fastest mode is alone; early, sqrt(3 beta/2) up to a relative 1/beta
    betas = np.array([0.0, 0.5, 9.0, 100.0, 1e4])
    for model in ("SA", "USA0", "USA"):
        late = uniform.linear_modes(1e300, betas, model=model)
        np.testing.assert_allclose(late, uniform.dominant_degree(betas, 2), rtol=1e-12)
    assert uniform.linear_modes(0.0, 1e4) == pytest.approx(np.sqrt(1.5e4), rel=1e-4)
    assert uniform.linear_modes(1.7e308, 1e4, model="USA") == pytest.approx(141)
    # the clocks: t_SA = t_USA0 ive(0, beta)
    with mp.workdps(30):
        ratio = float(mp.besseli(0, 9) * mp.exp(-9))
    assert uniform.linear_modes(5.0 / ratio, 9.0, model="USA0") == pytest.approx(
        uniform.linear_modes(5.0, 9.0), rel=1e-12
    )


@given(beta=st.floats(0.01, 300), t=st.floats(0, 50))
@settings(max_examples=15, deadline=None)
def test_linear_modes_agree_with_mpmath(beta, t):
    with mp.workdps(30):
        bessel = [mp.besseli(k, beta) for k in range(40 + int(10 * beta**0.5))]
        terms = [k**2 * b**2 * mp.exp(2 * t * k**2 * b / (beta * bessel[0])) for k, b in enumerate(bessel) if k]
        exact = float(mp.sqrt(sum(k**2 * x for k, x in enumerate(terms, 1)) / sum(terms)))
    # exponents up to 2 * 50 * 0.75 and logarithms of the largest terms up to 100, each to a few units
    assert abs(uniform.linear_modes(t, beta) / exact - 1) < 1e3 * EPS


def test_printed_ring_rates():
    np.testing.assert_allclose(
        landscape.ring_growth_rates(5.0, 6, model="USA"), [6.775527500, 19.970983308, 26.397649564], rtol=1e-9
    )
    np.testing.assert_allclose(
        landscape.ring_growth_rates(5.0, 8, k=[1, 2, 3], model="USA"),
        [5.796281014, 17.903400463, 27.513888885],
        rtol=1e-9,
    )
    np.testing.assert_allclose(
        landscape.ring_growth_rates(20.0, 4, model="USA0"), [2.061154e-8, 4.122307e-8], rtol=3e-7
    )
    np.testing.assert_allclose(landscape.escape_rate(20.0, 4, model="USA0"), 4.122307e-8, rtol=2e-7)


def exact_ring_rate(beta, n, k, model):
    """The pair sum with 150 digits, more than it can lose."""
    with mp.workdps(150):
        angles = [2 * mp.pi * j / n for j in range(n)]
        weights = [mp.exp(mp.mpf(beta) * (mp.cos(a) - 1)) for a in angles]
        terms = [
            (beta * mp.sin(a) ** 2 - mp.cos(a)) * w * (1 - mp.cos(k * a)) for a, w in zip(angles, weights, strict=True)
        ]
        rate = mp.fsum(terms) / (mp.fsum(weights) if model == "SA" else n)
        return rate * mp.exp(beta) if model == "USA" else rate


@given(
    beta=log_betas,
    n=st.one_of(st.integers(2, 9), st.integers(2, 90)),
    share=st.floats(0, 1),
    model=st.sampled_from(["SA", "USA0", "USA"]),
)
@settings(max_examples=40, deadline=None)
def test_ring_rates_agree_with_mpmath(beta, n, share, model):
    k = 1 + int(share * (n - 2))
    exact = exact_ring_rate(beta, n, k, model)
    if mp.fabs(exact) < mp.mpf(10) ** -120:  # zero to all digits of the pair sum
        return
    # the exponent, up to 2 beta, to a few units (pi included); n terms; AMOS to eps * max(order, beta)
    tolerance = EPS * (20 * beta + 20 * n + 100)
    log_exact = float(mp.log(exact))
    if log_exact > 709:
        with pytest.raises(ValueError, match="leave float range"):
            landscape.ring_growth_rates(beta, n, k=k, model=model)
    elif log_exact > -700:
        assert abs(np.log(landscape.ring_growth_rates(beta, n, k=k, model=model)) - log_exact) < tolerance
        assert landscape.ring_growth_rates(beta, n, k=n - k, model=model) == landscape.ring_growth_rates(
            beta, n, k=k, model=model
        )
    assert landscape.log_escape_rate(beta, n, model=model) >= log_exact - tolerance


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 40])
def test_log_escape_rate_is_the_largest_at_any_beta(n):
    for beta in (0.0, 1e-3, 3.0, 400.0, 1e4):
        largest = max(exact_ring_rate(beta, n, k, "USA0") for k in range(1, n // 2 + 1))
        tolerance = EPS * (20 * beta + 20 * n + 100)
        assert abs(landscape.log_escape_rate(beta, n, model="USA0") - float(mp.log(largest))) < tolerance
        assert abs(landscape.log_escape_rate(beta, n, model="USA") - float(mp.log(largest)) - beta) < tolerance


def test_ring_limits():
    # many tokens: the continuum
    k = np.arange(1, 8)
    np.testing.assert_allclose(
        landscape.ring_growth_rates(9.0, 1000, k=k), uniform.growth_rates(9.0, 2, k=k), rtol=1e-12
    )
    # few clusters: nearest neighbours alone; the next ones are smaller by e^{-beta (cos a - cos 2a)}
    for n, beta in [(4, 60.0), (5, 90.0), (6, 150.0)]:
        a = 2 * np.pi / n
        near = 2 / n * (beta * np.sin(a) ** 2 - np.cos(a)) * np.exp(-beta * (1 - np.cos(a))) * (1 - np.cos(a * k))
        found = landscape.ring_growth_rates(beta, n, k=k, model="USA0")
        # and the exponents here are rounded, beta and cos(a) included
        relative = 4 * n * np.exp(-beta * (np.cos(a) - np.cos(2 * a))) + 8 * beta * EPS
        assert (np.abs(found - near) <= relative * near.max()).all()
    # three clusters at 120 degrees: (1/2 + 3 beta/4) e^{-beta/2} under USA, stable below -2/3
    betas = np.array([-3.0, -1.0, -0.6, 0.0, 2.0])
    np.testing.assert_allclose(
        landscape.ring_growth_rates(betas, 3, k=1, model="USA"), (0.5 + 0.75 * betas) * np.exp(-betas / 2), rtol=1e-14
    )
    assert landscape.ring_growth_rates(-0.67, 3, k=1) < 0 < landscape.ring_growth_rates(-0.66, 3, k=1)
    assert landscape.ring_growth_rates(1.0, 1, k=0) == 0
    assert landscape.ring_growth_rates(np.ones(4), 9).shape == (4, 4)
    assert landscape.log_escape_rate(np.ones((2, 1)), [3, 4, 5]).shape == (2, 3)


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize(("n", "beta"), [(2, 1.0), (3, 5.0), (5, 0.1), (7, 4.0), (12, 0.5), (12, 30.0)])
def test_ring_rates_are_eigenvalues_of_the_field(n, beta, model):
    """The complex step differentiates the velocity of the angles without error."""
    angles = 2 * np.pi * np.arange(n) / n
    for k in range(n):
        mode = np.cos(k * angles)
        moved = angles + 1e-30j * mode
        apart = moved[:, None] - moved[None, :]
        weights = np.exp(beta * (np.cos(apart) - 1))
        velocity = -np.sum(weights * np.sin(apart), 1) / (np.sum(weights, 1) if model == "SA" else n)
        # entries are at most 1 + beta, n of them
        rate = landscape.ring_growth_rates(beta, n, k=k, model=model)
        np.testing.assert_allclose(velocity.imag / 1e-30, rate * mode, rtol=0, atol=4 * n * (1 + beta) * EPS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uniform.growth_rates([1.0, 2.0], 3), "without k"),
        (lambda: uniform.growth_rates(-1.0, 3, k=1), "`beta` is -1.0"),
        (lambda: uniform.growth_rates(np.nan, 3, k=1), "`beta` is nan"),
        (lambda: uniform.growth_rates(1.0, 1, k=1), "`d` is 1"),
        (lambda: uniform.growth_rates(1.0, [2, 3], k=1), "`d` is"),
        (lambda: uniform.growth_rates(1.0, 2.5, k=1), "`d` is 2.5"),
        (lambda: uniform.growth_rates(1.0, 3, k=1.5), "`k` is 1.5"),
        (lambda: uniform.growth_rates(1.0, 3, k=1, model="sa"), "`model` is 'sa'"),
        (lambda: uniform.growth_rates(1e4, 3, k=1, model="USA"), "log_growth_rates"),
        (lambda: uniform.log_growth_rates(1.0, 3, -1), "`k` is -1"),
        (lambda: uniform.multiplicity(-1, 3), "`k` is -1"),
        (lambda: uniform.multiplicity(1, 0), "`d` is 0"),
        (lambda: uniform.dominant_degree(np.inf, 3), "`beta` is inf"),
        (lambda: uniform.switching_threshold(0, 3), "`k` is 0"),
        (lambda: uniform.switching_threshold(1, 1), "`d` is 1"),
        (lambda: uniform.linear_modes(-1.0, 3.0), "`t` is"),
        (lambda: uniform.linear_modes(1.0, -3.0), "`beta` is -3.0"),
        (lambda: landscape.ring_growth_rates(-1.0, 4), "`beta` is "),
        (lambda: landscape.ring_growth_rates(np.nan, 3), "`beta` is nan"),
        (lambda: landscape.ring_growth_rates(1.0, 0), "`n` is 0"),
        (lambda: landscape.ring_growth_rates(1.0, [3, 4]), "`n` is"),
        (lambda: landscape.ring_growth_rates(1.0, 4, k=-1), "`k` is -1"),
        (lambda: landscape.ring_growth_rates(1e4, 400, k=5, model="USA"), "log_escape_rate"),
        (lambda: landscape.log_escape_rate(1.0, 1), "`n` is 1"),
        (lambda: landscape.escape_rate(1.0, 3, model="US"), "`model` is 'US'"),
        (lambda: landscape.escape_rate(1e4, 400, model="USA"), "log_escape_rate"),
    ],
)
def test_out_of_range_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(("n", "beta"), [(400, 9.0), (1e16, 100.0), (1e4, 0.3)])
def test_linear_time(n, beta):
    """Mean square of the smoothed fluctuations, summed with Bessel functions."""
    t, k = uniform.linear_time(n, beta), np.arange(1, 80)
    ratios = ive(k, beta) / ive(0, beta)
    assert np.sum(2 * ratios**2 * np.exp(2 * k**2 * ratios / beta * t)) == pytest.approx(n, rel=1e-9)
    assert uniform.linear_time(1, 100.0) == 0.0
    with pytest.raises(ValueError, match="`n` is"):
        uniform.linear_time(0, beta)
    with pytest.raises(ValueError, match="`beta` is"):
        uniform.linear_time(n, 0.0)
