"""Hulls, leaders, hyperplanes and limits: closed forms and identities."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from attnflow.errors import InvalidInput
from attnflow.observe import boolean_rows, convex_hull, distinct, hyperplane_coordinates, leaders
from tests.conftest import rotation

SQUARE = np.array([[0, 0], [2, 0], [1, 1], [2, 2], [0.5, 1.5], [0, 2]], dtype=float)


def test_square():
    hull = convex_hull(SQUARE)
    assert hull.volume == pytest.approx(4, rel=1e-14)
    at = hull.vertices.tolist().index(0)
    assert [*hull.vertices[at:], *hull.vertices[:at]] == [0, 1, 3, 5]  # counter-clockwise


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_simplex(d):
    """The standard simplex has volume 1/d!, and its barycentre is no vertex."""
    simplex = np.r_[np.full((1, d), 1 / (d + 1)), np.zeros((1, d)), np.eye(d)]
    hull = convex_hull(simplex)
    assert hull.volume == pytest.approx(1 / np.prod(np.arange(1, d + 1)), rel=1e-13)
    assert sorted(hull.vertices) == list(range(1, d + 2))


def test_line_runs_from_left_to_right():
    hull = convex_hull([[3.0], [-1.0], [7.0], [0.0]])
    assert (hull.volume, hull.vertices.tolist()) == (8.0, [1, 2])


@given(seed=st.integers(0, 2**31), n=st.integers(3, 40))
@settings(max_examples=50, deadline=None)
def test_area_is_that_of_the_polygon(seed, n):
    x = np.random.default_rng(seed).standard_normal((n, 2))
    hull = convex_hull(x)
    a, b = x[hull.vertices], np.roll(x[hull.vertices], -1, axis=0)
    # the shoelace formula is positive for a counter-clockwise order; nobody is to the right of an edge
    assert hull.volume == pytest.approx(np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2, abs=1e-13)
    edge, away = (b - a)[:, None, :], x[None, :, :] - a[:, None, :]
    assert (edge[..., 0] * away[..., 1] - edge[..., 1] * away[..., 0] > -1e-12).all()


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_flat_sets(offset):
    """A square in a plane of R^3: no volume, the vertices of the square."""
    plane = np.c_[SQUARE, np.zeros(6)] @ rotation(3).T + offset
    hull = convex_hull(plane)
    assert hull.volume == 0.0
    assert sorted(hull.vertices) == [0, 1, 3, 5]
    segment = convex_hull(np.outer([0.5, 1.0, 0.0, 0.25], [1.0, 2.0, 2.0]) + offset)
    assert segment.volume == 0.0
    assert sorted(segment.vertices) == [1, 2]
    point = convex_hull(np.full((4, 2), offset))
    assert (point.volume, point.vertices.tolist()) == (0.0, [0])


def test_leaders_and_boolean_rows():
    a = np.array([[1, 0, 0], [1e-8, 1 - 1e-8, 0], [0.3, 0.3, 0.4], [0, 0.999, 0.001]])
    assert leaders(a).tolist() == [0, 1]
    assert boolean_rows(a).tolist() == [True, True, False, False]
    assert boolean_rows(a, 0.0).tolist() == [True, False, False, False]
    assert boolean_rows(a, 0.01).tolist() == [True, True, False, True]
    assert leaders(a[2:]).tolist() == []


@given(seed=st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_leading_coordinate(seed):
    """phi*(Vz) = lambda phi*(z), phi*(phi) = 1, phi* of the other eigenvectors is 0."""
    rng = np.random.default_rng(seed)
    basis = rotation(3, seed) + 0.2 * rng.uniform(-1, 1, (3, 3))
    v = basis @ np.diag([-1.0, 1.5, 0.5]) @ np.linalg.inv(basis)
    z = rng.standard_normal((4, 5, 3))
    here = hyperplane_coordinates(z, v)
    # the basis has a condition number below 10, eigenvectors an error of eps times its square
    np.testing.assert_allclose(hyperplane_coordinates(z @ v.T, v), 1.5 * here, atol=1e-11)
    phi = basis[:, 1] / np.linalg.norm(basis[:, 1]) * np.sign(basis[0, 1])
    np.testing.assert_allclose(hyperplane_coordinates(phi, v), 1.0, atol=1e-11)
    np.testing.assert_allclose(hyperplane_coordinates(basis[:, [0, 2]].T, v), 0.0, atol=1e-11)


def test_leading_coordinate_closed_form():
    """V = [[1, .3], [0, -.4]]: phi = e_1, phi* = (1, .3/1.4); on the line phi* = 1."""
    z = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -7.0]])
    np.testing.assert_allclose(hyperplane_coordinates(z, [[1, 0.3], [0, -0.4]]), [1, 0.3 / 1.4, 2 - 1.5], atol=1e-14)
    np.testing.assert_allclose(hyperplane_coordinates([[2.0], [-3.0]], [[-4.0]]), [2.0, -3.0])
    np.testing.assert_allclose(hyperplane_coordinates([1.0, 2.0], [[-1.0, 0.0], [0.0, 3.0]]), 2.0)


@pytest.mark.parametrize("value", [np.eye(2), [[0, -1], [1, 0]], [[1, 1], [0, 1]], np.diag([1.0, 1.0, -1.0])], ids=str)
def test_leading_eigenvalue_must_be_simple(value):
    with pytest.raises(InvalidInput, match="simple"):
        hyperplane_coordinates(np.ones(len(value)), value)


def test_distinct():
    np.testing.assert_allclose(distinct([3.0, 1.0, 1.1, 3.0, 1.2], 0.11), [1.1, 3.0])  # a chain is one group
    np.testing.assert_allclose(distinct([3.0, 1.0, 1.1], 0.01), [1.0, 1.1, 3.0])
    np.testing.assert_allclose(distinct([[1, 5], [0, 9], [1, 4], [0, 9.001]], 0.01), [[0, 9.0005], [1, 4], [1, 5]])
    assert distinct([2.0, 2.0], 0.0).tolist() == [2.0]
    assert distinct([], 1.0).shape == (0,)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: convex_hull([1.0, 2.0]), r"`points` has shape \(2,\)"),
        (lambda: convex_hull(np.zeros((0, 2))), r"\(0, 2\)"),
        (lambda: convex_hull([[np.nan, 0.0]]), "not finite"),
        (lambda: leaders(np.zeros((2, 3, 3))), "`matrix`"),
        (lambda: boolean_rows(np.eye(2), -1.0), "`tol` is -1.0"),
        (lambda: distinct([1.0], np.nan), "`tol` is nan"),
        (lambda: hyperplane_coordinates([1.0, 2.0], np.eye(3)), "length 3"),
        (lambda: hyperplane_coordinates([1.0, 2.0], np.ones((2, 3))), "square"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(InvalidInput, match=match):
        call()
