"""Exact solutions without layer norm, against SciPy's integration of the equations they solve."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from attnflow.theory.landscape import pair_delay, pair_departure, regular_radius

VALUE = np.array([[1.0, 0.3, 0.0], [-0.2, 0.1, 0.5], [0.1, -0.5, 0.1]])
START = np.array([0.7, -0.3, 0.2])


@pytest.mark.parametrize("middle", [0.0, 0.5])
def test_a_pair_and_a_token_at_zero(middle):
    """All tokens as one system of x, rtol 1e-11; masses 1, 1 and 2 kappa."""
    masses = np.array([1.0, 1.0, 2 * middle])

    def velocity(t, state):
        x = state.reshape(3, 3)
        weights = masses * np.exp(x @ x.T)
        return (weights / weights.sum(axis=1, keepdims=True) @ x @ VALUE.T).ravel()

    begin = np.stack([START, -START, 0 * START])
    end = solve_ivp(velocity, (0, 1.5), begin.ravel(), rtol=1e-11, atol=1e-13).y[:, -1].reshape(3, 3)
    lag = pair_delay(VALUE, START, t=1.5, middle=middle)
    np.testing.assert_allclose(end[0], expm((1.5 - lag) * VALUE) @ START, rtol=1e-8)
    assert pair_delay(VALUE, START, t=30.0, middle=middle) == pytest.approx(
        pair_delay(VALUE, START, middle=middle), rel=1e-13
    )


def test_a_token_between_two_clusters():
    def three(t, state):  # X, and the log of the position of the token in the middle
        return [state[0] * math.tanh(state[0] ** 2), state[0] ** 2]

    state = solve_ivp(three, (0, 2.5), [0.6, 0.0], rtol=1e-11, atol=1e-13).y[:, -1]
    growth, log_size = pair_departure(0.6, [0.0, 2.5])
    np.testing.assert_allclose([log_size[1], growth[1] + 2.5], [math.log(state[0]), state[1]], rtol=1e-8)
    assert growth[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("radius", [0.4, 0.7, 1.3])
def test_two_corners_are_a_pair(radius):
    """Two integrals for one thing, each good to 1e-11, and SciPy's equation for five corners."""
    assert regular_radius([[1.0, 0.0], [-1.0, 0.0]], radius) == pytest.approx(
        radius * math.exp(-pair_delay(np.eye(2), [radius, 0.0])), rel=1e-10
    )
    angles = 2 * np.pi * np.arange(5) / 5
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def velocity(t, state):
        weights = np.exp(state[0] ** 2 * (corners[:, 0] - 1))
        return [state[0] * (weights @ corners[:, 0] / weights.sum())]

    end = solve_ivp(velocity, (0, 2.0), [radius], rtol=1e-11, atol=1e-13).y[0, -1]
    assert regular_radius(corners, radius, t=2.0) == pytest.approx(end * math.exp(-2.0), rel=1e-8)


def test_what_has_no_such_solution_is_refused():
    with pytest.raises(ValueError, match="does not grow"):
        pair_delay(-np.eye(2), [1.0, 0.0])
    with pytest.raises(ValueError, match="matrix"):
        pair_delay(np.eye(3), [1.0, 0.0])
    with pytest.raises(ValueError, match="`middle` is -1"):
        pair_delay(np.eye(2), [1.0, 0.0], middle=-1.0)
    with pytest.raises(ValueError, match="at least 0"):
        pair_delay(np.eye(2), [1.0, 0.0], t=-1.0)
    with pytest.raises(ValueError, match="has the mean"):
        regular_radius([[1.0, 0.0], [0.0, 1.0]], 1.0)
    with pytest.raises(ValueError, match="unit vectors"):
        regular_radius([[2.0, 0.0], [-2.0, 0.0]], 1.0)
    with pytest.raises(ValueError, match="similar"):  # a rectangle becomes a square
        regular_radius([[0.6, 0.8], [-0.6, 0.8], [0.6, -0.8], [-0.6, -0.8]], 1.0)
