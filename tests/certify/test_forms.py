"""Closed forms in balls against theory and mpmath; mode counts; groups that stay apart."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import attnflow as af
from attnflow import certify, theory
from attnflow.errors import InvalidInput
from tests.certify.false import changed, claim

ULP = 2.0**-52


def holds(ball, value, slack=0.0):
    """Whether a float of theory is as near to the ball as its stated relative error allows."""
    return abs(float(value) - ball.mid) <= ball.rad + (slack + ULP) * abs(ball.mid)


def test_thresholds_enclose_those_of_theory_and_the_printed_digits():
    """brentq stops at 1e-13 absolutely, with rounding of the quotient on top: 1e-12."""
    for d, digits in ((2, ("1.044457", "3.165434", "6.211298")), (3, ("1.816155", "4.425293")), (4, ("2.528520",))):
        for k, text in enumerate(digits, start=1):
            ball = certify.switching_threshold(k, d)
            assert ball.rad < 1e-27
            assert f"{ball.mid:.6f}" == text
            assert holds(ball, theory.uniform.switching_threshold(k, d), 1e-12)
    assert certify.jump_threshold(2, digits=18).contains("2.4469183112890461309039")
    # the two definitions meet: degree 1 to 2 on S^2 is the root of I_{5/2}/I_{3/2} = 1/3
    assert abs(certify.jump_threshold(3).mid - certify.switching_threshold(1, 3).mid) < 1e-15


def test_dominant_degrees_between_thresholds():
    edges = [0.01, *(certify.switching_threshold(k, 2).mid for k in range(1, 5))]
    for k, (low, high) in enumerate(itertools.pairwise(edges), start=1):
        found = certify.dominant_degree((low * (1 + 1e-9), high * (1 - 1e-9)), 2)
        assert found.claims["degree"] == k == theory.uniform.dominant_degree((low + high) / 2, 2)
        assert certify.check(found).confirmed
        assert isinstance(certify.dominant_degree((low, high * (1 + 1e-9)), 2), certify.Undecided)
        assert not certify.check(changed(found, claim(degree=k + 1))).confirmed


def test_unstable_modes_with_noise():
    table = {(100.0, 3, 1e-4): 899, (9.0, 2, 0.01): 12, (9.0, 3, 0.01): 48, (20.0, 8, 0.001): 17874}
    for (beta, d, noise), modes in table.items():
        found = certify.unstable_modes(beta, d, noise)
        assert found.claims["modes"] == modes
        grows = theory.uniform.critical_noise(beta, d, k=np.arange(1, 40)) > noise
        assert found.claims["degree"] == grows.sum()
    assert certify.check(found).confirmed
    assert not certify.check(changed(found, claim(modes=found.claims["modes"] + 1))).confirmed


@pytest.mark.parametrize("model", ["SA", "USA0", "USA"])
def test_merge_times_enclose_those_of_theory(model):
    """log_merge_time is exact to a few units of 1e-16 in sums of size beta: 1e-13 relative at beta = 20."""
    for beta in (0.0, 1.0, 20.0):
        for masses in ((0.5, 0.5), (0.75, 0.25)):
            ball = certify.merge_time(1.5, beta, until=0.001, masses=masses, model=model)
            assert holds(ball, theory.merging.merge_time(1.5, beta, until=0.001, masses=masses, model=model), 1e-12)
            assert ball.rad < 1e-20 * ball.mid + 1e-25
    with mpmath.workdps(30):
        exact = mpmath.quad(lambda s: mpmath.exp(20 * (1 - mpmath.cos(s))) / mpmath.sin(s), [1, 1.25, 1.5])
        assert (
            certify.merge_time(1.5, 20, until=1, model="USA0").contains(mpmath.nstr(exact, 18))
            or abs(certify.merge_time(1.5, 20, until=1, model="USA0").mid / exact - 1) < mpmath.mpf(10) ** -15
        )
    assert certify.merge_time("0.1", 1, until=Fraction(1, 100)).mid != certify.merge_time(0.1001, 1, until=0.01).mid
    with pytest.raises(InvalidInput, match="until"):
        certify.merge_time(0.5, 1.0, until=0.6)


@pytest.mark.slow
def test_modes_are_counted_exactly():
    rng = np.random.default_rng(3)
    angles = rng.uniform(0, 2 * np.pi, 8)
    found = certify.circle_modes(angles, 30.0)
    assert found.claims["modes"] == theory.landscape.count_circle_modes(angles, 30.0)
    assert certify.check(found).confirmed
    assert not certify.check(changed(found, claim(modes=found.claims["modes"] + 1))).confirmed
    # two angles a apart have two modes if and only if beta sin^2(a/2) > cos(a/2), with b = a/2 from the middle
    half = 0.4
    edge = np.cos(half) / np.sin(half) ** 2
    for factor, modes in ((0.999, 1), (1.001, 2)):
        assert certify.circle_modes([1 - half, 1 + half], edge * factor).claims["modes"] == modes


def two_caps(rng, radius, apart, each):
    rows = []
    for centre in (np.array([1.0, 0, 0]), np.array([np.cos(apart), np.sin(apart), 0])):
        for _ in range(each):
            side = np.cross(centre, rng.standard_normal(3))
            rows.append(np.cos(radius) * centre + np.sin(radius) * side / np.linalg.norm(side))
    return af.Tokens(np.array(rows), space=af.Sphere(3))


@pytest.mark.slow
def test_groups_stay_apart_as_long_as_two_point_masses_would():
    """One token a group: the bound is the exact two-body time, of which 2 % are given away for the checker."""
    tokens = two_caps(np.random.default_rng(0), 0.0, 1.5, 1)
    for model in ("USA0", "SA"):
        found = certify.stay_apart(tokens, 8.0, [0, 1], model=model)
        assert isinstance(found, certify.Certificate)
        assert certify.check(found).confirmed
        gap, time = found.claims["gap"], found.claims["time"]
        exact = theory.merging.merge_time(1.5, 8.0, until=gap, model=model)
        assert 0.9 * exact < time < exact
        assert not certify.check(changed(found, claim(time=1.1 * float(exact)))).confirmed
    tokens = two_caps(np.random.default_rng(0), 0.14, 2.0, 16)
    found = certify.stay_apart(tokens, 20.0, [0] * 16 + [1] * 16)
    assert found.claims["time"] > 1e8
    assert isinstance(certify.stay_apart(tokens, 20.0, [0, 1] * 16), certify.Undecided)  # the groups overlap
    with pytest.raises(InvalidInput, match="spheres"):  # in R^d tokens obey another equation
        certify.stay_apart(af.Tokens(np.eye(2), space=af.Euclidean(2)), 20.0, [0, 1])
