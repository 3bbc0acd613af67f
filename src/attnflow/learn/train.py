"""Training on prompts: every step draws new prompts, and several seeds are trained side by side."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from attnflow import sketches
from attnflow.axes import positive
from attnflow.checks import LARGEST_SEED, generator, instance, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory, require_steps
from attnflow.fields import AbstractField, Attention, PerLayer
from attnflow.flows.compiled import wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.result import AbstractResult
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.flows.work import AbstractWork, Driven
from attnflow.learn.descent import TOGETHER, programs
from attnflow.learn.tasks import AbstractTask
from attnflow.learn.trainable import load_optax, named, trainable
from attnflow.precision import in_float64, to_numpy

EVERY = 50
"""Steps between two checkpoints."""
MARKS = 8
"""Marks in every factor of 10 of the steps."""


class Trained(eqx.Module, AbstractResult):
    """The result of `train`: losses of all seeds, and weights at some steps."""

    task: AbstractTask
    losses: Float[np.ndarray, "step seed"]
    """Loss of each batch of prompts before its step."""
    outcome: Outcome
    """Finished, or interrupted."""
    dataset: Any = eqx.field(static=True, repr=False, default=None)
    """Losses by step; by mark (a step of a logarithmic scale) the test loss and the weights; the last weights."""
    checkpoint: Any = eqx.field(static=True, repr=False, default=None)
    """From where `continued` goes on."""
    work: Any = eqx.field(static=True, repr=False, default=None)
    """The work that made it."""

    def _sketches(self) -> list[str]:
        return [sketches.curve(np.arange(len(self.losses)), self.losses.mean(axis=1), "loss against step")]

    @property
    def steps(self) -> dict[str, int]:
        """The number of steps of Adam."""
        return {"made": len(self.losses)}

    @property
    def marks(self) -> np.ndarray:
        """The steps after which weights were kept, 0 first."""
        return np.asarray(self.dataset["mark_step"].values)

    def field(self, seed: int, *, mark: int | None = None) -> AbstractField:
        """The field that number `seed` (0, 1, ...) of the seeds found: at the end, or as it was at a mark."""
        index = whole("seed", seed, 0, len(self.work.seeds) - 1)
        weights = self._weights(None if mark is None else whole("mark", mark, 0, len(self.marks) - 1))
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], weights), self.work.parts[1])

    @in_float64
    def watch(self, observable: Callable[..., Any], *, prompts: int = 64) -> dict[str, np.ndarray]:
        """{name: array (mark, seed, prompt, ...)} of what `observable(field, prompt)` gives, a dict of arrays.

        The function sees one field and one prompt and is compiled; the prompts are those of the test loss.
        """
        whole("prompts", prompts, 1, self.work.test)
        rest = self.work.parts[1]

        @jax.jit
        def look(weights: Any, given: Any) -> Any:
            return jax.vmap(lambda w: jax.vmap(lambda p: observable(eqx.combine(w, rest), p))(given))(weights)

        given = jax.tree.map(lambda a: a[:prompts], self.work.test_prompts())
        rows = [look(self._weights(mark), given) for mark in range(len(self.marks))]
        return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}

    def _weights(self, mark: int | None) -> Any:
        """The weights of all seeds at a mark, or at the end."""
        like, structure = jax.tree.flatten(self.work.parts[0])
        names = list(named(self.work.parts[0]))
        kept = [self.dataset[f"last_{n}"] if mark is None else self.dataset[n][mark] for n in names]
        assert len(kept) == len(like)
        return to_numpy(jax.tree.unflatten(structure, [one.values for one in kept]))


@dataclasses.dataclass(frozen=True)
class Train(AbstractWork):
    """Training on prompts: the work of `train`, whose arguments its fields are."""

    rows: ClassVar[str] = "step"
    end: ClassVar[str | None] = "steps"

    field: AbstractField
    task: AbstractTask
    steps: int = 1000
    rate: float = 0.015
    batch: int = 64
    seeds: Sequence[int] = (0, 1, 2, 3)
    start: float | None = 1.0
    test: int = 256
    decay: float | None = None

    def checked(self) -> Self:
        instance("field", self.field, AbstractField, "a field such as learn.attention_block(8)")
        instance("task", self.task, AbstractTask, "a task such as learn.Clustering()")
        steps = whole("steps", self.steps, 1)
        require_steps(steps, f"`steps` is {shown(steps)}: training", "give a smaller number")
        several = isinstance(self.seeds, Sequence) or (isinstance(self.seeds, np.ndarray) and self.seeds.ndim == 1)
        given: Any = self.seeds if several else (self.seeds,)
        seeds = tuple(whole("seeds", one, 0, largest=LARGEST_SEED) for one in given)
        if not seeds or len(set(seeds)) < len(seeds):
            raise InvalidInput(f"`seeds` is {shown(self.seeds)}; give at least one seed, each once.")
        start = None if self.start is None else number("start", self.start, low=0.0)
        self.task.check(self.field)
        if not jax.tree.leaves(self.parts[0]):
            raise InvalidInput("`field` has no weights to train; give it matrices, say learn.attention_block(8).")
        n, dim = self.task.size
        count = whole("batch", self.batch, 1) * len(seeds) + whole("test", self.test, 1)
        require_memory(16 * count * n * (n + dim), "the prompts of a step", "use a smaller `batch`")
        rate = float(positive("rate")(self.rate))
        decay = None if self.decay is None else float(positive("decay")(self.decay))
        return dataclasses.replace(self, steps=steps, rate=rate, seeds=seeds, start=start, decay=decay)

    @property
    def parts(self) -> tuple[Any, Any]:
        """(weights, rest) of the field."""
        found: tuple[Any, Any] = eqx.partition(self.field, trainable(self.field))
        return found

    def starts(self) -> Any:
        """The weights of all seeds at the start."""

        def one(seed: int) -> Any:
            leaves, structure = jax.tree.flatten(self.parts[0])
            if self.start is None:
                return self.parts[0]
            rng = stream(seed, 0)
            drawn = [self.start * rng.standard_normal(leaf.shape) / np.sqrt(leaf.shape[-1]) for leaf in leaves]
            return jax.tree.unflatten(structure, drawn)

        return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *map(one, self.seeds))

    def test_prompts(self) -> Any:
        """The prompts of the test loss, the same for all seeds and in no training batch."""
        return self.task.draw(stream(self.seeds[0], 2), self.test)

    def stepper(self) -> "_Training":
        return _Training(self)

    def result(self, driven: Driven) -> Trained:
        losses = driven.dataset["loss"].values
        return Trained(self.task, losses, driven.outcome, driven.dataset, driven.checkpoint, self)


def stream(seed: int, *labels: int) -> np.random.Generator:
    """Random numbers of a seed: 0 for its start, (1, step) for the prompts of a step, 2 for the test."""
    return np.random.default_rng([seed, *labels])


def train(
    field: AbstractField,
    task: AbstractTask,
    *,
    steps: int = 1000,
    rate: float = 0.015,
    batch: int = 64,
    seeds: Sequence[int] = (0, 1, 2, 3),
    start: float | None = 1.0,
    test: int = 256,
    decay: float | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Trained:
    """Lower the loss of `task` by `steps` steps of Adam on the weights of `field`, for several seeds side by side.

    ```python
    found = af.learn.train(af.learn.attention_block(8), af.learn.Clustering(), steps=800, seeds=range(4))
    found.field(0), found.losses
    ```

    Every step draws `batch` new prompts for each seed. The gradient is the exact one of the layers, in float64. The
    same arguments give the same losses.

    Arguments:
        rate: learning rate of Adam.
        decay: after so many steps the rate is half as large: rate/(1 + step/decay); None: constant.
        seeds: each has its own start and its own prompts.
        start: weights start as Gaussian numbers of standard deviation start/sqrt(columns), so that a matrix keeps the
            length of a vector on average for start = 1; None: every seed starts with the weights of `field`.
        test: prompts of the test loss, which no step sees.
        sink, on_progress, cancel, check: as for `solve`; `Progress.note` has the losses.

    At steps 0, 1, 2, 3, 4, 6, 8, 10, 13, ... (marks: 8 in each factor of 10) the test loss and the weights are kept, so
    that any observable can be followed through training (`trained.watch`). `trained.continued(steps)` goes on to more
    steps, bit by bit as one call would have. Raises `FlowFailed`, which carries what was found before, when a loss is
    not finite. Needs `pip install 'attnflow[learn]'` (Optax).
    """
    work = Train(field, task, steps, rate, batch, seeds, start, test, decay)
    found: Trained = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


def attention_block(dim: int, *, layers: int | None = None, step: float = 0.5, seed: int = 0) -> Attention:
    """Softmax attention with Gaussian matrices Q, K and V for `train`: one set of weights for all layers.

    With `layers` every layer has matrices of its own, each for a time `step`. Entries have the variance 1/dim.
    """
    size, rng = whole("dim", dim, 1, 2**20), generator(seed)
    if layers is None:
        query, key, value = rng.standard_normal((3, size, size)) / np.sqrt(size)
        return Attention(1.0, query=query, key=key, value=value)
    every = rng.standard_normal((3, whole("layers", layers, 1), size, size)) / np.sqrt(size)
    query, key, value = (PerLayer(values, step) for values in every)
    return Attention(1.0, query=query, key=key, value=value)


def marks_until(steps: int) -> np.ndarray:
    """0 and the whole numbers nearest to powers of 10^(1/MARKS), up to `steps`."""
    powers = np.arange(MARKS * (len(str(steps)) + 1))
    found = np.unique(np.rint(10 ** (powers / MARKS)).astype(int))
    return np.concatenate([[0], found[found <= steps]])


class _TrainState(NamedTuple):
    weights: Any
    memory: Any
    """Of Adam."""
    done: Any
    """Steps made."""
    marked: Any
    """Marks that are kept."""
    losses: Any
    """Of the steps since the last rows were handed over."""


class _Training(AbstractSingle):
    """Adam on the weights of a field, for all seeds at once; what a slice computes does not depend on its ends."""

    def __init__(self, train: Train):
        load_optax("train")
        self.train, self.marks = train, marks_until(train.steps)
        self.programs = programs(train.task, train.parts[1], train.rate, train.decay)
        self.prompts: Any = None

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.train.steps), self.train.steps

    def layout(self) -> Layout:
        real, seeds, steps = np.dtype(np.float64), self.train.seeds, self.train.steps
        marks = {"mark_step": Variable(("mark",), np.dtype(np.int64)), "test_loss": Variable(("mark", "seed"), real)}
        sizes = {"seed": len(seeds)}
        for name, leaf in named(self.train.parts[0]).items():
            dims = tuple(f"{name}_{k}" for k in range(np.ndim(leaf)))
            marks[name] = Variable(("mark", "seed", *dims), real)
            sizes |= dict(zip(dims, np.shape(leaf), strict=True))
        tables = {"step": {"loss": Variable(("step", "seed"), real)}, "mark": marks}
        most = {"step": steps, "mark": len(self.marks)}
        labels = {"seed": np.array(seeds)}
        return Layout(tables, sizes, most, labels, {}, {"step": EVERY, "mark": MARKS}, {}, float(steps), {})

    def start(self) -> None:
        return None

    def begin(self) -> _TrainState:
        weights = jax.device_put(self.train.starts())
        memory = self.programs.begin(weights)
        none = np.zeros((0, len(self.train.seeds)))
        return _TrainState(weights, memory, np.zeros((), np.int64), np.zeros((), np.int64), none)

    def work(self, state: _TrainState) -> Slice:
        """Keep a mark, or make some steps; rows are handed over at marks, every `EVERY` steps and at the end."""
        done, steps, marked = int(state.done), self.train.steps, int(state.marked)
        finished = Outcome(Ending.FINISHED, f"made {steps} steps.") if done >= steps else None
        if marked < len(self.marks) and self.marks[marked] == done:
            rows = self._handed(state) | {"mark": self._kept(state, done)}
            return Slice(self._emptied(state)._replace(marked=np.asarray(marked + 1)), Rows(rows), finished)
        if finished is not None:
            handed = self._handed(state)
            return Slice(self._emptied(state), Rows(handed) if handed else None, finished)
        stops = [done + TOGETHER - done % TOGETHER, steps, *self.marks[marked : marked + 1]]
        last = int(min(stops))
        weights, memory, losses = wait(
            self.programs.several(state.weights, state.memory, self._prompts(done, last), last - done)
        )
        losses = np.asarray(losses)[: last - done]
        if not np.isfinite(losses).all():
            row, seed = (int(k[0]) for k in np.nonzero(~np.isfinite(losses)))
            words = f"the loss of seed {self.train.seeds[seed]} is {losses[row, seed]} after {done + row} steps"
            return Slice(state, None, Outcome(Ending.FAILED, f"{words}; use a smaller `rate`, or a smaller `start`."))
        both = np.concatenate([np.asarray(state.losses), losses])
        state = _TrainState(weights, memory, np.asarray(last), state.marked, both)
        if last % EVERY or (marked < len(self.marks) and self.marks[marked] == last) or last == steps:
            return Slice(state, None)  # the next slice hands the rows over
        return Slice(self._emptied(state), Rows(self._handed(state)))

    def unfinished(self, state: _TrainState) -> Rows | None:
        handed = self._handed(state)
        return Rows(handed) if handed else None

    def reached(self, state: _TrainState, rows: dict[str, int]) -> Reached:
        done = int(state.done)
        losses: Any = np.sort(state.losses[-1]) if len(state.losses) else ()
        words = f" · loss {losses[0]:.4g} to {losses[-1]:.4g}" if len(losses) > 1 else ""
        words = f" · loss {losses[0]:.4g}" if len(losses) == 1 else words
        return Reached(float(done), done, done, f"step {done} of {self.train.steps}{words}")

    def steps(self, state: _TrainState) -> dict[str, int]:
        return {"made": int(state.done)}

    def finish(self, state: _TrainState) -> dict[str, Any]:
        return {
            f"last_{name}": (("seed", *(f"{name}_{k}" for k in range(np.ndim(leaf) - 1))), np.asarray(leaf))
            for name, leaf in named(state.weights).items()
        }

    def _prompts(self, first: int, last: int) -> Any:
        """(step, seed, batch, ...) of the prompts, filled up by zeros: one program for slices of any length."""
        rows = [
            [self.train.task.draw(stream(seed, 1, step), self.train.batch) for seed in self.train.seeds]
            for step in range(first, last)
        ]
        stacked = jax.tree.map(lambda *a: np.stack(a), *[jax.tree.map(lambda *a: np.stack(a), *row) for row in rows])
        return jax.tree.map(lambda a: np.concatenate([a, np.zeros((TOGETHER - len(a), *a.shape[1:]))]), stacked)

    def _handed(self, state: _TrainState) -> dict[str, Any]:
        """The rows of the steps that wait; nothing where there are none."""
        return {"step": {"loss": np.asarray(state.losses)}} if len(state.losses) else {}

    def _emptied(self, state: _TrainState) -> _TrainState:
        return state._replace(losses=np.zeros((0, len(self.train.seeds))))

    def _kept(self, state: _TrainState, done: int) -> dict[str, np.ndarray]:
        """One row of the marks."""
        if self.prompts is None:
            self.prompts = self.train.test_prompts()
        found = wait(self.programs.test_loss(state.weights, self.prompts))
        rows = {"mark_step": np.array([done]), "test_loss": np.asarray(found)[None]}
        return rows | {name: np.asarray(leaf)[None] for name, leaf in named(state.weights).items()}
