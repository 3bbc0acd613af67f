"""Times and overlaps of equiangular tokens: printed values, mpmath, an ODE solver, the attention field."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from attnflow.theory import uniform

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps
MODELS = st.sampled_from(["SA", "USA0", "USA"])
OVERLAPS = [
    (2, 1, 1, "SA", 0.5791953369),
    (8, 0, 1, "SA", 0.4440219049),
    (8, 1, 1, "SA", 0.3625868798),
    (8, 2, 2, "SA", 0.6598737095),
    (32, 1, 2, "SA", 0.5897728229),
    (32, 5, 5, "SA", 0.2379517099),
    (32, 9, 100, "SA", 0.04599542858),
    (128, 4, 2, "SA", 0.122054324),
    (2, 1, 1, "USA0", 0.4259317134),
    (8, 1, 2, "USA0", 0.3622153255),
    (8, 2, 2, "USA0", 0.09105727888),
    (32, 1, 5, "USA0", 0.7994825811),
]
SIZES = np.array([[8], [32], [128]])


@pytest.mark.parametrize(("n", "beta", "t", "model", "value"), OVERLAPS)
def test_printed_overlaps(n, beta, t, model, value):
    assert abs(uniform.equiangular_overlap(t, beta, n, model=model) - value) < 6e-11  # ten decimals
    # back: the printed overlap is good to 5e-11, dt/dgamma is below 100 t + 100 in these cases
    assert abs(uniform.equiangular_time(value, beta, n, model=model) - t) < 1e-8 * (1 + t)


def test_printed_transition_curve():
    times = [
        [3.33791, 3.55094, 3.99552, 7.20791, 25.0857, 321.584],
        [4.03059, 4.11447, 4.30243, 5.79725, 14.8388, 177.574],
        [4.72361, 4.75320, 4.82282, 5.41363, 9.19702, 81.4372],
    ]
    np.testing.assert_allclose(uniform.equiangular_time(0.99, [0, 1, 2, 4, 6, 9], SIZES), times, rtol=3e-6)
    logs = [
        [16.104970, 45.294896, 94.647415, 992.393164],
        [15.672373, 45.032273, 94.482639, 992.370397],
        [14.996093, 44.529456, 94.110172, 992.291187],
    ]
    found = uniform.log_equiangular_time(0.99, [20, 50, 100, 1000], SIZES)
    np.testing.assert_allclose(found, logs, rtol=0, atol=5.1e-7)
    np.testing.assert_allclose(uniform.equiangular_time(0.999, [1, 4, 9], 32), [5.27028, 6.9535, 178.731], rtol=8e-6)


def exact_log_time(overlap, beta, n, overlap0, model):
    """The closed form with 80 digits."""
    with mp.workdps(80):
        g, g0, b, n = mp.mpf(overlap), mp.mpf(overlap0), mp.mpf(beta), mp.mpf(n)
        odds = mp.log((1 + (n - 1) * g) / (1 - g)) - mp.log((1 + (n - 1) * g0) / (1 - g0))
        scale = b / (n - 1)
        far = mp.e1(scale * (1 + (n - 1) * g0)) - mp.e1(scale * (1 + (n - 1) * g))
        j = mp.ei(b * (1 - g0)) - mp.ei(b * (1 - g)) + mp.exp(b * n / (n - 1)) * far
        if model == "SA":
            return float(mp.log((j + (n - 1) * odds) / (2 * n)))
        return float(mp.log(j / 2) - (b if model == "USA" else 0))


@given(
    log_beta=st.floats(np.log(1e-12), np.log(1e4)),
    n=st.one_of(st.integers(2, 9), st.integers(2, 10**6)),
    place0=st.floats(1e-3, 0.99),
    log_way=st.floats(np.log(1e-12), 0),
    model=MODELS,
)
@settings(max_examples=60, deadline=None)
def test_times_agree_with_mpmath(log_beta, n, place0, log_way, model):
    beta = float(np.exp(log_beta))
    low = -1 / (n - 1)
    overlap0 = low + place0 * (1 - low)
    overlap = overlap0 + np.exp(log_way) * (1 - overlap0) * (1 - 1e-9)
    if not overlap0 < overlap < 1:
        return
    exact = exact_log_time(overlap, beta, n, overlap0, model)
    # the exponentials: beta (1 - overlap0) to 2 units of beta n/(n-1). The closed form is used where it keeps 1/50
    # of its terms, which are good to 1e-12 (asked of scaled_expi in its own test). 1 + (n-1) overlap0 is at least
    # n place0, from terms of at most n + 1: a relative error of 4 units/place0 in it, which moves the time less.
    tolerance = 4 * EPS * beta * n / (n - 1) + 50e-12 + 4 * EPS / place0
    assert abs(uniform.log_equiangular_time(overlap, beta, n, overlap0=overlap0, model=model) - exact) < tolerance
    if exact < 709:
        found = uniform.equiangular_time(overlap, beta, n, overlap0=overlap0, model=model)
        # below 1e-308 digits go
        assert abs(np.log(found) - exact) < tolerance + 1e-12 if exact > -700 else 0 <= found < 1e-300
    else:
        with pytest.raises(ValueError, match="log_equiangular_time"):
            uniform.equiangular_time(overlap, beta, n, overlap0=overlap0, model=model)


@given(
    log_t=st.floats(-30, 690),
    log_beta=st.floats(np.log(1e-12), np.log(1e4)),
    n=st.one_of(st.integers(2, 9), st.integers(2, 10**6)),
    place0=st.floats(1e-3, 0.99),
    model=MODELS,
)
@settings(max_examples=20, deadline=None)
def test_overlaps_invert_times(log_t, log_beta, n, place0, model):
    beta, t = float(np.exp(log_beta)), float(np.exp(log_t))
    low = -1 / (n - 1)
    overlap0 = low + place0 * (1 - low)
    found = float(uniform.equiangular_overlap(t, beta, n, overlap0=overlap0, model=model))
    assert overlap0 <= found <= 1
    # t lies between the times of the neighbouring floats, up to the stated 1e-12 and what rounding does to exponents
    slack = 1e-12 + 8 * EPS * (beta + abs(log_t))
    before, after = found - 8 * EPS, found + 8 * EPS
    if before > overlap0:
        assert uniform.log_equiangular_time(before, beta, n, overlap0=overlap0, model=model) < np.log(t) + slack
    if after < 1:
        assert uniform.log_equiangular_time(after, beta, n, overlap0=overlap0, model=model) > np.log(t) - slack


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize(("beta", "n", "overlap0"), [(0.0, 5, 0.0), (1.5, 2, -0.9), (6.0, 40, 0.1), (12.0, 4, -0.3)])
def test_overlaps_solve_the_ode(beta, n, overlap0, model):
    def slope(_, gamma):
        e = np.exp(-beta * (1 - gamma))
        return 2 * e * (1 - gamma) * (1 + (n - 1) * gamma) / (1 + (n - 1) * e if model == "SA" else n)

    t = np.linspace(0, 30, 13)
    solution = solve_ivp(slope, (0, 30), [overlap0], "DOP853", t_eval=t, rtol=1e-12, atol=1e-13)
    # the unstable start amplifies the solver's 1e-12 by at most gamma'(t)/gamma'(0), below 100 here
    np.testing.assert_allclose(
        uniform.equiangular_overlap(t, beta, n, overlap0=overlap0, model=model), solution.y[0], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("model", ["SA", "USA0", "USA"])
@pytest.mark.parametrize(("beta", "n", "overlap"), [(1.0, 3, 0.2), (4.0, 6, -0.1), (9.0, 5, 0.9)])
def test_the_speed_is_that_of_attention(beta, n, overlap, model):
    """Tokens with this Gram matrix, moved by the definition of attention."""
    x = np.linalg.cholesky((1 - overlap) * np.eye(n) + overlap)
    weights = np.exp(beta * (x @ x.T - (model != "USA")))
    pull = weights @ x / (weights.sum(1, keepdims=True) if model == "SA" else n)
    velocity = pull - np.sum(pull * x, 1, keepdims=True) * x
    speed = velocity[0] @ x[1] + x[0] @ velocity[1]
    h = 1e-5
    between = uniform.equiangular_time(overlap + h, beta, n, overlap0=overlap - h, model=model)
    # the midpoint rule: h^2/6 times second derivatives relative to the speed, at most (beta + n + 10)^2
    assert abs(2 * h / between / speed - 1) < h**2 * (beta + n + 10) ** 2


def test_closed_forms_and_limits():
    t = np.array([[0.0, 1.0], [3.0, 10.0]])
    np.testing.assert_allclose(
        uniform.equiangular_overlap(t, 0.0, 8), np.expm1(2 * t) / (np.exp(2 * t) + 7), atol=1e-14
    )
    # beta = 0 is approached, and all clocks agree there
    for model in ("SA", "USA0", "USA"):
        exact = np.log((1 + 7 * 0.6) / 0.4) / 2
        for beta in (0.0, 1e-300, 1e-17, 1e-15):
            assert uniform.equiangular_time(0.6, beta, 8, model=model) == pytest.approx(exact, rel=1e-13)
    # beta >> n: log t = beta - log(2 beta) + log(1 - (n-2)/beta + ...); the next term is of order (n/beta)^2
    assert uniform.log_equiangular_time(0.99, 1e4, 8) == pytest.approx(1e4 - np.log(2e4) - 6e-4, abs=100e-8)
    # the end: 1 - gamma falls as e^{-2t}, in SA and USA0
    for model in ("SA", "USA0"):
        ends = uniform.equiangular_time([1 - 1e-6, 1 - 1e-8], 3.0, 5, model=model)
        assert np.diff(ends) == pytest.approx(np.log(100) / 2, rel=1e-5)
    assert uniform.equiangular_time(0.3, 2.0, 5, overlap0=0.3) == 0
    assert uniform.log_equiangular_time(0.3, 2.0, 5, overlap0=0.3) == -np.inf
    assert uniform.equiangular_time(np.full((3, 1), 0.5), [1.0, 2.0], 4).shape == (3, 2)
    assert uniform.equiangular_time([], 2.0, 4).shape == (0,)
    assert uniform.equiangular_overlap([], 2.0, 4).shape == (0,)


def test_any_beta_and_any_time():
    beta, t = np.array([[0.0], [1e-9], [1.0], [300.0], [1e4]]), np.array([0.0, 1e-300, 1.0, 1e100, 1.7e308])
    for model in ("SA", "USA0", "USA"):
        found = uniform.equiangular_overlap(t, beta, 32, model=model)
        assert (np.diff(found, axis=1) >= 0).all()
        assert (found[:, 0] == 0).all()
        assert found[2, -1] == 1
    assert uniform.equiangular_overlap(1e100, 1e4, 32) < 1e-300  # beta = 1e4 waits for e^9990
    assert uniform.equiangular_overlap(1e100, 1e4, 32, model="USA") == 1
    # the simplex does not move, from which side soever
    assert uniform.equiangular_overlap(1e300, 2.0, 4, overlap0=-1 / 3) == -1 / 3
    assert uniform.equiangular_overlap(1e300, 2.0, 4, overlap0=np.nextafter(-1 / 3, 0)) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uniform.equiangular_overlap(-1.0, 1.0, 4), "`t` is"),
        (lambda: uniform.equiangular_overlap(np.inf, 1.0, 4), "`t` is"),
        (lambda: uniform.equiangular_overlap(1.0, -1.0, 4), "`beta` is -1.0"),
        (lambda: uniform.equiangular_overlap(1.0, 1.0, 1), "`n` is 1"),
        (lambda: uniform.equiangular_overlap(1.0, 1.0, 2.5), "`n` is 2.5"),
        (lambda: uniform.equiangular_overlap(1.0, 1.0, 4, overlap0=-0.5), "`overlap0` is"),
        (lambda: uniform.equiangular_overlap(1.0, 1.0, 4, overlap0=1.0), "`overlap0` is 1.0"),
        (lambda: uniform.equiangular_overlap(1.0, 1.0, 4, model="X"), "`model` is 'X'"),
        (lambda: uniform.equiangular_time(1.0, 1.0, 4), "`overlap` is 1.0"),
        (lambda: uniform.equiangular_time(np.nan, 1.0, 4), "`overlap` is nan"),
        (lambda: uniform.equiangular_time(0.1, 1.0, 4, overlap0=0.2), "`overlap` is"),
        (lambda: uniform.equiangular_time(0.1, 1.0, 3, overlap0=-0.5), "`overlap0` is"),
        (lambda: uniform.equiangular_time(0.99, 1e4, 4), "log_equiangular_time"),
        (lambda: uniform.equiangular_time(0.99, np.inf, 4), "`beta` is inf"),
        (lambda: uniform.log_equiangular_time(0.99, 1.0, 0), "`n` is 0"),
        (lambda: uniform.log_equiangular_time(0.99, 1.0, 3, model="usa"), "`model` is 'usa'"),
    ],
)
def test_out_of_range_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
