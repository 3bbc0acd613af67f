import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

import attnflow as af
from attnflow.errors import InvalidInput


def mean_cosine(kappa, d):
    """E <mean, x> of the von Mises-Fisher distribution, I_{d/2}/I_{d/2-1}."""
    return ive(d / 2, kappa) / ive(d / 2 - 1, kappa)


@pytest.mark.parametrize("d", [2, 3, 8])
def test_pairs_of_uniform_tokens_over_seeds_have_uniform_angles(d):
    """One pair per seed, 1,500 seeds: sin^2(angle/2) has the beta distribution with both parameters (d-1)/2."""
    x, y = np.moveaxis(af.uniform(af.Sphere(d), n=2, seed=range(1500)).positions, 1, 0)
    half = np.sum((x - y) ** 2, axis=1) / 4
    assert stats.kstest(half, stats.beta((d - 1) / 2, (d - 1) / 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("d", [2, 3, 5, 40])
@pytest.mark.parametrize("kappa", [0.0, 0.5, 10.0, 1000.0])
def test_von_mises_fisher_has_the_right_mean(d, kappa):
    n = 20_000
    x = af.tokens.von_mises_fisher(af.Sphere(d), n=n, concentration=kappa, seed=1).positions
    cosine = x[:, -1]
    expected = mean_cosine(kappa, d) if kappa else 0.0
    assert abs(cosine.mean() - expected) < 5 * cosine.std() / np.sqrt(n)
    # the other coordinates are centred
    assert np.max(np.abs(x[:, :-1].mean(axis=0))) < 5 / np.sqrt(n)


@pytest.mark.parametrize("d", [2, 3, 7])
def test_von_mises_fisher_at_huge_concentration_is_gaussian(d):
    """kappa |x - mean|^2 = 2 kappa (1 - <mean, x>) is chi-squared with d - 1 degrees of freedom."""
    kappa = 1e12
    x = af.tokens.von_mises_fisher(af.Sphere(d), n=5000, concentration=kappa, seed=2).positions
    mean = np.eye(d)[-1]
    assert stats.kstest(kappa * np.sum((x - mean) ** 2, axis=1), stats.chi2(d - 1).cdf).pvalue > 1e-4


def test_von_mises_fisher_on_the_circle_is_von_mises():
    x = af.tokens.von_mises_fisher(af.Sphere(2), n=20_000, concentration=3.0, mean=[1.0, 0.0], seed=3).positions
    assert stats.kstest(np.arctan2(x[:, 1], x[:, 0]), stats.vonmises(3.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("n", "d", "overlap"), [(5, 5, 0.0), (5, 9, 0.7), (8, 8, -0.1), (4, 3, -1 / 3), (3, 2, -0.5)])
def test_equiangular_has_one_overlap(n, d, overlap):
    for seed in (None, 4):
        tokens = af.tokens.equiangular(af.Sphere(d), n=n, overlap=overlap, seed=seed)
        gram = af.observe.overlaps(tokens)
        np.testing.assert_allclose(gram, overlap + (1 - overlap) * np.eye(n), atol=1e-14)


def test_simplex_and_orthonormal():
    assert np.allclose(af.observe.overlaps(af.tokens.orthonormal(af.Sphere(6), n=4)), np.eye(4), atol=1e-15)
    gram = af.observe.overlaps(af.tokens.simplex(af.Sphere(6), n=7))
    np.testing.assert_allclose(gram[~np.eye(7, dtype=bool)], -1 / 6, atol=1e-14)


@pytest.mark.parametrize(
    ("n", "d", "overlap", "words"),
    [(5, 4, 0.3, "need dimension 5"), (5, 9, -0.5, r"in \[-0.25"), (5, 9, 1.5, "overlap")],
)
def test_impossible_equiangular_sets_are_refused(n, d, overlap, words):
    with pytest.raises(InvalidInput, match=words):
        af.tokens.equiangular(af.Sphere(d), n=n, overlap=overlap)


def test_ring_is_equispaced_and_jitter_moves_it():
    x = af.tokens.ring(af.Sphere(3), n=6).positions
    angles = np.unwrap(np.arctan2(x[:, 1], x[:, 0]))
    np.testing.assert_allclose(np.diff(angles), np.pi / 3, rtol=1e-14)
    moved = af.tokens.ring(af.Sphere(2), n=1000, jitter=1e-3, seed=1).positions
    shift = np.arctan2(moved[:, 1], moved[:, 0]) - 2 * np.pi * np.arange(1000) / 1000
    shift = np.angle(np.exp(1j * shift))
    assert abs(shift.std() / 1e-3 - 1) < 5 / np.sqrt(2000)


def test_caps_are_uniform_in_their_cap():
    """On S^2 the height 1 - cos(angle) of a uniform point of a cap is uniform."""
    radius, n = 0.8, 20_000
    tokens = af.tokens.caps(af.Sphere(3), centres=[[0, 0, 1.0]], n=n, radius=radius, seed=5)
    height = 1 - tokens.positions[:, 2]
    assert stats.kstest(height / (1 - np.cos(radius)), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("make", [af.tokens.clustered, lambda *a, **k: af.tokens.caps(*a, radius=0.0, **k)])
def test_clusters_divide_the_number_of_all_tokens(make):
    """11 tokens around 3 centres are 4, 4 and 3, and the clusters have equal masses; a list gives the number of each."""
    for n, counts in (
        (11, [4, 4, 3]),
        (12, [4, 4, 4]),
        (3, [1, 1, 1]),
        (np.int64(4), [2, 1, 1]),
        ([1, 5, 2], [1, 5, 2]),
    ):
        tokens = make(af.Sphere(3), centres=np.eye(3), n=n)
        np.testing.assert_array_equal(tokens.positions, np.repeat(np.eye(3), counts, axis=0))
        np.testing.assert_allclose(tokens.masses, np.repeat(1 / (3 * np.array(counts)), counts), rtol=1e-15)


def test_the_preset_million_has_as_many_tokens_as_it_says():
    for changes, count in (([], 1_000_000), (["tokens.n=100000"], 100_000)):
        table = af.runs.parse_spec(af.runs.preset_text("million"), changes).table["tokens"]
        assert table["n"] == count == 20 * (count // len(table["centres"]))


def test_clustered_has_the_given_masses_and_spread():
    centres = np.eye(4)[:3]
    tokens = af.tokens.clustered(
        af.Sphere(4), centres=centres, n=[2000, 4000, 1000], masses=[0.5, 0.3, 0.2], spread=1e-3
    )
    found = af.observe.clusters(tokens, scale=0.3)
    np.testing.assert_allclose(found.masses, [0.5, 0.3, 0.2], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.centres @ centres.T), np.eye(3), atol=2e-3)
    first = tokens.positions[:2000, 1]
    assert abs(first.std() / 1e-3 - 1) < 5 / np.sqrt(4000)


def test_same_seed_same_tokens():
    a, b, c = (af.uniform(af.Sphere(3), n=10, seed=s).positions for s in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.uniform(af.Sphere(3), n=0), "`n` is 0"),
        (lambda: af.uniform(af.Sphere(3), n=5, seed=-1), "`seed` is -1"),
        (lambda: af.uniform(af.Sphere(3), n=5, seed=1.5), "`seed` is 1.5"),
        (lambda: af.uniform(af.Sphere(3), n=5, seed=[]), "`seed` is an empty list; give at least one seed"),
        (lambda: af.uniform(af.Sphere(3), n=5, seed=[0, 3, 0]), r"`seed` is \[0, 3, 0\], with one seed more than once"),
        (lambda: af.tokens.von_mises_fisher(af.Sphere(3), n=5, concentration=-1), "concentration"),
        (lambda: af.tokens.von_mises_fisher(af.Sphere(3), n=5, concentration=np.nan), "concentration"),
        (lambda: af.tokens.ring(af.Euclidean(3), n=5), "Sphere"),
        (lambda: af.tokens.caps(af.Sphere(3), centres=[[1.0, 0, 0]], n=5, radius=4), "radius"),
        (lambda: af.tokens.clustered(af.Sphere(3), centres=[[0.0, 0, 0]], n=5), "no nearest point"),
        (lambda: af.tokens.clustered(af.Sphere(3), centres=[[np.nan, 0, 0]], n=5), "not finite"),
        (lambda: af.tokens.clustered(af.Sphere(3), centres=np.eye(3), n=[1, 2]), "each of the 3 centres, or a list"),
        (lambda: af.tokens.clustered(af.Sphere(3), centres=np.eye(3), n=2), "one or more for each of the 3 centres"),
    ],
)
def test_bad_starts_are_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()
