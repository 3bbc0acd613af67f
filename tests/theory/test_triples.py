"""Expansions, escape rates and three clusters against quadrature, derivatives and integrations of their own."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from attnflow import theory


def speed(theta, beta, masses, model):
    """Closing speed of a pair, in mpmath."""
    m1, m2 = (mpmath.mpf(str(m)) for m in masses)
    q = mpmath.exp(-beta * (1 - mpmath.cos(theta)))
    rate = m2 * q / (m1 + m2 * q) + m1 * q / (m2 + m1 * q) if model == "SA" else (m1 + m2) * q
    return rate * mpmath.sin(theta)


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_the_expansion_is_that_of_the_integral(model):
    """Every further term gains a factor 1/beta: errors of c/beta^terms, by mpmath's quadrature."""
    masses, angle = (0.7, 0.3), mpmath.mpf("1.2")
    for beta in (100, 400):
        ends = [mpmath.mpf("0.01"), *(1 - mpmath.mpf(2) ** -k for k in range(1, 12))]
        time = mpmath.quad(lambda t, b=beta: 1 / speed(t, b, masses, model), [angle * e for e in ends] + [angle])
        for terms in (1, 2, 3):
            off = float(
                theory.merging.log_merge_time_expansion(1.2, beta, masses=masses, model=model, terms=terms)
                - mpmath.log(time)
            )
            assert 0.2 < abs(off) * beta**terms < 20, (beta, terms)
    same = theory.merging.log_merge_time_expansion(1.2, 100.0, masses=masses, model="USA0") - 100
    assert theory.merging.log_merge_time_expansion(1.2, 100.0, masses=masses, model="USA") == pytest.approx(float(same))


@pytest.mark.parametrize(("model", "rate"), [("SA", 1.0), ("USA0", 1.6)])
def test_what_the_expansion_leaves_out_at_moderate_beta(model, rate):
    """An end 1000 times nearer adds log(1000)/rate to the time: (R/rate) beta sin^2 e^{-beta u} log(1000) of it."""
    masses, angle, u = (1.0, 0.6), 0.8, 1 - math.cos(0.8)
    beta = 4.6 / u
    times = [
        float(theory.merging.merge_time(angle, beta, masses=masses, until=end / beta, model=model))
        for end in (1e-3, 1e-6)
    ]
    first = math.exp(float(theory.merging.log_merge_time_expansion(angle, beta, masses=masses, model=model, terms=1)))
    total = 1 / 0.6 + 0.6 if model == "SA" else 1.6
    predicted = total / rate * beta * math.sin(angle) ** 2 * math.exp(-4.6) * math.log(1000)
    assert (times[1] - times[0]) / first == pytest.approx(predicted, rel=1e-6)  # beta until^2
    if model == "SA":
        third = theory.merging.log_merge_time_expansion(angle, beta, masses=(0.5, 0.5), model=model, terms=3)
        exact = theory.merging.log_merge_time(angle, beta, masses=(0.5, 0.5), until=1e-3 / beta, model=model)
        assert float(exact - third) == pytest.approx(0.77, abs=0.005)


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_the_escape_rate_is_the_derivative_of_the_speed(model):
    masses, beta = (0.7, 0.3), 9
    slope = -mpmath.diff(lambda t: speed(t, beta, masses, model), mpmath.mpf("1.1"))
    assert theory.merging.log_pair_escape_rate(1.1, beta, masses, model=model) == pytest.approx(
        float(mpmath.log(slope)), rel=1e-12
    )
    assert math.isnan(
        theory.merging.log_pair_escape_rate(0.1, beta, masses, model=model)
    )  # the pull grows as they approach


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize("beta", [3.0, 100.0])
def test_without_a_third_mass_the_closing_time_is_that_of_a_pair(model, beta):
    found = theory.merging.log_closing_time(
        lambda t: (0 * t, t, 2.5 + 0 * t), (0.3, 0.5, 0.0), start=1.2, end=1e-4, beta=beta, model=model
    )
    assert found == pytest.approx(
        float(theory.merging.log_merge_time(1.2, beta, masses=(0.3, 0.5), until=1e-4, model=model)), rel=1e-12
    )


def three(model, beta, angles, masses, met):
    """solve_ivp on the angles of three clusters, until clusters 0 and 1 are at the angle `met`; (time, angles)."""
    m = np.array(masses)

    def field(_, x):
        apart = x[None, :] - x[:, None]
        pull = m * np.exp(-2 * beta * np.sin(apart / 2) ** 2)
        return (pull * np.sin(apart)).sum(axis=1) / (pull.sum(axis=1) if model == "SA" else 1.0)

    def near(_, x):
        return x[1] - x[0] - met

    near.terminal = True
    way = solve_ivp(field, (0, 1e9), angles, "DOP853", rtol=1e-12, atol=1e-14, events=near)
    return way.t_events[0][0], way.y_events[0][0]


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_the_delay_is_that_of_an_integration_of_three(model):
    """beta = 12: the delay is a few percent, its error bound a tenth of it, and the integration agrees within that."""
    beta, angle, far, masses = 12.0, 0.8, 1.15, (0.3, 0.3, 0.4)
    delay = theory.merging.third_cluster_delay(angle, far, masses, beta=beta, until=1e-3, model=model)
    time, _ = three(model, beta, [0.0, angle, angle + far], masses, 1e-3)
    alone = float(theory.merging.log_merge_time(angle, beta, masses=masses[:2], until=1e-3, model=model))
    assert delay.error < abs(delay.value)
    assert abs(math.log(time) - alone - delay.value) <= delay.error
    assert abs(delay.value) > 1e-3


def test_a_delay_falls_like_the_weight_of_the_third():
    """log(delay) has the slope -1 in beta (u_far - u), up to the geometry: far changes by gap/(beta sin), 1e-4 here."""
    fars = [math.acos(math.cos(0.8) - gap / 1e4) for gap in (8.0, 10.0)]
    near, far = (
        theory.merging.third_cluster_delay(0.8, f, (0.3, 0.3, 0.4), beta=1e4, until=1e-6, model="USA0").value
        for f in fars
    )
    assert math.log(near / far) == pytest.approx(2.0, abs=1e-2)


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize("beta", [1.0, 9.0])
def test_a_small_asymmetry_grows_as_the_formula_says(model, beta):
    """An offset of 1e-7, integrated to 1e-13: second order is 1e-7 of it, and the outer clusters meet at 2e-3 or so."""
    angle, m, middle, start = 1.0, 0.3, 0.4, 1e-7
    _, x = three(model, beta, [-angle, start, angle], (m, middle, m), 1e-3)
    end = (x[2] - x[0]) / 2
    grown = math.log(abs((x[1] - x[0]) - (x[2] - x[1])) / (2 * start))
    assert grown == pytest.approx(
        theory.merging.log_asymmetry_growth(angle, end, beta, outer=m, middle=middle, model=model), abs=1e-3
    )


def test_the_balance_decides_which_neighbour_wins():
    """SA, beta = 40: below the angle of balance the middle cluster merges with the first, above it with the third."""
    beta, b, masses = 40.0, 1.0, (0.3, 0.3, 0.4)
    m = np.array(masses)
    found = theory.merging.neighbour_balance(b, b, masses, beta=beta)
    for _ in range(20):  # the angle enters its own formula
        found = theory.merging.neighbour_balance(found.angle, b, masses, beta=beta)
    for side in (-1, 1):
        a = found.angle + side * found.error

        def field(_, x):
            apart = x[None, :] - x[:, None]
            pull = m * np.exp(-2 * beta * np.sin(apart / 2) ** 2)
            return (pull * np.sin(apart)).sum(axis=1) / pull.sum(axis=1)

        def near(_, x):
            return min(x[1] - x[0], x[2] - x[1]) - 0.05

        near.terminal = True
        way = solve_ivp(field, (0, 1e12), [-a, 0.0, b], "LSODA", rtol=1e-10, atol=1e-13, events=near)
        x = way.y_events[0][0]
        assert (x[1] - x[0] < x[2] - x[1]) == (side < 0)
