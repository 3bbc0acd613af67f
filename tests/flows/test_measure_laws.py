"""A flow of tokens as a flow of measures: one time after another, the weak form, atoms beside a density."""

import numpy as np
import pytest
from scipy.integrate import simpson

import attnflow as af
from tests.kit import end, frames
from tests.marks import graded

METHOD = af.Fixed(0.05)


def test_two_times_in_turn_are_their_sum():
    """phi_(s+t) = phi_t after phi_s, and every token has its own: steps are the same, so that rounding alone differs."""
    tokens, field = af.uniform(af.Sphere(3), n=12, seed=0), af.Attention(4.0)
    whole = end(field, tokens, 2.0, method=METHOD)
    first = end(field, tokens, 0.5, method=METHOD)
    then = end(field, af.from_array(first), 1.5, method=METHOD)
    # 40 steps of rounding; a step more or less would change positions by 1e-2
    np.testing.assert_allclose(then, whole, rtol=0, atol=1e-12)


def test_the_weak_form_of_the_continuity_equation():
    """d/dt of the mean of phi is the mean of <grad phi, X>, for masses of every size: an atom, light and massless ones.

    phi = <x, u>^3, X in plain NumPy. Simpson's rule over 40 frames of step 0.05 errs by h^4 times a fourth derivative,
    6e-6 times 1e-2 at most; rounding is far below.
    """
    start = af.uniform(af.Sphere(3), n=12, seed=0)
    masses = np.array([5.0, *[1.0] * 9, 0.1, 0.0]) / 14.1
    x = frames(af.Attention(4.0), af.Tokens(start.positions, masses), 2.0, save=40, method=METHOD)
    weights = masses * np.exp(4 * (x @ np.swapaxes(x, 1, 2) - 1))
    drive = weights @ x / weights.sum(axis=-1, keepdims=True)
    velocity = drive - np.sum(drive * x, axis=-1, keepdims=True) * x
    u = np.array([0.6, -0.48, 0.64])
    along = x @ u
    rate = (3 * along**2 * (velocity @ u)) @ masses
    change = (along[-1] ** 3 - along[0] ** 3) @ masses
    assert abs(change) > 0.01
    assert simpson(rate, dx=0.05) == pytest.approx(change, abs=1e-7)


@graded(
    ("share", "beta", "model", "expected"),
    [(0.5, 1.0, "SA", (0.618274815, 0.737187806)), (0.5, 4.0, "USA0", (0.5107876959, 0.5205293736))],
)
def test_an_atom_beside_a_density(share, beta, model, expected):
    """M delta_0 + (1 - M) uniform on the circle: mean cosines at t = 1 and 2 of an independent program.

    The density is 40 equispaced labels, a quadrature of exponential order.
    """
    angles = np.append(0.0, 2 * np.pi * (np.arange(39) + 0.5) / 39)
    tokens = af.Tokens(
        np.stack([np.cos(angles), np.sin(angles)], axis=1), np.append(share, np.full(39, (1 - share) / 39))
    )
    x = frames(af.Attention(beta, normaliser=model), tokens, 2.0, save=2, method=METHOD)
    np.testing.assert_allclose(x[1:, :, 0] @ np.asarray(tokens.masses), expected, rtol=0, atol=2e-7)


def test_the_order_of_tokens_does_not_matter():
    """phi_t of permuted tokens is the permuted phi_t: sums are reordered, so that rounding alone differs."""
    tokens, order = af.uniform(af.Sphere(3), n=12, seed=0), np.random.default_rng(0).permutation(12)
    whole = end(af.Attention(4.0), tokens, 2.0, method=METHOD)
    other = end(af.Attention(4.0), af.from_array(np.asarray(tokens.positions)[order]), 2.0, method=METHOD)
    np.testing.assert_allclose(other, whole[order], rtol=0, atol=1e-12)


def test_where_unnormalised_tokens_of_an_arc_meet():
    """On an arc shorter than pi: at the mean of their angles, weighted by masses, whatever beta is; softmax elsewhere.

    Forces of USA0 on the circle are odd in the angle between two tokens, so that sum m_i angle_i stays. By t = 40 an
    arc of length 1.5 is shorter than 1e-6 (cap law, beta = 2), and RK4 of step 0.05 moves the sum by less than 1e-7.
    """
    rng = np.random.default_rng(2)
    angles, masses = rng.uniform(-0.5, 1.0, 12), rng.uniform(0.2, 1.0, 12)
    masses /= masses.sum()
    tokens = af.Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1), masses)
    met = {}
    for model in ("USA0", "SA"):
        x = end(af.Attention(2.0, normaliser=model), tokens, 40.0, method=METHOD)
        place = np.arctan2(x[:, 1], x[:, 0])
        assert np.ptp(place) < 1e-6
        met[model] = place.mean()
    assert met["USA0"] == pytest.approx(masses @ angles, abs=1e-6)
    assert abs(met["SA"] - masses @ angles) > 1e-3
