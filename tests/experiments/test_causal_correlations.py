"""Causal correlations: noise of the mean holds on a small version and is not that of opposite tokens; controls."""

import dataclasses

import numpy as np
import pytest

from attnflow.theory.causal import last_row_correlations
from attnflow_gallery import causal_correlations
from attnflow_gallery.causal_correlations import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(causal_correlations.QUICK, noise_size=64, noise_prompts=128, noise_times=(0.5,))


def noise():
    """The claim about the noise of the mean at one small depth."""
    return compare._noise(CORE, {mask: simulate.noise(CORE, mask) for mask in simulate.MASKS})


@pytest.mark.slow
def test_the_noise_of_the_mean_and_opposite_tokens():
    right = noise()
    assert right.holds
    assert right.tolerance < 0.2 * right.predicted
    with mutation(causal_correlations, "every second token is opposite").applied():
        assert not noise().holds


def test_controls_have_mean_0_and_do_not_bias():
    """Sums of independent tokens: the control is the quantity itself, up to a constant that must survive."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 8, 3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    controls = simulate.overlaps(x, np.array([0, 2, 8]))
    assert controls.shape == (4000, 3)
    # variances of products of sums are below 1; 4 standard errors
    assert np.abs(controls.mean(axis=0)).max() < 4 / np.sqrt(4000)
    value = np.sum(x.mean(axis=1) ** 2, axis=-1)[:, None]  # of mean 1/8
    found = simulate.reduced(value, controls)
    assert found.std() < 1e-9  # the quantity is a sum of the controls
    assert found.mean() == pytest.approx(1 / 8, abs=1e-12)


def test_bins_are_those_of_the_profile():
    row = last_row_correlations(0.5, 16, 1.0)
    found = compare.binned(row, (0.125, 0.5, 1.0))
    np.testing.assert_allclose(found, [16 * row[2:8].mean(), 16 * row[8:15].mean()], rtol=1e-14)


def test_a_fit_finds_what_it_is_given():
    n = np.array([8, 16, 32])
    one = compare.Deviation("made", n, 0.02 - 1.3 / n, np.full(3, 0.01))
    assert one.limit[0] == pytest.approx(0.02, abs=1e-12)
    other = compare.Deviation("made", n, -1.3 / n + 1.3**2 / n**2, np.full(3, 0.01))
    assert other.coefficient[0] == pytest.approx(-1.3, abs=1e-10)
    # the term in 1/N² moves the constant of the line by less than what is allowed for it
    assert 0.5 * other.left_out < -other.limit[0] < other.left_out
