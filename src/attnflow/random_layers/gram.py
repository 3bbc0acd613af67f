"""Random layers on the Gram matrix alone: the cost does not depend on the dimension of the tokens."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import numpy as np
from numpy.typing import ArrayLike

from attnflow import sketches
from attnflow.axes import as_seed, random_key
from attnflow.checks import flag, number, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import length, require_memory, require_steps
from attnflow.flows.compiled import wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.outcome import Outcome, Progress
from attnflow.flows.result import AbstractResult
from attnflow.flows.saving import Evenly, Save, as_times
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.work import AbstractWork, Driven
from attnflow.random_layers.gram_step import further, seen, start_rows
from attnflow.random_layers.layer_stepper import CHUNK, AbstractLayers


@dataclasses.dataclass(frozen=True, repr=False)
class GramPath(AbstractResult):
    """Overlaps of tokens along random layers, for independent networks (replicas).

    `dataset` has the frames along `layer`: `tau`, `gap` and `order` (replica, layer), `factor` (replica, layer, token,
    column). Replica r of one seed is the same whatever the number of replicas and frames.
    """

    dataset: Any
    outcome: Outcome
    steps: dict[str, int]
    """The number of layers."""
    checkpoint: Any = None
    """From where `continued` goes on."""
    work: Any = None
    """The work that made the path."""

    dims: ClassVar[tuple[str, ...]] = ("replica",)

    def __repr__(self) -> str:
        sizes = self.dataset.sizes
        return f"GramPath({sizes['replica']} replicas, {sizes['layer']} frames; {self.outcome.message})"

    def _sketches(self) -> list[str]:
        return [sketches.curve(self.tau, self.gap.mean(axis=0), "mean gap against tau")]

    @property
    def layers(self) -> np.ndarray:
        """(frame,) the numbers of the saved layers, the first is 0."""
        return self.dataset["layer"].values

    @property
    def tau(self) -> np.ndarray:
        """(frame,) eta^2 layers / H."""
        return self.dataset["tau"].values

    @property
    def gap(self) -> np.ndarray:
        """(replica, frame) the mean of 1 - R_ij over pairs, to relative accuracy also near collapse."""
        return self.dataset["gap"].values

    @property
    def order(self) -> np.ndarray:
        """(replica, frame) |mean token|^2."""
        return self.dataset["order"].values

    @property
    def factor(self) -> np.ndarray | None:
        """(replica, frame, n, n) rows F with F F^T = R: the tokens up to a rotation; None if not kept."""
        return self.dataset["factor"].values if "factor" in self.dataset else None

    @property
    def seed(self) -> Any:
        """With it, `gram_layers` gives the same path."""
        return as_seed(self.work.seed)

    @property
    def overlap(self) -> np.ndarray:
        """(replica, frame) the mean of R_ij over pairs i < j."""
        return 1 - self.gap

    @property
    def gram(self) -> np.ndarray:
        """(replica, frame, n, n) the overlaps R."""
        factor = self.factor
        if factor is None:
            raise InvalidInput("`gram` was not kept; call gram_layers with keep=True to have the matrices of overlaps.")
        return np.einsum("...ik,...jk->...ij", factor, factor)

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of `overlap` over replicas and its standard error, for every frame."""
        replicas = len(self.gap)
        if replicas < 2:
            raise InvalidInput("`replicas` is 1, which has no standard error; call gram_layers with more replicas.")
        return self.overlap.mean(axis=0), self.gap.std(axis=0, ddof=1) / np.sqrt(replicas)


@dataclasses.dataclass(frozen=True)
class GramLayers(AbstractWork):
    """Random layers on Gram matrices: the work of `gram_layers`, whose arguments its fields are."""

    rows: ClassVar[str] = "layer"
    end: ClassVar[str | None] = "layers"

    gram: Any
    logit_scale: float
    step: float
    layers: int
    d: int
    d_k: int | None = None
    heads: int = 1
    n: int | None = None
    seed: Any = 0
    replicas: int = 1
    save: Save | None = Evenly(1)
    mean_value: float = 0.0
    keep: bool = True
    """Whether the matrices are kept."""

    def checked(self) -> Self:
        start = start_rows(self.gram, self.n)
        n, d = len(start), whole("d", self.d, 2)
        d_k = whole("d_k", d if self.d_k is None else self.d_k, 1)
        heads = length("heads", self.heads, 1, 4 * n * n)
        if d < n:
            raise InvalidInput(
                f"`d` is {d}, below the number {n} of tokens, whose overlaps are then not free; use `random_attention` "
                "with Layers(step)."
            )
        number("logit_scale", self.logit_scale, low=0.0)
        number("step", self.step, low=0.0)
        number("mean_value", self.mean_value)
        layers, replicas = whole("layers", self.layers, 1), whole("replicas", self.replicas, 1)
        require_steps(layers, f"`layers` is {layers}: the path", "give a smaller number")
        keep, seed = flag("keep", self.keep), as_seed(self.seed)
        made = dataclasses.replace(
            self, layers=layers, d=d, d_k=d_k, heads=heads, seed=seed, replicas=replicas, save=as_times(self.save, 1)
        )
        frames = len(made.times)
        require_memory(
            8 * replicas * frames * (n * n if keep else 2),
            f"{replicas} `replicas` with {frames} frames of {n} tokens",
            "use fewer of them, or keep=False",
        )
        return made

    def stepper(self) -> "_Layers":
        return _Layers(self)

    def result(self, driven: Driven) -> GramPath:
        return GramPath(driven.dataset, driven.outcome, driven.steps, driven.checkpoint, self)

    @property
    def layer_step(self) -> float:
        return 1.0


def gram_layers(
    gram: ArrayLike,
    logit_scale: float,
    step: float,
    layers: int,
    d: int,
    d_k: int | None = None,
    heads: int = 1,
    *,
    n: int | None = None,
    seed: Any = 0,
    replicas: int = 1,
    save: Save | None = None,
    mean_value: float = 0.0,
    keep: bool = True,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> GramPath:
    """The overlaps of n tokens in `random_attention(d, logit_scale, heads, d_k, step=step)`, without the tokens.

    Exact in distribution for every d >= n, d_k and H: the Gram matrix R is a Markov chain, and one layer costs
    O(H n^3) whatever d and d_k are. Derivation (ours; H = 1 as in the theory of arXiv:2604.01978): in an orthonormal
    basis whose first n vectors span the tokens, X = [F, 0] with F F^T = R.

    * Logits. Q and K act on the span by Gaussian matrices of n columns. With Q^T = T O, where T is the Bartlett factor
      of Wishart_n(d_k) and O has orthonormal rows, O K is an n x n Gaussian matrix Z. So the logits of a head are
      b d_k^(-1/2) F T Z F^T, and M_h = softmax F. (For d_k < n the two factors are drawn themselves.)
    * Values. Given all M_h the sum over heads of V_h M_h^T has independent columns of covariance S = sum_h M_h M_h^T
      over d. With C C^T = S it is C times Gaussian numbers, n of them in the span; the Gram matrix of the other d - n
      is that of C T', with T' the Bartlett factor of Wishart_n(d - n).

    So Y = [F + (eta/(H sqrt d)) C Z', (eta/(H sqrt d)) C T'], and the new F is the triangular factor of Y with rows of
    norm 1. All factors are made by QR, never from R or S: nothing is added to a diagonal, and 1 - R_ij keeps its
    relative accuracy near collapse.

    Arguments:
        gram: the start: one overlap for all pairs (then `n` says how many tokens; 0 is orthonormal tokens), or the
            (n, n) matrix of overlaps (`np.eye(n)`).
        step: eta. The canonical time of `layers` layers is tau = eta^2 layers / H.
        seed: an integer or key; replica r draws from fold_in(seed, r), layer k of it from fold_in(., k).
        save: which layers are kept, as for `solve` with layers as times: a number of intervals (1 unless given) or the
            numbers of layers.
        mean_value: v in E V = v I.
        keep: keep the matrices; False keeps mean overlaps alone.
        sink, on_progress, cancel, check: as for `solve`.

    Ctrl-C returns the frames so far, with the outcome `interrupted`. `path.continued(layers)` goes on to more layers,
    bit by bit as one call would have.
    """
    work = GramLayers(gram, logit_scale, step, layers, d, d_k, heads, n, seed, replicas, save, mean_value, keep)
    found: GramPath = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _Layers(AbstractLayers):
    """Layers of all replicas; what they change are the rows F, (replica, n, n)."""

    def __init__(self, work: GramLayers):
        self.of, self.rows = work, start_rows(work.gram, work.n)
        self.numbers = np.asarray([float(work.logit_scale), float(work.step), float(work.mean_value)])
        self.key, self.sizes = random_key(work.seed), (work.heads, work.d, work.d_k)
        super().__init__(np.rint(work.times).astype(np.int64), "layer", work.replicas)

    def layout(self) -> Layout:
        whole, real = np.dtype(np.int64), np.dtype(np.float64)
        frames = {"layer": Variable(("layer",), whole), "tau": Variable(("layer",), real)}
        frames |= {name: Variable(("replica", "layer"), real) for name in ("gap", "order")}
        sizes = {"replica": self.of.replicas}
        if self.of.keep:
            frames["factor"] = Variable(("replica", "layer", "token", "column"), real)
            sizes |= dict.fromkeys(("token", "column"), len(self.rows))
        return Layout(
            {"layer": frames},
            sizes,
            {"layer": len(self.of.times)},
            {"replica": np.arange(self.of.replicas)},
            {},
            {"layer": CHUNK},
            {},
            float(self.of.layers),
            {},
        )

    def inner(self) -> Any:
        return np.broadcast_to(self.rows, (self.of.replicas, *self.rows.shape))

    def first(self) -> dict[str, np.ndarray]:
        found = [np.broadcast_to(np.asarray(a), (self.of.replicas,)) for a in _first(self.rows)]
        return self.row(0, self.inner(), found)

    def further(self, inner: Any, ends: np.ndarray) -> tuple[Any, Any]:
        found: tuple[Any, Any] = wait(further(inner, ends, self.numbers, self.key, self.sizes))
        return found

    def row(self, frame: int, inner: Any, found: Any) -> dict[str, np.ndarray]:
        mark, (gap, order) = self.marks[frame : frame + 1], (np.asarray(a)[:, None] for a in found)
        tau = float(self.of.step) ** 2 * mark / self.of.heads
        factor = {"factor": np.asarray(inner)[:, None]} if self.of.keep else {}
        return {"layer": mark, "tau": tau, "gap": gap, "order": order} | factor


_first = jax.jit(seen)
