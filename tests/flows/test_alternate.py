"""Alternating layers: orders of the splittings, the network as built, weights per layer, derivatives, noise, maps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Perceptron, PerLayer, Potential
from attnflow.flows import Alternate
from attnflow.flows.noises import Brownian
from tests.kit import end, frames
from tests.marks import graded

RNG = np.random.default_rng(0)
A, B, W = RNG.standard_normal((5, 3)), RNG.standard_normal(5), RNG.standard_normal((3, 5)) / 2
V = RNG.standard_normal((3, 3)) / 3
TOKENS = af.uniform(af.Sphere(3), n=8, seed=0)
BLOCK = Perceptron(A, B, W, "tanh")
FIELD = af.Attention(2.0) + BLOCK


@pytest.fixture(scope="module")
def moving():
    """A sum of two parts that both change smoothly with time, and its flow to t = 2."""
    value = lambda t: jnp.eye(3, dtype=t.dtype) + jnp.sin(2 * t) * jnp.asarray(V, t.dtype)  # noqa: E731
    bias = lambda t: jnp.cos(t) * jnp.asarray(B, t.dtype)  # noqa: E731
    field = af.Attention(2.0, value=value) + Perceptron(A, bias, W, "tanh")
    return field, end(field, TOKENS, 2.0, method=af.Adaptive(1e-12, 1e-12))


@graded(
    ("kind", "order", "gap"),
    [({}, 1, 1), ({"symmetric": True}, 2, 2), ({"update": af.layer_updates.Renormalise()}, 1, 1)],
    ids=["lie", "strang", "layers"],
    slow=1,
)
def test_orders(moving, kind, order, gap):
    """Errors C h^p (1 + c h^gap + ...): the two measured orders are p + delta 2^gap and p + delta, delta ~ c h^gap.

    Taking delta from their difference must bring the order nearer to p than the last measured one, which is itself
    within 0.1. A symmetric method has even powers only, so its gap is 2. The error of the reference is below 1e-10.
    """
    field, exact = moving
    moved = jax.jit(lambda h: af.advance(field, TOKENS, 0.0, 2.0, Alternate(h, **kind)).positions)
    errors = np.array([np.abs(af.in_float64(moved)(h) - exact).max() for h in (0.05, 0.025, 0.0125)])
    first, second = np.log2(errors[:-1] / errors[1:])
    assert abs(second - order) < 0.1
    assert abs(second + (second - first) / (2**gap - 1) - order) < abs(second - order)
    assert errors[-1] > 1e-7


@pytest.mark.slow
def test_three_parts_there_and_back():
    """Strang with three parts: half steps of two, one whole, half steps back; each by Fixed on the part alone."""
    third = Potential(A, B, np.full(5, 0.3), "gelu")
    h, x = 0.2, TOKENS
    a, b, c = af.Attention(2.0), BLOCK, third
    for part, span in ((a, h / 2), (b, h / 2), (c, h), (b, h / 2), (a, h / 2)):
        x = af.advance(part, x, 0.0, span, af.Fixed(span))
    got = af.advance(a + b + c, TOKENS, 0.0, h, Alternate(h, symmetric=True))
    np.testing.assert_allclose(got.positions, x.positions, atol=1e-14)


def test_the_network_as_built():
    """x <- N(x + h attention), then x <- N(x + h perceptron), in NumPy; seven layers of rounding."""
    x, h = TOKENS.positions, 0.1
    for _ in range(7):
        w = np.exp(2.0 * x @ x.T)
        x = x + h * (w / w.sum(1, keepdims=True)) @ x
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        x = x + h * np.tanh(x @ A.T + B) @ W.T
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    method = Alternate(h, update=af.layer_updates.Renormalise())
    np.testing.assert_allclose(af.advance(FIELD, TOKENS, 0.0, 0.7, method).positions, x, atol=1e-14)
    flow = af.solve(FIELD, TOKENS, 0.7, method=method, save=af.saving.At([0.3, 0.7]), keep=["positions"])
    np.testing.assert_allclose(flow.positions.values[-1], x, atol=1e-14)
    assert flow.steps["accepted"] == 7


@pytest.mark.slow
def test_each_step_reads_the_weights_of_its_own_layer():
    """Ten different layers, against one `Fixed` step of each part; and weights with layers three times as short.

    (10 layers of 0.3 begin up to a rounding error before the 30 of 0.1 with the same weights: 0.3 < 3 * 0.1.)
    """
    values, biases, h = RNG.standard_normal((10, 3, 3)) / 2, RNG.standard_normal((10, 5)), 0.3
    x = TOKENS
    for k in range(10):
        x = af.advance(af.Attention(2.0, value=values[k]), x, 0.0, h, af.Fixed(h))
        x = af.advance(Perceptron(A, biases[k], W, "tanh"), x, 0.0, h, af.Fixed(h))
    for copies in (1, 3):
        value, bias = (PerLayer(np.repeat(w, copies, axis=0), h / copies) for w in (values, biases))
        field = af.Attention(2.0, value=value) + Perceptron(A, bias, W, "tanh")
        got = af.advance(field, TOKENS, 0.0, 3.0, Alternate(h))
        # rounding grows by at most e^(3 L) with L, the Lipschitz constant of layers with |A| |W| ~ 4, below 5
        np.testing.assert_allclose(got.positions, x.positions, atol=1e-10)
    other = af.advance(
        af.Attention(2.0, value=PerLayer(values[::-1], h)) + Perceptron(A, PerLayer(biases, h), W, "tanh"),
        TOKENS, 0.0, 3.0, Alternate(h),
    )  # fmt: skip
    assert np.abs(other.positions - x.positions).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{"update": af.layer_updates.Renormalise()}])
def test_derivatives_in_both_modes(kind):
    """Reverse and forward mode agree to rounding, and with central differences to h^2 and eps/h."""

    def last(numbers):
        field = af.Attention(numbers[0]) + Perceptron(A, numbers[1] * jnp.asarray(B), W, "tanh")
        moved = af.advance(field, TOKENS, 0.0, 0.6, Alternate(0.2, **kind)).positions
        return jnp.sum(moved[:, 0] * jnp.arange(8.0, dtype=moved.dtype))

    at, h = np.array([2.0, 1.0]), 1e-5
    all_ = af.in_float64(jax.jit(lambda z: (*jax.value_and_grad(last)(z), jax.jacfwd(last)(z))))
    _, reverse, forward = all_(at)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11)
    numeric = [(all_(at + h * e)[0] - all_(at - h * e)[0]) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(reverse, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_noise_comes_once_in_a_step():
    """Two parts that do nothing, with noise, are one such part in `Layers`: the same kicks at the same steps."""
    still = Perceptron(A, None, np.zeros((3, 5)))
    noise = Brownian(0.3, seed=4)
    two = frames(still + still, TOKENS, 1.0, method=Alternate(0.1), noise=noise, save=2)
    one = frames(still, TOKENS, 1.0, method=af.Layers(0.1), noise=noise, save=2)
    np.testing.assert_allclose(two, one, atol=1e-14)
    assert np.abs(two[-1] - TOKENS.positions).max() > 0.1


@pytest.mark.slow
def test_frames_between_the_parts():
    """After attention and after the perceptron of every layer, with weights of its own, in NumPy."""
    values, biases, h, x = RNG.standard_normal((3, 3, 3)) / 2, RNG.standard_normal((3, 5)), 0.1, TOKENS.positions
    want = [x]
    for value, bias in zip(values, biases, strict=True):
        w = np.exp(2.0 * x @ x.T)
        x = x + h * (w / w.sum(1, keepdims=True)) @ x @ value.T
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        want.append(x)
        x = x + h * np.tanh(x @ A.T + bias) @ W.T
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        want.append(x)
    field = af.Attention(2.0, value=PerLayer(values, h)) + Perceptron(A, PerLayer(biases, h), W, "tanh")
    method = Alternate(h, update=af.layer_updates.Renormalise(), sublayers=2)
    flow = af.solve(field, TOKENS, 3 * h, method=method, save=af.saving.EveryLayer())
    np.testing.assert_allclose(flow.time, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3], atol=1e-15)
    np.testing.assert_allclose(flow.positions, want, atol=1e-14)
    assert flow.steps["accepted"] == 6
    # the speed of a frame is that of the whole field with the weights of its layer
    now = af.Attention(2.0, value=values[1]) + Perceptron(A, biases[1], W, "tanh")
    speed = np.linalg.norm(now.velocity(flow.tokens(3)), axis=1).max()
    np.testing.assert_allclose(flow.dataset.speed[3], speed, rtol=1e-13)
    half = af.advance(field, TOKENS, 0.0, 3 * h / 2, method)  # a layer and a half
    np.testing.assert_allclose(half.positions, want[3], atol=1e-14)


@graded("update", [pytest.param(None, marks=pytest.mark.slow), af.layer_updates.Renormalise()])
def test_whole_layers_are_those_without_frames_between(update):
    """Batches and noise; cut in the middle of a layer, and continued to the same bits; stopped there."""
    field = af.Attention(af.Along("beta", [1.0, 4.0])) + BLOCK
    given = {"noise": Brownian(0.1, seed=4), "save": af.saving.EveryLayer(), "keep": ["positions"], "chunk": 3}
    fine = Alternate(0.1, update=update, sublayers=2)
    whole = af.solve(field, TOKENS, 0.6, method=Alternate(0.1, update=update), **given).positions.values
    one = af.solve(field, TOKENS, 0.6, method=fine, **given)
    np.testing.assert_allclose(one.positions.values[:, ::2], whole, atol=1e-14)
    assert np.abs(np.diff(one.positions.values, axis=1)).max(axis=(2, 3)).min() > 1e-3  # every part moves

    polls = iter([False, False, True])
    cut = af.solve(field, TOKENS, 0.6, method=fine, cancel=lambda: next(polls, True), **given)
    assert len(cut.time) < len(one.time)
    again = cut.continued()
    np.testing.assert_array_equal(again.positions, one.positions)
    first = af.solve(field, TOKENS, 0.3, method=fine, **given)
    longer = first.continued(0.6, save=af.saving.EveryLayer())
    np.testing.assert_array_equal(longer.positions, one.positions)


def test_stops_between_the_parts():
    """Attention pulls near tokens together and its negative apart: the spread is least after the first part."""
    field = af.Attention(1.0) - 0.5 * af.Attention(1.0)
    near = af.from_array(TOKENS.positions + [0, 0, 9], normalise=True)
    given = {
        "method": Alternate(0.5, update=af.layer_updates.Renormalise(), sublayers=2),
        "save": af.saving.EveryLayer(),
    }
    spread = af.solve(field, near, 4.0, keep=["spread"], **given).dataset.spread.values
    assert (spread[1::2] < np.minimum(spread[:-1:2], spread[2::2])).all()
    limit = (spread[5] + np.min(spread[[3, 4, 6]])) / 2
    flow = af.solve(field, near, 4.0, keep=["spread"], stop=af.stopping.Consensus(limit), **given)
    assert flow.time[-1] == 1.25
    np.testing.assert_array_equal(flow.dataset.spread, spread[:6])


def test_no_saved_layer_comes_before_its_weights():
    """Layers in three parts: 3k parts of a third of a step are never a rounding error earlier than k steps."""
    for step in (0.1, 0.3, 0.7, 1.1, 1e-3):
        k = np.arange(2_000)
        for parts in (1, 2, 3, 5, 7):
            assert (parts * k * Alternate(step, sublayers=parts).layer_step >= k * step).all()
            assert (parts * k * Alternate(step, sublayers=parts).layer_step <= k * step * (1 + 1e-15)).all()


@graded(
    "kind",
    [
        {"symmetric": True},
        {"update": af.layer_updates.Renormalise()},
        {"update": af.layer_updates.Renormalise(), "sublayers": 2},
    ],
    slow=1,
)
def test_flow_maps(kind):
    """Tokens are carried with themselves; on the circle the log-determinant is that of the angle.

    Layers sum the exact log-determinants of each layer; differences of step 1e-5 err by eps/h = 2e-11 and by h^2 times
    a third derivative. RK4 integrates the divergence instead, with the error (L h)^4 / 120 of its order, L ~ 4.
    """
    tokens = af.uniform(af.Sphere(2), n=6, seed=1)
    field = af.Attention(2.0) + Perceptron(A[:, :2], B, W[:2], "tanh")
    method = Alternate(0.1, **kind)
    mapping = af.flow_map(field, tokens, 1.0, method=method)
    alone = af.advance(field, tokens, 0.0, 1.0, method).positions
    h = 1e-5
    angles = np.array([0.3, 2.0, 4.0])[None, :] + h * np.array([[-1.0], [0.0], [1.0]])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(-1, 2)
    pushed, logdet = mapping.push(np.concatenate([tokens.positions, points]))
    np.testing.assert_allclose(pushed[:6], alone, atol=1e-13)
    turned = np.unwrap(np.arctan2(pushed[6:, 1], pushed[6:, 0]).reshape(3, 3), axis=0)
    stretching = (turned[2] - turned[0]) / (2 * h)
    np.testing.assert_allclose(
        logdet[9:12], np.log(stretching), atol=1e-8 if "update" in kind else (4 * 0.1) ** 4 / 120
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.solve(af.Attention(1.0), TOKENS, 1.0, method=Alternate(0.1)), "Attention has 1; give a sum"),
        (lambda: af.advance(af.Attention(1.0), TOKENS, 0.0, 1.0, Alternate(0.1)), "give a sum"),
        (lambda: Alternate(0.1, symmetric=True, update=af.layer_updates.Renormalise()), "half layers"),
        (lambda: Alternate(-0.1), "`step` is -0.1"),
        (lambda: Alternate(0.1, sublayers=0), "`sublayers` is 0"),
        (lambda: Alternate(0.1, symmetric=True, sublayers=2), "`sublayers` is 2 with `symmetric`"),
        (lambda: af.solve(FIELD, TOKENS, 1.0, method=Alternate(0.1, sublayers=3)), "`sublayers` is 3.* has 2 parts"),
        (lambda: af.advance(FIELD, TOKENS, 0.0, 1.0, Alternate(0.1, sublayers=3)), "`sublayers` is 3.* has 2 parts"),
        (lambda: af.solve(FIELD, TOKENS, 1.05, method=Alternate(0.1)), "10.5 layers"),
        (lambda: af.advance(FIELD, TOKENS, 1.0, 0.0, Alternate(0.1)), "backwards"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()
