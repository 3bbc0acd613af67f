"""Fields whose weights change with time: the right piece in every layer, and no method looks across a jump."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import breaks
from attnflow.fields.weights import Constant
from attnflow.flows import Heun
from tests.kit import end, frames
from tests.marks import graded

BETA = 2.0
TOKENS = af.uniform(af.Sphere(3), n=6, seed=0)
START = np.asarray(TOKENS.positions)
VALUES = np.random.default_rng(1).standard_normal((4, 3, 3))
QUERIES = np.random.default_rng(2).standard_normal((4, 3, 3))


def jumping(step, values=VALUES, queries=QUERIES):
    return af.Attention(BETA, query=af.weights.PerLayer(queries, step), value=af.weights.PerLayer(values, step))


def normalised(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def numpy_drive(x, query, value):
    w = np.exp(BETA * (x @ query.T) @ x.T)
    return (w / w.sum(axis=1, keepdims=True)) @ (x @ value.T)


def numpy_layers(order, h):
    """Post-layer-norm layers with the weights of the given numbers; all positions."""
    frames = [START]
    for k in order:
        frames.append(normalised(frames[-1] + h * numpy_drive(frames[-1], QUERIES[k], VALUES[k])))
    return np.stack(frames)


def scipy_legs(length):
    """Dormand-Prince 8 from SciPy, started afresh at every jump."""
    y = START.ravel()
    for query, value in zip(QUERIES, VALUES, strict=True):

        def rate(_, y, query=query, value=value):
            x = normalised(y.reshape(-1, 3))
            a = numpy_drive(x, query, value)
            return (a - np.sum(a * x, axis=1, keepdims=True) * x).ravel()

        y = solve_ivp(rate, (0, length), y, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return normalised(y.reshape(-1, 3))


@pytest.mark.parametrize("step", [0.1, 0.3, 1 / 3])
def test_a_layer_reads_its_own_piece(step):
    """100,000 layers at t = k step; just before that it is still the piece before."""
    k = np.arange(100_000)
    t = k * step
    weight = af.weights.PerLayer(k * 1.0, step)
    numbers = af.in_float64(jax.jit(lambda times: weight.at(times, float)))
    assert np.array_equal(numbers(t), k)
    assert np.array_equal(numbers(np.nextafter(t[1:], -np.inf)), k[:-1])
    assert (np.floor(t / step) != k).any() or step == 1 / 3  # what a plain floor would do
    found = breaks(af.weights.PerLayer(np.zeros((100_000, 1)), step), t[-1] * 2)
    assert np.array_equal(found, t[1:])


def test_layers_use_the_weights_of_their_number():
    """Layers(0.1) against a NumPy loop, then twice as many layers as weights: 0, 0, 1, 1, ..., and the last for ever."""
    found = frames(jumping(0.1), TOKENS, 0.5, save=af.saving.EveryLayer(), method=af.Layers(0.1))
    np.testing.assert_allclose(found, numpy_layers([0, 1, 2, 3, 3], 0.1), atol=1e-14)
    found = frames(jumping(0.1), TOKENS, 0.5, save=af.saving.EveryLayer(2), method=af.Layers(0.05))
    expected = numpy_layers([0, 0, 1, 1, 2, 2, 3, 3, 3, 3], 0.05)
    np.testing.assert_allclose(found, expected[::2], atol=1e-14)
    moved = af.advance(jumping(0.1), TOKENS, 0.1, 0.3, af.Layers(0.1))  # a flow that starts at layer 1
    x = START
    for k in (1, 2):
        x = normalised(x + 0.1 * numpy_drive(x, QUERIES[k], VALUES[k]))
    np.testing.assert_allclose(moved.positions, x, atol=1e-14)


def test_fixed_steps_keep_order_four_across_jumps():
    """Error C h^4 (1 + O(h)); a stage that reads the weights after a jump makes it C h."""
    exact = scipy_legs(0.3)

    def error(h, save=4):
        return np.abs(end(jumping(0.3), TOKENS, 1.2, save=save, method=af.Fixed(h)) - exact).max()

    errors = [error(h) for h in (0.1, 0.05, 0.025)]
    # h times the norm of the matrices is up to 0.3: the next term changes an observed order by a few tenths
    orders = np.log2(errors[:-1]) - np.log2(errors[1:])
    assert (np.abs(orders - 4) < 0.5).all(), (errors, orders)
    # a step that does not divide the layers, saved at other times than the jumps
    assert error(0.027, save=7) < 2 * errors[-1]


@pytest.mark.slow
def test_heun_keeps_order_two_across_jumps():
    """Without noise; in `solve` and in `advance`, where reverse mode agrees with central differences."""
    exact = scipy_legs(0.3)

    def solved(h):
        return end(jumping(0.3), TOKENS, 1.2, save=4, method=Heun(h))

    def advanced(h):
        return af.advance(jumping(0.3), TOKENS, 0.0, 1.2, Heun(h)).positions

    for moved in (solved, advanced):
        errors = [np.abs(moved(h) - exact).max() for h in (0.02, 0.01)]
        assert abs(errors[0] / errors[1] - 4) < 0.4  # C h^2 (1 + O(h)), with rates of about 3

    def loss(values):
        field = jumping(0.3, values)
        return jnp.sum(jnp.sin(jnp.asarray(af.advance(field, TOKENS, 0.0, 1.2, Heun(0.1)).positions)))

    shift = np.zeros_like(VALUES)
    shift[1, 0, 2] = 1e-5
    both = af.in_float64(jax.jit(jax.value_and_grad(loss)))
    slope = (both(VALUES + shift)[0] - both(VALUES - shift)[0]) / 2e-5
    assert abs(both(VALUES)[1][1, 0, 2] - slope) < 1e-8  # truncation 1e-10 times third derivatives


@pytest.mark.slow
def test_adaptive_steps_stop_at_jumps():
    """Saved times are jumps, and chunks end there: the end of a chunk must not look at the next weights either.

    (If it does, the result is as accurate, but the error estimate shrinks the steps: 9 times as many.)
    """
    exact = scipy_legs(0.3)
    flow = af.solve(jumping(0.3), TOKENS, 1.2, save=af.saving.Evenly(4), chunk=2, keep=["positions"])
    # rtol 1e-8 per step, some 10 steps, contraction and expansion of order e
    assert np.abs(flow.positions.values[-1] - exact).max() < 1e-7
    assert flow.steps["rejected"] <= flow.steps["accepted"] / 2 < 16, flow.steps


@graded(("method", "tolerance"), [(af.Fixed(0.01), 1e-6), (af.Adaptive(1e-10, 1e-12), 1e-8)])
def test_backwards_is_back(method, tolerance):
    """RK4 at 0.01 is off by (0.3 / 10)^4 times a constant of order one; what comes back is off by less than twice that."""
    there = af.advance(jumping(0.3), TOKENS, 0.0, 1.2, method)
    assert np.abs(there.positions - scipy_legs(0.3)).max() < tolerance
    back = af.advance(jumping(0.3), there, 1.2, 0.0, method)
    assert np.abs(back.positions - START).max() < 2 * tolerance


SMOOTH = {
    "interpolated": af.weights.Interpolated(VALUES, 0.3),
    "function": lambda t: jnp.asarray(VALUES[0], t.dtype) * jnp.cos(2 * t) + jnp.asarray(VALUES[1], t.dtype) * t,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_layers_converge_to_the_flow_of_smooth_weights(name):
    """Order 1: the error at h over that at h/2 is 2 + O(h)."""
    field = af.Attention(BETA, value=SMOOTH[name])
    assert field.laws.steady
    exact = end(field, TOKENS, 1.2, method=af.Fixed(0.01))  # off by (4 h)^4 = 3e-6, with rates of about 4
    errors = [np.abs(end(field, TOKENS, 1.2, method=af.Layers(h)) - exact).max() for h in (0.01, 0.005)]
    assert errors[0] < 0.1
    assert abs(errors[0] / errors[1] - 2) < 0.2


def test_interpolated_weights_are_linear_in_between():
    weight = af.weights.Interpolated(VALUES, 0.3)
    at = af.in_float64(jax.jit(lambda t: weight.at(t, jnp.float64)))
    np.testing.assert_allclose(at(0.3 * 1.25), 0.75 * VALUES[1] + 0.25 * VALUES[2], atol=1e-15)
    for t, k in ((0.0, 0), (0.3, 1), (0.9, 3), (50.0, 3)):
        np.testing.assert_allclose(at(t), VALUES[k], atol=1e-15)


def test_the_derivative_with_respect_to_the_end_is_the_velocity():
    """Also for weights that change with time, of which the last stage of a step is evaluated at the end itself."""
    field = af.Attention(BETA, value=SMOOTH["function"])

    @af.in_float64
    def both(t1):
        return jax.jvp(lambda t: af.advance(field, TOKENS, 0.0, t, af.Fixed(0.05)).positions, (t1,), (np.ones(()),))

    x, slope = both(np.asarray(1.0))
    # the derivative of an RK4 solution with respect to its step: error (4 h)^4 over the rates of about 4
    np.testing.assert_allclose(slope, field.velocity(TOKENS.moved(x), 1.0, at=x), atol=2e-3 * np.abs(slope).max())


def test_an_end_that_is_traced():
    """Refused where the field jumps, with how to fix it; constant matrices and functions of time do not mind."""

    def slope(field, method):
        end = af.in_float64(
            lambda t: jax.jvp(lambda t: af.advance(field, TOKENS, 0.0, t, method).positions, (t,), (t,))[1]
        )
        return end(np.asarray(0.5))

    for method in (af.Fixed(0.1), af.Layers(0.1), af.Adaptive()):
        with pytest.raises(InvalidInput, match="plain numbers"):
            slope(jumping(0.1), method)
    assert np.isfinite(slope(af.Attention(BETA, value=VALUES[0]), af.Fixed(0.1))).all()
    assert breaks(Constant(np.eye(3)), 5.0).size == 0


RANDOM_LAYERS = 4000


def entries(weight):
    """The weight in many layers."""
    times = np.arange(RANDOM_LAYERS) * 0.1
    return af.in_float64(jax.jit(jax.vmap(lambda s: weight.at(s, jnp.float64))))(times)


@pytest.mark.slow
def test_random_weights_have_the_law_they_say():
    """Mean and variance of 4000 x 9 Gaussians, layers independent, roles independent: each within 4 standard errors."""
    field = af.Attention(
        BETA, query=af.weights.Random((3, 3), seed=5), value=af.weights.Random((3, 3), seed=5, scale=2.0, mean=1.0)
    )
    query, value = entries(field.features.query.weight), entries(field.value.weight)
    value = (value - 1.0) / 2.0
    query = query * np.sqrt(3)
    count = query.size
    for sample in (query, value):
        assert abs(sample.mean()) < 4 / np.sqrt(count)
        assert abs(sample.var() - 1) < 4 * np.sqrt(2 / count)
        assert abs(np.mean(sample[1:] * sample[:-1])) < 4 / np.sqrt(count)
    assert abs(np.mean(query * value)) < 4 / np.sqrt(count)
    assert not np.array_equal(query, entries(af.weights.Random((3, 3), seed=6, role="query")) * np.sqrt(3))
    assert np.array_equal(query, entries(af.weights.Random((3, 3), seed=5, role="query")) * np.sqrt(3))


@pytest.mark.slow
def test_random_networks_by_seed():
    """A batch over seeds is its members; one seed is one network, in `solve` and in a NumPy loop over its matrices."""

    def last(seed):
        query, value = (af.weights.Random((3, 3), seed=seed) for _ in range(2))
        return end(af.Attention(BETA, query=query, value=value), TOKENS, 1.0, method=af.Layers(0.1))

    many = last(af.Along("seed", [3, 4]))
    alone = last(4)
    assert np.array_equal(alone, last(4))
    np.testing.assert_allclose(many[1], alone, atol=1e-14)
    assert np.abs(many[0] - many[1]).max() > 0.1
    queries, values = (entries(af.weights.Random((3, 3), seed=4, role=role)) for role in ("query", "value"))
    x = START
    for k in range(10):
        x = normalised(x + 0.1 * numpy_drive(x, queries[k], values[k]))
    np.testing.assert_allclose(alone, x, atol=1e-13)


def test_gradients_with_respect_to_the_weights_of_layers():
    """Reverse mode against central differences with step 1e-5: truncation 1e-10, rounding 1e-16 / 1e-5."""

    def loss(values):
        field = af.Attention(BETA, query=QUERIES[0], value=af.weights.PerLayer(values, 0.1))
        return jnp.sum(jnp.sin(3 * jnp.asarray(af.advance(field, TOKENS, 0.0, 0.3, af.Layers(0.1)).positions)))

    both = af.in_float64(jax.jit(jax.value_and_grad(loss)))
    gradient = both(VALUES)[1]
    assert gradient.shape == VALUES.shape
    assert np.array_equal(gradient[3], np.zeros((3, 3)))  # layer 3 is not reached
    for k, i, j in ((0, 0, 1), (1, 2, 2), (2, 1, 0)):
        shift = np.zeros_like(VALUES)
        shift[k, i, j] = 1e-5
        slope = (both(VALUES + shift)[0] - both(VALUES - shift)[0]) / 2e-5
        assert abs(slope - gradient[k, i, j]) < 1e-9
        assert abs(slope) > 1e-4


def test_an_ellipsoid_that_moves_is_a_fixed_sphere_with_other_weights():
    """x = G(t) y: x' = G' G^-1 x + V A - <G^-2 x, V A> x on the ellipsoid is y on the sphere with (Q G, K G, G^-1 V G).

    The projection on the moving ellipsoid is along x. Steps of RK4 err by h^4 = 6e-8 times derivatives of order 10.
    """
    start, speed = np.array([1.2, 1.0, 0.8]), np.array([-0.5, 0.3, 0.4])
    query, key, value = QUERIES[0] / 2, QUERIES[1] / 2, VALUES[0]

    def rate(t, flat):
        x, gain = flat.reshape(-1, 3), start + speed * t
        w = np.exp(BETA * (x @ query.T) @ (x @ key.T).T)
        a = (w / w.sum(axis=1, keepdims=True)) @ (x @ value.T)
        return (x * speed / gain + a - np.sum(x / gain**2 * a, axis=1, keepdims=True) * x).ravel()

    moved = solve_ivp(rate, (0, 1), (START * start).ravel(), "DOP853", rtol=1e-11, atol=1e-12).y[:, -1].reshape(-1, 3)

    def gain(t):
        return jnp.diag(start + speed * t)

    field = af.Attention(
        BETA,
        query=lambda t: query @ gain(t),
        key=lambda t: key @ gain(t),
        value=lambda t: jnp.diag(1 / (start + speed * t)) @ value @ gain(t),
    )
    y = end(field, TOKENS, 1.0, method=af.Fixed(1 / 64))
    np.testing.assert_allclose(y * (start + speed), moved, rtol=0, atol=1e-6)
    assert np.abs(normalised(moved) - y).max() > 0.01, "the gain matters"
