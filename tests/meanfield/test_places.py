"""Places as a coordinate, densities with places, and prompts made of them."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial
from scipy import integrate, stats

import attnflow as af
from attnflow import meanfield as mf
from attnflow.errors import InvalidInput, NoSuchItem

EPS = np.finfo(np.float64).eps
CIRCLE, ZONAL = mf.CircleBasis(4), mf.ZonalBasis(3, 3)
SWITCH = mf.Places((0, 0.25, 1), 6)
few = settings(deadline=None, max_examples=25, derandomize=True)


@st.composite
def places(draw):
    inner = sorted(draw(st.sets(st.integers(1, 19), max_size=3)))
    return mf.Places((0, *(k / 20 for k in inner), 1), draw(st.integers(2, 12)))


@st.composite
def pieces(draw):
    """Places, and the coefficients of a polynomial of degree < nodes on every piece (in the place itself)."""
    made = draw(places())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return made, rng.uniform(-1, 1, (made.pieces, made.nodes))


def polynomials(made, rows, at):
    """Their values at `at`; a piece holds its right end."""
    piece = np.clip(np.searchsorted(made.breaks, at, side="left") - 1, 0, made.pieces - 1)
    return np.array([polynomial.polyval(x, rows[m]) for x, m in zip(at, piece, strict=True)])


# places


@few
@given(pieces(), st.floats(0, 1), st.floats(0, 1))
def test_interpolation_and_integrals_are_exact_on_the_pieces(case, one, two):
    made, rows = case
    values = polynomials(made, rows, made.points)
    # at most 12 coefficients of size 1, and Lebesgue constants of Gauss nodes below 2 sqrt(nodes)
    atol = 500 * EPS
    at = np.array([0.0, one, two, *made.breaks])
    np.testing.assert_allclose(made.at(values, at), polynomials(made, rows, at), atol=atol)
    low, high = sorted((one, two))
    ends = list(zip(made.breaks[:-1], made.breaks[1:], strict=True))
    primitive = [polynomial.polyint(row) for row in rows]

    def integral(low, high):
        total = 0.0
        for q, (a, b) in zip(primitive, ends, strict=True):
            a, b = max(a, low), min(b, high)
            total += polynomial.polyval(b, q) - polynomial.polyval(a, q) if a < b else 0.0
        return total

    assert made.weights @ values == pytest.approx(integral(0, 1), abs=atol)
    assert np.sum(made.weights) == pytest.approx(1, abs=8 * EPS)
    if high - low > 1e-3:
        assert (high - low) * made.average(low, high) @ values == pytest.approx(integral(low, high), abs=atol)
    # the mean over what is before a node, piece by piece
    means = [integral(0, x) / x for x in made.points]
    np.testing.assert_allclose(made.prefix() @ values, means, atol=atol / made.points[0])


@few
@given(places(), st.floats(0, 60))
def test_a_place_sees_what_is_before_it(made, slope):
    matrix = made.prefix(slope)
    np.testing.assert_allclose(np.sum(matrix, axis=1), 1, rtol=8 * EPS)
    block = np.repeat(np.arange(made.pieces), made.nodes)
    assert (matrix[block[:, None] < block[None, :]] == 0).all()
    # the weight of the earlier pieces is u(b)/u(sigma), u = e^{slope sigma} - 1; 0/0 at slope 0
    u = (lambda s: np.expm1(slope * s)) if slope > 1e-290 else (lambda s: s)
    for m, end in enumerate(made.breaks[1:-1], 1):
        later = made.points > end
        share = np.sum(matrix[later][:, : m * made.nodes], axis=1)
        np.testing.assert_allclose(share, u(end) / u(made.points[later]), rtol=1e-11)


@pytest.mark.parametrize("slope", [0.0, 1e-300, 1e-9, 0.5, 7.0, 400.0, 1e5, 1e12])
def test_prefix_against_mpmath(slope):
    """int_0^x s^p e^{-slope (x - s)} ds = x^{p+1}/(p+1) 1F1(1; p+2; -slope x); for p = 0 that is what it is divided by."""
    matrix, x = SWITCH.prefix(slope), SWITCH.points
    for p in (0, 2, 5):
        with mp.workdps(40):
            exact = [
                y**p / (p + 1) * mp.hyp1f1(1, p + 2, -slope * mp.mpf(y)) / mp.hyp1f1(1, 2, -slope * mp.mpf(y))
                for y in x
            ]
        # rounding of sums of 12 terms of at most 1, times Lebesgue constants; beyond mu = 1e9, k (k+1)/(2 1e9)
        atol = 300 * EPS + (1e-7 if slope > 1e9 else 0)
        np.testing.assert_allclose(matrix @ x**p, np.array(exact, dtype=float), atol=atol)


@pytest.mark.parametrize("slope", [0.0, 2.0, 8.0])
def test_the_slope_is_a_change_of_variable(slope):
    """With u = e^{slope sigma} - 1 the prefix is the mean over [0, u]: u^p has the eigenvalue 1/(p + 1)."""
    made = mf.Places((0, 0.3, 1), 24)
    u = np.expm1(slope * made.points) / np.expm1(slope) if slope else made.points
    # e^{24 sigma} on 0.7 = 2 h: the polynomial of 24 nodes leaves 2 (24 h/2)^24/24! e^{-24 h} = 7e-13 of the largest
    for p in (0, 1, 3):
        np.testing.assert_allclose(made.prefix(slope) @ u**p, u**p / (p + 1), atol=3e-12)


def test_every_slope_has_nodes_at_all_places():
    """d g/dc = A g from g = sigma. Nodes in u would leave early places bare: an error of 1.1 at slope 16."""
    from scipy.linalg import expm

    fine = mf.Places((0, *np.geomspace(1e-3, 1, 7)), 24)
    for slope, error in ((2, 1e-13), (16, 1e-8), (64, 1e-5)):  # measured 4e-16, 4e-9, 2e-6
        found = [made.weights @ expm(1.5 * made.prefix(slope)) @ made.points for made in (mf.Places(), fine)]
        assert found[0] == pytest.approx(found[1], abs=error)


def test_a_break_belongs_to_the_piece_before_it():
    values = np.where(SWITCH.points < 0.25, 1.0, 2.0)
    np.testing.assert_array_equal(np.round(SWITCH.at(values, [0.0, 0.25, 0.25 + 1e-12, 1.0]), 12), [1, 1, 2, 2])
    assert SWITCH.average(0.2, 0.3) @ values == pytest.approx(1.5, abs=20 * EPS)
    assert SWITCH.at(np.stack([values, values**2], axis=1), [[0.1], [0.5]]).shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.Places((0.1, 1)), "increasing numbers from 0 to 1"),
        (lambda: mf.Places((0, 0.5)), "increasing numbers from 0 to 1"),
        (lambda: mf.Places((0, 0.6, 0.5, 1)), "at least 1e-9 apart"),
        (lambda: mf.Places((0, np.nan, 1)), "at least 1e-9 apart"),
        (lambda: mf.Places("01"), "`breaks` is '01'"),
        (lambda: mf.Places(nodes=1), "`nodes` is 1"),
        (lambda: mf.Places(nodes=8.0), "`nodes` is 8.0"),
        (lambda: mf.Places(np.linspace(0, 1, 1000), 100), "`nodes` is 99900"),
        (lambda: SWITCH.prefix(-1.0), "`slope` is -1.0"),
        (lambda: SWITCH.prefix(np.inf), "`slope` is inf"),
        (lambda: SWITCH.at(np.ones(12), 1.5), "`place` is 1.5; give numbers from 0 to 1"),
        (lambda: SWITCH.at(np.ones(12), [0.5, np.nan]), "give numbers from 0 to 1"),
        (lambda: SWITCH.at(np.ones(5), 0.5), r"shape \(5,\); give one entry for each of the 12"),
        (lambda: SWITCH.average(0.5, 0.5), "give the ends of a range"),
        (lambda: SWITCH.average(0.5, 1.5), "`last` is 1.5"),
    ],
)
def test_places_refuse(call, message):
    with pytest.raises(InvalidInput, match=message) as refusal:
        call()
    assert 20 <= len(str(refusal.value)) <= 400
    assert str(refusal.value).endswith(".")


# densities with places


def formula(place, theta):
    return 1 + 0.3 * np.cos(theta) + 0.3 * place * np.cos(2 * theta - 1)


def test_a_formula_at_any_place():
    density = mf.placed(mf.Places(nodes=3), formula, CIRCLE)
    theta = np.linspace(0, 6, 5)
    np.testing.assert_allclose(density(0.7, angles=theta), formula(0.7, theta), atol=50 * EPS)
    np.testing.assert_allclose(density([0.0, 1.0], angles=theta), [formula(s, theta) for s in (0, 1)], atol=50 * EPS)
    assert density(1.0, angles=0.5) == pytest.approx(formula(1.0, 0.5), abs=50 * EPS)
    assert density.at(0.25)(angles=0.5) == pytest.approx(formula(0.25, 0.5), abs=50 * EPS)
    assert density.mean(angles=0.5) == pytest.approx(formula(0.5, 0.5), abs=50 * EPS)
    assert density.average(0.96)(angles=0.5) == pytest.approx(formula(0.98, 0.5), abs=50 * EPS)
    assert density.node(-1)(angles=0.5) == pytest.approx(formula(density.places.points[-1], 0.5), abs=50 * EPS)
    assert density.mean.mass == pytest.approx(1, abs=8 * EPS)
    assert repr(density) == "PlacedDensity(3 nodes, breaks (0.0, 1.0), CircleBasis of degree 4)"


def test_integrals_over_places_and_points():
    density = mf.placed(mf.Places(nodes=3), formula, CIRCLE)
    for k, low, high in ((1, 0.0, 1.0), (2, 0.0, 1.0), (2, 0.5, 0.7)):

        def part(theta, place, wave, k=k):
            return formula(place, theta) * wave(k * theta) / (2 * np.pi * (high - low))  # noqa: B023

        real, imaginary = (
            integrate.dblquad(part, low, high, 0, 2 * np.pi, args=(wave,))[0] for wave in (np.cos, np.sin)
        )
        assert density.fourier(k, low, high) == pytest.approx(real - 1j * imaginary, abs=1e-12)
        assert density.integral(k, -1, low, high) == pytest.approx(imaginary, abs=1e-12)
    assert density.fourier(0) == pytest.approx(1, abs=8 * EPS)
    np.testing.assert_allclose(density.profile(2), 0.15 * np.cos(1) * density.places.points, atol=8 * EPS)
    zonal = mf.placed(mf.Places(nodes=3), lambda place, s: 1 + 0.6 * place * s, ZONAL)
    assert zonal.integral(1) == pytest.approx(0.6 / 2 / 3, abs=8 * EPS)  # the mean of s^2 on S^2 is 1/3


def test_topics_by_piece():
    early, late = mf.perturbed(CIRCLE, 1, 0.1), mf.perturbed(CIRCLE, 1, 0.1, -1)
    switch = mf.placed(SWITCH, [early, late])
    for place, topic in ((0.0, early), (0.25, early), (0.26, late), (1.0, late)):
        np.testing.assert_allclose(switch.at(place).coefficients, topic.coefficients, atol=20 * EPS)
    np.testing.assert_allclose(switch.mean.coefficients, mf.mixture([1, 3], [early, late]).coefficients, atol=20 * EPS)
    iid = mf.placed(SWITCH, early)
    assert (iid.coefficients == early.coefficients).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.placed(0.5, formula, CIRCLE), "`places` is 0.5"),
        (lambda: mf.placed(SWITCH, formula), "`basis` is missing"),
        (lambda: mf.placed(SWITCH, 1.0, CIRCLE), "give a formula f"),
        (lambda: mf.placed(SWITCH, [mf.uniform(CIRCLE)]), "1 densities for 2 pieces"),
        (lambda: mf.placed(SWITCH, [mf.uniform(CIRCLE), mf.uniform(ZONAL)]), r"start\[1\] has another basis"),
        (lambda: mf.placed(SWITCH, mf.uniform(CIRCLE), ZONAL), r"start\[0\] has another basis"),
        (lambda: mf.placed(SWITCH, [mf.uniform(CIRCLE), 1.0]), r"`start\[1\]` is 1.0; give a Density"),
        (lambda: mf.placed(SWITCH, lambda place, x: 1 + place + 0 * x, CIRCLE), "`function` has mass 1.0"),
        (lambda: mf.PlacedDensity(SWITCH, CIRCLE, np.ones(9)), r"shape \(9,\); give \(12, 9\)"),
        (lambda: mf.PlacedDensity(SWITCH, CIRCLE, np.zeros((12, 9))), "at the place 0.008.*mass 0"),
        (lambda: mf.placed(SWITCH, mf.uniform(ZONAL)).fourier(1), "ZonalBasis, and `fourier` is for the circle"),
        (lambda: mf.placed(SWITCH, mf.uniform(CIRCLE)).profile(9), "`degree` is 9, above the 4"),
        (lambda: mf.quiet(mf.placed(SWITCH, mf.uniform(ZONAL)), 5), "on the circle alone"),
        (lambda: mf.sample(mf.placed(SWITCH, mf.uniform(ZONAL)), 5), "on the circle alone"),
        (lambda: mf.quiet(mf.uniform(CIRCLE), 5, shift=0.1), "a `seed` shifts its lattice"),
        (lambda: mf.quiet(mf.placed(SWITCH, mf.uniform(CIRCLE)), 5, shift=np.nan), "`shift` is nan"),
        (lambda: mf.quiet("tokens", 5), "or a PlacedDensity"),
    ],
)
def test_densities_refuse(call, message):
    with pytest.raises(InvalidInput, match=message) as refusal:
        call()
    assert 20 <= len(str(refusal.value)) <= 400
    assert str(refusal.value).endswith(".")


def test_there_is_no_other_node():
    with pytest.raises(NoSuchItem, match="node 12 was asked for; there are 12"):
        mf.placed(SWITCH, mf.uniform(CIRCLE)).node(12)


# prompts


def levels_of(tokens):
    """The distribution function of the formula at the place of every token."""
    theta, s = np.mod(CIRCLE.variable(tokens.positions), 2 * np.pi), np.asarray(tokens.place)
    primitive = 0.3 * np.sin(theta) + 0.15 * s * (np.sin(2 * theta - 1) + np.sin(1))
    return (theta + primitive) / (2 * np.pi)


def test_quiet_prompts_are_golden_quantiles():
    density = mf.placed(mf.Places(nodes=3), formula, CIRCLE)
    for n, shift in ((1, 0.0), (200, 0.0), (200, 0.3)):
        tokens = mf.quiet(density, n, shift=shift)
        np.testing.assert_allclose(tokens.place, (np.arange(n) + 0.5) / n)
        assert (tokens.masses == 1 / n).all()
        golden = np.mod(np.arange(1, n + 1) * (np.sqrt(5) - 1) / 2 + shift, 1.0)
        np.testing.assert_allclose(levels_of(tokens), golden, atol=1e-13)
    seeded = [mf.quiet(density, 50, seed).positions for seed in (1, 1, 2)]
    np.testing.assert_array_equal(seeded[0], seeded[1])
    assert np.max(np.abs(seeded[0] - seeded[2])) > 0.01


def test_every_prefix_of_a_quiet_prompt_is_spread_evenly():
    """The star discrepancy of {i golden} is at most (2 + log(i)/log(golden^-1))/i (badly approximable numbers)."""
    levels = levels_of(mf.quiet(mf.placed(mf.Places(nodes=3), formula, CIRCLE), 1000))
    for n in (10, 100, 1000):
        rank, sorted_levels = np.arange(n), np.sort(levels[:n])
        worst = max(np.max((rank + 1) / n - sorted_levels), np.max(sorted_levels - rank / n))
        assert worst <= (2 + np.log(n) / np.log((np.sqrt(5) + 1) / 2)) / n


def test_sampled_prompts():
    density = mf.placed(mf.Places(nodes=3), formula, CIRCLE)
    tokens = mf.sample(density, 20_000, seed=5)
    assert stats.kstest(levels_of(tokens), "uniform").pvalue > 1e-3
    levels = levels_of(tokens)  # neighbours are independent
    assert abs(np.corrcoef(levels[:-1], levels[1:])[0, 1]) < 4 / np.sqrt(20_000)
    np.testing.assert_array_equal(tokens.positions, mf.sample(density, 20_000, seed=5).positions)
    assert isinstance(tokens, af.Tokens)
