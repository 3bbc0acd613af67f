"""Gradient descent on the weights of a flow."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attnflow import sketches
from attnflow.axes import positive
from attnflow.checks import LARGEST_SEED, instance, shown, whole
from attnflow.feasible import require_steps
from attnflow.flows.compiled import wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.result import AbstractResult
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stepper import AbstractStepper, Rows, Slice
from attnflow.flows.work import AbstractWork, Driven
from attnflow.learn.classifier import Classifier, checked_labels, padded
from attnflow.learn.trainable import load_optax, named, trainable
from attnflow.precision import full_precision, in_float64, is_concrete, to_numpy

EVERY = 50
"""Steps between two checkpoints."""


class Fitted(eqx.Module, AbstractResult):
    """The result of `fit`."""

    classifier: Classifier
    losses: Float[np.ndarray, " step"]
    """Loss of each minibatch before its step."""
    accuracy: float
    """Share of the given points that are classified right at the end."""
    outcome: Outcome
    """Finished, or interrupted."""
    dataset: Any = eqx.field(static=True, repr=False, default=None)
    """Losses and fitted weights as they are stored in a run folder."""
    checkpoint: Any = eqx.field(static=True, repr=False, default=None)
    """From where `continued` goes on."""
    work: Any = eqx.field(static=True, repr=False, default=None)
    """The work that made it."""

    def _sketches(self) -> list[str]:
        return [sketches.curve(np.arange(len(self.losses)), self.losses, "loss against step")]

    @property
    def steps(self) -> dict[str, int]:
        """The number of steps of Adam."""
        return {"made": len(self.losses)}


@dataclasses.dataclass(frozen=True)
class Fit(AbstractWork):
    """Gradient descent on the weights of a flow: the work of `fit`, whose arguments its fields are."""

    rows: ClassVar[str] = "step"
    end: ClassVar[str | None] = "steps"

    classifier: Classifier
    data: tuple[Any, Any]
    """Points and labels."""
    steps: int = 300
    rate: float = 0.02
    seed: int = 0
    batch: int | None = None

    def checked(self) -> Self:
        steps, classifier = self.steps, self.classifier
        require_steps(whole("steps", steps, 1), f"`steps` is {shown(steps)}: the fit", "give a smaller number")
        instance("classifier", classifier, Classifier, "a Classifier")
        points, labels = self.data
        with full_precision():
            x = np.asarray(padded(points, classifier.dim))
        y = checked_labels(labels, len(x), classifier.classes)
        batch = len(x) if self.batch is None else self.batch
        whole("batch", batch, 1, len(x))
        whole("seed", self.seed, 0, largest=LARGEST_SEED)
        return dataclasses.replace(self, data=(x, y), rate=float(positive("rate")(self.rate)), batch=batch)

    def stepper(self) -> "_Descent":
        return _Descent(self)

    def result(self, driven: Driven) -> Fitted:
        """The classifier with the weights in the dataset."""
        weights, rest = eqx.partition(self.classifier, trainable(self.classifier))
        like, structure = jax.tree.flatten(weights)
        kept = driven.dataset
        found = [kept[name].values if name in kept else leaf for name, leaf in zip(named(weights), like, strict=True)]
        last = eqx.combine(to_numpy(jax.tree.unflatten(structure, found)), rest)
        with full_precision():
            accuracy = last.accuracy(*self.data)
        return Fitted(last, kept["loss"].values, accuracy, driven.outcome, kept, driven.checkpoint, self)


def fit(
    classifier: Classifier,
    points: Any,
    labels: Any,
    *,
    steps: int = 300,
    rate: float = 0.02,
    seed: int = 0,
    batch: int | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Fitted:
    """Lower the cross-entropy of the classifier on labelled points by `steps` steps of Adam.

    The weights of the field (arrays, `PerLayer`, `Pieces`, `Interpolated`) and the read-out are fitted, by the exact
    gradient of the discrete flow (through `advance`), in float64. The same arguments give the same losses.

    Arguments:
        points: shape (points, coordinates); fewer coordinates than the flow has are padded with zeros.
        labels: integers from 0 to classes - 1.
        rate: learning rate of Adam, constant.
        seed: draws the minibatches, a new permutation of the points in every round.
        batch: points per step; default all.
        sink, on_progress, cancel, check: as for `solve`; `Progress.note` has the loss.

    `fitted.continued(steps)` goes on to more steps, bit by bit as one call would have. Ctrl-C returns what has been
    fitted so far, with the outcome `interrupted`. Raises `FlowFailed`, which carries what
    was fitted before, when the loss is not finite. Needs `pip install 'attnflow[learn]'` (Optax).
    """
    work = Fit(classifier, (points, labels), steps, rate, seed, batch)
    found: Fitted = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _FitState(NamedTuple):
    weights: Any
    memory: Any
    """Of Adam."""
    done: Any
    """Steps made."""
    losses: Any
    """Of the steps since the last rows were handed over."""


class _Descent(AbstractStepper):
    """Adam on the weights of a classifier."""

    def __init__(self, fit: Fit):
        optax = load_optax("fit")
        self.fit = fit
        self.weights, self.rest = eqx.partition(fit.classifier, trainable(fit.classifier))
        self.adam = optax.adam(fit.rate)
        self.round: tuple[int, np.ndarray] | None = None
        rest, adam = self.rest, self.adam

        @jax.jit
        def update(weights: Any, memory: Any, x: Any, y: Any) -> Any:
            # `rest` holds times and steps: plain numbers, so that loops of `advance` are static and have a reverse mode
            loss, slope = jax.value_and_grad(lambda w: cross_entropy(eqx.combine(w, rest), x, y))(weights)
            with jax.numpy_dtype_promotion("standard"):  # Optax needs it; the user may have set "strict"
                change, memory = adam.update(slope, memory, weights)
                return optax.apply_updates(weights, change), memory, loss

        self.update = update

    @property
    def batch(self) -> tuple[str, ...]:
        return ()

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.fit.steps), self.fit.steps

    def layout(self) -> Layout:
        losses = {"loss": Variable(("step",), np.dtype(np.float64))}
        steps = self.fit.steps
        return Layout({"step": losses}, {}, {"step": steps}, {}, {}, {"step": EVERY}, {}, float(steps), {})

    def start(self) -> None:
        return None

    def begin(self) -> _FitState:
        weights = jax.device_put(jax.tree.map(np.asarray, self.weights))
        return _FitState(weights, jax.jit(self.adam.init)(weights), np.zeros((), np.int64), np.zeros(0))

    def work(self, state: _FitState) -> Slice:
        """One step; rows are handed over every `EVERY` steps."""
        steps, done = self.fit.steps, int(state.done)
        if done >= steps:
            return Slice(state, None, Outcome(Ending.FINISHED, f"made {steps} steps."))
        chosen = self._minibatch(done)
        x, y = self.fit.data[0][chosen], self.fit.data[1][chosen]
        weights, memory, loss = wait(self.update(state.weights, state.memory, x, y))
        if not np.isfinite(loss):
            message = f"the loss is {loss} after {done} steps; use a smaller `rate`, or a smaller start."
            return Slice(state, None, Outcome(Ending.FAILED, message))
        done += 1
        losses = np.append(state.losses, float(loss))
        state = _FitState(weights, memory, np.asarray(done), losses)
        if done % EVERY and done < steps:
            return Slice(state, None)
        finished = Outcome(Ending.FINISHED, f"made {steps} steps.") if done == steps else None
        return Slice(state._replace(losses=np.zeros(0)), Rows({"step": {"loss": losses}}), finished)

    def unfinished(self, state: _FitState) -> Rows | None:
        return Rows({"step": {"loss": np.asarray(state.losses)}}) if len(state.losses) else None

    def hold(self, state: _FitState, members: np.ndarray, time: float, frame: Any) -> _FitState:
        return state

    def are_still(self, times: np.ndarray, frames: dict[str, np.ndarray]) -> None:
        return None

    def reached(self, state: _FitState, rows: dict[str, int]) -> Reached:
        done = int(state.done)
        loss = f" · loss {state.losses[-1]:.4g}" if len(state.losses) else ""
        return Reached(float(done), done, done, f"step {done} of {self.fit.steps}{loss}")

    def steps(self, state: _FitState) -> dict[str, int]:
        return {"made": int(state.done)}

    def finish(self, state: _FitState) -> dict[str, Any]:
        return {
            name: (tuple(f"{name}_{k}" for k in range(np.ndim(leaf))), np.asarray(leaf))
            for name, leaf in named(state.weights).items()
        }

    def _minibatch(self, step: int) -> np.ndarray:
        """Rounds of n // batch disjoint minibatches each; what is left over waits for another round."""
        n, batch = len(self.fit.data[0]), self.fit.batch or len(self.fit.data[0])
        number, place = divmod(step, n // batch)
        if self.round is None or self.round[0] != number:
            self.round = (number, np.random.default_rng([self.fit.seed, number]).permutation(n))
        return self.round[1][place * batch : (place + 1) * batch]


@in_float64
def cross_entropy(classifier: Classifier, points: Any, labels: Any) -> Any:
    """-(1/n) sum_i log p(label of i): the loss that `fit` lowers; pure, for one's own training loops."""
    if is_concrete(labels):
        labels = checked_labels(labels, len(points), classifier.classes)
    logs = jax.nn.log_softmax(jnp.asarray(classifier.scores(points)), axis=-1)
    return -jnp.mean(jnp.take_along_axis(logs, jnp.asarray(labels)[:, None], axis=-1))
