"""Densities from samples: a step takes the divergence of its direction off, a bent density is reached, refusals."""

import numpy as np
import pytest
from scipy.stats import laplace, norm

from attnflow.control import match_samples
from attnflow.errors import InvalidInput


def log_normal(x):
    return norm.logpdf(x).sum(axis=1)


def banana(n, seed):
    """x normal, y given x normal around 0.7 (x^2 - 1)."""
    z = np.random.default_rng(seed).standard_normal((n, 2))
    z[:, 1] += 0.7 * (z[:, 0] ** 2 - 1)
    return z


def test_one_step_takes_off_the_divergence_of_its_direction():
    """Laplace times normal: KL from normal is that of the first coordinate, log(2 pi)/2 + 1 - log 2 - 1 = 0.226.

    What a step of 24 cells leaves is of order 1/cells^2 and cells/n, below 1 % of it; the fresh sample of 4000 has a
    standard error of sqrt(2 * 0.01 * 0.226/4000) = 0.001.
    """
    rng = np.random.default_rng(0)
    made = match_samples(np.stack([rng.laplace(size=8000), rng.standard_normal(8000)], axis=1), steps=1, cells=24)
    assert len(made) == 27
    fresh = np.stack([rng.laplace(size=4000), rng.standard_normal(4000)], axis=1)
    wanted = laplace.logpdf(fresh[:, 0]) + norm.logpdf(fresh[:, 1])
    assert np.mean(wanted - log_normal(fresh)) == pytest.approx(np.log(2 * np.pi) / 2 - np.log(2), abs=0.08)
    assert 0 <= np.mean(wanted - made.log_density(fresh, log_normal)) + 0.004 < 0.01


def test_a_bent_density():
    """KL of fresh samples is below that of a prototype, 0.055 with 310 units; the best normal density has 0.342."""
    made = match_samples(banana(4000, 1), steps=8)
    assert len(made) == 8 * 15
    fresh = banana(4000, 2)
    wanted = norm.logpdf(fresh[:, 0]) + norm.logpdf(fresh[:, 1] - 0.7 * (fresh[:, 0] ** 2 - 1))
    assert 0 < np.mean(wanted - made.log_density(fresh, log_normal)) < 0.055
    # what it samples has the moments of the target: E y = 0, E y^2 = 1.98, E x^2 y = 1.4, four standard errors each
    x, y = made.push(np.random.default_rng(3).standard_normal((4000, 2)))[0].T
    for values, expected in ((y, 0.0), (y**2, 1.98), (x**2 * y, 1.4)):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(2000)  # of both samples


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros(40), "within"),
        (np.zeros((40, 0)), "within"),
        (np.where(np.eye(40, 2) == 1, np.nan, 0.0), "within"),
        (np.full((40, 2), 1e200), "within"),
        (np.zeros((8, 2)), "at least 32"),
        (np.zeros((40, 2)), "no density"),
        (np.outer(np.arange(40.0), [1.0, 1.0]), "in a subspace of R\\^2"),
        (np.repeat(np.random.default_rng(0).standard_normal((4, 2)), 10, axis=0), "repeat values"),
    ],
)
def test_refusals(samples, words):
    with pytest.raises(InvalidInput, match=words):
        match_samples(samples, steps=2)
