import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from tests.marks import graded


@pytest.mark.parametrize("beta", [4.0, 60.0])
def test_modes_on_the_circle_are_the_maxima_of_the_density(beta):
    """Against the sign changes of Z' on a fine grid, each pinned by its bracket."""
    tokens = af.uniform(af.Sphere(2), n=40, seed=1)
    angle = np.arctan2(tokens.positions[:, 1], tokens.positions[:, 0])
    grid = np.linspace(-np.pi, np.pi, 20_001)
    gap = grid[:, None] - angle
    slope = -np.sum(np.exp(beta * (np.cos(gap) - 1)) * np.sin(gap), axis=1)
    brackets = grid[:-1][(slope[:-1] > 0) & (slope[1:] <= 0)]
    found = af.observe.modes(tokens, beta)
    at = np.sort(np.arctan2(found.positions[:, 1], found.positions[:, 0]))
    assert found.unfinished == 0
    assert found.count == len(brackets)
    assert np.all((at >= brackets - 1e-9) & (at <= brackets + np.diff(grid)[0] + 1e-9))
    assert np.all(np.diff(found.heights) <= 0)
    z = np.exp(beta * (found.positions @ tokens.positions.T - 1)).mean(axis=1)
    assert np.abs(found.heights - z).max() <= 1e-14
    assert found.labels.shape == (40,)


@pytest.mark.slow
def test_many_tokens_use_the_fast_sums_and_find_the_same_modes():
    """Which sum is the fastest depends on the machine; on a CPU it is the Fourier series."""
    few = af.tokens.caps(af.Sphere(2), centres=np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), n=6000, radius=0.2)
    assert isinstance(af.sums.choose(few, 20.0, backend="cpu").sum, af.sums.Circle)
    fast = af.observe.modes(few, 20.0)
    assert fast.count == 3
    # by the sum over all pairs the gradient vanishes there
    field = af.Attention(20.0, sum=af.sums.Tiled())
    assert np.abs(field.velocity(few, at=fast.positions)).max() <= 1e-9


@graded("sum", [af.sums.Tiled(), af.sums.Circle(1e-12, 64)], ids=["pairs", "series"], fast=1)
def test_modes_do_not_depend_on_the_sum(sum, faults):
    """Whatever `prepare` chooses on this machine: softmax means are off by 1e-12, so the modes are too, times |Hessian|^-1."""
    tokens = af.tokens.caps(af.Sphere(2), centres=np.array([[1.0, 0.0], [-1.0, 0.0]]), n=120, radius=0.2)
    expected = af.observe.modes(tokens, 20.0)
    faults.replace("prepared attention", lambda field, tokens: af.Attention(field.beta, sum=sum))
    found = af.observe.modes(tokens, 20.0)
    assert found.count == expected.count == 2
    np.testing.assert_allclose(found.positions, expected.positions, atol=1e-8)
    np.testing.assert_allclose(found.heights, expected.heights, atol=1e-11)


def test_refusals():
    with pytest.raises(InvalidInput, match="on a sphere"):
        af.observe.modes(af.from_array(np.zeros((3, 2)) + 1.0, space=af.Euclidean(2)), 1.0)
