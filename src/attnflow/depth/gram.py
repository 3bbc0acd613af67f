"""Random layers on the Gram matrix alone: the cost does not depend on the dimension of the tokens."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from attnflow.axes import as_seed, finite_array, over_members, random_key
from attnflow.checks import flag, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import length, require_memory
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.save import Save, saved_times
from attnflow.precision import full_precision

NEARLY_A_GRAM = 1e-8
"""How far a Gram matrix may be from symmetric, unit diagonal and positive."""


@dataclasses.dataclass(frozen=True)
class GramPath:
    """Overlaps of tokens along random layers, for independent networks (replicas).

    Replica r of one seed is the same whatever the number of replicas and frames.
    """

    layers: np.ndarray
    """(frame,) the numbers of the saved layers, the first is 0."""
    tau: np.ndarray
    """(frame,) eta^2 layers / H."""
    gap: np.ndarray
    """(replica, frame) the mean of 1 - R_ij over pairs, to relative accuracy also near collapse."""
    order: np.ndarray
    """(replica, frame) |mean token|^2."""
    factor: np.ndarray | None
    """(replica, frame, n, n) rows F with F F^T = R: the tokens up to a rotation; None if not kept."""
    seed: Any
    """With it, `gram_layers` gives the same path."""

    @property
    def overlap(self) -> np.ndarray:
        """(replica, frame) the mean of R_ij over pairs i < j."""
        return 1 - self.gap

    @property
    def gram(self) -> np.ndarray:
        """(replica, frame, n, n) the overlaps R."""
        if self.factor is None:
            raise InvalidInput("`gram` was not kept; call gram_layers with keep=True to have the matrices of overlaps.")
        return np.einsum("...ik,...jk->...ij", self.factor, self.factor)

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of `overlap` over replicas and its standard error, for every frame."""
        replicas = len(self.gap)
        if replicas < 2:
            raise InvalidInput("`replicas` is 1, which has no standard error; call gram_layers with more replicas.")
        return self.overlap.mean(axis=0), self.gap.std(axis=0, ddof=1) / np.sqrt(replicas)


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
    """
    start = _start(gram, n)
    n = len(start)
    d = whole("d", d, 2)
    d_k, heads = whole("d_k", d if d_k is None else d_k, 1), length("heads", heads, 1, 4 * n * n)
    if d < n:
        raise InvalidInput(
            f"`d` is {d}, below the number {n} of tokens, whose overlaps are then not free; use `random_attention` "
            "with Layers(step)."
        )
    b, eta = number("logit_scale", logit_scale, low=0.0), number("step", step, low=0.0)
    v, layers = number("mean_value", mean_value), whole("layers", layers, 1)
    replicas, keep, seed = whole("replicas", replicas, 1), flag("keep", keep), as_seed(seed)
    marks = np.rint(saved_times(save, float(layers), 1.0, default=1)).astype(np.int64)
    require_memory(
        8 * replicas * len(marks) * (n * n if keep else 2),
        f"{replicas} `replicas` with {len(marks)} frames of {n} tokens", "use fewer of them, or keep=False",
    )  # fmt: skip
    with full_precision():
        numbers = np.asarray([b, eta, v])
        found = wait(_paths(start, numbers, random_key(seed), np.arange(replicas), marks, (heads, d, d_k), keep))
        gap, order, factor = found
        kept = np.asarray(factor) if keep else None
    return GramPath(marks, eta**2 * marks / heads, np.asarray(gap), np.asarray(order), kept, seed)


def _start(gram: Any, n: int | None) -> np.ndarray:
    """Rows F with F F^T the given overlaps."""
    given = finite_array("`gram`", gram)
    if given.shape == ():
        if n is None:
            raise InvalidInput(f"`gram` is the overlap {shown(gram)} of all pairs; give the number `n` of tokens too.")
        n = length("n", n, 2, int(n) if isinstance(n, int) else 1)
        overlap = number("gram", gram, low=-1 / (n - 1), high=1.0)
        width = np.sqrt(1 - overlap)
        along = np.sqrt(max(1 + (n - 1) * overlap, 0.0))
        return width * np.eye(n) + (along - width) / n
    if given.ndim != 2 or given.shape[0] != given.shape[1] or len(given) < 2 or n not in (None, len(given)):
        raise InvalidInput(f"`gram` has shape {given.shape}; give one overlap, or the (n, n) matrix of at least two.")
    bad = max(np.abs(given - given.T).max(), np.abs(np.diag(given) - 1).max())
    given = (given + given.T) / 2
    least = np.linalg.eigvalsh(given)[0]
    if bad > NEARLY_A_GRAM or least < -NEARLY_A_GRAM * len(given):
        raise InvalidInput(
            f"`gram` is no matrix of overlaps of unit vectors (diagonal or symmetry off by {bad:.1e}, least eigenvalue "
            f"{least:.1e}); give <x_i, x_j>."
        )
    return _cholesky(given)


def _cholesky(gram: np.ndarray) -> np.ndarray:
    """The triangular factor of a matrix of any rank, rows of norm 1: pivots of rounding size are 0, so twins stay so.

    (An eigenvalue of rounding size would put twins 10^-8 apart.)
    """
    n = len(gram)
    left, rows = gram.copy(), np.zeros((n, n))
    for k in range(n):
        if left[k, k] > 8 * n * np.finfo(float).eps:
            rows[k:, k] = left[k:, k] / np.sqrt(left[k, k])
            left[k:, k:] -= np.outer(rows[k:, k], rows[k:, k])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@compiled
def _paths(
    start: Any, numbers: Any, key: Any, replicas: Any, marks: Any, sizes: tuple[int, int, int], keep: bool
) -> Any:
    def one(replica: Any) -> Any:
        own = jax.random.fold_in(key, replica)

        def frame(rows: Any, ends: Any) -> Any:
            rows = jax.lax.fori_loop(
                ends[0], ends[1], lambda k, rows: _layer(rows, jax.random.fold_in(own, k), numbers, sizes), rows
            )
            return rows, _seen(rows, keep)

        begin = jnp.asarray(start)
        _, found = jax.lax.scan(frame, begin, jnp.stack([marks[:-1], marks[1:]], axis=1))
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), _seen(begin, keep), found)

    return over_members(one, (0,), (replicas,), sizes[0] * start.shape[0] ** 2)


def _seen(rows: Any, keep: bool) -> Any:
    """The mean of 1 - R_ij over pairs, which is the sum of |x_i - mean|^2 over n - 1; |mean|^2; the rows."""
    middle = jnp.mean(rows, axis=0)
    gap = jnp.sum((rows - middle[None]) ** 2) / (rows.shape[0] - 1)
    return gap, jnp.sum(middle**2), rows if keep else None


def _layer(rows: Any, key: Any, numbers: Any, sizes: tuple[int, int, int]) -> Any:
    """One layer: rows F before and after it."""
    (heads, d, d_k), n = sizes, rows.shape[0]
    b, eta, v = numbers
    own, other, left, right, inner, outer = _drawn(
        key, _wishart(n, d_k, heads), _wishart(n, d - n), (heads, n, _columns(n, d_k)), (heads, _columns(n, d_k), n),
        (n, n), (n, _columns(n, d - n)),
    )  # fmt: skip

    def head(chi: Any, left: Any, right: Any) -> Any:
        logits = b * d_k**-0.5 * (rows @ _bartlett(left, chi) @ right @ rows.T)
        return jax.nn.softmax(logits, axis=-1) @ rows

    means = jax.vmap(head)(own, left, right)
    spread = means[0] if heads == 1 else _lower(jnp.moveaxis(means, 0, 1).reshape(n, -1))
    size = eta / (heads * d**0.5)
    moved = rows + size * (spread @ inner) + (eta * v / heads) * jnp.sum(means, axis=0)
    if d > n:
        moved = _lower(jnp.concatenate([moved, size * (spread @ _bartlett(outer, other))], axis=1))
    return moved / jnp.linalg.norm(moved, axis=1, keepdims=True)


def _columns(n: int, degrees: int) -> int:
    """How many columns of Gaussian numbers stand for `degrees` of them; n is the triangular factor of Bartlett."""
    return degrees if degrees <= 3 * n else n


def _wishart(n: int, degrees: int, *copies: int) -> np.ndarray:
    """The degrees of the chi variables on the diagonal of a Bartlett factor; none where it is not used."""
    return np.zeros((*copies, 0)) if degrees <= 3 * n else np.broadcast_to(degrees - np.arange(n), (*copies, n))


def _bartlett(gaussian: Any, chi: Any) -> Any:
    """A matrix T of n rows such that T T^T has the Wishart distribution, from Gaussian numbers and chi variables."""
    return gaussian if chi.size == 0 else jnp.tril(gaussian, -1) + jnp.diag(chi)


def _drawn(key: Any, own: np.ndarray, other: np.ndarray, *shapes: tuple[int, ...]) -> Any:
    """Chi variables of the degrees `own` and `other`, and Gaussian numbers of the shapes: drawn in one go."""
    first, second = jax.random.split(key)
    degrees = np.concatenate([own.reshape(-1), other.reshape(-1)])
    chi = jnp.sqrt(2 * _gamma(first, jnp.asarray(degrees / 2))) if degrees.size else jnp.zeros(0)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = jnp.split(jax.random.normal(second, (int(ends[-1]),)), ends[:-1])
    numbers = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    return chi[: own.size].reshape(own.shape), chi[own.size :].reshape(other.shape), *numbers


def _gamma(key: Any, shape: Any) -> Any:
    """Gamma variables of these shape parameters, at least 1, by the rejection of Marsaglia and Tsang (2000).

    All of them at once: `jax.random.gamma` works through them one by one.
    """
    most = shape - 1 / 3

    def again(state: Any) -> Any:
        key, found = state
        key, first, second = jax.random.split(key, 3)
        x = jax.random.normal(first, shape.shape)
        root = 1 + x / jnp.sqrt(9 * most)
        v = jnp.where(root > 0, root, 1.0) ** 3
        level = x**2 / 2 + most * (1 - v + jnp.log(v))
        taken = (root > 0) & (jnp.log1p(-jax.random.uniform(second, shape.shape)) < level)
        return key, jnp.where(jnp.isnan(found) & taken, most * v, found)

    return jax.lax.while_loop(lambda state: jnp.isnan(state[1]).any(), again, (key, jnp.full(shape.shape, jnp.nan)))[1]


def _lower(wide: Any) -> Any:
    """The square matrix C with C C^T = Y Y^T, for Y with at least as many columns as rows."""
    return jnp.linalg.qr(wide.T, mode="r").T
