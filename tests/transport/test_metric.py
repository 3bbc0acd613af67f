"""Distances on the circle and the sphere: printed values, linear programming, laws of a metric."""

import itertools

import numpy as np
import pytest

import attnflow as af


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
