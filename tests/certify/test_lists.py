"""Complete lists on the circle: classes, indices, labelled counts, and what the checker says of false lists."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from attnflow import certify
from attnflow.certify.exclusion import excluded, search
from attnflow.certify.gap_tables import SIDE, Tables
from attnflow.errors import InvalidInput
from tests.certify.false import changed


def largest(sizes):
    """The largest of the rotations and reflections of cluster sizes."""
    return max(tuple(turned[k:] + turned[:k]) for turned in (sizes, sizes[::-1]) for k in range(len(sizes)))


def arrangements(n):
    """Cyclic arrangements of cluster sizes up to reflection, by listing all compositions."""
    found = set()
    for k in range(1, n + 1):
        for cuts in itertools.combinations(range(1, n), k - 1):
            edges = (0, *cuts, n)
            found.add(largest([b - a for a, b in itertools.pairwise(edges)]))
    return found


@pytest.mark.parametrize(("n", "beta"), [(3, 1.0), (4, 5.0), (5, 1.0)])
def test_one_equilibrium_for_each_arrangement_with_index_clusters_minus_one(n, beta):
    found = certify.circle_equilibria(n=n, beta=beta)
    assert isinstance(found, certify.Certificate)
    classes = found.claims["classes"]
    assert {tuple(one["sizes"]) for one in classes} == arrangements(n)
    assert len(classes) == {3: 3, 4: 5, 5: 7}[n]
    assert all(one["unstable"] == len(one["sizes"]) - 1 for one in classes)
    assert found.claims["euler"] == 0  # Morse functions on the torus
    # labelled configurations with k clusters: (k - 1)! S(n, k), cyclic orders of the blocks of a partition
    for k in range(1, n + 1):
        stirling = sum((-1) ** (k - j) * math.comb(k, j) * j**n for j in range(k + 1)) // math.factorial(k)
        count = sum(one["labelled"] for one in classes if len(one["sizes"]) == k)
        assert count == math.factorial(k - 1) * stirling


@pytest.mark.long
def test_below_the_threshold_a_class_is_missing():
    """The symmetric 3+1+1 exists for beta > log(3/2)/2 = 0.2027 only."""
    found = certify.circle_equilibria(n=5, beta=0.15)
    sizes = {tuple(one["sizes"]): one["unstable"] for one in found.claims["classes"]}
    assert set(sizes) == arrangements(5) - {(3, 1, 1)}
    assert sizes[3, 2] == 2
    assert found.claims["euler"] == 0


@pytest.mark.slow
def test_a_list_over_an_interval_and_its_checker():
    found = certify.circle_equilibria(n=3, beta=(1.0, 1.5))
    assert len(found.claims["classes"]) == 3
    verdict = certify.check(found)
    assert verdict.confirmed
    assert "On every sphere" in verdict.statement  # rank X <= n - 1 at an equilibrium of n tokens
    assert any("great circle" in lemma for lemma in verdict.lemmas)
    for change in (
        lambda one: one["claims"]["classes"].pop(),
        lambda one: one["claims"]["classes"][1].update(unstable=2),
        lambda one: one["claims"]["classes"][2].update(labelled=3),
        lambda one: one["claims"].update(beta=[1.0, 1.75]),
        lambda one: one["claims"].update(n=4),
        lambda one: one["data"]["slices"][0]["roots"].pop(),
        lambda one: one["data"]["slices"][0]["roots"][0].__setitem__(0, 1.0),
        lambda one: one["data"]["slices"][0]["radii"].__setitem__(0, 0.9),
        lambda one: one["data"]["slices"][0].update(beta=[1.0, 1.2]),
    ):
        assert not certify.check(changed(found, change)).confirmed


def test_bifurcations_and_degenerate_ends_are_undecided():
    """At -2/3 the triangle bifurcates; four tokens at beta = 0, a continuum, are in campaigns/certificates.py."""
    assert isinstance(certify.circle_equilibria(n=3, beta=-2 / 3), certify.Undecided)
    for n in (7, 3.0, True):
        with pytest.raises(InvalidInput, match="3, 4, 5 or 6"):
            certify.circle_equilibria(n=n, beta=1.0)
    for beta in ((2.0, 1.0), (1.0,), "one", None, (1.0, float("inf")), 10**400):
        with pytest.raises(InvalidInput, match="beta"):
            certify.circle_equilibria(n=3, beta=beta)


@pytest.mark.slow
def test_cold_lists_are_confirmed_and_colder_ones_undecided(recwarn):
    """At beta = 40 two antipodal clusters feel e^-80. Beyond 300 forces come near to the smallest floats."""
    found = certify.circle_equilibria(n=3, beta=40.0)
    assert certify.check(found).confirmed
    for beta in (301.0, -1e4):
        assert isinstance(certify.circle_equilibria(n=3, beta=beta), certify.Undecided)
    assert not recwarn.list


def test_no_cube_with_a_zero_is_excluded():
    """Cubes around zeros that SciPy finds survive at every level, with slices of beta too."""

    def pulls(gaps, beta):
        angles = np.append(0.0, np.cumsum(gaps))
        between = angles - angles[:, None]
        return np.sum(np.exp(beta * (np.cos(between) - 1)) * np.sin(between), axis=1)

    rng = np.random.default_rng(0)
    seen = 0
    for beta in (0.5, 4.0):
        exact, slice_ = Tables(beta, beta), Tables(beta - 0.01, beta + 0.02)
        for start in rng.uniform(0, 2.2, (60, 3)):
            x = optimize.root(lambda gaps, beta=beta: np.diff(pulls(gaps, beta)), start, tol=1e-14).x
            if np.abs(pulls(x, beta)).max() > 1e-12 or x.min() < 1e-6 or x.sum() > 2 * np.pi:
                continue
            for level in (3, 5, 7):
                cube = np.floor(x / (SIDE / 2**level)).astype(int)[None]
                assert not excluded(cube, level, 4, exact).any()
                assert not excluded(cube, level, 4, slice_).any()
                seen += 1
    assert seen > 100


def test_without_the_boxes_of_zeros_cubes_are_left():
    left, _, _ = search(3, Tables(2.0, 2.0), (), 7)
    assert len(left) > 0
