"""Residual networks are Euler steps of an ODE: exactly, and in the limit of many layers (arXiv:1806.07366)."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.fields import Perceptron
from tests import kit
from tests.marks import graded

EPS = np.finfo(float).eps
DIM, WIDTH, KNOTS, UNTIL = 3, 6, 5, 1.0
ACTIVATIONS = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0.0)}


def starts(n=8):
    return af.uniform(af.Euclidean(DIM), n=n, seed=0)


def weights(*lead, seed=1, width=WIDTH):
    """A, b, W of norms of order 1, with the axes `lead` in front."""
    rng = np.random.default_rng(seed)
    inner = rng.standard_normal((*lead, width, DIM)) / np.sqrt(DIM)
    return inner, rng.standard_normal((*lead, width)), rng.standard_normal((*lead, DIM, width)) / np.sqrt(width)


def smooth():
    """A perceptron whose weights are piecewise linear in depth, another at every layer."""
    parts = [w + v / 2 for w, v in zip(weights(), weights(KNOTS, seed=2), strict=True)]
    return Perceptron(*(af.weights.Interpolated(w, UNTIL / (KNOTS - 1)) for w in parts), activation="tanh")


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("shared", [True, False])
@graded("outer", [True, False])
def test_layers_of_a_perceptron_are_the_resnet(activation, shared, outer):
    layers, step = 20, 0.1
    width = WIDTH if outer else DIM
    values = weights(*(() if shared else (layers,)), width=width)
    parts = values if shared else [af.weights.PerLayer(w, step) for w in values]
    field = Perceptron(*parts[: 3 if outer else 2], activation=activation)
    tokens = starts()
    x = tokens.positions
    for k in range(layers):
        a, b, w = values if shared else (v[k] for v in values)
        g = ACTIVATIONS[activation](x @ a.T + b)
        x = x + step * (g @ w.T if outer else g)
    result = af.advance(field, tokens, 0.0, layers * step, af.Layers(step)).positions
    # each layer rounds by EPS |x| / 2, and by less in h g; twice that leaves room for the growth of early errors
    np.testing.assert_allclose(result, x, rtol=0, atol=layers * EPS * np.abs(x).max())


def test_a_thousand_layers_read_their_own_weights():
    """Layer k reads values[k] also where k * 0.1 / 0.1 is rounded below k; a slip would cost 1e-2."""
    layers, step = 1000, 0.1
    a, b, _ = weights(layers, width=DIM)
    field = Perceptron(af.weights.PerLayer(0.01 * a, step), af.weights.PerLayer(b, step), activation="tanh")
    tokens = starts()
    x = tokens.positions
    for k in range(layers):
        x = x + step * np.tanh(x @ (0.01 * a[k]).T + b[k])
    result = af.advance(field, tokens, 0.0, layers * step, af.Layers(step)).positions
    # as above; h sum_k |A_k| is about 1.5, so errors grow little
    np.testing.assert_allclose(result, x, rtol=0, atol=layers * EPS * np.abs(x).max())


def frames(method):
    """Positions at the times k/50."""
    return kit.frames(smooth(), starts(), UNTIL, method=method, save=50)


@pytest.fixture(scope="module")
def exact():
    """x(t), to about 1e-11."""
    return frames(af.Adaptive(rtol=1e-12, atol=1e-13))


@pytest.fixture(scope="module")
def layer_errors(exact):
    """{layers: max over tokens and the times k/50 of |x_k - x(kh)|}."""
    return {
        layers: np.linalg.norm(frames(af.Layers(UNTIL / layers)) - exact, axis=-1).max()
        for layers in (50, 100, 200, 400)
    }


def test_layers_smooth_in_depth_converge_at_order_one(layer_errors):
    errors = np.array(list(layer_errors.values()))
    orders = np.log2(errors[:-1] / errors[1:])
    # the error is c h + O(h^2): with h L = 0.07 at 50 layers and 0.009 at 400 the order is off by as much
    np.testing.assert_allclose(orders, 1.0, atol=0.07)
    assert abs(orders[-1] - 1) < 0.02


def test_distance_to_the_flow_is_below_the_classical_bound(layer_errors, exact):
    """max_k |x_k - x(kh)| <= (h / 2L) sup |x''| (exp(L T) - 1), L = sup_t |W| |A|; the sup over times sampled."""
    field = smooth()
    norms = [[np.linalg.norm(w, 2) for w in stack] for stack in (field.outer.values, field.inner.values)]
    # |W(t)| |A(t)| between two knots is at most the product of the larger ends
    lipschitz = max(max(norms[0][k : k + 2]) * max(norms[1][k : k + 2]) for k in range(KNOTS - 1))
    tokens = starts()

    def acceleration(t, x):
        def velocity(t, x):
            return field.drive(tokens, t, at=x)

        return jax.jvp(velocity, (t, x), (jnp.ones_like(t), velocity(t, x)))[1]

    times = np.linspace(0.0, UNTIL, 51)
    largest = np.linalg.norm(af.in_float64(jax.jit(jax.vmap(acceleration)))(times, exact), axis=-1).max()
    for layers, error in layer_errors.items():
        bound = UNTIL / layers / (2 * lipschitz) * largest * np.expm1(lipschitz * UNTIL)
        assert error < bound
        # the bound lets every error grow at the rate L and pushes all the time by sup |x''|: the truth is 74 times smaller
        assert error > bound / 1000


@pytest.mark.slow
def test_runge_kutta_keeps_order_four_across_the_knots(exact):
    """The weights have kinks in time; steps end there, so the order is that of smooth weights (2 across a kink)."""
    steps = UNTIL / np.array([15, 31, 63])  # not the distance of the knots: shortened to 1/16, 1/32, 1/64
    errors = [np.abs(kit.end(smooth(), starts(), UNTIL, method=af.Fixed(h)) - exact[-1]).max() for h in steps]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(orders[-1] - 4) < 0.25  # c h^4 + O(h^5)
    assert errors[-1] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "order"), [(1.0, 0.5), (-0.5, 0.0)])
def test_layers_drawn_independently_do_not_converge_to_a_flow_of_their_own(scale, order):
    """Networks of L and 2L layers with independent weights differ by order 1/2 in h, not 1, with residuals h g;
    with residuals sqrt(h) g the difference does not shrink at all (arXiv:2206.06929).

    Sums of L independent residuals of size h g fluctuate by h sqrt(L) ~ sqrt(h) about their mean.
    """
    depths, members = np.array([25, 50, 100]), 64
    tokens = starts(4)

    def network(layers, first):
        step = UNTIL / layers
        inner = af.weights.Random((DIM, DIM), seed=af.Along("seed", np.arange(first, first + members)), step=step)
        outer = np.eye(DIM) * (1.0 if scale == 1.0 else step**scale)
        field = Perceptron(inner, outer=outer, activation="tanh")
        return af.advance(field, tokens, 0.0, UNTIL, af.Layers(step)).positions

    ends = [network(layers, 1000 * k) for k, layers in enumerate([*depths, 200])]
    gaps = [np.sqrt(np.mean((a - b) ** 2)) for a, b in itertools.pairwise(ends)]
    measured = -np.polyfit(np.log(depths), np.log(gaps), 1)[0]
    # each gap is a root mean square over 64 networks x 12 correlated coordinates: about 64 x 3 independent ones, relative
    # deviation 1/sqrt(2 x 192) = 0.05; the slope over log 4 has deviation 0.05 / (log 2 sqrt 2) = 0.05; four of them
    assert abs(measured - order) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("update", "low", "high", "last"),
    [
        (af.layer_updates.ProjectRenormalise(), 0.994, 0.999, 1.072e-3),
        (af.layer_updates.Renormalise(), 0.967, 0.992, 3.411e-3),
        (af.layer_updates.Project(), 0.990, 0.997, 1.148e-3),
    ],
)
def test_attention_layers_on_the_sphere(update, low, high, last):
    """Three layers, one flow: orders between successive depths and the errors at L = 400, known to the digits given."""
    tokens, field = af.uniform(af.Sphere(4), n=12, seed=0), af.Attention(3.0)
    flow = kit.end(field, tokens, 2.0, method=af.Adaptive(rtol=1e-12, atol=1e-13))
    ends = [kit.end(field, tokens, 2.0, method=af.Layers(2.0 / n, update)) for n in (50, 100, 200, 400)]
    errors = np.array([np.abs(end - flow).max() for end in ends])
    orders = np.log2(errors[:-1] / errors[1:])
    assert low - 5e-4 <= orders.min()
    assert orders.max() <= high + 5e-4
    np.testing.assert_allclose(errors[-1], last, rtol=0, atol=5e-7)
    off = [tokens.space.defect(end).max() for end in ends]
    if isinstance(
        update, af.layer_updates.Project
    ):  # |x + h P A|^2 = |x|^2 + h^2 |P A|^2: off the sphere by O(h) in time 2
        np.testing.assert_allclose(np.log2(np.array(off[:-1]) / off[1:]), 1.0, atol=0.05)
    else:
        assert max(off) < 4 * EPS


def test_layers_without_a_step_are_not_a_flow():
    """x + f(x) with f = the mean (beta = 0 on R^d): L layers give 2^L times the mean, and 2L layers its square; with
    residuals f/L the mean grows like (1 + 1/L)^L, to e within e/(2L)."""
    tokens = af.from_array(np.array([[1.0, 0.5], [0.2, 0.3]]), space=af.Euclidean(2))
    mean = tokens.positions.mean(axis=0)
    for layers in (4, 8):
        bare = kit.end(af.Attention(0.0), tokens, float(layers), method=af.Layers(1.0)).mean(axis=0)
        np.testing.assert_allclose(bare, 2.0**layers * mean, rtol=1e-12)
        scaled = kit.end(af.Attention(0.0), tokens, 1.0, method=af.Layers(1 / layers)).mean(axis=0)
        np.testing.assert_allclose(scaled, np.e * mean, rtol=1 / (2 * layers))
