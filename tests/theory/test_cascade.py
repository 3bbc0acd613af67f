"""Cascades of pairs against an integration of all clusters, arc lengths against quadrature, expansions by hand."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from attnflow import theory
from tests.theory.test_staircase import circle, followed

PLACES = np.array([[1.0, 0, 0], [math.cos(0.8), math.sin(0.8), 0], [math.cos(2.5), math.sin(2.5), 0]])


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_a_cascade_of_four_agrees_with_an_integration_of_all_four(model):
    """beta = 200, where the largest disturbance is 1e-9; the integration is exact to 1e-6, and merges at another angle."""
    x, m, beta = circle([0, 0.5, 1.6, 3.0]), np.array([0.1, 0.2, 0.3, 0.4]), 200.0
    found = theory.merging.pair_cascade(x, m, beta, model=model, until=1e-3 / math.sqrt(beta))
    times, pairs, points = followed(x, m, beta, model)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == pairs
    assert found.disturbance[-1] < 1e-5
    np.testing.assert_allclose(found.log_time, times, atol=2e-5)
    np.testing.assert_allclose(found.point, points, atol=2e-5)


def test_a_cascade_of_two_is_the_closed_form():
    for model in ("SA", "USA0", "USA"):
        one = theory.merging.pair_cascade(PLACES[1:], np.array([0.3, 0.7]), 30.0, model=model)
        assert one.disturbance[0] == 0
        wanted = theory.merging.log_merge_time(1.7, 30.0, masses=(0.3, 0.7), until=1e-3 / 30, model=model)
        assert one.log_time[0] == pytest.approx(float(wanted), rel=1e-14)  # the angle is rounded
        sides = [
            float(theory.merging.log_merge_time(1.7 + h, 30.0, masses=(0.3, 0.7), until=1e-3 / 30, model=model))
            for h in (-1e-5, 1e-5)
        ]
        assert one.slope[0] == pytest.approx((sides[1] - sides[0]) / 2e-5, rel=1e-6)


def test_pairs_that_are_closer_than_the_end_merge_at_once():
    found = theory.merging.pair_cascade(circle([0, 1e-6, 1.0]), [0.2, 0.3, 0.5], 50.0, model="USA0", until=1e-4)
    assert found.log_time[0] == -np.inf
    assert found.slope[0] == 0
    alone = theory.merging.log_merge_time(1.0 - 0.6e-6, 50.0, masses=(0.5, 0.5), until=1e-4, model="USA0")
    assert found.log_time[1] == pytest.approx(float(alone), rel=1e-10)


def test_names_do_not_matter():
    x, m = np.random.default_rng(4).standard_normal((6, 3)), np.arange(1.0, 7.0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    order = np.random.default_rng(0).permutation(6)
    one, other = (theory.merging.pair_cascade(x[k], m[k] / 21, 300.0, model="SA") for k in (np.arange(6), order))
    for name in ("log_time", "point", "arc", "slope", "disturbance"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-12)


def test_arc_length_of_a_pair():
    """On one geodesic the weighted length is angle sqrt(m1 m2/(m1 + m2)); SA by integrating both clusters."""
    assert theory.merging.merge_arc_length(1.7, 30.0, (0.3, 0.7), model="USA0") == pytest.approx(
        1.7 * math.sqrt(0.21), rel=1e-14
    )
    assert theory.merging.merge_arc_length(1.7, 30.0, (0.4, 0.4), model="SA") == pytest.approx(
        1.7 * math.sqrt(0.2), rel=1e-14
    )
    m1, m2, beta, angle = 0.3, 0.7, 6.0, 1.2

    def speeds(theta):
        q = math.exp(-beta * (1 - math.cos(theta)))
        return m2 * q * math.sin(theta) / (m1 + m2 * q), m1 * q * math.sin(theta) / (m2 + m1 * q)

    def along(_, state):
        one, two = speeds(state[0])
        return [-(one + two), math.sqrt(m1 * one**2 + m2 * two**2)]

    way = solve_ivp(along, (0, 100), [angle, 0.0], "DOP853", rtol=1e-12, atol=1e-14)
    assert theory.merging.merge_arc_length(angle, beta, (m1, m2)) == pytest.approx(way.y[1, -1], rel=1e-9)
    wide = m2**2 / (m1**2 + m2**2)
    limit = angle * math.sqrt(m1 * wide**2 + m2 * (1 - wide) ** 2)
    assert theory.merging.merge_arc_length(angle, math.inf, (m1, m2)) == pytest.approx(limit, rel=1e-14)


def test_how_softmax_attention_approaches_its_limit():
    """The first pair meets A beta^(-1/2) off its limit: int of q/(a + b q) with q = e^(-beta x^2/2) is a polylogarithm."""
    m1, m2, m3 = masses = np.array([0.5, 0.2, 0.3])
    form = theory.merging.staircase_expansion(PLACES, masses, model="SA")
    a, b = m1**2 + m2**2, 2 * m1 * m2
    k = np.arange(1, 4000)
    polylogarithm = np.sum((-1.0) ** (k + 1) * (b / a) ** k / np.sqrt(k))  # the last term is (20/29)^4000
    shift = math.sqrt(math.pi / 2) * (m1**2 - m2**2) / (2 * a) * polylogarithm
    # the meeting point moves towards the third cluster, so its angle shrinks; u changes by sin of it. Extrapolated from
    # beta = 1e8 and 4e8, where the next terms are 1e-8 and differences of angles have lost 4 of 16 digits
    assert form.root[0] == 0
    assert form.root[1] == pytest.approx(-math.sin(form.angle[1]) * shift, rel=1e-6)
    assert form.factor[1] == pytest.approx(((m1 + m2) / m3 + m3 / (m1 + m2)) * math.sin(form.angle[1]) ** 2, rel=1e-14)


def test_the_expansion_approaches_the_cascade():
    """At beta = 1e5 what is left is below the stated bound, and the bound is below 1e-4."""
    for model in ("SA", "USA0"):
        form, beta = theory.merging.staircase_expansion(PLACES, [0.5, 0.2, 0.3], model=model), 1e5
        exact = theory.merging.pair_cascade(PLACES, [0.5, 0.2, 0.3], beta, model=model).log_time / beta
        assert np.all(np.abs(exact - form.at(beta)) <= form.off(beta))
        assert np.all(form.off(beta) < 1e-4)


def test_the_disturbance_is_the_sum_of_shares_of_time():
    pairs = theory.merging.pair_lives(PLACES, [0.5, 0.2, 0.3], 20.0, model="USA0", until=1e-4)
    near, rest = pairs.pop((0, 1)), list(pairs.values())
    speed = lambda t: math.exp(-20 * (1 - math.cos(t))) * math.sin(t)  # noqa: E731
    times = [
        quad(lambda t: 1 / speed(t), 1e-4, a, limit=500, epsabs=0)[0] / m
        for a, m in ((0.8, 0.7), (1.7, 0.5), (2.5, 0.8))
    ]
    wanted = 2 * (times[0] / times[1] / math.sin(1.7) + times[0] / times[2] / math.sin(2.5))
    assert theory.merging.pair_disturbance(near[1], rest) == pytest.approx(wanted, rel=1e-6)
