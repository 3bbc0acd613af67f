"""Training on prompts: the first step by hand, seeds on their own, marks, what comes back, and refusals."""

import equinox as eqx
import jax
import numpy as np
import pytest

import attnflow as af
from attnflow import learn
from attnflow.errors import FlowFailed, InvalidInput, MissingExtra
from attnflow.flows import Ending

TASK = learn.Clustering(dim=3, tokens=5, centres=2, layers=2)
BLOCK = learn.attention_block(3)


def trained(**options):
    return learn.train(BLOCK, TASK, **{"steps": 4, "batch": 2, "seeds": (7, 3), "test": 4, **options})


@pytest.fixture(scope="module")
def found():
    return trained()


def matrices(field):
    return [np.asarray(one.weight.value) for one in (field.features.query, field.features.key, field.value)]


def by_hand(weights, x, layers=2, step=0.5):
    """The network of the task in NumPy: x <- N(x + step softmax(<Qx, Kx>) x V^T), row by row."""
    query, key, value = weights
    for _ in range(layers):
        logits = (x @ query.T) @ (x @ key.T).T
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        x = x + step * (share / share.sum(axis=1, keepdims=True)) @ x @ value.T
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x


def test_losses_are_those_of_the_network_by_hand(found):
    """The first loss of every seed and the test losses at the first and the last mark; rounding of 10 operations."""
    for k, seed in enumerate((7, 3)):
        start, prompts = matrices(found.field(k, mark=0)), TASK.draw(np.random.default_rng([seed, 1, 0]), 2)
        ends = [by_hand(start, x) for x in prompts.positions]
        hand = np.mean([1 - np.sum(x * c, axis=1) for x, c in zip(ends, prompts.target, strict=True)])
        assert found.losses[0, k] == pytest.approx(hand, rel=1e-13)
        test, last = TASK.draw(np.random.default_rng([7, 2]), 4), matrices(found.field(k))
        pairs = zip(test.positions, test.target, strict=True)
        hand = np.mean([1 - np.sum(by_hand(last, x) * c, axis=1) for x, c in pairs])
        assert found.dataset["test_loss"].values[-1, k] == pytest.approx(hand, rel=1e-13)
    np.testing.assert_array_equal(found.marks, [0, 1, 2, 3, 4])


def test_the_first_step_is_that_of_adam(found):
    """Adam moves every weight by `rate` against the sign of its slope at first: slope / (|slope| + 1e-8)."""
    start, prompts = found.field(1, mark=0), TASK.draw(np.random.default_rng([3, 1, 0]), 2)
    weights, rest = eqx.partition(start, learn.trainable(start))

    def mean(w):
        losses = [TASK.loss(eqx.combine(w, rest), jax.tree.map(lambda a, k=k: a[k], prompts)) for k in (0, 1)]
        return sum(losses) / 2

    slopes = jax.tree.leaves(af.in_float64(jax.jit(jax.grad(mean)))(weights))
    moved = jax.tree.leaves(eqx.filter(found.field(1, mark=1), learn.trainable(start)))
    for slope, old, new in zip(slopes, jax.tree.leaves(weights), moved, strict=True):
        # the gradient is summed in another order: relative error 1e-13 of its largest entry, against its smallest
        np.testing.assert_allclose(new - old, -0.015 * slope / (np.abs(slope) + 1e-8), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_the_rate_decays_like_the_inverse_of_the_steps():
    """rate/(1 + k/decay) at step k; at a rate of 1e-7 slopes stay what they are to 1e-6, and both memories are equal."""
    plain, decaying = (trained(rate=1e-7, decay=decay) for decay in (None, 2.0))

    def moves(training, k):
        weights = [jax.tree.leaves(eqx.filter(training.field(0, mark=m), learn.trainable(BLOCK))) for m in (k, k + 1)]
        return np.concatenate([np.ravel(new - old) for old, new in zip(*weights, strict=True)])

    for k in range(4):
        shrunk = np.vdot(moves(plain, k), moves(decaying, k)) / np.vdot(moves(plain, k), moves(plain, k))
        # the difference of weights of order 1 that are 1e-7 apart has a relative error of 1e-9
        assert shrunk == pytest.approx(1 / (1 + k / 2), rel=1e-5), k


@pytest.mark.slow
def test_a_seed_goes_its_own_way_whoever_is_beside_it(found):
    """Other shapes are another program: equal to rounding, which four steps of Adam near a slope of 0 enlarge."""
    alone = trained(seeds=[3])
    np.testing.assert_allclose(alone.losses[:, 0], found.losses[:, 1], rtol=1e-9)
    assert abs(found.losses[0, 0] - found.losses[0, 1]) > 1e-6


def test_an_interrupted_training_goes_on_bit_by_bit():
    whole = trained(steps=23)

    def interrupt(progress):
        if progress.frames >= 12:
            raise KeyboardInterrupt

    part = trained(steps=23, on_progress=interrupt)
    assert part.outcome.ending is Ending.INTERRUPTED
    assert 12 <= len(part.losses) < 23
    assert part.continued().dataset.identical(whole.dataset)


def test_watching(found):
    seen = found.watch(lambda field, prompt: {"loss": TASK.loss(field, prompt)}, prompts=4)["loss"]
    assert seen.shape == (5, 2, 4)
    np.testing.assert_allclose(seen.mean(axis=2), found.dataset["test_loss"].values, rtol=1e-13)
    assert af.plot(found).axes[0].get_xlabel() == "step"


def test_a_path_ends_where_the_network_does(found):
    prompt = jax.tree.map(lambda a: a[0], TASK.prompts(1, seed=5))
    path = np.asarray(af.in_float64(TASK.path)(found.field(0), prompt))
    assert path.shape == (3, 5, 3)
    np.testing.assert_allclose(path[-1], by_hand(matrices(found.field(0)), prompt.positions), atol=1e-14)


def test_marks_are_the_same_however_far_training_goes():
    def marks_until(steps):
        return learn.Train(BLOCK, TASK, steps).stepper().marks

    np.testing.assert_array_equal(marks_until(20), [0, 1, 2, 3, 4, 6, 7, 10, 13, 18])
    for steps in (1, 9, 10, 999, 1000):
        few, many = marks_until(steps), marks_until(5000)
        np.testing.assert_array_equal(few, many[many <= steps])


def test_the_posterior_mean_is_attention():
    """Context of copies of two centres: attention with Q^T K = I/sigma^2 gives sum_j p_j x_j, p_j ~ e^(-|q - x_j|^2/2s^2)."""
    task = learn.Denoising(dim=3, tokens=6, centres=2, noise=0.5)
    prompt = jax.tree.map(lambda a: a[0], task.prompts(1, seed=0))
    field = af.Attention(4.0, value=np.eye(3))
    share = np.exp(-np.sum((prompt.query - prompt.positions) ** 2, axis=1) / (2 * 0.25))
    hand = share / share.sum() @ prompt.positions
    np.testing.assert_allclose(af.in_float64(task.output)(field, prompt)[0], hand, atol=1e-14)
    assert float(af.in_float64(task.loss)(field, prompt)) == pytest.approx(np.sum((hand - prompt.target[0]) ** 2))


def test_prompts_of_a_subspace_lie_in_one_and_are_clean():
    task = learn.Denoising(dim=6, tokens=9, centres=None, subspace=2)
    prompts = task.prompts(3, seed=1)
    assert (np.linalg.matrix_rank(prompts.positions, tol=1e-10) == 2).all()
    together = np.concatenate([prompts.positions, prompts.target], axis=1)
    assert (np.linalg.matrix_rank(together, tol=1e-10) == 2).all()
    np.testing.assert_allclose(np.linalg.norm(together, axis=-1), 1, atol=1e-14)


@pytest.mark.slow
def test_layers_of_their_own_and_given_weights():
    task = learn.Clustering(dim=3, tokens=5, centres=2, layers=2)
    block = learn.attention_block(3, layers=2)
    own = learn.train(block, task, steps=1, batch=2, seeds=[0], test=4, start=None)
    np.testing.assert_array_equal(own.field(0, mark=0).value.weight.values, block.value.weight.values)
    moved = own.field(0).value.weight.values - block.value.weight.values
    assert (np.abs(np.abs(moved) - 0.015) < 1e-5).all()  # Adam moves by `rate` at first, up to 1e-8 over the slope


def test_a_loss_that_is_not_finite_is_reported():
    with pytest.raises(FlowFailed, match=r"seed 7 .* smaller `rate`"):
        trained(rate=1e200)


def test_missing_optax(faults):
    faults.module("optax")
    with pytest.raises(MissingExtra, match=r"attnflow\[learn\]"):
        trained()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"steps": 0}, "`steps`"),
        ({"batch": 0}, "`batch`"),
        ({"rate": -0.1}, "`rate`"),
        ({"seeds": []}, "`seeds`"),
        ({"seeds": [1, 1]}, "`seeds`"),
        ({"seeds": 2.5}, "`seeds`"),
        ({"seeds": [[1]]}, "`seeds`"),
        ({"start": -1.0}, "`start`"),
        ({"test": 0}, "`test`"),
    ],
)
def test_bad_input(given, named):
    with pytest.raises(InvalidInput, match=named):
        trained(**given)


def test_fields_that_do_not_fit():
    for field, named in ((af.Attention(2.0), "no weights"), (learn.attention_block(4), "4")):
        with pytest.raises(InvalidInput, match=named):
            learn.train(field, TASK)
    with pytest.raises(InvalidInput, match="`task`"):
        learn.train(BLOCK, learn.Clustering)
    with pytest.raises(InvalidInput, match="`subspace`"):
        learn.Denoising(dim=3, centres=None, subspace=4)
    with pytest.raises(InvalidInput, match="`mark`"):
        trained(steps=1).field(0, mark=9)
