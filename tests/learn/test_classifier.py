"""A classifier is a flow with a read-out: against NumPy, and its gradient against differences."""

import equinox as eqx
import jax
import numpy as np
import pytest

import attnflow as af
from attnflow import learn
from attnflow.errors import InvalidInput
from tests.marks import graded

READOUT = np.array([[1.0, 0.0, 0.3], [0.2, -1.0, 0.5], [0.0, 0.4, -0.7]])
POINTS = np.random.default_rng(5).standard_normal((9, 2))


def rough(classifier, seed=11):
    """The classifier with weights that differ from layer to layer."""
    rng = np.random.default_rng(seed)
    weights, rest = eqx.partition(classifier, learn.trainable(classifier))
    return eqx.combine(jax.tree.map(lambda a: a + 0.3 * rng.standard_normal(a.shape), weights), rest)


def test_probabilities_are_those_of_the_resnet():
    network = learn.residual_network(3, 8, 6, until=1.5, seed=2, smooth=False)
    classifier = rough(learn.Classifier(network, READOUT, [0.1, 0.0, -0.2], method=af.Layers(0.25), until=1.5))
    inner, bias, outer = (w.values for w in (classifier.field.inner, classifier.field.bias, classifier.field.outer))
    x = np.concatenate([POINTS, np.zeros((9, 1))], axis=1)
    for k in range(6):
        x = x + 0.25 * np.tanh(x @ inner[k].T + bias[k]) @ outer[k].T
    scores = x @ classifier.readout.T + classifier.bias
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    result = classifier(POINTS)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, atol=1e-14)  # 6 layers, numbers of order 1
    labels = np.arange(9) % 3
    np.testing.assert_allclose(
        learn.cross_entropy(classifier, POINTS, labels), -np.log(expected[np.arange(9), labels]).mean(), rtol=1e-13
    )
    assert classifier.accuracy(POINTS, expected.argmax(axis=1)) == 1.0


@pytest.mark.slow
def test_points_on_their_way():
    network = learn.residual_network(3, 8, 4, seed=2)
    classifier = rough(learn.Classifier(network, READOUT, method=af.Fixed(0.25)))
    frames = classifier.flow_points(POINTS, [0.0, 0.25, 0.5, 1.0])
    assert frames.shape == (4, 9, 3)
    np.testing.assert_array_equal(frames[0], learn.padded(POINTS, 3))
    np.testing.assert_allclose(
        frames[-1] @ classifier.readout.T + classifier.bias, classifier.scores(POINTS), atol=1e-14
    )
    tokens = af.from_array(frames[1], space=af.Euclidean(3))
    np.testing.assert_allclose(af.advance(classifier.field, tokens, 0.25, 0.5, af.Fixed(0.25)).positions, frames[2])


@graded(
    ("method", "options"),
    [
        (af.Layers(0.25), {"smooth": False}),
        (af.Layers(0.25), {}),
        (af.Fixed(0.25), {}),
        (af.Fixed(0.25), {"shared": True}),
    ],
    ids=["resnet", "layers", "rk4", "shared"],
    slow=2,
)
def test_gradient_through_the_flow(method, options):
    classifier = rough(learn.Classifier(learn.residual_network(3, 8, 4, **options), READOUT, method=method))
    labels = np.arange(9) % 3
    weights, rest = eqx.partition(classifier, learn.trainable(classifier))

    @af.in_float64
    @jax.jit
    @jax.value_and_grad
    def loss(weights):
        return learn.cross_entropy(eqx.combine(weights, rest), POINTS, labels)

    _, slope = loss(weights)
    sizes = [np.linalg.norm(leaf) for leaf in jax.tree.leaves(slope)]
    assert len(sizes) == 5  # A, b, W, R, r
    assert min(sizes) > 1e-3
    size = np.linalg.norm(sizes)
    rng = np.random.default_rng(0)
    directions = [
        jax.tree.map(lambda a: a / size, slope),
        jax.tree.map(lambda a: rng.standard_normal(a.shape) / 10 + a / size, slope),
    ]
    h = 1e-4
    for v in directions:
        ends = {k: float(loss(jax.tree.map(lambda a, b, k=k: a + k * h * b, weights, v))[0]) for k in (-2, -1, 1, 2)}
        # five points: h^4 f^(5) / 30 is about 1e-17, rounding 1.5 EPS f / h about 3e-12
        measured = (8 * (ends[1] - ends[-1]) - (ends[2] - ends[-2])) / (12 * h)
        exact = sum(np.sum(a * b) for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(v), strict=True))
        assert abs(exact) > 1e-3
        np.testing.assert_allclose(measured, exact, rtol=1e-6)


def test_only_weights_and_read_out_are_trainable():
    classifier = learn.Classifier(learn.residual_network(2, 4, 3), np.eye(2), method=af.Layers(1 / 3))
    marks = learn.trainable(classifier)
    assert sum(jax.tree.leaves(marks)) == 5
    assert marks.readout is marks.bias is marks.field.inner.values is True
    assert marks.field.inner.step is marks.until is marks.method.step is False
    field = af.Attention(2.0, value=af.weights.Random((2, 2)), query=np.eye(2))
    marks = learn.trainable(learn.Classifier(field, np.eye(2), method=af.Layers(0.1)))
    assert sum(jax.tree.leaves(marks)) == 3  # Q, R, r: neither beta nor the random matrix
    assert marks.field.features.query.weight.value is True


def test_points_of_an_attention_field_feel_each_other():
    field = af.Attention(1.0)
    classifier = learn.Classifier(field, READOUT, method=af.Layers(0.25))
    tokens = af.from_array(learn.padded(POINTS, 3), space=af.Euclidean(3))
    moved = af.advance(field, tokens, 0.0, 0.25, af.Layers(0.25)).positions
    np.testing.assert_allclose(classifier.flow_points(POINTS, [0.25])[0], moved, rtol=1e-12)


@pytest.mark.slow
def test_networks():
    smooth = learn.residual_network(2, 4, 5, until=2.0, seed=3)
    assert isinstance(smooth.inner, af.weights.Interpolated)
    assert smooth.inner.values.shape == (6, 4, 2)
    assert smooth.bias.values.shape == (6, 4)
    assert smooth.outer.values.shape == (6, 2, 4)
    assert float(smooth.outer.step) == 0.4
    layered = learn.residual_network(2, 4, 5, seed=3, smooth=False)
    assert isinstance(layered.outer, af.weights.PerLayer)
    assert layered.outer.values.shape == (5, 2, 4)
    shared = learn.residual_network(2, 4, 5, seed=3, shared=True)
    # one start for all: the three are the same flow until they are fitted
    tokens = af.from_array(POINTS, space=af.Euclidean(2))
    drives = [net.drive(tokens, 0.3, at=POINTS) for net in (smooth, layered, shared)]
    np.testing.assert_allclose(drives[1], drives[0], rtol=1e-14)
    np.testing.assert_allclose(drives[2], drives[0], rtol=1e-14)
    assert not np.allclose(drives[0], learn.residual_network(2, 4, 5, seed=4).drive(tokens, 0.3, at=POINTS))


def test_bad_input():
    network = learn.residual_network(2, 4, 5)
    for build, named in [
        (lambda: learn.residual_network(2, 0, 5), "`width`"),
        (lambda: learn.residual_classifier(2, 4, 5, classes=3), "`classes`"),
        (lambda: learn.residual_network(2, 4, 5, until=-1.0), "`until`"),
        (lambda: learn.Classifier(network, np.ones(2)), "`readout`"),
        (lambda: learn.Classifier(network, np.full((2, 2), np.nan)), "`readout`"),
        (lambda: learn.Classifier(network, np.eye(2), np.zeros(3)), "`bias`"),
        (lambda: learn.Classifier(network, np.eye(2, 3)), "`inner`"),
        (lambda: learn.Classifier(network, np.eye(2), method=af.Layers(0.3)), "layers"),
        (lambda: learn.padded(np.zeros((4, 3)), 2), "`points`"),
    ]:
        with pytest.raises(InvalidInput, match=named):
            build()
    classifier = learn.Classifier(network, np.eye(2), method=af.Layers(0.2))
    for call, named in [
        (lambda: classifier(np.zeros((0, 2))), "`points`"),
        (lambda: classifier([[np.inf, 0.0]]), "`points`"),
        (lambda: classifier.flow_points(POINTS, [0.5, 0.2]), "`times`"),
        (lambda: classifier.flow_points(POINTS, [0.2, 0.5]), "layers"),
        (lambda: classifier.flow_points(POINTS, [0.2, 1.5]), "`times`"),
        (lambda: classifier.accuracy(POINTS, np.zeros(3, int)), "`labels`"),
        (lambda: learn.cross_entropy(classifier, POINTS, np.full(9, 2)), "`labels`"),
    ]:
        with pytest.raises(InvalidInput, match=named):
            call()
