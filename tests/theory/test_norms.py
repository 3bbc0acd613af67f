"""Layer norms as speed regulators: printed values, an independent inverse, decay and limits (arXiv:2510.22026)."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.theory.uniform import norm_decay, norm_initial_rate, norm_overlap
from tests.marks import graded

pytestmark = pytest.mark.filterwarnings("error")
TIMES = np.array([0.5, 1, 2, 5, 20])
PLACEMENTS = norm_overlap.domain["placement"].words


@pytest.mark.parametrize(
    ("placement", "overlaps", "radius"),
    [
        ("post", [0.089365, 0.230696, 0.659874, 0.998646, 1], 1.0),
        ("pre", [0.077329, 0.168810, 0.375593, 0.803124, 0.989247], 18.6118),
        ("peri", [0.146488, 0.308872, 0.576543, 0.878873, 0.990906], 20.2423),
        ("ngpt", [0.190114, 0.487100, 0.896076, 0.999722, 1], 1.0),
        ("mix", [0.089365, 0.230696, 0.566710, 0.924102, 0.996307], None),
        ("ln-scaling", [0.068829, 0.136023, 0.262872, 0.550999, 0.903508], 6.1397),
    ],
)
def test_printed_values(placement, overlaps, radius):
    """n = 8, beta = 2 from orthonormal tokens: six printed decimals, so half a unit of the last one and 1e-9 of ODE."""
    path = norm_overlap(TIMES, 2.0, 8, placement=placement)
    np.testing.assert_allclose(path.overlap, overlaps, rtol=0, atol=5.1e-7)
    if radius is not None:
        assert abs(path.radius[-1] - radius) < 5.1e-5


def test_initial_rates():
    for beta, gentle, quick in ((1.0, 0.205798, 0.527247), (4.0, 0.032469, 0.036588)):
        for placement in ("post", "pre", "mix", "ln-scaling"):
            assert abs(norm_initial_rate(beta, 8, placement) - gentle) < 5.1e-7
        for placement in ("peri", "ngpt"):
            assert abs(norm_initial_rate(beta, 8, placement) - quick) < 5.1e-7
    assert norm_initial_rate([[0.0], [1e4]], [2, 8, 4096], "peri").shape == (2, 3)
    assert norm_initial_rate(1.0, 8, "ngpt", alpha=3.0) == pytest.approx(3 * norm_initial_rate(1.0, 8, "peri"))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_initial_rate_is_the_slope_of_the_path(placement):
    # rho(h) = rho'(0) h + O(h^2): from h = 1e-4 and 2e-4 the extrapolated slope errs by O(h^2) = 1e-8 and by
    # the integration error 1e-11/h = 1e-7
    h = 1e-4
    one, two = norm_overlap([h, 2 * h], 1.5, 5, placement=placement, alpha=0.7).overlap
    assert (4 * one - two) / (2 * h) == pytest.approx(norm_initial_rate(1.5, 5, placement, alpha=0.7), abs=1e-6)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_decay_is_the_measured_one(placement, alpha):
    kind, exponent = norm_decay(placement, alpha=alpha)
    t = np.array([1e5, 1e6])
    low, high = norm_overlap(t, 2.0, 8, placement=placement, alpha=alpha).log_gap
    span = np.log(10) if kind == "algebraic" else t[1] - t[0]
    assert abs((low - high) / span - exponent) < 0.05


def _radius(rho, beta, n):
    """r as a function of rho: d log r/d rho = <theta, A> a/(2 e (1-rho)(1+(n-1)rho)) is the same for pre and peri."""
    gap, q, b = 1 - rho, 1 + (n - 1) * rho, mp.mpf(beta) / (n - 1)
    pull = mp.mpf(0)
    if beta > 0:
        pull = mp.ei(beta) - mp.ei(beta * gap) + mp.exp(beta + b) * (mp.e1(b) - mp.e1(b * q))
    else:
        pull = mp.log(q / gap)
    return mp.exp((pull - (n - 1) * mp.log(gap) - mp.log(q)) / (2 * n))


@given(beta=st.floats(0.0, 4.0), n=st.integers(2, 64), placement=st.sampled_from(["pre", "peri", "ln-scaling"]))
@settings(max_examples=12, deadline=None)
def test_orbits_and_times_agree_with_mpmath(beta, n, placement):
    """The time to a given overlap by quadrature along the closed form r(rho), then the ODE at that time."""
    target = mp.mpf("0.8")

    def slowness(rho):
        e = mp.exp(-beta * (1 - rho))
        a = 1 + (n - 1) * e
        size = (
            mp.sqrt(1 + 2 * (n - 1) * rho * e + (n - 1) * e**2 * (1 + (n - 2) * rho)) / a if placement == "peri" else 1
        )
        return _radius(rho, beta, n) * size * a / (2 * e * (1 - rho) * (1 + (n - 1) * rho))

    with mp.workdps(20):
        clock = mp.quad(slowness, mp.linspace(0, target, 5))
        t = float(clock if placement != "ln-scaling" else (1 + clock / 2) ** 2 - 1)
        radius = float(_radius(target, beta, n))
    path = norm_overlap(t, beta, n, placement=placement)
    # tolerance 1e-11 a step over some hundred steps gives 1e-9 in log(1-rho); in time that is 1e-9, and time counts
    # beta-fold in the escape from orthogonality and enters log r once more
    assert abs(path.overlap - 0.8) < 1e-7
    assert abs(path.radius / radius - 1) < 1e-7


@pytest.mark.parametrize("placement", ["post", "pre", "peri", "ngpt", "ln-scaling"])
def test_layers_converge_to_the_path(placement):
    """The layer maps themselves on 6 orthonormal tokens, steps h and h/2: they are of order 1, so that the difference
    of the two estimates the error, and extrapolation leaves O(h) of that difference (h = 0.01; allowed: 5 h)."""
    beta, n, end, alpha = 1.5, 6, 2.0, 0.8

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def run(h):
        x = np.eye(n)
        for k in range(round(end / h)):
            theta = unit(x)
            weights = np.exp(beta * (theta @ theta.T - 1))
            average = weights / weights.sum(axis=1, keepdims=True) @ theta
            if placement == "post":
                x = unit(theta + h * average)
            elif placement == "ngpt":
                x = unit(theta + h * alpha * (unit(average) - theta))
            else:
                speed = 1 / np.sqrt(1 + k * h) if placement == "ln-scaling" else 1.0
                x = x + h * speed * (unit(average) if placement == "peri" else average)
        return np.array([unit(x)[0] @ unit(x)[1], np.linalg.norm(x[0])])

    coarse, fine = run(0.01), run(0.005)
    path = norm_overlap(end, beta, n, placement=placement, alpha=alpha)
    error = np.abs(2 * fine - coarse - [path.overlap, path.radius])
    assert (error <= 0.05 * np.abs(fine - coarse) + 1e-12).all()


def test_mix_is_post_and_then_pre():
    t = np.array([3.0, 0.2, 1.5, 0.7])
    mix = norm_overlap(t, 2.0, 8, placement="mix", switch=1.5, radius0=2.0)
    post = norm_overlap(t, 2.0, 8, placement="post", radius0=2.0)
    np.testing.assert_allclose(mix.overlap[1:], post.overlap[1:], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(mix.radius[1:], 2.0)
    resumed = norm_overlap(1.5, 2.0, 8, placement="pre", overlap0=float(post.overlap[2]), radius0=2.0)
    assert abs(mix.overlap[0] - resumed.overlap) < 1e-9
    assert abs(mix.radius[0] - resumed.radius) < 1e-8
    np.testing.assert_array_equal(
        norm_overlap(t, 2.0, 8, placement="mix", switch=0.0).overlap, norm_overlap(t, 2.0, 8, placement="pre").overlap
    )


def test_identities():
    t = np.array([[0.0, 0.3], [4.0, 50.0]])
    scaled = norm_overlap(t, 1.0, 6, placement="ln-scaling")
    pre = norm_overlap(2 * (np.sqrt(1 + t) - 1), 1.0, 6, placement="pre")
    assert scaled.overlap.shape == scaled.radius.shape == t.shape
    np.testing.assert_allclose(scaled.overlap, pre.overlap, rtol=0, atol=1e-9)
    # ngpt is peri at radius 1, so alpha is a clock
    quick, slow = norm_overlap(2 * t, 1.0, 6, placement="ngpt"), norm_overlap(t, 1.0, 6, placement="ngpt", alpha=2.0)
    np.testing.assert_allclose(quick.log_gap, slow.log_gap, rtol=1e-9, atol=1e-10)
    # beta = 0: the overlap of post is known, (e^{2t}-1)/(e^{2t}+n-1)
    free = norm_overlap(TIMES, 0.0, 8, placement="post").log_gap
    np.testing.assert_allclose(free, np.log(8 / (np.exp(2 * TIMES) + 7)), rtol=1e-9)


def test_ode_of_ln_scaling_written_out():
    """The clock of ln-scaling against its equation with sqrt(1+t), stepped by RK4: error 200 h^4 < 1e-8."""

    def slope(t, y):
        rho, r = y
        e = np.exp(-2.0 * (1 - rho))
        a = 1 + 7 * e
        root = np.sqrt(1 + t)
        return np.array([2 * e * (1 - rho) * (1 + 7 * rho) / (a * r * root), (1 + 7 * rho * e) / (a * root)])

    y, h = np.array([0.0, 1.0]), 2.0 / 800
    for i in range(800):
        t = i * h
        k1 = slope(t, y)
        k2 = slope(t + h / 2, y + h / 2 * k1)
        k3 = slope(t + h / 2, y + h / 2 * k2)
        k4 = slope(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    path = norm_overlap(2.0, 2.0, 8, placement="ln-scaling")
    np.testing.assert_allclose([path.overlap, path.radius], y, rtol=1e-8)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("beta", [0.0, 30.0, 1e4])
@graded("overlap0", [0.0, 0.9995, -0.14])
def test_whole_range_stays_finite_and_monotone(placement, beta, overlap0):
    path = norm_overlap([0.0, 1.0, 30.0, 1e6], beta, 8, placement=placement, overlap0=overlap0)
    assert path.overlap[0] == pytest.approx(overlap0, abs=1e-15)
    assert np.isfinite(path.log_gap).all()
    assert np.isfinite(path.radius).all()
    assert (np.diff(path.log_gap) <= 1e-11).all()
    assert (np.diff(path.radius) >= -1e-9).all()


def test_least_overlap_is_an_equilibrium():
    path = norm_overlap([1.0, 100.0], 2.0, 8, placement="pre", overlap0=-1 / 7)
    np.testing.assert_allclose(path.overlap, -1 / 7, atol=1e-15)
    # A = (1-e)/(1+(n-1)e) theta there, so the radius grows at a constant speed
    e = np.exp(-2 * 8 / 7)
    np.testing.assert_allclose(path.radius, 1 + (1 - e) / (1 + 7 * e) * np.array([1.0, 100.0]), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: norm_overlap(-1.0, 1.0, 4, placement="pre"), "`t` is"),
        (lambda: norm_overlap(np.nan, 1.0, 4, placement="pre"), "`t` is"),
        (lambda: norm_overlap(1.0, -1.0, 4, placement="pre"), "`beta` is"),
        (lambda: norm_overlap(1.0, np.inf, 4, placement="pre"), "`beta` is"),
        (lambda: norm_overlap(1.0, 1.0, 1, placement="pre"), "`n` is"),
        (lambda: norm_overlap(1.0, 1.0, 2.5, placement="pre"), "`n` is"),
        (lambda: norm_overlap(1.0, 1.0, 4, placement="rms"), "`placement` is"),
        (lambda: norm_overlap(1.0, 1.0, 4, placement="pre", overlap0=1.0), "`overlap0` is"),
        (lambda: norm_overlap(1.0, 1.0, 4, placement="pre", overlap0=-0.5), "`overlap0` is"),
        (lambda: norm_overlap(1.0, 0.0, 2, placement="peri", overlap0=-1.0), "`overlap0` is"),
        (lambda: norm_overlap(1.0, 1.0, 4, placement="pre", radius0=0.0), "`radius0` is"),
        (lambda: norm_overlap(1.0, 1.0, 4, placement="ngpt", alpha=-1.0), "`alpha` is"),
        (lambda: norm_overlap(1.0, 1.0, 4, placement="mix", switch=np.nan), "`switch` is"),
        (lambda: norm_decay("rms"), "`placement` is"),
        (lambda: norm_decay("ngpt", alpha=0.0), "`alpha` is"),
        (lambda: norm_initial_rate(1.0, [4, 1], "post"), "`n` is"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
