import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.observe.linked import Links, by_cells, by_search, mass_around, squares_of, within
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
    assert same_partition(by_cells(x, Links(radius, radius)), expected)
    assert same_partition(by_search(x, Links(radius, radius)), expected)


@pytest.mark.parametrize("d", [9, 40, 576])
@pytest.mark.parametrize("kind", ["uniform", "coincident", "at the length", "large", "not finite"])
def test_the_gram_matrix_decides_as_the_differences_do(d, kind):
    """Pair by pair the same booleans, also where distances are the length to the last bit or cancel altogether."""
    rng = np.random.default_rng(d)
    a, b = af.Sphere(d).sample(rng, 40), af.Sphere(d).sample(rng, 30)
    if kind == "coincident":
        b = a[:30] + 1e-13 * rng.standard_normal((30, d))
    if kind == "large":
        a, b = 1e8 + a, 1e8 + b
    if kind == "not finite":
        a[3], b[4, 0] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        squares = squares_of(a[:, None], b[None])
        lengths = np.sqrt(squares.ravel()[:: len(squares.ravel()) // 20])
        if kind == "at the length":
            lengths = np.concatenate([lengths, np.nextafter(lengths, 0), np.nextafter(lengths, 9)])
        for length, found in zip(lengths, within(a, b, *lengths), strict=True):
            np.testing.assert_array_equal(found, squares <= length**2)


@pytest.mark.parametrize("d", [3, 20])
def test_searches_link_what_is_linked_pair_by_pair(d):
    rng = np.random.default_rng(0)
    x = np.repeat(af.Sphere(d).sample(rng, 40), 20, axis=0) + 0.02 * rng.standard_normal((800, d))
    for radius in (0.05, 0.15, 0.4):
        pairs = squares_of(x[:, None], x[None]) <= radius**2
        expected = connected_components(pairs)[1]
        np.testing.assert_array_equal(by_search(x, Links(radius, radius)), expected)
        if d == 3:
            assert same_partition(by_cells(x, Links(radius, radius)), expected)


def test_pairs_of_cells_are_decided_in_small_batches_and_one_by_one(faults):
    x = af.uniform(af.Sphere(3), n=900, seed=3).positions
    expected = by_search(x, Links(0.1, 0.1))
    for point, value in (("doubtful cells", 1), ("points for a tree", 0), ("points for a tree", 3)):
        original = faults.replace(f"pairs of {point}", value)
        assert same_partition(by_cells(x, Links(0.1, 0.1)), expected)
        faults.replace(f"pairs of {point}", original)


def test_the_mass_around_a_token_counts_cells_whose_centres_are_near():
    tokens = af.Tokens(af.uniform(af.Sphere(2), n=300, seed=1).positions, np.random.default_rng(1).random(300))
    x, mass = np.asarray(tokens.positions), np.asarray(tokens.masses)
    near = np.sqrt(squares_of(x[:, None], x[None]))
    found = mass_around(x, mass, 0.2)
    half = 0.2 / 4  # of the diagonal of a cell
    assert np.all(found >= (near <= 0.2 - 2 * half) @ mass - 1e-15)
    assert np.all(found <= (near <= 0.2 + 2 * half) @ mass + 1e-15)


def test_masses_centres_and_radii():
    centres = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    tokens = af.tokens.clustered(af.Sphere(3), centres=centres, n=150, masses=[0.2, 0.5, 0.3], spread=0.01, seed=1)
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
    x = af.tokens.clustered(af.Sphere(32), centres=np.eye(32)[:4], n=80, spread=0.01, seed=0).positions
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
        (-1.0, "`beta` is -1.0; give a number in [0, inf)."),
        (np.nan, "`beta` is nan; give a number in [0, inf)."),
        (np.inf, "`beta` is inf; give a number in [0, inf)."),
        (-np.inf, "`beta` is -inf; give a number in [0, inf)."),
        ("9", "`beta` is '9'; give a number in [0, inf)."),
        (None, "`beta` is None; give a number in [0, inf)."),
        ([1.0, 2.0], "`beta` is [1.0, 2.0]; give a number in [0, inf)."),
    ],
)
def test_a_beta_without_a_scale_is_refused(beta, words):
    with pytest.raises(InvalidInput) as caught:
        af.observe.cluster_scale(beta)
    assert str(caught.value) == words


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, "wide"])
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


@pytest.mark.parametrize("d", [3, 6])
def test_stragglers_that_link_clusters_are_left_out(d):
    """Two tight clusters and a chain of nine tokens between them: one component, or two clusters of 99 % of the mass."""
    turn = np.linspace(0, np.pi / 2, 11)[1:-1]
    ends = np.eye(d)[:2]
    chain = np.cos(turn)[:, None] * ends[0] + np.sin(turn)[:, None] * ends[1]
    tokens = af.from_array(np.concatenate([np.repeat(ends, 600, axis=0), chain]))
    assert af.observe.clusters(tokens, scale=0.2).count == 1
    found = af.observe.clusters(tokens, scale=0.2, share=0.99)
    assert found.count == 2
    assert found.condensed
    assert np.sum(found.labels[-9:] == -1) >= 7  # those away from both ends
    assert set(found.labels[:600]) | set(found.labels[600:1200]) <= {-1, 0, 1}
    assert 0.99 <= found.masses.sum() <= 1.0
    loose = af.uniform(af.Sphere(d), n=1500, seed=0)
    assert not af.observe.clusters(loose, scale=1.0, share=0.99).condensed
    with pytest.raises(InvalidInput, match="share"):
        af.observe.clusters(tokens, scale=0.2, share=0.2)


@pytest.mark.parametrize(
    ("d", "n", "scale", "share"), [(4, 600, 1e-5, 1.0), (3, 600, 1e-6, 1.0), (4, 5, 1e-4, 0.9), (3, 20, 1e-6, 0.9)]
)
def test_more_cells_than_integers(d, n, scale, share):
    tokens = af.uniform(af.Sphere(d), n=n, seed=0)
    found = af.observe.clusters(tokens, scale=scale, share=share)
    assert found.count == n if share == 1 else found.count <= n


def test_many_lone_tokens_take_no_more_rows_than_needed(faults):
    described = faults.calls("centres of clusters")
    for n, rows in ((513, 1024), (9, 64)):
        assert af.observe.clusters(af.Tokens(np.eye(n)), scale=1e-9).count == n
        (_, _, _, *centres), _ = described.pop()
        assert [len(array) for array in centres] == [rows] * len(centres)


def test_clusters_know_their_members_and_are_said_in_one_line():
    """Labels where tokens have some, else numbers; a test particle and an absent row lead nobody."""
    x = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    place = [3, 9, 1, 0, 5, 7]
    words = [*"abcdef"]
    tokens = af.Tokens(x, [1, 1, 1, 0, 1, 1], place=place, labels=words, present=[True] * 5 + [False])
    found = af.observe.clusters(tokens, scale=0.3)
    assert found.members == [["a", "c"], ["b", "d", "e"]]
    assert found.leaders.tolist() == [2, 4]
    assert len(repr(found)) < 150
    assert "count: 2" in repr(found)
    page = found._repr_html_()
    assert "a, c" in page
    assert "mass 0.5" in page
    bare = af.observe.clusters(af.Tokens(x), scale=0.3)
    assert bare.members == [[1, 3, 4], [0, 2], [5]]
    assert bare.leaders.tolist() == [1, 0, 5]


@pytest.mark.slow
def test_a_leader_moves_alone_and_its_cluster_follows():
    """Causal attention at beta = 9: without the others of its cluster the leader ends where it did.

    The rest of the prefix is the same program with other rows, so that sums round differently: 12 tokens, errors of
    1e-13 times e^(Lipschitz constant of at most 2 beta = 18, over the time 1 in which paths may separate) are below
    1e-5. Without the leader the first cluster ends elsewhere, farther away than its linking distance 0.3.
    """
    tokens = af.uniform(af.Sphere(3), n=12, seed=3)
    field = af.Attention(9.0, mask=af.Causal())

    def end(rows):
        kept = af.Tokens(tokens.positions[rows], place=np.asarray(tokens.place)[rows])
        return af.solve(field, af.tokens.padded(kept, 12), 8.0, save=1, method=af.Fixed(0.25))[-1].member()

    every = np.arange(12)
    found = af.observe.clusters(end(every), scale=0.3)
    assert found.count > 1
    assert len(found.members[0]) > 2
    leader, *others = found.members[0]
    assert leader == found.leaders[0]
    alone = end(np.setdiff1d(every, others))
    at = np.flatnonzero(np.asarray(alone.place) == leader)[0]
    np.testing.assert_allclose(alone.positions[at], end(every).positions[leader], atol=1e-5)
    left = end(np.setdiff1d(every, [leader]))
    last = np.flatnonzero(np.asarray(left.place) == others[-1])[0]
    assert np.arccos(left.positions[last] @ end(every).positions[others[-1]]) > 0.3
