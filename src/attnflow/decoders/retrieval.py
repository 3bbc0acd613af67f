"""Retrieval profiles: how much the last token knows about each place of its prompt, by Monte Carlo."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np
from scipy import special as sp

from attnflow import sketches
from attnflow.axes import batches
from attnflow.checks import ABOVE_ZERO, flag, instance, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.fields import AbstractField, Attention
from attnflow.flows import Fixed, advance
from attnflow.flows.driver import Control, Drive
from attnflow.flows.methods import AbstractMethod
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.result import AbstractResult
from attnflow.flows.saving import Save
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.flows.work import AbstractWork, Driven
from attnflow.kernels import AbstractKernel
from attnflow.precision import in_float64
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

PAIRS = 2**23
"""Pairs of tokens in the prompts that are followed together."""


@dataclasses.dataclass(frozen=True)
class Retrieval(AbstractResult):
    """n E P_k(<x_n(t), x_j(0)>), averaged over the tokens j of each bin, with standard errors.

    P_k is the Legendre polynomial of degree k = `degree` in dimension d, with P_k(1) = 1; for d = 2 it is cos(k angle).
    `dataset` has the estimates along `bin`, and `columns` (prompt, variate, bin): the quantity and its control variates
    for every prompt.
    """

    edges: np.ndarray
    """Ends of the bins as shares of the prompt: bin b holds the tokens j < n with edges[b] < j/n <= edges[b+1]."""
    mean: np.ndarray
    standard_error: np.ndarray
    plain_error: np.ndarray
    """The standard error of the plain average, without control variates."""
    n: int
    d: int
    degree: int
    until: float
    prompts: int
    dataset: Any
    outcome: Outcome
    steps: dict[str, int]
    """The number of batches of prompts."""
    checkpoint: Any = None
    """From where `continued` goes on."""
    work: Any = None
    """The work that made it."""

    def _sketches(self) -> list[str]:
        return [sketches.curve(self.place, self.mean, "mean against place")]

    @property
    def place(self) -> np.ndarray:
        """The mean of j/n over the tokens of each bin."""
        return np.asarray([np.mean(tokens) for tokens in _bins(self.n, self.edges)]) / self.n

    def __repr__(self) -> str:
        with np.errstate(invalid="ignore"):
            gain = np.median(self.plain_error / self.standard_error)
        return (
            f"Retrieval({len(self.mean)} bins of {self.n} tokens in R^{self.d}, degree {self.degree}, "
            f"t = {self.until:g}, {self.prompts} prompts, errors {gain:.1f} times smaller than plain)"
        )


def uniform_prompts(n: int, d: int, prompts: int, seed: int | Sequence[int] = 0) -> Tokens:
    """`prompts` independent prompts of n iid uniform tokens on S^(d-1), as a batch along "prompt"."""
    n, d, prompts = whole("n", n, 1), whole("d", d, 2), whole("prompts", prompts, 1)
    drawn = np.random.default_rng(seed).standard_normal((prompts, n, d))
    return Tokens(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True), space=Sphere(d), dims=("prompt",))


@dataclasses.dataclass(frozen=True)
class RetrievalProfile(AbstractWork):
    """A retrieval profile by Monte Carlo: the work of `retrieval_profile`, whose arguments its fields are.

    Where `batch` is left out it depends on `prompts`, and only work that is checked, hence knows it, has a later end.
    """

    rows: ClassVar[str] = "prompt"
    end: ClassVar[str | None] = "prompts"

    field: AbstractField
    n: int
    until: float
    d: int = 2
    degree: int = 1
    prompts: int = 4096
    bins: int | Sequence[float] = 8
    controls: bool = True
    seed: int = 0
    method: AbstractMethod = Fixed(0.1)
    batch: int | None = None

    def checked(self) -> Self:
        instance("field", self.field, AbstractField, "a field such as Attention(1.0, mask=Causal())")
        n, until = whole("n", self.n, 2), number("until", self.until, low=ABOVE_ZERO)
        whole("d", self.d, 2)
        whole("degree", self.degree, 1)
        prompts = whole("prompts", self.prompts, 8)
        flag("controls", self.controls)
        if found := batches(self.field):
            raise InvalidInput(f"`field` varies along {shown(found[0].dim)}; give the field of one system.")
        _edges(n, self.bins)
        whole("seed", self.seed, 0)
        instance("method", self.method, AbstractMethod, "a method such as Fixed(0.1)")
        batch = self.batch
        if batch is None:
            count = -(-prompts // max(4, PAIRS // n**2))
            batch = -(-prompts // count)
        batch = whole("batch", batch, 1)
        require_memory(24 * batch * n * self.d, f"a batch of {batch} prompts of {n} tokens", "use fewer of them")
        return dataclasses.replace(self, until=until, batch=batch)

    def longer(self, until: Any, save: Save | None = None, *, same: bool = False) -> Self:
        """More prompts, in batches of the same size."""
        if self.batch is None:
            raise InvalidInput(
                "`batch` is not given, and it would change with `prompts`; begin with a `batch` instead."
            )
        return super().longer(until, save, same=same)

    def stepper(self) -> "_Prompts":
        return _Prompts(self)

    def result(self, driven: Driven) -> Retrieval:
        """The estimates from the columns of all prompts."""
        kept = driven.dataset
        columns = kept["columns"].values
        if len(columns):
            mean, error, plain = estimates(columns, self.controls)
        else:
            mean, error, plain = np.full((3, columns.shape[-1]), np.nan)
        found = {"mean": mean, "standard_error": error, "plain_error": plain}
        dataset = kept.assign({name: ("bin", values) for name, values in found.items()})
        return Retrieval(
            kept["edges"].values, mean, error, plain, self.n, self.d, self.degree, float(self.until), len(columns),
            dataset, driven.outcome, driven.steps, driven.checkpoint, self,
        )  # fmt: skip


def retrieval_profile(
    field: AbstractField,
    *,
    n: int,
    until: float,
    d: int = 2,
    degree: int = 1,
    prompts: int = 4096,
    bins: int | Sequence[float] = 8,
    controls: bool = True,
    seed: int = 0,
    method: AbstractMethod | None = None,
    batch: int | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Retrieval:
    """What the last token keeps of each place: n E P_k(<x_n(t), x_j(0)>) over prompts of n iid uniform tokens.

    The plain average has a standard error of n sqrt(E P_k^2 / prompts) per token. Two control variates with known means
    make it smaller, about sqrt(n) and then several times: n P_k(<x_n(0), x_j(0)>), of mean 0, and the first order in
    time, n P_k'(q_j) <P_x sum_l w_l K(q_l) x_l, x_j> with q_l = <x_n(0), x_l(0)>, of mean
    n w_j E[K(q) (1 - q^2) P_k'(q)]: other tokens are independent of x_j and drop out. w_l are the weights of the mask,
    which sum to 1. The second one is for `Attention` with a kernel of <x, y> alone; other fields have the first.
    Coefficients of the regression come from the other half of the prompts, so that the estimate is without bias.

    `bins` are a number of equal bins, or their ends as shares of the prompt; `method` is `Fixed(0.1)` unless given.
    `batch` prompts are followed together, by default as many as have `PAIRS` pairs of tokens, at least 4; `prompts` is
    rounded up to whole batches. `controls=False` gives the plain average. `sink`, `on_progress`, `cancel` and `check`
    are those of `solve`.

    Ctrl-C returns the estimate from the prompts so far, with the outcome `interrupted`; `found.continued()` goes on.
    `found.continued(prompts)` adds prompts, bit by bit as one call with this `batch` would have.
    """
    method = RetrievalProfile.method if method is None else method
    work = RetrievalProfile(field, n, until, d, degree, prompts, bins, controls, seed, method, batch)
    found: Retrieval = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _Prompts(AbstractSingle):
    """One batch of prompts a slice; the state is their number."""

    def __init__(self, work: RetrievalProfile):
        self.of, self.edges = work, _edges(work.n, work.bins)
        self.groups = _bins(work.n, self.edges)
        assert work.batch is not None
        self.size, self.count = work.batch, -(-work.prompts // work.batch)
        self.prepared = work.field.prepare(self.prompts(0), flowing=True)

    def prompts(self, batch: int) -> Tokens:
        """The prompts of a batch."""
        of = self.of
        return uniform_prompts(of.n, of.d, self.size, (of.seed, of.n, of.d, batch))

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.count * self.size), self.count * self.size

    def layout(self) -> Layout:
        columns = {"columns": Variable(("prompt", "variate", "bin"), np.dtype(np.float64))}
        sizes = {
            "variate": 3 if _has_first_order(self.of.field) else 2,
            "bin": len(self.groups),
            "edge": len(self.edges),
        }
        edges: dict[str, Any] = {"edges": (("edge",), self.edges)}
        most, chunk = {"prompt": self.count * self.size}, {"prompt": self.size}
        return Layout({"prompt": columns}, sizes, most, {}, edges, chunk, {}, self.goal[0], {})

    def start(self) -> None:
        return None

    def begin(self) -> Any:
        return np.zeros((), np.int64)

    def work(self, state: Any) -> Slice:
        batch, of = int(state), self.of
        if batch >= self.count:
            return Slice(state, None, self._finished())
        start = self.prompts(batch)
        end = advance(self.prepared, start, 0.0, of.until, of.method)
        columns = _columns(of.field, start, np.asarray(end.positions)[:, -1], of.degree, self.groups)
        batch += 1
        done = self._finished() if batch == self.count else None
        return Slice(np.asarray(batch), Rows({"prompt": {"columns": columns}}), done)

    def _finished(self) -> Outcome:
        return Outcome(Ending.FINISHED, f"followed {self.count * self.size} prompts.")

    def reached(self, state: Any, rows: dict[str, int]) -> Reached:
        prompts = int(state) * self.size
        return Reached(float(prompts), rows["prompt"], prompts, f"prompt {prompts} of {self.count * self.size}")

    def steps(self, state: Any) -> dict[str, int]:
        return {"batches": int(state)}

    def finish(self, state: Any) -> dict[str, Any]:
        return {}


def estimates(columns: np.ndarray, controls: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, their standard errors, and those of the plain average, from the columns of all prompts."""
    value, *control = np.moveaxis(columns, 1, 0)  # each of shape (prompt, bin)
    plain = value.std(axis=0, ddof=1) / np.sqrt(len(value))
    if controls:
        value = _reduced(value, np.stack(control, axis=-1))
    return value.mean(axis=0), value.std(axis=0, ddof=1) / np.sqrt(len(value)), plain


def _has_first_order(field: AbstractField) -> bool:
    """Whether the first order in time is known in closed form."""
    return isinstance(field, Attention) and field.kernel.is_isotropic


def _columns(
    field: AbstractField, start: Tokens, last: np.ndarray, degree: int, groups: list[np.ndarray]
) -> np.ndarray:
    """The quantity and its control variates, centred, averaged over each bin: (prompt, variate, bin)."""
    x, n, d = np.asarray(start.positions), start.n, start.dim
    others = x[:, :-1]
    overlap = np.einsum("pd,pjd->pj", x[:, -1], others)
    found = [n * legendre(degree, d, np.einsum("pd,pjd->pj", last, others)), n * legendre(degree, d, overlap)]
    if isinstance(field, Attention) and _has_first_order(field):
        weight = _weights(field, np.asarray(start.place)[..., :].reshape(-1, n)[0])
        pull = weight * _profile(field.kernel, d, overlap)
        drive = np.einsum("pj,pjd->pd", pull, others)
        drive -= np.einsum("pd,pd->p", drive, x[:, -1])[:, None] * x[:, -1]
        slope = legendre_slope(degree, d, overlap) * np.einsum("pd,pjd->pj", drive, others)
        found.append(n * (slope - weight * _mean_pull(field.kernel, degree, d)))
    return np.stack([np.stack([one[:, g - 1].mean(axis=1) for g in groups], axis=1) for one in found], axis=1)


def _reduced(value: np.ndarray, control: np.ndarray) -> np.ndarray:
    """`value` less the regression on controls of mean 0, with the coefficients of the other half of the prompts."""
    halves = np.arange(len(value)) % 2
    found = np.empty_like(value)
    for bin_ in range(value.shape[1]):
        for half in (0, 1):
            other, own = halves != half, halves == half
            y, z = value[other, bin_], control[other, bin_]
            slope = np.linalg.lstsq(z - z.mean(axis=0), y - y.mean(), rcond=None)[0]
            found[own, bin_] = value[own, bin_] - control[own, bin_] @ slope
    return found


def legendre(degree: int, d: int, s: np.ndarray) -> Any:
    """The Legendre polynomial P_k of dimension d, with P_k(1) = 1: C_k^(d/2-1)(s)/C_k^(d/2-1)(1), cos(k arccos s)."""
    if d == 2:
        return sp.eval_chebyt(degree, s)
    return sp.eval_gegenbauer(degree, d / 2 - 1, s) / sp.eval_gegenbauer(degree, d / 2 - 1, 1.0)


def legendre_slope(degree: int, d: int, s: np.ndarray) -> Any:
    """P_k'(s) = k (k + d - 2)/(d - 1) P_{k-1}(s), with P_{k-1} of dimension d + 2."""
    return degree * (degree + d - 2) / (d - 1) * legendre(degree - 1, d + 2, s)


@in_float64
def _profile(kernel: AbstractKernel, d: int, s: np.ndarray) -> np.ndarray:
    """The kernel as a function of <x, y> = s, divided by its largest size on a grid."""
    first = jnp.eye(1, d, dtype=float)

    def block(s: np.ndarray) -> np.ndarray:
        points = np.zeros((s.size, d))
        points[:, 0], points[:, 1] = s.ravel(), np.sqrt(np.maximum(1 - s.ravel() ** 2, 0))
        return np.asarray(kernel.block(first, jnp.asarray(points))).reshape(s.shape)

    values, grid = block(s), block(np.linspace(-1, 1, 201))
    return values / np.abs(grid).max() if kernel.is_signed else np.exp(values - grid.max())


@in_float64
def _weights(field: Attention, place: np.ndarray) -> np.ndarray:
    """What the mask gives the earlier tokens in the sum of the last one; 1 in all."""
    bias = np.broadcast_to(np.asarray(field.mask.bias(jnp.asarray(place[-1:]), jnp.asarray(place))), (1, len(place)))[
        0, :-1
    ]
    weight = np.exp(bias - np.max(bias, initial=-np.inf)) if np.isfinite(bias).any() else np.zeros(len(bias))
    return weight / max(weight.sum(), np.finfo(float).tiny)


def _mean_pull(kernel: AbstractKernel, degree: int, d: int) -> float:
    """E[K(q) (1 - q^2) P_k'(q)] for q = <x, y>, x and y independent and uniform: Gauss quadrature in q."""
    nodes, weights = sp.roots_gegenbauer(200, d / 2 - 1) if d > 2 else sp.roots_chebyt(200)
    value = _profile(kernel, d, nodes) * (1 - nodes**2) * legendre_slope(degree, d, nodes)
    return float(weights @ value / weights.sum())


def _edges(n: int, bins: int | Sequence[float]) -> np.ndarray:
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        edges = np.linspace(0, 1, whole("bins", int(bins), 1) + 1)
    else:
        try:
            edges = np.asarray(bins, float)
        except (TypeError, ValueError):
            raise InvalidInput(f"`bins` is {shown(bins)}; give a number of bins, or their ends from 0 to 1.") from None
    good = edges.ndim == 1 and len(edges) > 1 and (np.diff(edges) > 0).all() and edges[0] >= 0 and edges[-1] <= 1
    if not good:
        raise InvalidInput(f"`bins` is {shown(bins)}; give a number of bins, or their ends, increasing from 0 to 1.")
    empty = [k for k, group in enumerate(_bins(n, edges)) if not len(group)]
    if empty:
        raise InvalidInput(f"bin {empty[0]} of `bins` holds none of the tokens 1 to {n - 1} of {n}; use fewer bins.")
    return edges


def _bins(n: int, edges: np.ndarray) -> list[np.ndarray]:
    """The tokens 1, ..., n - 1 of each bin."""
    tokens = np.arange(1, n)
    return [
        tokens[(tokens / n > low + 1e-12) & (tokens / n <= high + 1e-12)] for low, high in itertools.pairwise(edges)
    ]
