import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.cluster.hierarchy import fcluster, linkage

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.observe.clusters import _by_cells, _by_search, _Links
from tests.conftest import rotation


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@given(
    seed=st.integers(0, 10**6),
    radius=st.floats(0.01, 0.6),
    d=st.sampled_from([2, 3, 4]),
    spread=st.sampled_from([0.0, 0.05, 0.3, 10.0]),
)
@settings(max_examples=40, deadline=None)
def test_components_are_those_of_single_linkage(seed, radius, d, spread):
    """Both searches against SciPy's hierarchical clustering, on tight, loose and uniform tokens."""
    rng = np.random.default_rng(seed)
    centres = af.Sphere(d).sample(rng, 6)
    x = np.repeat(centres, 60, axis=0) + spread * rng.standard_normal((360, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    expected = fcluster(linkage(x, "single"), radius, "distance")
    assert same_partition(_by_cells(x, _Links(radius, radius)), expected)
    assert same_partition(_by_search(x, _Links(radius, radius)), expected)


def test_masses_centres_and_radii():
    centres = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    tokens = af.tokens.clustered(af.Sphere(3), centres=centres, n=50, masses=[0.2, 0.5, 0.3], spread=0.01, seed=1)
    found = af.observe.clusters(tokens, scale=0.3)
    assert found.count == 3
    assert found.condensed
    np.testing.assert_allclose(found.masses, [0.5, 0.3, 0.2], rtol=1e-12)
    assert np.array_equal(np.argmax(found.centres, axis=1), [1, 2, 0])
    for k in range(3):
        angles = af.Sphere(3).distance(tokens.positions[found.labels == k], found.centres[k])
        assert abs(found.radii[k] - angles.max()) < 1e-14


def test_rotation_changes_nothing():
    tokens = af.uniform(af.Sphere(3), n=800, seed=2)
    turned = af.from_array(tokens.positions @ rotation(3, 5))
    for scale in (0.02, 0.05, 0.08):
        assert same_partition(
            af.observe.clusters(tokens, scale=scale).labels, af.observe.clusters(turned, scale=scale).labels
        )


def test_iid_tokens_percolate_and_say_so():
    found = af.observe.clusters(af.uniform(af.Sphere(3), n=2000, seed=0), scale=af.observe.cluster_scale(9.0))
    assert found.count == 1
    assert not found.condensed


def test_high_dimension_and_test_particles():
    x = af.tokens.clustered(af.Sphere(32), centres=np.eye(32)[:4], n=20, spread=0.01, seed=0).positions
    tokens = af.Tokens(x, np.r_[np.ones(60), np.zeros(20)])
    found = af.observe.clusters(tokens, scale=0.5)
    assert found.count == 4
    assert found.masses[-1] == 0.0
    assert np.isfinite(found.centres).all()


def test_a_cluster_around_the_origin_has_a_centre():
    found = af.observe.clusters(af.tokens.ring(af.Sphere(2), n=40), scale=0.5)
    assert found.count == 1
    assert np.isfinite(found.centres).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_bad_scale(scale, four):
    with pytest.raises(InvalidInput, match="scale"):
        af.observe.clusters(four, scale=scale)


def test_scale_follows_beta():
    assert af.observe.cluster_scale(100.0) == 0.1
    assert af.observe.cluster_scale(0.0) == af.observe.cluster_scale(1.0) == 0.5
    assert af.observe.cluster_scale(np.asarray(100)) == 0.1
    assert af.observe.cluster_scale(1e-320) == 0.5
    assert type(af.observe.cluster_scale(np.float64(100.0))) is float


@pytest.mark.parametrize(
    ("beta", "words"),
    [
        (-1.0, "`beta` is -1, where tokens repel each other; give at least 0, or choose an angle as `scale`."),
        (np.nan, "`beta` is nan; give a finite number."),
        (np.inf, "`beta` is inf; give a finite number."),
        (-np.inf, "`beta` is -inf; give a finite number."),
        (True, "`beta` is True; give a real number."),
        ("9", "`beta` is '9'; give a real number."),
        (None, "`beta` is None; give a real number."),
        ([1.0, 2.0], "`beta` is [1.0, 2.0]; give a real number."),
    ],
)
def test_a_beta_without_a_scale_is_refused(beta, words):
    with pytest.raises(InvalidInput) as caught:
        af.observe.cluster_scale(beta)
    assert str(caught.value) == words


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, True, "wide"])
def test_bad_scales_are_refused(scale):
    with pytest.raises(InvalidInput, match="`scale` is"):
        af.observe.clusters(af.uniform(af.Sphere(3), n=3), scale=scale)


def test_centres_are_means_by_mass():
    """Of 3 : 1 the heavier token counts three times; test particles alone get their plain mean."""
    angle = np.array([0.0, 0.1, 2.0, 2.1])
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = af.observe.clusters(af.Tokens(x, [3.0, 1.0, 0.0, 0.0]), scale=0.3)
    assert found.count == 2
    for centre, want in zip(found.centres, (3 * x[0] + x[1], x[2] + x[3]), strict=True):
        np.testing.assert_allclose(centre, want / np.linalg.norm(want), atol=1e-15)
