"""Gradient descent on the weights of a flow."""

import dataclasses
import time as clock
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attnflow.axes import Along, positive
from attnflow.errors import FlowFailed, InvalidInput, MissingExtra
from attnflow.fields import AbstractWeight, Constant, Interpolated, PerLayer
from attnflow.flows.outcome import Ending, Outcome
from attnflow.learn.classifier import Classifier, checked_labels, padded
from attnflow.precision import double, is_concrete, to_numpy


@dataclasses.dataclass(frozen=True)
class FitProgress:
    """Where a running fit is."""

    step: int
    """Steps made."""
    of: int
    """Steps asked for."""
    loss: float
    """Loss of the last minibatch, before its step."""
    elapsed: float
    """Seconds since the beginning, compilation included."""
    remaining: float
    """Seconds left at the pace since the first step, which compiles; NaN at that step."""


class Fitted(eqx.Module):
    """What came out of `fit`."""

    classifier: Classifier
    losses: Float[np.ndarray, " step"]
    """Loss of each minibatch before its step."""
    accuracy: float
    """Share of the given points that are classified right at the end."""
    outcome: Outcome
    """Finished, or interrupted."""


@double
def fit(
    classifier: Classifier,
    points: Any,
    labels: Any,
    *,
    steps: int = 300,
    rate: float = 0.02,
    seed: int = 0,
    batch: int | None = None,
    on_progress: Callable[[FitProgress], None] | None = None,
) -> Fitted:
    """Lower the cross-entropy of the classifier on labelled points by `steps` steps of Adam.

    The weights of the field (arrays, `PerLayer`, `Interpolated`) and the read-out are fitted, by the exact gradient of
    the discrete flow (through `advance`), in float64. The same arguments give the same losses.

    Arguments:
        points: shape (points, coordinates); fewer coordinates than the flow has are padded with zeros.
        labels: integers from 0 to classes - 1.
        rate: learning rate of Adam, constant.
        seed: draws the minibatches, a new permutation of the points in every round.
        batch: points per step; default all.
        on_progress: called with a `FitProgress` after every step.

    Ctrl-C returns what has been fitted so far, with the outcome `interrupted`. Raises `FlowFailed`, which carries what
    was fitted before, when the loss is not finite. Needs `pip install 'attnflow[learn]'` (Optax).
    """
    optax = _optax()
    x = np.asarray(padded(points, classifier.dim))
    y = checked_labels(labels, len(x), classifier.classes)
    batch = len(x) if batch is None else batch
    if not _is_count(steps):
        raise InvalidInput(f"`steps` is {steps!r}; give a positive integer.")
    if not _is_count(batch) or batch > len(x):
        raise InvalidInput(f"`batch` is {batch!r}; give an integer from 1 to {len(x)}, the number of points.")
    adam = optax.adam(float(positive("rate")(rate)))
    weights, rest = eqx.partition(classifier, trainable(classifier))

    @jax.jit
    def update(weights: Any, memory: Any, x: Any, y: Any) -> Any:
        # `rest` holds times and steps: plain numbers, so that the loops of `advance` are static and have a reverse mode
        loss, slope = jax.value_and_grad(lambda w: cross_entropy(eqx.combine(w, rest), x, y))(weights)
        with jax.numpy_dtype_promotion("standard"):  # Optax needs it; the user may have set "strict"
            change, memory = adam.update(slope, memory, weights)
            return optax.apply_updates(weights, change), memory, loss

    weights = good = jax.tree.map(jnp.asarray, weights)
    memory, pace = adam.init(weights), _Pace(steps)
    losses: list[float] = []
    outcome = Outcome(Ending.FINISHED, f"made {steps} steps.")
    try:
        for chosen in _minibatches(len(x), batch, steps, seed):
            moved, memory, loss = update(weights, memory, jnp.asarray(x[chosen]), jnp.asarray(y[chosen]))
            if not np.isfinite(loss):
                message = f"the loss is {loss} after {len(losses)} steps; use a smaller `rate`, or a smaller start."
                outcome, weights = Outcome(Ending.FAILED, message), good
                break
            good, weights = weights, moved
            losses.append(float(loss))
            if on_progress is not None:
                on_progress(pace.look(losses))
    except KeyboardInterrupt:
        outcome = Outcome(Ending.INTERRUPTED, f"interrupted after {len(losses)} of {steps} steps.")
    last = eqx.combine(to_numpy(weights), rest)
    fitted = Fitted(last, np.array(losses), last.accuracy(x, y), outcome)
    if not outcome.ok:
        raise FlowFailed(outcome.message, fitted)
    return fitted


@double
def cross_entropy(classifier: Classifier, points: Any, labels: Any) -> Any:
    """-(1/n) sum_i log p(label of i): the loss that `fit` lowers; pure, for one's own training loops."""
    if is_concrete(labels):
        labels = checked_labels(labels, len(points), classifier.classes)
    logs = jax.nn.log_softmax(jnp.asarray(classifier.scores(points)), axis=-1)
    return -jnp.mean(jnp.take_along_axis(logs, jnp.asarray(labels)[:, None], axis=-1))


def trainable(classifier: Classifier) -> Any:
    """A tree of the shape of `classifier`, True at the arrays that `fit` changes: weights of the field and read-out.

    `eqx.partition(classifier, trainable(classifier))` splits them from times and steps, which must stay plain numbers
    under a gradient.
    """

    def mark(node: Any) -> Any:
        marks = jax.tree.map(lambda _: False, node)
        if isinstance(node, Constant) and not isinstance(node.value, Along):
            return eqx.tree_at(lambda w: w.value, marks, True)
        if isinstance(node, PerLayer | Interpolated):
            return eqx.tree_at(lambda w: w.values, marks, True)
        return marks

    marks = jax.tree.map(mark, classifier, is_leaf=lambda node: isinstance(node, AbstractWeight))
    return eqx.tree_at(lambda c: (c.readout, c.bias), marks, (True, True))


class _Pace:
    """Seconds since the beginning, and seconds left."""

    def __init__(self, steps: int):
        self.steps, self.begin, self.first = steps, clock.perf_counter(), 0.0

    def look(self, losses: list[float]) -> FitProgress:
        done, elapsed = len(losses), clock.perf_counter() - self.begin
        self.first = elapsed if done == 1 else self.first
        remaining = (elapsed - self.first) / (done - 1) * (self.steps - done) if done > 1 else float("nan")
        return FitProgress(done, self.steps, losses[-1], elapsed, remaining)


def _minibatches(n: int, batch: int, steps: int, seed: int) -> Iterator[np.ndarray]:
    """Rounds of n // batch disjoint minibatches each; what is left over waits for another round."""
    rng = np.random.default_rng(seed)
    made = 0
    while True:
        order = rng.permutation(n)
        for first in range(0, n - batch + 1, batch):
            if made == steps:
                return
            made += 1
            yield order[first : first + batch]


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _optax() -> Any:
    try:
        import optax
    except ImportError:
        raise MissingExtra("`fit` needs Optax; install `attnflow[learn]`.") from None
    return optax
