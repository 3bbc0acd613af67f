"""The middle of causal retrieval: printed tables, scans of the profile itself, centres, predictions for decoders."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow import theory

pytestmark = pytest.mark.filterwarnings("error")

EPS = np.finfo(float).eps


def scan(c, slope, q=0.0, count=4001):
    """Places, dense at both ends, and the logarithm of the profile there."""
    places = np.unique(np.concatenate([np.geomspace(1e-8, 1.0, count), np.linspace(1e-4, 1.0, count)]))
    return places, theory.causal.log_correlation(c, 1.0, places, slope=slope, relative_dilution=q)


# one degree


@pytest.mark.parametrize(
    ("slope", "threshold", "latest"),
    [
        (0.5, 0.786939, 0.786939),
        (1.0, 1.264241, 1.264241),
        (np.log(4), 1.500000, 1.500000),
        (2.0, 1.729329, 1.816405),
        (3.0, 1.900426, 2.390604),
        (4.0, 1.963369, 3.041877),
        (6.0, 1.995042, 4.520342),
    ],
)
def test_printed_times(slope, threshold, latest):
    assert abs(theory.causal.recency_threshold(slope) - threshold) < 5.1e-7
    assert abs(theory.causal.last_middle_time(slope) - latest) < 5.1e-7


@pytest.mark.parametrize(
    ("slope", "c", "place", "value"),
    [
        (0.5, 0.5, 0.537931, 0.603950),
        (1.0, 0.25, 0.120295, 0.223483),
        (1.0, 0.5, 0.247361, 0.568968),
        (1.0, 1.0, 0.592458, 1.502350),
        (2.0, 1.0, 0.234620, 1.378686),
        (1.0, 0.5651591040, 0.2833, 0.675690),
    ],
)
def test_printed_minima(slope, c, place, value):
    found = theory.causal.find_middle(c, slope)
    assert found.exists
    assert abs(found.place - place) < (5.1e-7 if place != 0.2833 else 5.1e-5)
    assert abs(found.value - value) < 5.1e-7
    np.testing.assert_allclose(found.last, theory.causal.correlation(c, 1.0, 1.0, slope=slope), rtol=4 * EPS)
    np.testing.assert_allclose(found.contrast, 1 - found.value / found.last, rtol=1e-12)


def test_there_is_no_middle_without_a_slope():
    for c in (1e-3, 0.5, 3.0):
        found = theory.causal.find_middle(c, 0.0)
        assert not found.exists
        assert (found.place, found.contrast) == (1.0, 0.0)
        np.testing.assert_allclose(found.value, c, rtol=4 * EPS)
        assert np.all(np.diff(scan(c, 0.0)[1]) < 0)
    assert theory.causal.last_middle_time(0.0) == 0


@given(slope=st.floats(0.05, 12), part=st.floats(0.02, 0.999))
@settings(max_examples=40, deadline=None)
def test_the_profile_has_one_minimum_below_the_threshold(slope, part):
    c = part * float(theory.causal.recency_threshold(slope))
    found = theory.causal.find_middle(c, slope)
    places, logs = scan(c, slope)
    assert found.exists
    falls = np.diff(logs)
    turns = np.flatnonzero(np.sign(falls[1:]) != np.sign(falls[:-1]))
    # rounding may turn a flat profile: look at differences above it
    clear = np.abs(falls) > 1e-13
    rising = places[1:][clear & (falls > 0)]
    falling = places[1:][clear & (falls < 0)]
    assert len(turns) >= 1
    assert falling.max(initial=0) <= found.place * (1 + 1e-2) + 1e-3
    assert rising.min(initial=1) >= found.place * (1 - 1e-2) - 1e-3
    assert found.log_value <= logs.min() + 1e-14 * (1 + abs(found.log_value))


@given(slope=st.floats(0.2, 8), step=st.floats(1e-4, 0.3), q=st.sampled_from([0.0, 1e-3, 0.05]))
@settings(max_examples=30, deadline=None)
def test_the_minimum_goes_at_its_last_time(slope, step, q):
    latest = float(theory.causal.last_middle_time(slope, relative_dilution=q))
    before, after = (theory.causal.find_middle(latest * f, slope, relative_dilution=q) for f in (1 - step, 1 + step))
    assert not after.exists
    assert np.all(np.diff(scan(latest * (1 + step), slope, q)[1]) < 1e-13)
    if not before.exists:  # with dilution a shallow profile has no minimum either
        assert before.shape == "rising"
        assert q > 0
        return
    # a minimum: both neighbours lie higher, at a distance that rounding allows (the curvature vanishes at the end)
    gap = 1e-3 * min(before.place, 1 - before.place)
    around = theory.causal.log_correlation(
        latest * (1 - step), 1.0, [before.place - gap, before.place + gap], slope=slope, relative_dilution=q
    )
    assert np.all(around > before.log_value - 1e-15 * (1 + abs(before.log_value)))


def test_dilution_hides_early_sources():
    c, slope = 0.5, 1.0
    shapes = [theory.causal.find_middle(c, slope, relative_dilution=q).shape for q in (0.0, 0.01, 0.05, 0.5, 10.0)]
    assert shapes == ["middle", "middle", "middle", "rising", "rising"]
    found = theory.causal.find_middle(c, slope, relative_dilution=0.5)
    _, logs = scan(c, slope, 0.5)
    assert np.all(np.diff(logs) > 0)
    np.testing.assert_allclose(found.log_value, logs[0], atol=1e-6)
    assert found.place == 0
    # the place of the minimum follows tokens with the same dilution
    n, q = 2000, 0.03
    row = theory.causal.last_row_correlations(c, n, slope, dilution=q * n)
    assert abs(np.argmin(row[:-1]) + 1 - n * theory.causal.find_middle(c, slope, relative_dilution=q).place) < 4
    # no time has a minimum when a token hears itself far more than the context
    assert theory.causal.last_middle_time(1.0, relative_dilution=100.0) == 0


@pytest.mark.parametrize(("c", "slope"), [(1.0, 1e4), (5000.0, 1e4), (1e-10, 1e-3), (1e-4, 1e-3), (30.0, 1e6)])
def test_extreme_minima(c, slope):
    found = theory.causal.find_middle(c, slope)
    assert found.exists
    places = found.place * np.array([0.5, 0.9, 1.1, 2.0])
    logs = theory.causal.log_correlation(c, 1.0, places, slope=slope)
    assert np.all(logs > found.log_value)
    # 4 digits of the minimum move the logarithm by 1e-8 of its curvature
    near = theory.causal.log_correlation(c, 1.0, found.place * (1 + 1e-4 * np.array([-1, 1])), slope=slope)
    assert np.all(near - found.log_value < 1e-4 * np.ptp(logs) + 1e-9)


def test_steep_slopes_keep_their_minimum_almost_as_deep_as_the_slope():
    found = theory.causal.last_middle_time([1e2, 1e4])
    assert np.all((found < [1e2, 1e4]) & (found > [90.0, 9980.0]))


# many degrees on the circle

SOFT = [  # beta, t, slope, argmin, min, for 8 codewords
    (1.0, 1.0, 1.0, 0.2593, 1.195306),
    (1.0, 2.0, 1.0, 0.6329, 3.146466),
    (1.0, 1.0, 2.0, 0.1187, 0.857700),
    (1.0, 1.0, 0.5, 0.5609, 1.257705),
    (2.0, 0.3, 1.0, 0.3313, 1.784870),
]


@pytest.mark.parametrize(("beta", "t", "slope", "place", "value"), SOFT)
def test_printed_soft_minima(beta, t, slope, place, value):
    found = theory.causal.find_soft_middle(t, beta, slope, vocabulary=8)
    assert abs(found.place - place) < 5.1e-5
    assert abs(found.value - value) < 5.1e-7
    grid = np.linspace(0.01, 1, 500)
    assert found.value <= theory.causal.soft_profile(t, grid, beta, slope=slope, vocabulary=8).min()


def test_the_scripts_of_the_authors_print_the_same_numbers():
    """beta = 1, slope 1, M = 8, degrees up to 20: what the script of arXiv:2605.09213 prints, 12 digits after the point."""
    places = [0.02 + j * 0.96 / 799 for j in (0, 400, 799)]
    printed = {
        0.25: (0.202272756434, 0.264452037802, 0.402275106075),
        1.0: (1.664873243246, 1.265820504623, 1.618995324172),
        2.0: (7.486649013052, 3.174659776509, 3.264509943453),
        5.0: (126.527036358951, 14.62040108715, 8.362463635572),
    }
    for t, row in printed.items():
        np.testing.assert_allclose(
            theory.causal.soft_profile(t, places, 1.0, slope=1.0, vocabulary=8), row, rtol=1e-14, atol=1e-12
        )
    times = [theory.causal.soft_critical_time(beta, 1.0, 8) for beta in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose(times, [2.457489, 0.600716, 0.174018], rtol=0, atol=5.1e-7)


def test_printed_soft_profile_and_times():
    found = theory.causal.soft_profile(1.0, [0.02, 0.5, 1.0], 1.0, slope=1.0, vocabulary=8)
    np.testing.assert_allclose(found, [1.664873, 1.265524, 1.638251], rtol=0, atol=5.1e-7)
    for beta, theorem, critical in [
        (0.5, 4.902168, 5.911579),
        (1, 2.236965, 2.457489),
        (2, 0.458758, 0.600716),
        (3, 0.140771, 0.174018),
    ]:
        assert abs(theory.causal.theorem_time(beta, 1.0) - theorem) < 5.1e-7
        assert abs(theory.causal.soft_critical_time(beta, 1.0, 8) - critical) < 5.1e-7
    # steep starts are limited by the smaller root of x^2 - 6 x + 6, others by 2 (1 - e^(-slope))
    convex = -2 * np.expm1(-1.0) * theory.causal.theorem_time(1, 3.0) / theory.causal.theorem_time(1, 1.0)
    assert abs(convex**2 - 6 * convex + 6) < 20 * EPS


def test_soft_accuracy_is_a_wrapped_gaussian_of_correlations():
    # E f(theta_N - theta_j) for f the sum over m of e^{-(x + 2 pi m)^2 M^2/(2 pi^2)}, by its Fourier coefficients
    beta, t, slope, size, n, source = 1.3, 0.7, 1.0, 6, 500.0, 0.4
    x = np.linspace(-np.pi, np.pi, 4001)[:-1]
    f = sum(np.exp(-((x + 2 * np.pi * m) ** 2) * size**2 / (2 * np.pi**2)) for m in range(-3, 4))
    degrees = np.arange(1, 40)
    coefficients = [np.mean(f)] + [2 * np.mean(f * np.cos(k * x)) for k in degrees]
    times = t * theory.causal.rates(degrees, beta, 2, model="grad")
    g = theory.causal.correlation(times, 1.0, source, slope=slope) / n
    exact = coefficients[0] + np.dot(coefficients[1:], g)
    np.testing.assert_allclose(
        theory.causal.soft_accuracy(t, source, beta, slope=slope, vocabulary=size, context=n), exact, rtol=1e-12
    )


@pytest.mark.parametrize(("beta", "slope", "size"), [(0.5, 1.0, 8), (3.0, 0.3, 20), (9.0, 1.2, 64)])
def test_the_soft_profile_rises_at_the_end_up_to_the_critical_time(beta, slope, size):
    critical = theory.causal.soft_critical_time(beta, slope, size)
    assert theory.causal.theorem_time(beta, slope) <= critical * (1 + 4 * EPS)
    for factor, sign in ((0.99, 1), (1.01, -1)):
        ends = theory.causal.soft_profile(factor * critical, [1 - 1e-6, 1.0], beta, slope=slope, vocabulary=size)
        assert np.sign(ends[1] - ends[0]) == sign
    found = theory.causal.find_soft_middle(theory.causal.theorem_time(beta, slope), beta, slope, vocabulary=size)
    grid = np.geomspace(1e-5, 1, 2000)
    values = theory.causal.soft_profile(
        theory.causal.theorem_time(beta, slope), grid, beta, slope=slope, vocabulary=size
    )
    assert found.value <= values.min() * (1 + 1e-14)
    # a grid of step 0.6 % in the logarithm
    assert abs(np.log(grid[values.argmin()] / found.place)) < 0.006
    assert not theory.causal.find_soft_middle(20 * critical, beta, slope, vocabulary=size).exists
    assert theory.causal.find_soft_middle(1.0, 1.0, 0.0, vocabulary=8).shape == "falling"


def test_one_degree_is_a_soft_profile_of_few_codewords():
    # one codeword weighs degree 2 by e^{-3 pi^2/2} = 4e-7 of degree 1
    beta, t, slope = 0.5, 1.5, 1.0
    c = t * float(theory.causal.rates(1, beta, 2, model="grad"))
    one, soft = theory.causal.find_middle(c, slope), theory.causal.find_soft_middle(t, beta, slope, vocabulary=1)
    np.testing.assert_allclose(soft.place, one.place, rtol=1e-5)
    np.testing.assert_allclose(soft.value, np.exp(-(np.pi**2) / 2) * one.value, rtol=1e-5)


# centres


def circle_centres(angles, size, strong):
    """How many tokens are farther than `size` from all before (strong), or from all centres before."""
    kept = []
    for i, angle in enumerate(angles):
        others = angles[:i] if strong else np.array(kept)
        gaps = np.abs(others - angle)
        if not len(others) or np.minimum(gaps, 2 * np.pi - gaps).min() > size:
            kept.append(angle)
    return len(kept)


def test_strong_centres_of_a_simulation():
    rng = np.random.default_rng(20)
    n, size, runs = 60, 0.5, 400
    counts = [circle_centres(rng.uniform(0, 2 * np.pi, n), size, True) for _ in range(runs)]
    exact = theory.causal.strong_centres(n=n, angle=size, d=2)
    np.testing.assert_allclose(theory.causal.strong_centres(n=400, angle=0.5, d=2), 6.283, atol=5.1e-4)
    # four standard errors: a false alarm in 16,000 seeds
    assert abs(np.mean(counts) - exact) < 4 * np.std(counts) / np.sqrt(runs)
    x = rng.standard_normal((runs, n, 3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    cosines = np.einsum("rik,rjk->rij", x, x)
    far = np.tril(cosines > np.cos(0.8), -1).any(-1)
    counts = np.sum(~far, axis=1)
    assert abs(np.mean(counts) - theory.causal.strong_centres(n=n, angle=0.8, d=3)) < 4 * np.std(counts) / np.sqrt(runs)


def test_caps():
    # on S^2 a cap has measure (1 - cos)/2; its complement is the cap around the antipode
    np.testing.assert_allclose(
        theory.causal.strong_centres(n=10**9, angle=[0.3, 2.0], d=3), 2 / (1 - np.cos([0.3, 2.0])), rtol=1e-12
    )
    np.testing.assert_allclose(theory.causal.strong_centres(n=7, angle=np.pi / 2, d=5), 2 * (1 - 0.5**7), rtol=1e-12)
    assert theory.causal.strong_centres(n=7, angle=np.pi, d=3) == 1
    assert theory.causal.strong_centres(n=1000, angle=0.1, d=4096) == 1000


@pytest.mark.parametrize(("size", "runs"), [(0.3, 60), (2.0, 300)])
def test_renyi_centres_of_a_simulation(size, runs):
    rng = np.random.default_rng(21)
    n = 20_000

    def count(angles):  # until no gap is left: the free part of the circle is what no centre covers
        kept = angles[:1]
        for angle in angles[1:]:
            gaps = np.abs(kept - angle)
            if np.minimum(gaps, 2 * np.pi - gaps).min() > size:
                kept = np.append(kept, angle)
                edges = np.sort(kept)
                if np.diff(np.append(edges, edges[0] + 2 * np.pi)).max() <= 2 * size:
                    break
        return len(kept)

    counts = [count(rng.uniform(0, 2 * np.pi, n)) for _ in range(runs)]
    assert abs(np.mean(counts) - theory.causal.renyi_centres(size)) < 4 * np.std(counts) / np.sqrt(runs)


def test_renyi_centres_in_closed_form():
    assert abs(theory.causal.renyi_centres(0.1) - 46.97) < 5.1e-3
    np.testing.assert_allclose(
        theory.causal.renyi_centres([0.01, 0.1, 0.5]),
        0.7475979202534 * 2 * np.pi / np.array([0.01, 0.1, 0.5]),
        rtol=1e-11,
    )
    # M = 1 on (1, 2) and 3 - 2/(x-1) on (2, 3), M(4) = 11/3 - (4/3) log 2 at an angle of 2 pi/5
    x = 2.4
    found = theory.causal.renyi_centres(2 * np.pi / np.array([2.5, x + 1, 5.0]))
    np.testing.assert_allclose(found, [2, 4 - 2 / (x - 1), 1 + 11 / 3 - 4 / 3 * np.log(2)], rtol=1e-13)
    assert theory.causal.renyi_centres(np.pi) == 2  # the float is below pi


# predictions


def by_name(context, slope, beta, time, **others):
    found = theory.causal.predict_middle(context=context, slope=slope, beta=beta, time=time, **others)
    return {p.quantity: p for p in found}


def test_predictions_agree_with_tokens():
    context, slope, beta, time, d = 3000, 1 / 1500, 1.0, 0.8, 16
    found = by_name(context, slope, beta, time, d=d)
    tokens, curve = theory.causal.middle_curve(context=context, slope=slope, beta=beta, time=time, d=d, count=10_000)
    np.testing.assert_array_equal(tokens, np.arange(1, context))
    row = theory.causal.last_row_correlations(
        time * theory.causal.rates(1, beta, d, model="SA"),
        context,
        2.0,
        dilution=theory.causal.softmax_dilution(beta, d),
    )
    np.testing.assert_allclose(curve, context * row[:-1], rtol=1e-10)
    # formulas of many tokens, good to a few tokens in the flat minimum and to 1/N elsewhere
    assert abs(tokens[np.argmin(curve)] - found["middle"].value) < 10
    np.testing.assert_allclose(found["contrast"].value, [curve.min() / curve[-1], curve.min() / curve[0]], rtol=5e-3)
    end = found["end of the middle"].value
    for factor, there in ((0.97, True), (1.03, False)):
        _, deeper = theory.causal.middle_curve(
            context=context, slope=slope, beta=beta, time=factor * end, d=d, count=10_000
        )
        assert np.any(np.diff(deeper) > 0) == there


def test_predictions_without_a_middle():
    found = by_name(4096, 0.0, 1.0, 0.5)
    assert found["middle"].value is None
    assert found["end of the middle"].value is None
    assert "without a slope" in found["middle"].statement
    assert "least is heard of the first" in by_name(100, 0.01, 9.0, 1.0)["middle"].statement
    deep = by_name(100_000, 1e-5, 1.0, 2.5)
    assert deep["middle"].value is None
    assert "at this time" in deep["middle"].statement


def test_limits_of_validity_are_told():
    found = by_name(4096, 2**-10, 1.0, 1.0)
    limit = found["limit of validity"].value
    c = limit * float(theory.causal.rates(1, 1.0, 64, model="SA"))
    np.testing.assert_allclose(theory.causal.prefix_noise(c), 409.6, rtol=1e-8)
    np.testing.assert_allclose(
        10 ** found["sampling noise"].value, theory.causal.prefix_noise(found["scaled time"].value), rtol=1e-12
    )
    # on the circle at beta = 9 degree 3 or 4 is faster than degree 1, and decides
    fast = float(theory.causal.rates(int(theory.uniform.dominant_degree(9.0, 2)), 9.0, 2, model="SA"))
    noise = by_name(4096, 2**-10, 9.0, 0.5, d=2)["sampling noise"].value
    np.testing.assert_allclose(10**noise, theory.causal.prefix_noise(fast * 0.5), rtol=1e-12)
    assert "OUTSIDE" not in found["middle"].conditions
    assert "OUTSIDE" in found["takeover"].conditions
    assert "OUTSIDE" in by_name(4096, 2**-10, 1.0, 2.0)["middle"].conditions
    assert "coarse" in by_name(4096, 0.5, 1.0, 1.0)["middle"].conditions
    assert by_name(4, 0.1, 1.0, 1.0)["limit of validity"].value == 0


def test_takeover_is_predicted_in_time():
    found = by_name(10**6, 0.0, 1.0, 1.0, d=2, model="USA", share=0.25)
    np.testing.assert_allclose(found["takeover"].value, 1.918939 / 0.56515910, rtol=1e-6)
    assert "25 %" in found["takeover"].statement
    assert "self weight" not in found


@pytest.mark.parametrize(
    ("context", "slope", "beta", "time"),
    [
        (4096, 0.5, 4.0, 1.0),
        (10**9, 1e-9, 1.0, 1.0),
        (64, 0.01, 700.0, 5.0),
        (2, 1.0, 0.0, 1.0),
        (10**5, 1e-5, 1.0, 1e4),
    ],
)
def test_predictions_of_extreme_decoders(context, slope, beta, time):
    for p in theory.causal.predict_middle(context=context, slope=slope, beta=beta, time=time):
        assert p.value is None or np.all(np.isfinite(p.value))
        assert "nan" not in p.statement
    if time < 100:
        tokens, curve = theory.causal.middle_curve(context=context, slope=slope, beta=beta, time=time)
        assert np.isfinite(curve).all()
        assert np.all(np.diff(tokens) > 0)
        assert tokens[0] == 1
        assert tokens[-1] == context - 1


def test_refusals():
    for call, word in [
        (lambda: theory.causal.find_middle(0.0, 1.0), "`c` is 0.0; give a number in"),
        (lambda: theory.causal.find_middle([1.0, 2.0], 1.0), "give a number in"),
        (lambda: theory.causal.find_middle(1.0, -1.0), "`slope` is -1.0; give a number in"),
        (lambda: theory.causal.find_soft_middle(0.0, 1.0, 1.0, vocabulary=8), "`t` is 0.0; give a number in"),
        (lambda: theory.causal.soft_profile(1.0, 0.5, 0.0, slope=1.0, vocabulary=8), "`beta` is 0.0; give a number in"),
        (
            lambda: theory.causal.soft_profile(1.0, 0.0, 1.0, slope=1.0, vocabulary=8),
            "`source` is 0.0; give numbers in",
        ),
        (
            lambda: theory.causal.soft_profile(1.0, 0.5, 1.0, slope=1.0, vocabulary=0),
            "`vocabulary` is 0; give an integer from 1",
        ),
        (lambda: theory.causal.soft_profile(1.0, 0.5, 1.0, slope=1.0, vocabulary=10**7), "from 1 to 1000000"),
        (lambda: theory.causal.soft_profile(1e6, 1e-9, 3.0, slope=1.0, vocabulary=8), "use a smaller time"),
        (
            lambda: theory.causal.soft_accuracy(1.0, 0.5, 1.0, slope=1.0, vocabulary=8, context=1),
            "`context` is 1; give a number in",
        ),
        (lambda: theory.causal.theorem_time(2000.0, 1.0), "`beta` is 2000.0; give a number in"),
        (lambda: theory.causal.strong_centres(n=0, angle=0.5, d=2), "`n` is 0; give integers from 1"),
        (lambda: theory.causal.strong_centres(n=3, angle=4.0, d=2), "`angle` is"),
        (lambda: theory.causal.renyi_centres(0.0), "`angle` is"),
        (
            lambda: theory.causal.predict_middle(context=4096, slope=1e-3, beta=1.0, time=1.0, model="sa"),
            "`model` is 'sa'; use",
        ),
        (
            lambda: theory.causal.predict_middle(context=4096, slope=1e-3, beta=1.0, time=0.0),
            "`time` is 0.0; give a number in",
        ),
        (lambda: theory.causal.predict_middle(context=4096, slope=1e3, beta=1.0, time=1.0), "may be at most"),
        (
            lambda: theory.causal.predict_middle(context=1, slope=1e-3, beta=1.0, time=1.0),
            "`context` is 1; give an integer from 2",
        ),
        (lambda: theory.causal.predict_middle(context=4096, slope=[1e-3], beta=1.0, time=1.0), "give a number in"),
        (
            lambda: theory.causal.predict_middle(context=4096, slope=1e-3, beta=1.0, time=1.0, share=0.0),
            "`share` is 0.0; give a number in",
        ),
    ]:
        with pytest.raises(ValueError, match=word):
            call()
