"""Errors of random layers, against reference numbers of an independent program, to their digits."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import random_layers

STEPS = np.array([0.1, 0.05, 0.025, 0.0125])


@pytest.mark.parametrize(
    ("d", "expected", "limit"),
    [
        (2, (0.767645940, 0.773632116, 0.776296166, 0.777566670), 0.778800783),
        (3, (0.712471414, 0.714521375, 0.715531263, 0.716032507), 0.716531311),
        (8, (0.652726416, 0.649184422, 0.647415345, 0.646531607), 0.645648526),
    ],
)
def test_one_token(d, expected, limit):
    np.testing.assert_allclose(random_layers.single_token_overlap(STEPS, 1.0, d=d), expected, rtol=0, atol=6e-10)
    value, slope = random_layers.single_token_limit(1.0, d=d)
    assert float(value) == pytest.approx(limit, abs=6e-10)
    near = (random_layers.single_token_overlap(1e-3, 1.0, d=d) - value) / 1e-3
    assert float(near) == pytest.approx(float(slope), abs=2e-3)  # the next order is the step


def test_no_first_error_in_four_dimensions():
    """At d = 4 halving the step divides the error by 4."""
    limit, slope = random_layers.single_token_limit(2.0, d=4)
    errors = random_layers.single_token_overlap(np.array([0.02, 0.01]), 2.0, d=4) - limit
    assert float(slope) == 0.0
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(
    ("d", "heads", "v", "time", "overlap", "expected"),
    [
        (3, 1, 1.0, 1.0, 0.0, -0.216245),
        (8, 1, 1.0, 1.0, 0.0, -0.081092),
        (8, 4, 1.0, 1.0, 0.5, -0.069879),
        (3, 1, 0.5, 2.0, 0.0, -0.117510),
    ],
)
def test_two_tokens(d, heads, v, time, overlap, expected):
    found = random_layers.pair_layer_error(time, overlap, v, d=d)
    assert float(found.euler + found.noise / heads) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("step", "heads", "expected"),
    [(0.05, 1, (0.01606, 0.00813)), (0.02, 1, (0.00657, 0.00330)), (0.05, 4, (0.004016, 0.002033))],
)
def test_fluctuations(step, heads, expected):
    found = random_layers.consensus_fluctuation([1.0, 0.5, 0.0], step, heads=heads)
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_layers.single_token_overlap(0.0, 1.0, d=3), "`step` is 0.0; give numbers in"),
        (lambda: random_layers.pair_layer_error(1.0, 1.0, 1.0, d=3), "`overlap` is 1.0; give a number in"),
        (lambda: random_layers.consensus_fluctuation([0.5, 1.0], 0.1), "the first the largest"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()
