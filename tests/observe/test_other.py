import itertools

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, TooLarge


def circle(angles, masses=None):
    return af.Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1), masses)


def test_circle_distance_of_two_atoms():
    assert abs(af.transport.distance(circle([0.0]), circle([1.0])) - 1.0) < 1e-15
    assert abs(af.transport.distance(circle([0.1]), circle([2 * np.pi - 0.2])) - 0.3) < 1e-14


def test_circle_distance_is_an_assignment():
    """Equal numbers of equal atoms: the best permutation, by brute force."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.uniform(0, 2 * np.pi, (2, 5))
        gap = np.abs(np.angle(np.exp(1j * (a[:, None] - b[None, :]))))
        best = min(sum(gap[i, p[i]] for i in range(5)) for p in itertools.permutations(range(5))) / 5
        assert abs(af.transport.distance(circle(a), circle(b)) - best) < 1e-14


@pytest.mark.slow
def test_circle_distance_agrees_with_linear_programming():
    rng = np.random.default_rng(1)
    mu = circle(rng.uniform(0, 7, 30), rng.random(30))
    nu = circle(rng.uniform(0, 7, 40), rng.random(40))
    lifted = [af.Tokens(np.hstack([t.positions, np.zeros((t.n, 1))]), t.masses) for t in (mu, nu)]
    assert abs(af.transport.distance(mu, nu) - af.transport.distance(*lifted)) < 1e-12


def test_distance_is_a_metric_and_turns_with_the_sphere():
    a, b, c = (af.uniform(af.Sphere(3), n=12, seed=s) for s in range(3))
    ab, bc, ac = af.transport.distance(a, b), af.transport.distance(b, c), af.transport.distance(a, c)
    assert ac <= ab + bc
    assert abs(ab - af.transport.distance(b, a)) < 1e-13
    assert af.transport.distance(a, a) < 1e-15


def test_distance_refusals():
    with pytest.raises(InvalidInput, match="share a space"):
        af.transport.distance(circle([0.0]), af.uniform(af.Sphere(3), n=2))
    with pytest.raises(TooLarge, match="limit of 10"):
        af.transport.distance(*[af.uniform(af.Sphere(3), n=11)] * 2, limit=10)


def test_overlap_histogram_in_blocks():
    tokens = af.Tokens(af.uniform(af.Sphere(3), n=300).positions, np.random.default_rng(0).random(300))
    density, edges = af.observe.overlap_histogram(tokens, bins=20, block=64)
    i, j = np.triu_indices(300, 1)
    values, weights = af.observe.overlaps(tokens)[i, j], tokens.masses[i] * tokens.masses[j]
    expected, _ = np.histogram(values, edges, weights=weights, density=True)
    np.testing.assert_allclose(density, expected, rtol=1e-10)
    assert abs(np.sum(density * np.diff(edges)) - 1) < 1e-12
    assert not af.observe.overlap_histogram(af.Measure(np.zeros((0, 3)), np.zeros(0)))[0].any()  # no pairs


def test_matrices_have_a_limit():
    tokens = af.uniform(af.Sphere(3), n=200)
    for call in (af.observe.overlaps, lambda t, limit: af.observe.attention_matrix(af.Attention(1.0), t, limit=limit)):
        with pytest.raises(TooLarge, match="GiB; the limit is 100"):
            call(tokens, limit=100)


def test_order_parameter_and_effective_rank():
    assert abs(af.observe.order_parameter(af.from_array([[1.0, 0], [0, 1.0]])) - np.sqrt(0.5)) < 1e-15
    assert abs(af.observe.effective_rank(af.tokens.orthonormal(af.Sphere(5), n=5)) - 5) < 1e-12
    assert abs(af.observe.effective_rank(af.from_array(np.tile([[0.6, 0.8]], (4, 1)))) - 1) < 1e-7
    batch = af.uniform(af.Sphere(3), n=10, seed=range(4))
    assert (
        af.observe.order_parameter(batch).shape
        == af.observe.effective_rank(batch).shape
        == af.observe.spread(batch).shape
        == (4,)
    )


def test_plateaus_are_found():
    time = np.geomspace(1, 1000, 31)
    count = np.where(time < 10, 9, np.where(time < 100, 4, np.where(time < 150, 3, 1)))
    condensed = time > 5
    found = af.observe.plateaus(time, count, condensed, -1.0 / time)
    assert [(p.clusters) for p in found] == [4, 1]
    assert found[0].start == pytest.approx(10, rel=0.3)
    assert found[0].end < 100
    assert np.exp(found[0].log_end) == pytest.approx(found[0].end, rel=1e-15)


def test_plateaus_hold_times_that_are_no_floats():
    long = af.observe.Plateau(-np.inf, 1e4, 3, -0.1)
    assert long.start == 0
    assert long.end == np.inf


def test_a_plateau_begins_with_the_first_frame():
    time, energy = np.array([1.0, 2.0, 8.0]), np.array([0.0, 1.0, 5.0])
    found = af.observe.plateaus(time, np.ones(3, int), np.ones(3, bool), energy)
    assert [(p.log_start, p.energy) for p in found] == [(0.0, 1.0)]
