"""Elements with exact flows against SciPy's solver, and what their flows conserve."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.control import Schedule
from attnflow.errors import InvalidInput
from attnflow.fields import Affine, AtTokens, Drift, InTurn, MeanAttention, Pieces, ReluUnit
from attnflow.special.quotients import expm1_ratio, host_expm1_ratio
from attnflow.tokens import Measure
from tests.marks import graded

RNG = np.random.default_rng(0)


def rate(space, field, masses):
    """P_x X in NumPy, written from the formulas of theory/control.md."""

    def value(weight):
        return np.asarray(weight.value, float)

    def velocity(_, y):
        x = y.reshape(len(masses), -1)
        if isinstance(field, ReluUnit):
            drive = np.maximum(x @ value(field.inner) + value(field.bias), 0)[:, None] * value(field.outer)
        elif isinstance(field, Drift):
            drive = np.broadcast_to(value(field.vector), x.shape)
        elif isinstance(field, Affine):
            drive = x @ value(field.matrix).T
        else:
            drive = np.broadcast_to(value(field.value) @ (masses @ x), x.shape)
        if isinstance(space, af.Sphere):
            drive = drive - np.sum(drive * x, axis=1, keepdims=True) * x
        return drive.ravel()

    return velocity


def element(kind, d, rng):
    make = {
        "relu": lambda: ReluUnit(rng.standard_normal(d), rng.standard_normal(d), 0.3 * rng.standard_normal()),
        "drift": lambda: Drift(rng.standard_normal(d)),
        "affine": lambda: Affine(0.7 * rng.standard_normal((d, d))),
        "mean": lambda: MeanAttention(rng.standard_normal((d, d))),
    }
    return make[kind]()


@graded("kind", ["relu", "drift", "affine", "mean"], slow=1)
@pytest.mark.parametrize(
    "space",
    [af.Sphere(2), af.Sphere(3), pytest.param(af.Sphere(6), marks=pytest.mark.slow), af.Euclidean(1), af.Euclidean(3)],
    ids=str,
)
def test_against_scipy(kind, space):
    """Positions to 1e-11 (DOP853 at 1e-13), in both directions of time; the log-determinant by differences."""
    rng = np.random.default_rng(space.dim)
    n = 4 * (1 + 2 * space.dimension)  # as many as points below: one program
    field, masses = element(kind, space.dim, rng), rng.dirichlet(np.ones(n))
    x = space.sample(rng, n) if isinstance(space, af.Sphere) else rng.standard_normal((n, space.dim))
    tokens = af.Tokens(x, masses=masses, space=space)
    direct = solve_ivp(rate(space, field, masses), (0, 1.3), x.ravel(), "DOP853", rtol=3e-14, atol=1e-14).y[:, -1]
    schedule = Schedule(space, [(field, 1.3)])
    end = schedule(tokens)
    scale = 1 + np.abs(direct).max()
    np.testing.assert_allclose(end.positions, direct.reshape(n, -1), rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(schedule.inverse()(end).positions, x, rtol=0, atol=1e-11 * scale)
    points, h = np.asarray(space.retract(x[:4] + 0.1 * rng.standard_normal((4, space.dim)))), 1e-5
    around = np.stack([points[:, None] + s * h * space.tangent_basis(points) for s in (1, -1)])
    every = np.concatenate([points, np.asarray(space.retract(around)).reshape(-1, space.dim)])
    found, log_det = schedule.push(every, mu=tokens)
    sides = found[4:].reshape(around.shape)
    there = space.tangent_basis(found[:4])
    slopes = (sides[0] - sides[1]) / (2 * h) @ np.swapaxes(there, -1, -2)
    np.testing.assert_allclose(log_det[:4], np.linalg.slogdet(slopes)[1], rtol=0, atol=2e-8 * scale)


@graded("d", [2, 3, 8], fast=1)
def test_mean_attention_is_one_moebius_map(d):
    """Cross ratios are conserved, also over long times and for skew V."""
    rng = np.random.default_rng(d)
    skew = rng.standard_normal((d, d))
    for value, time in ((np.eye(d), 2.0), (skew - skew.T, 7.0), (-np.eye(d), 1.0)):
        tokens = af.uniform(af.Sphere(d), n=40, seed=d)
        end = Schedule(tokens.space, [(MeanAttention(value), time)])(tokens).positions
        ratios = []
        for x in (np.asarray(tokens.positions), np.asarray(end)):
            gap = np.linalg.norm(x[:, None] - x[None], axis=-1)
            i, j, k, m = np.arange(0, 40, 4), *(np.arange(s, 40, 4) for s in (1, 2, 3))
            ratios.append(np.log(gap[i, j] * gap[k, m] / (gap[i, m] * gap[k, j])))
        # distances shrink by up to e^(-2 time), and lose as many digits
        assert np.abs(ratios[1] - ratios[0]).max() < 1e-12 * (np.exp(time) if value is not skew else 1) * 10


@pytest.mark.slow
def test_mean_attention_is_attention_at_infinite_temperature():
    tokens = af.uniform(af.Sphere(4), n=12, seed=2)
    value = RNG.standard_normal((4, 4))
    field = af.Attention(0.0, value=value)
    np.testing.assert_allclose(MeanAttention(value).velocity(tokens), field.velocity(tokens), atol=1e-14)
    end = af.solve(field, tokens, 2.0, method=af.Adaptive(1e-12, 1e-13), keep=["positions"]).positions.values[-1]
    exact = af.solve(MeanAttention(value), tokens, 2.0, method=af.Exact(), keep=["positions"]).positions.values[-1]
    np.testing.assert_allclose(exact, end, atol=1e-10)


def test_absent_rows_do_not_matter():
    tokens = af.uniform(af.Sphere(3), n=6, seed=1)
    padded = af.tokens.padded(tokens, 8) if "padded" in dir(af.tokens) else tokens
    end = af.solve(MeanAttention(), padded, 1.5, method=af.Exact(), keep=["positions"]).positions.values[-1]
    alone = af.solve(MeanAttention(), tokens, 1.5, method=af.Exact(), keep=["positions"]).positions.values[-1]
    np.testing.assert_allclose(end[:6], alone, atol=1e-15)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@example(6, 0.0, 21.0, 37737)  # a point comes to rest at the border, and must stay there
@given(st.sampled_from([2, 3, 6]), st.floats(-3, 3), st.floats(0.01, 60.0), st.integers(0, 10**6))
def test_gates(d, bias, time, seed):
    """Points outside of the cap stay, inside they stay inside, and go back; also for long times and tangent gates."""
    rng = np.random.default_rng(seed)
    x, w, a = af.Sphere(d).sample(rng, 32), rng.standard_normal(d), rng.standard_normal(d)
    schedule = Schedule(af.Sphere(d), [(ReluUnit(w, a, bias), time)])
    end, log_det = schedule.push(x)
    still = x @ a + bias <= 0
    assert np.array_equal(end[still], x[still])
    assert (log_det[still] == 0).all()
    assert (end[~still] @ a + bias >= -1e-12).all()
    assert np.isfinite(end).all()
    assert np.isfinite(log_det).all()
    assert np.abs(np.linalg.norm(end, axis=1) - 1).max() < 1e-14
    half = Schedule(af.Sphere(d), [(ReluUnit(w, a, bias), time / 2)])
    two, _change = half.push(half.push(x)[0])
    np.testing.assert_allclose(two, end, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-160, 1e-155, 1e-100, 1e-20])
def test_tiny_elements_move_nothing(size):
    x = af.Sphere(3).sample(np.random.default_rng(0), 5)
    w = size * np.array([0.6, 0.0, 0.8])
    for field in (Drift(w), ReluUnit(w, [1.0, 0, 0], 2.0), MeanAttention(np.outer(w, w))):
        end, log_det = Schedule(af.Sphere(3), [(field, 1.0)]).push(x, mu=af.Tokens(x))
        np.testing.assert_allclose(end, x, atol=1e-15)
        np.testing.assert_allclose(log_det, 0, atol=2e-14)


@pytest.mark.slow
def test_parallel_gates_are_closed_forms():
    """a = 0: a boost; b = 0 and a = w on the circle: theta' = -cos(theta) sin(theta), tan theta = tan theta_0 e^(-t)."""
    x = af.Sphere(3).sample(np.random.default_rng(3), 20)
    w = np.array([0.3, -1.0, 0.5])
    boost = Schedule(af.Sphere(3), [(Drift(0.7 * w), 2.0)]).push(x)
    gate = Schedule(af.Sphere(3), [(ReluUnit(w, np.zeros(3), 0.7), 2.0)]).push(x)
    for one, other in zip(boost, gate, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    angle = np.linspace(-1.5, 1.5, 11)
    e = np.array([1.0, 0.0])
    end, _ = Schedule(af.Sphere(2), [(ReluUnit(e, e, 0.0), 1.7)]).push(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    np.testing.assert_allclose(end[:, 1] / end[:, 0], np.tan(angle) * np.exp(-1.7), rtol=1e-13)


@pytest.mark.long
def test_derivatives_of_gates():
    """The flow of a gate is differentiable in its weights and in time: against differences."""
    x = af.Sphere(3).sample(np.random.default_rng(5), 6)
    w, a = np.array([0.2, 1.0, -0.4]), np.array([0.5, 0.1, 0.8])

    @af.in_float64
    @jax.jit
    @functools.partial(jax.value_and_grad, argnums=(0, 1, 2, 3))
    def loss(w, a, b, t):
        field = ReluUnit(w, a, b)
        return (field.carry(0.0 * t, t, AtTokens(), Measure(x)) ** 3).sum()

    at = (w, a, np.float64(0.4), np.float64(1.1))
    _, slopes = loss(*at)
    for k, slope in enumerate(slopes):
        for index in np.ndindex(np.shape(at[k])):
            h = 1e-6
            ends = []
            for sign in (1, -1):
                moved = [np.array(v, float) for v in at]
                moved[k][index] += sign * h
                ends.append(float(loss(*moved)[0]))
            np.testing.assert_allclose(np.asarray(slope)[index], (ends[0] - ends[1]) / (2 * h), atol=1e-8)


@pytest.mark.long
def test_fields_in_turn():
    """One after the other is what `Pieces` give, by every method; the last one goes on; softmax attention fits in."""
    times, matrices = np.array([0.0, 0.3, 0.35, 1.1]), 0.5 * RNG.standard_normal((4, 3, 3))
    tokens = af.uniform(af.Sphere(3), n=7, seed=4)
    turns = InTurn([Affine(m) for m in matrices], [0.3, 0.05, 0.75, 0.1])
    pieces = Affine(Pieces(times, matrices))
    assert len(turns.kinds) == 1
    for method in (af.Exact(), af.Fixed(0.05), af.Layers(0.05)):  # which all step to the jumps
        ends = [
            af.solve(field, tokens, 1.5, method=method, save=1, keep=["positions"]).positions.values[-1]
            for field in (turns, pieces)
        ]
        np.testing.assert_allclose(*ends, rtol=0, atol=1e-12)
    mixed = InTurn([Drift([1.0, 0, 0]), af.Attention(2.0), af.Attention(2.0, value=-np.eye(3))], [0.5, 0.4, 0.3])
    end = af.solve(mixed, tokens, 1.2, method=af.Fixed(0.05), save=1, keep=["positions"]).positions.values[-1]
    step = tokens
    for k, time in enumerate((0.5, 0.4, 0.3)):
        step = step.moved(
            af.solve(mixed.part(k), step, time, method=af.Fixed(0.05), save=1, keep=["positions"]).positions.values[-1]
        )
    np.testing.assert_allclose(end, step.positions, rtol=0, atol=1e-12)
    with pytest.raises(InvalidInput, match="and Attention does not"):
        af.solve(mixed, tokens, 1.2, method=af.Exact())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: InTurn([], []), "`parts` is empty"),
        (lambda: InTurn([Drift([1.0, 0])], [1.0, 2.0]), "`durations` has shape"),
        (lambda: InTurn([Drift([1.0, 0])], [0.0]), "above 0"),
        (lambda: InTurn([Drift(af.Along("w", np.eye(3)))], [1.0]), "a batch along 'w'"),
        (lambda: InTurn([3.0], [1.0]), "`parts` is 3.0"),
        (lambda: InTurn([Drift(Pieces([0.0, 1.0], [[1.0, 0], [0, 1]]))], [1.0]), "whose weights jump"),
        (lambda: af.solve(Drift([1.0, 0]), af.uniform(af.Sphere(3), n=2), 1.0), r"`vector` of Drift has shape \(2,\)"),
        (
            lambda: af.solve(ReluUnit([1.0, 0], [1.0, 0], [1.0]), af.uniform(af.Sphere(2), n=2), 1.0),
            "`bias` of ReluUnit",
        ),
        (lambda: MeanAttention(np.eye(3)).check(af.uniform(af.Torus(2), n=3)), "Sphere or Euclidean"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@mp.workdps(40)
def test_derivatives_of_phi_at_and_near_zero():
    """(e^z - 1)/z = sum z^k/(k + 1)!: it and its derivatives at z are sums of this series, by mpmath with 40 digits."""
    for z in (0.0, 1e-300, 1e-17, -1e-12, 1e-8, -1e-4, 0.5, -0.999, 1.001, -30.0, 20.0):
        terms = [(mp.mpf(z) ** k, k) for k in range(160)]
        value = sum(power / mp.factorial(k + 1) for power, k in terms)
        first = sum(power * (k + 1) / mp.factorial(k + 2) for power, k in terms)
        second = sum(power * (k + 1) * (k + 2) / mp.factorial(k + 3) for power, k in terms)
        found = af.in_float64(lambda z: (jax.grad(expm1_ratio)(z), jax.grad(jax.grad(expm1_ratio))(z)))(np.float64(z))
        np.testing.assert_allclose(found, [float(first), float(second)], rtol=1e-13, err_msg=str(z))
        values = [af.in_float64(expm1_ratio)(np.float64(z)), host_expm1_ratio(np.float64(z))]
        np.testing.assert_allclose(values, float(value), rtol=1e-15, err_msg=str(z))
