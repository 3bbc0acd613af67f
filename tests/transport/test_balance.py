"""The balance of energy and motion: USA0 closes it, softmax misses it by a known integral."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.precision import full_precision
from attnflow.transport import (
    balance_gap,
    distance,
    energy_slope,
    gradient_alignment,
    metric_speed,
    path_efficiency,
    path_length,
)

BETA = 9.0
TOKENS = af.uniform(af.Sphere(3), n=60, seed=0)
SA, USA0 = af.Attention(BETA), af.Attention(BETA, normaliser="USA0")


def by_hand(tokens, beta):
    """(velocity of SA, Z, gradient of the first variation of E0) in plain NumPy."""
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    weights = np.exp(beta * (x @ x.T - 1)) * m
    z = weights.sum(axis=1)
    gradient = weights @ x
    gradient -= np.sum(gradient * x, axis=1, keepdims=True) * x
    return gradient / z[:, None], z, gradient


@pytest.mark.slow
def test_speed_slope_gap_and_alignment_against_numpy():
    masses = np.random.default_rng(0).random(60)
    for tokens in (TOKENS, af.Tokens(np.asarray(TOKENS.positions), masses)):
        v, z, g = by_hand(tokens, BETA)
        m, square = np.asarray(tokens.masses), np.sum(v**2, axis=1)
        rms = lambda u, m=m: np.sqrt(np.sum(m * np.sum(u**2, axis=1)))  # noqa: E731
        cos = np.sum(m * np.sum(v * g, axis=1)) / rms(v) / rms(g)
        assert metric_speed(SA, tokens) == pytest.approx(rms(v), rel=1e-12)
        assert energy_slope(SA, tokens) == pytest.approx(rms(g), rel=1e-12)
        assert balance_gap(SA, tokens) == pytest.approx(np.sum(m * (1 - z) ** 2 * square) / 2, rel=1e-12)
        assert gradient_alignment(SA, tokens) == pytest.approx(cos, rel=1e-12)
        assert metric_speed(USA0, tokens) == pytest.approx(rms(g), rel=1e-12)
        assert balance_gap(USA0, tokens) == 0.0
        assert gradient_alignment(af.Attention(BETA, normaliser="USA"), tokens) == pytest.approx(1.0, rel=1e-14)


def test_the_slope_is_the_gradient_of_the_energy():
    """By differentiation of the energy with respect to positions, divided by masses."""
    with full_precision():
        x, m = jnp.asarray(TOKENS.positions), jnp.asarray(TOKENS.masses)
        g = jax.grad(lambda x: 0.5 / BETA * m @ jnp.exp(BETA * (x @ x.T - 1)) @ m)(x) / m[:, None]
        g = g - jnp.sum(g * x, axis=1, keepdims=True) * x
        assert energy_slope(USA0, TOKENS) == pytest.approx(float(jnp.sqrt(m @ jnp.sum(g**2, axis=1))), rel=1e-12)


@pytest.mark.long
def test_reference_numbers_of_the_balance_along_flows():
    """60 tokens at beta = 9 until t = 8. Speed by differences of W_2; USA0 is nearly a geodesic, softmax is not."""
    observe = {"gap": balance_gap.of(SA), "pace": metric_speed.of(SA), "slope": energy_slope.of(SA)}
    flow = af.solve(SA, TOKENS, 8.0, save=64, observe=observe)
    other = af.solve(USA0, TOKENS, 8.0, save=64)
    k, h = 20, 1e-3
    near = af.solve(SA, flow.tokens(k), h, save=2)
    apart = distance(near.tokens(0), near.tokens(-1), order=2) / h
    assert apart == pytest.approx(float(flow.dataset["pace"][k]), rel=2e-3)  # O(h)
    assert path_efficiency(other) > 0.99 > path_efficiency(flow)
    # the balance itself: dE = integral of (speed^2 + slope^2)/2 - gap
    side = (flow.dataset["pace"].values ** 2 + flow.dataset["slope"].values ** 2) / 2 - flow.dataset["gap"].values
    rise = float(flow.energy[-1] - flow.energy[0])
    assert simpson(side, x=flow.time.values) == pytest.approx(rise, rel=1e-5)  # Simpson's rule with 64 intervals
    assert path_length(flow) > distance(flow.tokens(0), flow.tokens(-1), order=2)


@pytest.mark.slow
def test_equiangular_tokens_move_on_a_geodesic():
    """n = 8 orthonormal tokens go straight to their mean: length arccos(1/sqrt(8)) = 1.2094292029."""
    flow = af.solve(af.Attention(2.0), af.Tokens(np.eye(8)), 60.0, save=300)
    goal = np.arccos(1 / np.sqrt(8))
    end = distance(flow.tokens(0), flow.tokens(-1), order=2)
    assert end == pytest.approx(goal, rel=1e-9)
    assert goal == pytest.approx(1.2094292029, abs=1e-10)
    assert path_efficiency(flow) == pytest.approx(1.0, abs=1e-5)  # Simpson's rule, h = 0.2


def test_refusals():
    with pytest.raises(InvalidInput, match="has no energy here"):
        balance_gap(af.Attention(2.0, mask=af.masks.Causal()), TOKENS)
    with pytest.raises(InvalidInput, match="`flow` is a int"):
        path_length(3)
    with pytest.raises(InvalidInput, match="a length needs three or more"):
        path_length(af.solve(SA, TOKENS, 1.0, save=1))
