"""The two classes lie on the curves they are said to lie on, and no line separates them."""

import numpy as np
import pytest
from scipy.optimize import minimize

from attnflow import learn
from attnflow.errors import InvalidInput


def linear_accuracy(points, labels):
    """The best that a linear classifier does on these points (logistic regression by SciPy)."""
    sign = 2.0 * labels - 1
    rows = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    found = minimize(lambda w: np.mean(np.logaddexp(0, -sign * (rows @ w))) + 1e-8 * w @ w, np.zeros(rows.shape[1]))
    return np.mean((rows @ found.x > 0) == (labels == 1))


@pytest.mark.parametrize("kind", ["spirals", "moons", "circles"])
def test_no_line_separates_the_classes(kind):
    points, labels = learn.interleaved_classes(200, kind, seed=0)
    assert points.shape == (200, 2)
    assert labels.sum() == 100
    assert linear_accuracy(points, labels) < 0.9


def test_curves_without_noise():
    points, labels = learn.interleaved_classes(400, "spirals", seed=3, noise=0.0)
    radius = np.linalg.norm(points, axis=1)
    angle = 1.5 * np.pi * (radius - 0.15) / 0.85 + np.pi * labels
    np.testing.assert_allclose(points, radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), atol=1e-14)

    points, labels = learn.interleaved_classes(400, "circles", seed=3, noise=0.0)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), np.where(labels, 0.5, 1.0), atol=1e-15)

    points, labels = learn.interleaved_classes(400, "moons", seed=3, noise=0.0)
    centre = np.where(labels[:, None], [0.5, 0.25], [-0.5, -0.25])
    np.testing.assert_allclose(np.linalg.norm(points - centre, axis=1), 1.0, atol=1e-15)
    assert np.all(
        (points - centre)[:, 1] * np.where(labels, -1, 1) > 0
    )  # the upper half of one, the lower of the other


def test_the_seed_fixes_the_points():
    first, again = (learn.interleaved_classes(50, seed=7)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, learn.interleaved_classes(50, seed=8)[0])
    quiet, noisy = (learn.interleaved_classes(4000, "circles", seed=1, noise=s)[0] for s in (0.0, 0.05))
    # standard deviation from 8,000 numbers: relative error 1/sqrt(16000) = 0.008, five of them
    np.testing.assert_allclose((noisy - quiet).std(), 0.05, rtol=0.04)


@pytest.mark.parametrize(
    ("given", "named"), [({"n": 1}, "`n`"), ({"kind": "stars"}, "`kind`"), ({"noise": -1.0}, "`noise`")]
)
def test_bad_input(given, named):
    with pytest.raises(InvalidInput, match=named):
        learn.interleaved_classes(**{"n": 10, **given})
