"""Learned flows: they separate what no line separates, they are flows, and learning repeats itself."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import learn
from attnflow.errors import FlowFailed, InvalidInput, MissingExtra
from attnflow.flows import Ending
from tests.learn.test_data import linear_accuracy

LAYERS = 20


def with_method(classifier, method):
    return eqx.tree_at(lambda c: c.method, classifier, method)


@pytest.fixture(scope="module")
def spirals():
    """(start, fitted, held-out points, their labels): 200 points, 20 layers of width 16 in the plane."""
    start = learn.Classifier(learn.residual_network(2, 16, LAYERS, seed=0), np.eye(2), method=af.Layers(1 / LAYERS))
    fitted = learn.fit(start, *learn.interleaved_classes(200, "spirals", seed=0), steps=250, rate=0.02)
    return start, fitted, *learn.interleaved_classes(1000, "spirals", seed=1)


@pytest.mark.long
def test_the_flow_separates_two_spirals(spirals):
    start, fitted, points, labels = spirals
    assert fitted.outcome.ending is Ending.FINISHED
    assert fitted.losses.shape == (250,)
    assert fitted.losses[-1] < 0.05 * fitted.losses[0]
    assert fitted.accuracy >= 0.99
    assert fitted.classifier.accuracy(points, labels) >= 0.97
    # neither the read-out alone nor the read-out after the flow before learning can do it
    assert linear_accuracy(points, labels) < 0.9
    assert linear_accuracy(start.flow_points(points, [1.0])[-1], labels) < 0.9
    assert linear_accuracy(fitted.classifier.flow_points(points, [1.0])[-1], labels) >= 0.97


@pytest.mark.slow
def test_the_learned_flow_runs_backwards(spirals):
    _, fitted, points, _ = spirals
    field = fitted.classifier.field
    tokens = af.from_array(points, space=af.Euclidean(2))
    errors = []
    for method in (af.Fixed(1 / (4 * LAYERS)), af.Fixed(1 / (8 * LAYERS))):
        there = af.advance(field, tokens, 0.0, 1.0, method)
        assert np.abs(there.positions - points).max() > 0.5
        errors.append(np.abs(af.advance(field, there, 1.0, 0.0, method).positions - points).max())
    # the leading errors of order 4 cancel on the way back (RK4 there and back is the identity up to h^5 T), so halving
    # the step gains a factor between 16 and 32, or more
    assert errors[1] < errors[0] / 14
    assert errors[1] < 1e-6


def test_the_network_is_a_discretised_flow(spirals):
    """Twice and four times the layers at half and a quarter of the step, and RK4: the same classes, order 1 apart."""
    _, fitted, points, labels = spirals
    flow = with_method(fitted.classifier, af.Fixed(1 / (4 * LAYERS))).flow_points(points, [1.0])[-1]
    gaps = []
    for layers in (LAYERS, 2 * LAYERS, 4 * LAYERS, 8 * LAYERS):
        finer = with_method(fitted.classifier, af.Layers(1 / layers))
        assert finer.accuracy(points, labels) >= 0.97
        gaps.append(np.sqrt(np.mean((finer.flow_points(points, [1.0])[-1] - flow) ** 2)))
    np.testing.assert_allclose(np.log2(gaps[-2] / gaps[-1]), 1.0, atol=0.15)  # c h + O(h^2), h L = 20/160


@pytest.mark.slow
def test_every_round_goes_through_all_points_in_another_order():
    """At a rate of 1e-12 the loss of a step is that of its minibatch: four of 5 add up to all 20 in every round."""
    start = learn.Classifier(learn.residual_network(2, 3, 2, seed=0), np.eye(2), method=af.Layers(0.5))
    points, labels = learn.interleaved_classes(20, "spirals", seed=0)
    losses = learn.fit(start, points, labels, steps=12, batch=5, rate=1e-12).losses.reshape(3, 4)
    whole = float(learn.cross_entropy(start, points, labels))
    np.testing.assert_allclose(losses.mean(axis=1), whole, rtol=1e-9)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(np.sort(losses[first]) - np.sort(losses[second])).max() > 1e-3


@pytest.mark.long
def test_circles_need_a_third_dimension():
    """A flow of the plane keeps the inner circle inside: its image cannot leave the half-plane of the outer one.

    (Layers of a step that is not small fold the plane and are not bound by this, so the flow is learned as such.)
    """
    dense, labels = learn.interleaved_classes(20_000, "circles", seed=1, noise=0.0)
    share = {}
    for dim in (2, 3):
        start = learn.Classifier(learn.residual_network(dim, 16, 4), np.eye(2, dim), method=af.Fixed(0.25))
        fitted = learn.fit(start, *learn.interleaved_classes(200, "circles", seed=0), steps=150)
        assert fitted.accuracy >= 0.97  # the 200 points are separated in both
        share[dim] = with_method(fitted.classifier, af.Fixed(0.025)).accuracy(dense, labels)
    assert share[2] < 1.0
    assert share[3] == 1.0


def small(**options):
    network = learn.residual_network(2, 4, 4, **options)
    return learn.Classifier(network, np.eye(2), method=af.Layers(0.25))


@pytest.mark.slow
def test_the_seed_fixes_the_losses():
    points, labels = learn.interleaved_classes(40, "moons", seed=0)
    losses = [learn.fit(small(), points, labels, steps=4, seed=s, batch=16).losses for s in (0, 0, 1)]
    np.testing.assert_array_equal(losses[0], losses[1])
    assert not np.array_equal(losses[0], losses[2])
    # the first loss is that of the first minibatch at the start
    chosen = np.random.default_rng(0).permutation(40)[:16]
    np.testing.assert_allclose(losses[0][0], learn.cross_entropy(small(), points[chosen], labels[chosen]), rtol=1e-13)


@pytest.mark.slow
def test_first_step_of_adam():
    """Adam moves every weight by `rate` against the sign of its slope at first: slope / (|slope| + 1e-8)."""
    points, labels = learn.interleaved_classes(40, "moons", seed=0)
    start, before = small(smooth=False), dict(jax.config.values)
    fitted = learn.fit(start, points, labels, steps=1, rate=0.01)
    assert dict(jax.config.values) == before  # the configuration is left alone
    weights, rest = eqx.partition(start, learn.trainable(start))
    loss = af.in_float64(jax.jit(jax.grad(lambda w: learn.cross_entropy(eqx.combine(w, rest), points, labels))))
    moved = eqx.filter(fitted.classifier, learn.trainable(start))
    for slope, old, new in zip(*map(jax.tree.leaves, (loss(weights), weights, moved)), strict=True):
        # the gradient is summed in another order: relative error 1e-13 of its largest entry, against its smallest
        np.testing.assert_allclose(new - old, -0.01 * slope / (np.abs(slope) + 1e-8), rtol=0, atol=1e-8)
    assert float(fitted.classifier.until) == 1.0
    assert float(fitted.classifier.field.inner.step) == 0.25


def test_learning_compiles_once():
    traces = []

    def activation(z):
        traces.append(1)
        return jnp.tanh(z)

    points, labels = learn.interleaved_classes(40, "moons", seed=0)
    counts = []

    def look(progress):
        counts.append(len(traces))

    learn.fit(small(activation=activation), points, labels, steps=6, batch=16, on_progress=look)
    assert counts[0] > 0
    assert len(set(counts)) == 1


@pytest.mark.slow
def test_progress_and_interruption():
    points, labels = learn.interleaved_classes(40, "moons", seed=0)
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if progress.frames == 5:
            raise KeyboardInterrupt

    fitted = learn.fit(small(), points, labels, steps=50, on_progress=interrupt)
    assert fitted.outcome.ending is Ending.INTERRUPTED
    assert [p.frames for p in seen] == [1, 2, 3, 4, 5]
    assert {p.of for p in seen} == {50}
    assert seen[0].remaining > 0
    assert seen[-1].remaining > 0
    whole = learn.fit(small(), points, labels, steps=5)
    np.testing.assert_array_equal(fitted.losses, whole.losses)
    assert f"loss {fitted.losses[-1]:.4g}" in seen[-1].note
    np.testing.assert_array_equal(fitted.classifier.readout, whole.classifier.readout)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_reported():
    points, labels = learn.interleaved_classes(40, "moons", seed=0)
    with pytest.raises(FlowFailed, match="smaller `rate`") as failure:
        learn.fit(small(activation="relu"), points, labels, steps=50, rate=1e200)
    assert np.isfinite(failure.value.trajectory.losses).all()
    assert np.isfinite(failure.value.trajectory.classifier.readout).all()


def test_missing_optax(faults):
    faults.module("optax")
    with pytest.raises(MissingExtra, match=r"attnflow\[learn\]"):
        learn.fit(small(), *learn.interleaved_classes(10), steps=1)


def test_bad_input():
    points, labels = learn.interleaved_classes(10)
    for given, named in [
        ({"steps": 0}, "`steps`"),
        ({"batch": 11}, "`batch`"),
        ({"rate": -0.1}, "`rate`"),
        ({"labels": labels + 1}, "`labels`"),
        ({"labels": labels.astype(float)}, "`labels`"),
        ({"points": points[:3]}, "`labels`"),
    ]:
        with pytest.raises(InvalidInput, match=named):
            learn.fit(small(), **{"points": points, "labels": labels, "steps": 1, **given})
