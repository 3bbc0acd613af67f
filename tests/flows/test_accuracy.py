"""Flows against closed forms, an independent integrator, and their own orders."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow import theory
from tests.kit import end, frames
from tests.marks import graded

EPS = np.finfo(float).eps
USA0 = af.Unnormalised()


def scipy_flow(tokens, beta, times, softmax=True):
    """DOP853 on the formulas of SA and USA0, sharing no code with attnflow."""
    n, d, m = tokens.n, tokens.dim, np.asarray(tokens.masses)

    def f(_, y):
        x = y.reshape(n, d)
        w = m * np.exp(beta * (x @ x.T - 1))
        a = w @ x
        if softmax:
            a = a / w.sum(axis=1, keepdims=True)
        return (a - np.sum(a * x, axis=1, keepdims=True) * x).ravel()

    s = solve_ivp(f, (0, times[-1]), tokens.positions.ravel(), "DOP853", t_eval=times, rtol=1e-12, atol=1e-13)
    return s.y.T.reshape(-1, n, d)


@graded("normaliser", [af.Softmax(), pytest.param(USA0, marks=pytest.mark.slow)], fast=1)
def test_adaptive_meets_its_tolerance_at_every_saved_time(normaliser):
    """Frames between steps come from dense output; they must be as good as the steps.

    Local errors of rtol per step grow by at most e^(1.5 t), over about 60 steps.
    """
    tokens = af.uniform(af.Sphere(3), n=12, seed=1)
    times = np.linspace(0.25, 6.0, 24)
    exact = scipy_flow(tokens, 4.0, times, isinstance(normaliser, af.Softmax))
    errors = []
    for rtol in (1e-5, 1e-7, 1e-9):
        field, method = af.Attention(4.0, normaliser=normaliser), af.Adaptive(rtol=rtol, atol=rtol / 10)
        found = frames(field, tokens, 6.0, save=times, method=method)
        errors.append(np.abs(found[1:] - exact).max())
        assert errors[-1] < 100 * rtol
        assert np.max(tokens.space.defect(found)) < 4 * EPS
    assert errors[2] < 0.1 * errors[0]


def slope(steps, errors):
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_fixed_has_order_four(model):
    tokens = af.uniform(af.Sphere(4), n=12, seed=0)
    field = af.Attention(3.0, normaliser=af.Softmax() if model == "SA" else USA0)
    exact = scipy_flow(tokens, 3.0, np.array([2.0]), model == "SA")[0]
    steps = np.array([0.4, 0.2, 0.1])
    errors = [np.abs(end(field, tokens, 2.0, method=af.Fixed(h)) - exact).max() for h in steps]
    # the next term of the error expansion moves the slope by O(h)
    assert abs(slope(steps, errors) - 4) < 0.25
    assert errors[-1] < 1e-4


@pytest.mark.parametrize(
    "update", [af.layer_updates.Renormalise(), af.layer_updates.ProjectRenormalise(), af.layer_updates.Project()]
)
def test_layers_have_order_one(update):
    """L = 50 ... 400 layers to T = 2, orders .967 to .999."""
    tokens = af.uniform(af.Sphere(4), n=12, seed=0)
    exact = scipy_flow(tokens, 3.0, np.array([2.0]))[0]
    layers = np.array([50, 100, 200, 400])
    ends = [end(af.Attention(3.0), tokens, 2.0, method=af.Layers(2.0 / n, update)) for n in layers]
    errors = [np.abs(x - exact).max() for x in ends]
    assert abs(slope(2.0 / layers, errors) - 1) < 0.05
    defect = tokens.space.defect(ends[2])
    if isinstance(update, af.layer_updates.Project):
        assert 1e-5 < defect.max() < 1e-1
    else:
        assert defect.max() < 4 * EPS


@pytest.mark.slow  # the experiment equiangular
@pytest.mark.parametrize(
    ("n", "beta", "t", "model"), [(8, 2.0, 2.0, "SA"), (8, 2.0, 2.0, "USA0"), (32, 9.0, 100.0, "SA")]
)
def test_orthonormal_tokens_follow_the_equiangular_ode(n, beta, t, model):
    tokens = af.tokens.orthonormal(af.Sphere(n), n=n, seed=3)
    field = af.Attention(beta, normaliser=af.Softmax() if model == "SA" else USA0)
    found = frames(field, tokens, t, save=8, method=af.Adaptive(1e-10, 1e-12))
    predicted = theory.uniform.equiangular_overlap(np.linspace(0, t, 9), beta, n, model=model)
    for x, overlap in zip(found, predicted, strict=True):
        np.testing.assert_allclose((x @ x.T)[~np.eye(n, dtype=bool)], overlap, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beta", "angle", "usa0", "sa"),
    [(1, 0.5, 3.9983024, 3.9657298), (5, 1.0, 7.4650934, 6.0794100), (10, 1.5, 1139.5838, 572.40564)],
)
def test_two_clusters_merge_on_time(beta, angle, usa0, sa):
    """Printed times from `angle` down to 0.01, for unequal numbers of equal total mass."""
    tokens = af.tokens.clustered(
        af.Sphere(2), centres=[[1, 0], [np.cos(angle), np.sin(angle)]], n=[2, 3], masses=[1, 1]
    )
    for normaliser, time in ((USA0, usa0), (af.Softmax(), sa)):
        x = end(af.Attention(beta, normaliser=normaliser), tokens, time, method=af.Adaptive(1e-10, 1e-12))
        measured = float(tokens.space.distance(x[0], x[-1]))
        # the angle closes at rate 1 near the end, so a time printed to 8 digits fixes it to time * 1e-8
        assert abs(measured / 0.01 - 1) < 2e-8 * time + 1e-6


@pytest.mark.parametrize("k", [1, 4, 6])
def test_seeded_modes_grow_at_the_predicted_rate(k):
    """A ring displaced by eps sin(k theta): the amplitude grows like e^(lambda_k t), lambda_k from Bessel functions."""
    n, beta, t = 64, 9.0, 1.0
    angle = 2 * np.pi * np.arange(n) / n

    def amplitude(eps):
        turned = angle + eps * np.sin(k * angle)
        tokens = af.from_array(np.stack([np.cos(turned), np.sin(turned)], axis=1))
        x = end(af.Attention(beta), tokens, t, method=af.Fixed(0.02))
        shift = np.angle((x[:, 0] + 1j * x[:, 1]) * np.exp(-1j * angle))
        return 2 / n * np.sum(shift * np.sin(k * angle))

    # plus and minus eps: the quadratic term cancels, the cubic one is eps^2
    rate = np.log((amplitude(1e-4) - amplitude(-1e-4)) / 2e-4) / t
    assert abs(rate - theory.uniform.growth_rates(beta, 2, k=k)) < 1e-6


def test_three_clusters_on_the_circle_are_stable_exactly_below_minus_two_thirds():
    tokens = af.tokens.ring(af.Sphere(2), n=3, jitter=1e-3, seed=2)
    for beta, stable in ((-0.72, True), (-0.6, False)):
        found = frames(af.Attention(beta, normaliser=USA0), tokens, 20.0, method=af.Fixed(0.1))

        def distance(x):
            angles = np.sort(np.unwrap(np.arctan2(*x.T[::-1])))
            return np.abs(np.diff(angles) - 2 * np.pi / 3).max()

        assert (distance(found[-1]) < distance(found[0])) == stable


@pytest.mark.slow  # the experiment consensus
@pytest.mark.parametrize("d", [3, 8])
def test_random_tokens_reach_consensus(d):
    x = end(af.Attention(1.0), af.uniform(af.Sphere(d), n=12, seed=range(3)), 40.0)
    assert (x @ x.mT).min() > 1 - 1e-6


def test_hemisphere_is_never_left():
    """min <x_i, w> does not decrease for tokens in an open hemisphere."""
    tokens = af.tokens.caps(af.Sphere(3), centres=[[0, 0, 1]], n=12, radius=1.4, seed=0)
    lowest = frames(af.Attention(3.0), tokens, 5.0, save=50)[..., 2].min(axis=1)
    assert np.diff(lowest).min() > -1e-7


@pytest.mark.slow
def test_usa_conserves_the_mean_angle_on_the_circle():
    tokens = af.Tokens(af.uniform(af.Sphere(2), n=12, seed=1).positions, np.arange(1, 13))
    x = frames(af.Attention(2.0, normaliser=USA0), tokens, 10.0, save=200)
    lifted = np.unwrap(np.arctan2(x[..., 1], x[..., 0]), axis=0)
    mean = lifted @ tokens.masses
    assert np.abs(mean - mean[0]).max() < 1e-7


@graded("normaliser", [pytest.param(af.Softmax(), marks=pytest.mark.slow), USA0], fast=1)
def test_energy_never_drops_by_more_than_the_integration_error(normaliser):
    """A step errs by at most tol = rtol + atol in every coordinate, hence by sqrt(d) tol per token, and the slope of
    the energy in the metric of the masses is a velocity of USA0, at most 1: each step can lose sqrt(d) tol."""
    tokens = af.Tokens(af.uniform(af.Sphere(3), n=12, seed=5).positions, np.random.default_rng(0).random(12))
    field = af.Attention(6.0, normaliser=normaliser)
    for method in (af.Adaptive(1e-6, 1e-8), af.Adaptive(1e-9, 1e-11)):
        flow = af.solve(field, tokens, 60.0, save=af.saving.Evenly(300), method=method, keep=["energy"])
        bound = flow.steps["accepted"] * np.sqrt(3) * float(method.rtol + method.atol)
        assert np.diff(flow.energy.values).min() > -bound
        assert flow.energy.values[-1] > flow.energy.values[0]


@pytest.mark.parametrize("beta", [0.0, 1e4])
def test_extreme_beta_flows(beta):
    x = frames(af.Attention(beta), af.uniform(af.Sphere(3), n=12, seed=0), 5.0, save=4)
    assert np.isfinite(x).all()
    if beta == 0.0:  # beta = 0 is Kuramoto: the order parameter grows
        assert np.linalg.norm(x.mean(axis=1), axis=1)[-1] > 0.9


@pytest.mark.slow
def test_clocks_give_one_trajectory():
    tokens, beta = af.uniform(af.Sphere(3), n=12, seed=0), 3.0
    slow = frames(af.Attention(beta, normaliser=af.Unnormalised("USA0")), tokens, 4.0, save=4)
    fast = frames(af.Attention(beta, normaliser=af.Unnormalised("USA")), tokens, 4.0 * np.exp(-beta), save=4)
    np.testing.assert_allclose(fast, slow, atol=1e-7)
