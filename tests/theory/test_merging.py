"""Merging of two clusters against printed values, mpmath at 30 digits, the two-body ODE and limits."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from attnflow.theory import merging

pytestmark = pytest.mark.filterwarnings("error")
ANGLES = [0.5, 1, 1.5, 2, 3]
EPS = np.finfo(float).eps
END = 0.01
"""The angle at which the printed times end."""
USA0 = {
    1: [3.9983024, 4.9897675, 6.0545718, 7.7439639, 21.856616],
    5: [4.3052060, 7.4650934, 27.695491, 265.39922, 28367.725],
    10: [4.8284836, 21.495630, 1139.5838, 159240.36, 4.5369492e8],
    20: [6.7156600, 772.18236, 5999036.7, 1.1582611e11, 1.4630954e17],
}
SA = {
    1: [3.9657298, 4.8417470, 5.6410127, 6.7426478, 14.900600],
    5: [4.1191816, 6.0794100, 16.461472, 135.57028, 14187.835],
    10: [4.3808204, 13.094678, 572.40564, 79623.050, 2.2684746e8],
    20: [5.3244086, 388.43804, 2999521.0, 5.7913056e10, 7.3154772e16],
}


@pytest.mark.parametrize("beta", [1, 5, 10, 20])
def test_merge_time_tables(beta):
    # eight digits are printed: half a unit of the last is at most 5e-8 of the value
    np.testing.assert_allclose(
        merging.merge_time(ANGLES, beta, masses=(0.3, 0.7), until=END, model="USA0"), USA0[beta], rtol=5e-8
    )
    np.testing.assert_allclose(merging.merge_time(ANGLES, beta, until=END), SA[beta], rtol=5e-8)


def test_other_masses_and_logarithms():
    times = merging.merge_time(np.pi / 2, [5, 10, 20], masses=(0.8, 0.2), until=END)
    np.testing.assert_allclose(times, [12.806941, 535.55068, 5737302.7], rtol=5e-8)
    assert merging.merge_time(np.pi / 2, 5, masses=(0.6, 0.4), until=END) == pytest.approx(19.763725, abs=6e-7)
    assert merging.merge_time(np.pi / 2, 5, masses=(0.6, 0.4), until=END, model="USA0") == pytest.approx(
        36.551586, abs=6e-7
    )
    logs = merging.log_merge_time(
        [0.5, 1.5, 0.5, 1, 1, np.pi / 2], [100, 100, 1000, 1000, 1e4, 1e4], masses=(0.5, 0.5), until=END, model="USA0"
    )
    printed = [9.196899792, 88.32775354, 116.9877509, 453.1366788, 4588.111961, 9990.789660]
    np.testing.assert_allclose(logs, printed, rtol=0, atol=6e-7)  # half of the last digit of the longest


def exact_log_time(angle, beta, masses, until, model):
    """The integral of dt = du/(u (2-u) rate) at 30 digits; far below u0 the integrand is negligible or smooth."""
    with mp.workdps(30):
        m1, m2 = map(mp.mpf, masses)
        beta = mp.mpf(beta)
        z0, z1 = (2 * mp.log(mp.tan(mp.mpf(a) / 2)) for a in (angle, until))
        u0 = 1 - mp.cos(mp.mpf(angle))
        top = beta * u0

        def slowness(z):
            grown = beta * 2 / (1 + mp.exp(-z))
            e = mp.exp(-grown)  # (m1 E + m2)(m2 E + m1)/(s E + p) times e^{-top}, E = 1/e
            if model == "SA":
                value = (m1 + m2 * e) * (m2 + m1 * e) / ((m1**2 + m2**2) + 2 * m1 * m2 * e)
            else:
                value = 1 / (m1 + m2)
            return value * mp.exp(grown - top)

        cuts = {z0, z1}
        for drop in [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]:
            u = u0 - drop / beta
            for z in ([mp.log(u / (2 - u))] if u > 0 else []) + [z0 - drop, z0 - drop / 8]:
                if z1 < z < z0:
                    cuts.add(z)
        total = mp.quad(slowness, sorted(cuts)) / 2
        return float(mp.log(total) + top - (beta if model == "USA" else 0))


@given(
    angle=st.floats(0.02, 3.14),
    log_beta=st.floats(-3, 4),
    ratio=st.floats(-6, 6),
    until=st.sampled_from([1e-6, 0.01, 0.019]),
    model=st.sampled_from(["SA", "USA0", "USA"]),
)
@settings(max_examples=12, deadline=None)
def test_log_merge_time_agrees_with_mpmath(angle, log_beta, ratio, until, model):
    beta, masses = 10**log_beta, (1.0, 10**ratio)
    found = merging.log_merge_time(angle, beta, masses=masses, until=until, model=model)
    # u0 carries 3 roundings and the exponents as many; z0 - z1 = log(tan/tan) loses when `until` is close to `angle`
    way = np.log(np.tan(angle / 2) / np.tan(until / 2))
    tolerance = 1e-12 + 16 * EPS * beta * (1 - np.cos(angle)) + 16 * EPS * max(1, abs(np.log(until))) / way
    assert abs(found - exact_log_time(angle, beta, masses, until, model)) < tolerance


@given(angle=st.floats(0.02, 3.14), log_beta=st.floats(-8, 4), gap=st.floats(1e-6, 1))
@settings(max_examples=30, deadline=None)
def test_closed_form_and_quadrature_are_one(angle, log_beta, gap):
    """Equal masses by exponential integrals, masses that differ in the last digits by quadrature."""
    until, beta = angle * (1 - gap) + 1e-9, 10**log_beta
    if until >= angle:
        return
    near = merging.log_merge_time(angle, beta, masses=(0.5, 0.5 * (1 + 1e-13)), until=until)
    way = np.log(np.tan(angle / 2) / np.tan(until / 2))
    # a tenth may be left after the terms of the closed form cancel: 1e-12 (accuracy of Ei and E1) becomes 1e-11
    tolerance = 1e-11 + 16 * EPS * beta * 2 + 64 * EPS * max(1, -np.log(until)) / way
    assert abs(merging.log_merge_time(angle, beta, until=until) - near) < tolerance


@pytest.mark.parametrize("model", ["SA", "USA0"])
@pytest.mark.parametrize("masses", [(0.5, 0.5), (0.8, 0.2), (0.1, 0.9)])
def test_time_and_meeting_point_of_the_two_body_ode(model, masses):
    beta, angle, (m1, m2) = 4.0, 1.7, masses

    def field(_, x):
        q = np.exp(-beta * (1 - np.cos(x[1] - x[0])))
        pull = np.sin(x[1] - x[0]) * q
        if model == "USA0":
            return [m2 * pull, -m1 * pull]
        return [m2 * pull / (m1 + m2 * q), -m1 * pull / (m2 + m1 * q)]

    met = lambda _, x: x[1] - x[0] - END  # noqa: E731
    met.terminal = True
    way = solve_ivp(field, (0, 1e4), [0.0, angle], "DOP853", rtol=1e-12, atol=1e-13, events=met)
    # dense output of the event is of seventh order: 1e-8 is generous
    assert merging.merge_time(angle, beta, masses=masses, until=END, model=model) == pytest.approx(
        way.t_events[0][0], rel=1e-8
    )
    # the last 0.01 are shared as the masses are (q = 1 - 2e-4): cluster 1 gets m2 of them, off by 1e-2 * 2e-4
    place = way.y_events[0][0][0] + 0.01 * m2
    assert merging.meeting_point(angle, beta, masses=masses, model=model) == pytest.approx(place, abs=2e-6)


def test_meeting_points():
    found = merging.meeting_point(1, [10, 40, 1000], masses=(0.7, 0.3))
    np.testing.assert_allclose(found, [0.222775, 0.188704, 0.161854], atol=6e-7)
    assert merging.meeting_point_limit(1, masses=(0.7, 0.3)) == pytest.approx(0.09 / 0.58, rel=4 * EPS)
    assert merging.meeting_point(1, 0.0, masses=(0.7, 0.3)) == pytest.approx(0.3, rel=1e-14)  # no beta: SA is USA
    np.testing.assert_allclose(
        merging.meeting_point([[0.5], [2]], [1, 1e4], masses=(0.7, 0.3), model="USA"), [[0.15] * 2, [0.6] * 2]
    )
    # the error falls like beta^{-1/2}: hundred times beta, a tenth of the error
    gaps = merging.meeting_point(1.5, [100, 1e4], masses=(3, 1)) - merging.meeting_point_limit(1.5, masses=(3, 1))
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.05)
    assert merging.meeting_point_limit(1.0, masses=(1e-100, 1e100)) == 1
    assert merging.meeting_point_limit(1.0, masses=(1e100, 1e-100)) == 0


@given(angle=st.floats(0.01, 3.14), log_beta=st.floats(-3, 4), ratio=st.floats(-6, 6))
@settings(max_examples=30, deadline=None)
def test_meeting_point_agrees_with_mpmath(angle, log_beta, ratio):
    beta, m2 = 10**log_beta, 10**ratio

    def share(theta):
        q = mp.exp(-beta * (1 - mp.cos(theta)))
        return m2 * (m2 + q) / (1 + m2**2 + 2 * m2 * q)

    # for unequal masses the share changes where q is about m2 or 1/m2
    widths = [0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15]
    cuts = [0, *[w / np.sqrt(beta) for w in widths if w / np.sqrt(beta) < angle], angle]
    with mp.workdps(20):
        exact = float(mp.quad(share, cuts))
    found = merging.meeting_point(angle, beta, masses=(1.0, m2))
    assert found == pytest.approx(exact, rel=1e-12, abs=0)
    # what one travels the other does not
    assert found + merging.meeting_point(angle, beta, masses=(m2, 1.0)) == pytest.approx(angle, rel=1e-13)


def test_clusters_are_one_at_the_merging_angle_by_default():
    betas = np.array([0.0, 0.5, 1.0, 5.0, 1e4])
    near = merging.merging_angle(betas)
    np.testing.assert_array_equal(near, [1e-3, 1e-3, 1e-3, 2e-4, 1e-7])
    # one particle stands for a pair of that angle, whose variance is a quarter of its square
    assert np.all(merging.coarse_graining_error(betas, np.pi / 2, near**2 / 4) < 7e-7)
    for beta, end in zip(betas, near, strict=True):
        for model in ("SA", "USA0", "USA"):
            given = merging.log_merge_time(1.0, beta, masses=(0.3, 0.7), until=end, model=model)
            assert merging.log_merge_time(1.0, beta, masses=(0.3, 0.7), model=model) == given
    assert np.all(merging.log_merge_time(1.0, betas) == [merging.log_merge_time(1.0, beta) for beta in betas])


def test_limits_of_merge_times():
    # beta = 0: angle' = -sin(angle)
    free = np.log(np.tan(0.6) / np.tan(0.005))
    for model in ["SA", "USA0", "USA"]:
        assert merging.merge_time(1.2, 0.0, masses=(0.6, 0.4), until=END, model=model) == pytest.approx(free, rel=1e-14)
    assert merging.merge_time(1.2, 0.0, until=1e-300) == pytest.approx(
        np.log(np.tan(0.6)) + 300 * np.log(10) + np.log(2)
    )
    # clocks and masses
    assert merging.log_merge_time(2.0, 700.0, model="USA") == pytest.approx(
        merging.log_merge_time(2.0, 700.0, model="USA0") - 700.0, rel=1e-14
    )
    assert merging.merge_time(1.0, 3.0, masses=(0.1, 0.2), model="USA0") == pytest.approx(
        merging.merge_time(1.0, 3.0, model="USA0") / 0.3, rel=1e-14
    )
    assert merging.merge_time(1.0, 3.0, masses=(1, 4)) == pytest.approx(
        merging.merge_time(1.0, 3.0, masses=(0.8, 0.2)), rel=1e-13
    )
    # large beta: e^{beta u}/(beta sin^2) / (r + 1/r), the next term is 2 cos/(beta sin^2) = 0 at a right angle
    leading = 1e4 - np.log(1e4) - np.log(4 + 0.25)
    assert merging.log_merge_time(np.pi / 2, 1e4, masses=(0.8, 0.2)) == pytest.approx(leading, abs=1e-7)
    assert merging.log_merge_time([1, 2], [[0], [1], [1e4]]).shape == (3, 2)
    # a pair next to equilibrium waits the logarithm of the rest, longer by log 10 e^{2 beta}/2M for each factor 10
    waits = merging.merge_time(np.pi - np.array([1e-7, 1e-8]), 2.0, masses=(1, 1), model="USA0")
    assert waits[1] - waits[0] == pytest.approx(np.log(10) * np.exp(4.0) / 2, rel=1e-6)


def test_coarse_graining_error_bounds_the_force():
    assert merging.coarse_graining_error(20.0, 1.0, 1e-4) == pytest.approx(
        0.5e-4 * (400 * np.sin(1.0) ** 2 + 61), rel=1e-15
    )
    rng = np.random.default_rng(0)
    for beta, angle, size in [(20.0, 1.0, 1e-3), (5.0, 2.0, 1e-2), (50.0, 0.2, 1e-3), (0.0, 1.0, 1e-2)]:
        xi = size * rng.standard_normal((40, 2))
        xi -= xi.mean(axis=0)
        y = np.column_stack([np.ones(40), xi])
        centre = y.mean(axis=0)  # (1, 0, 0)
        y /= np.linalg.norm(y, axis=1, keepdims=True)
        x = np.array([np.cos(angle), np.sin(angle), 0.0])
        force = np.mean(np.exp(beta * (y @ x - 1))[:, None] * (y - (y @ x)[:, None] * x), axis=0)
        alone = np.exp(beta * (centre @ x - 1)) * (centre - (centre @ x) * x)
        error = np.linalg.norm(force - alone) / np.linalg.norm(alone)
        spread2 = np.mean(np.sum(xi**2, axis=1))
        # the next order is (sqrt(beta) + beta sin)^3 spread^3
        rest = ((np.sqrt(beta) + beta * np.sin(angle) + 1) * np.sqrt(spread2)) ** 3
        assert error < merging.coarse_graining_error(beta, angle, spread2) + rest


def test_slow_motion():
    assert merging.cap_overlap(0.01) == pytest.approx(0.390, abs=5e-4)
    # the sine of twice the opening angle arccos(1 - 2 size), and 1 where the caps touch
    assert merging.cap_overlap(0.05) == pytest.approx(np.sin(2 * np.arccos(0.9)), rel=1e-14)
    assert merging.cap_overlap([0.0, (2 - np.sqrt(2)) / 4]) == pytest.approx([0, 1], abs=1e-14)
    overlap = merging.cap_overlap(0.001)
    log_time = merging.log_slow_motion_time([100.0, 1e4], overlap, 0.001, n=10)
    np.testing.assert_allclose(log_time, np.log(1e-4) + (1 - overlap) * np.array([100.0, 1e4]), rtol=1e-14)
    assert merging.slow_motion_time(100.0, overlap, 0.001, n=10) == pytest.approx(np.exp(log_time[0]), rel=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merging.merge_time(np.pi, 1.0), "`angle` is"),
        (lambda: merging.merge_time(0.005, 1.0, until=END), "`until` is"),
        (lambda: merging.merge_time(0.0009, 1.0), "`until` is the merging angle of beta = 1.0"),
        (lambda: merging.merge_time(1.0, 1.0, until=0.0), "`until` is"),
        (lambda: merging.merge_time(1.0, 1.0, until=np.nan), "`until` is"),
        (lambda: merging.merge_time(np.nan, 1.0), "`angle` is"),
        (lambda: merging.merge_time(1.0, -1.0), "`beta` is"),
        (lambda: merging.merge_time(1.0, np.inf), "`beta` is"),
        (lambda: merging.merge_time(1.0, 1.0, masses=(0.0, 1.0)), "`masses` is"),
        (lambda: merging.merge_time(1.0, 1.0, masses=(0.2, 0.3, 0.5)), "`masses` is"),
        (lambda: merging.merge_time(1.0, 1.0, model="SB"), "`model` is"),
        (lambda: merging.merge_time(2.0, 1e4), "log_merge_time"),
        (lambda: merging.merge_time(0.1, 1e4, model="USA"), "log_merge_time"),
        (lambda: merging.meeting_point(np.pi, 1.0), "`angle` is"),
        (lambda: merging.meeting_point(1.0, 1.0, model="x"), "`model` is"),
        (lambda: merging.meeting_point_limit(1.0, masses=(-1.0, 1.0)), "`masses` is"),
        (lambda: merging.coarse_graining_error(1.0, 4.0, 0.1), "`angle` is"),
        (lambda: merging.coarse_graining_error(1.0, 1.0, -0.1), "`spread2` is"),
        (lambda: merging.coarse_graining_error(1e3, 1.0, 0.1), "`spread2` is"),
        (lambda: merging.slow_motion_time(1.0, 0.1, 0.01, n=4), "`beta` is"),
        (lambda: merging.slow_motion_time(100.0, 0.1, 0.07, n=4), "`size` is"),
        (lambda: merging.slow_motion_time(100.0, 1.0, 0.01, n=4), "`overlap` is"),
        (lambda: merging.slow_motion_time(100.0, 0.1, 0.01, n=2.5), "`n` is"),
        (lambda: merging.slow_motion_time(5.0, 0.1, 0.01, n=4), "theorem needs"),
        (lambda: merging.slow_motion_time(1e4, 0.1, 0.01, n=4), "log_slow_motion_time"),
        (lambda: merging.cap_overlap(0.2), "`size` is"),
    ],
)
def test_out_of_range_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
