"""Wasserstein distances: closed forms, second implementations, degenerate families, geodesics, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment

import attnflow as af
from attnflow import meanfield as mf
from attnflow.errors import InvalidInput, TooLarge
from attnflow.transport import distance, geodesic, sliced_distance
from attnflow.transport.plans import _by_highs, _vertex, plan

EPS = np.finfo(float).eps
SPHERE = af.Sphere(3)


def ring(angles, masses=None):
    angles = np.asarray(angles, float)
    return af.Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1), masses)


def flat(*points):
    return af.Tokens(points, space=af.Euclidean(2))


def apart(x, y):
    """Distances of angles."""
    return np.abs(np.mod(np.subtract.outer(x, y) + np.pi, 2 * np.pi) - np.pi)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([1, 2]), st.sampled_from(["any", "few", "close"]))
def test_on_the_circle_it_is_the_best_assignment(seed, n, order, family):
    """Of equal masses. "few": angles of a grid, with coincident and antipodal ones; "close": within 1e-9."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-7, 7, (2, n))
    if family == "few":
        x, y = np.pi / 2 * rng.integers(0, 4, (2, n))
    if family == "close":
        y = x + 1e-9 * rng.standard_normal(n)
    cost = apart(x, y) ** order
    best = np.mean(cost[linear_sum_assignment(cost)])
    # n levels and 2 n angles are rounded, each to EPS of a turn
    assert distance(ring(x), ring(y), order=order) ** order == pytest.approx(best, abs=8 * n * EPS * np.pi**order)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2]))
def test_on_the_circle_with_masses_it_is_the_linear_program(seed, order):
    rng = np.random.default_rng(seed)
    (x, y), a, b = rng.uniform(0, 7, (2, 6)), rng.random(6) ** 4, rng.random(6)
    a[0] = 0.0
    mu, nu = ring(x, a), ring(y, b)
    cost = apart(x, y) ** order
    best = np.sum(plan(cost, np.asarray(mu.masses), np.asarray(nu.masses)) * cost)
    assert distance(mu, nu, order=order) ** order == pytest.approx(best, rel=1e-9, abs=1e-12)  # of the program
    assert distance(nu, mu, order=order) == pytest.approx(distance(mu, nu, order=order), rel=1e-12)


def test_closed_forms_on_circle_and_sphere():
    """Uniform against one atom: pi/sqrt(3) on the circle; W_1 = pi/2 and W_2^2 = (pi^2 - 4)/2 on S^2; k-rings."""
    many, k = 2 * np.pi * np.arange(8400) / 8400, 7
    end = np.pi**2 / 8400**2 / 3  # the mean of j^2 for |j| <= m, ends halved, is m^2/3 + 1/6
    assert distance(ring(many), ring([0.0]), order=2) ** 2 == pytest.approx(np.pi**2 / 3 + 2 * end, rel=1e-9)
    assert distance(ring(many), ring(many[::1200]), order=2) ** 2 == pytest.approx(
        np.pi**2 / 3 / k**2 + 2 * end, rel=1e-9
    )
    assert distance(ring(many), ring(many[::1200])) == pytest.approx(np.pi / 2 / k, rel=1e-9)
    z = np.cos(np.pi * (np.arange(2000) + 0.5) / 2000)  # a meridian with the masses of its circles of latitude
    tokens = af.Tokens(np.stack([np.sqrt(1 - z**2), 0 * z, z], axis=1), np.sqrt(1 - z**2))
    pole = af.Tokens(np.eye(3)[2:])
    assert distance(tokens, pole) == pytest.approx(np.pi / 2, rel=1e-12)
    assert distance(tokens, pole, order=2) == pytest.approx(1.7131264403, rel=1e-6)  # midpoint rule: h^2/12 (pi^2/4)


def test_von_mises_laws_that_are_turned():
    """Reference numbers at kappa = 1 and 5: by quantiles of 40,000 tokens, and tokens against the density."""
    for kappa, turns, exact in ((1.0, (0.5, 2.0, np.pi), (0.30323, 1.02442, 1.21452)), (5.0, (0.5, 2.0, np.pi), (0.499420, 1.908286, 2.397262))):  # fmt: skip
        grid = 2 * np.pi * np.arange(40001) / 40000
        level = np.cumsum(np.exp(kappa * (np.cos(grid) - 1)))
        angles = np.interp((np.arange(4000) + 0.5) / 4000, (level - level[0]) / (level[-1] - level[0]), grid)
        found = [distance(ring(angles), ring(angles + turn), order=2) for turn in turns]
        np.testing.assert_allclose(found, exact, atol=5e-5)  # five digits; quantiles in the tails
    even = ring(2 * np.pi * (np.arange(5) + 0.5) / 5)
    assert distance(even, mf.uniform(mf.CircleBasis(4)), order=2) == pytest.approx(np.pi / 5 / np.sqrt(3), rel=1e-9)


def test_a_density_by_its_quantiles():
    """W_2 of one atom from rho: the integral of theta^2 rho, cut at the antipode; and no negative density."""
    rho = mf.perturbed(mf.CircleBasis(3), degree=2, amplitude=0.7)
    for turn in (0.0, 1.0):
        exact = quad(lambda a: a**2 * float(rho(angles=[turn + a])[0]) / (2 * np.pi), -np.pi, np.pi)[0]  # noqa: B023
        assert distance(ring([turn]), rho, order=2) ** 2 == pytest.approx(exact, rel=1e-7)  # (2 pi/grid)^2
    negative = rho.moved(np.asarray(rho.coefficients) * np.where(np.arange(len(rho.coefficients)) > 0, 2.0, 1.0))
    with pytest.raises(InvalidInput, match="negative somewhere; W_2 needs a positive one"):
        distance(ring([0.0]), negative, order=2)


def test_one_number_with_and_without_pot(faults):
    """On S^2, with unequal masses and numbers of tokens: POT's simplex and SciPy's HiGHS; both are exact to rounding."""
    mu, nu = (
        af.Tokens(SPHERE.sample(np.random.default_rng(k), n), np.arange(1.0, n + 1)) for k, n in ((0, 9), (1, 14))
    )
    found = [distance(mu, nu, order=order) for order in (1, 2)]
    faults.module("ot")
    np.testing.assert_allclose([distance(mu, nu, order=order) for order in (1, 2)], found, rtol=1e-14)
    assert distance(mu, mu, order=2) == 0


@pytest.mark.parametrize("family", ["any", "grid", "steep"])
def test_plans_without_pot_have_exact_marginals_and_the_least_cost(family):
    """HiGHS alone is off by 1e-7; "grid" has many equal distances, "steep" masses from 1e-20 to 1."""
    import ot

    rng = np.random.default_rng(5)
    x, y, a, b = rng.standard_normal((40, 2)), rng.standard_normal((30, 2)), rng.random(40), rng.random(30)
    if family == "grid":
        x, y, a, b = np.round(x), np.round(y), 1.0 + rng.integers(0, 2, 40), np.ones(30)
    if family == "steep":
        a = a**40
    a, b = a / a.sum(), b / b.sum()
    cost = np.sum((x[:, None] - y) ** 2, axis=-1)
    for masses in (_by_highs(cost, a, b), _vertex(cost, a, b, np.outer(a, b))):
        assert masses.min() >= 0
        np.testing.assert_allclose(masses.sum(axis=1), a, rtol=0, atol=4e-16)
        np.testing.assert_allclose(masses.sum(axis=0), b, rtol=0, atol=4e-16)
        assert np.sum(masses * cost) == pytest.approx(np.sum(ot.emd(a, b, cost) * cost), rel=1e-14)


@pytest.mark.slow
def test_a_geodesic_has_constant_speed():
    """W_2(mu_s, mu_t) = |s - t| W_2(mu, nu) on the circle, the sphere and R^d; ends are the measures."""
    rng = np.random.default_rng(3)
    pairs = [
        (ring(rng.uniform(0, 7, 6), rng.random(6)), ring(rng.uniform(0, 7, 9))),
        (ring([0.0, 2.0]), ring([np.pi])),
        (af.Tokens(SPHERE.sample(rng, 6)), af.Tokens(SPHERE.sample(rng, 4), [1.0, 2, 3, 4])),
        (af.Tokens(np.eye(3)[:1]), af.Tokens(-np.eye(3)[:1])),  # antipodal
        (af.Tokens(rng.standard_normal((5, 2)), space=af.Euclidean(2)), af.Tokens(np.eye(2), space=af.Euclidean(2))),
        (af.Tokens([[0.0], [3.0]], space=af.Euclidean(1)), af.Tokens([[1.0]], space=af.Euclidean(1))),
        (flat([0.0, 0.0], [0.8, -0.64]), flat([0.1, 0.0], [0.7, 0.64])),  # squares 1.66 < 1.80, but cubes 2.12 > 1.71
    ]
    for mu, nu in pairs:
        whole = distance(mu, nu, order=2)
        frames = {s: geodesic(mu, nu, s) for s in (0.0, 0.3, 0.8, 1.0)}
        for (s, one), (t, other) in ((a, b) for a in frames.items() for b in frames.items() if a[0] < b[0]):
            assert distance(one, other, order=2) == pytest.approx((t - s) * whole, rel=1e-8)
        assert max(distance(frames[0.0], mu, order=2), distance(frames[1.0], nu, order=2)) < 1e-7


def test_sliced_distances():
    """Zero for equal measures, unchanged by rotations up to chance, below the distance; the circle itself in d = 2."""
    rng = np.random.default_rng(5)
    mu, nu = (af.Tokens(SPHERE.sample(rng, 30)) for _ in range(2))
    assert sliced_distance(mu, mu, circles=5) < 1e-7
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = [one.moved(np.asarray(one.positions) @ turn.T) for one in (mu, nu)]
    first, second = (sliced_distance(*pair, circles=40, seed=7) for pair in ((mu, nu), turned))
    assert second == pytest.approx(first, rel=0.3)
    assert sliced_distance(mu, nu, circles=5, seed=1) == sliced_distance(mu, nu, circles=5, seed=1) != first
    x, y = ring([0.1, 0.5]), ring([1.0, 3.0])
    assert sliced_distance(x, y) == distance(x, y, order=2)


def test_refusals():
    mu = af.Tokens(np.eye(3))
    for call, words in (
        (lambda: distance(mu, ring([0.0])), "they must share a space"),
        (lambda: distance(mu, mu, order=3), "`order` is 3; give an integer from 1 to 2"),
        (lambda: distance(mu, mu, limit="x"), "`limit` is 'x'; give an integer from 1"),
        (lambda: distance("mu", mu), "`mu` is 'mu'"),
        (lambda: distance(mu, "nu"), "`nu` is 'nu'"),
        (lambda: geodesic(mu, mu, 1.5), "`s` is 1.5"),
        (lambda: sliced_distance(mu, mu, circles=0), "`circles` is 0"),
        (lambda: sliced_distance(*[af.Tokens([[0.0]], space=af.Euclidean(1))] * 2), "defined on a sphere"),
        (lambda: geodesic(*[af.uniform(af.Torus(2), n=3)] * 2, 0.5), "geodesics are known on spheres"),
        (lambda: distance(af.stack("a", [0, 1], [mu, mu]), mu), "batch dimensions"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
    with pytest.raises(TooLarge, match="between 11 and 11 tokens is over the limit of 10² pairs"):
        distance(*[af.uniform(SPHERE, n=11)] * 2, limit=10)
