"""One random layer on the rows F of a Gram matrix R = F F^T, and the rows to start with."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import finite_array, over_members
from attnflow.checks import number, shown
from attnflow.errors import InvalidInput
from attnflow.feasible import length
from attnflow.flows.compiled import compiled

NEARLY_A_GRAM = 1e-8
"""How far a Gram matrix may be from symmetric, unit diagonal and positive."""


def start_rows(gram: Any, n: int | None) -> np.ndarray:
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
def further(rows: Any, ends: Any, numbers: Any, key: Any, sizes: tuple[int, int, int]) -> Any:
    """Rows (replica, n, n) after the layers from ends[0] to ends[1], and what there is to say about them.

    (A scan of one frame: as a loop alone, layers are compiled into a program that rounds chi variables differently.)
    """

    def one(replica: Any, rows: Any) -> Any:
        own = jax.random.fold_in(key, replica)

        def frame(rows: Any, ends: Any) -> Any:
            rows = jax.lax.fori_loop(
                ends[0], ends[1], lambda k, rows: _layer(rows, jax.random.fold_in(own, k), numbers, sizes), rows
            )
            return rows, (rows, seen(rows))

        return jax.tree.map(lambda a: a[0], jax.lax.scan(frame, rows, ends[None])[1])

    return over_members(one, (0, 0), (jnp.arange(len(rows)), rows), sizes[0] * rows.shape[1] ** 2)


def seen(rows: Any) -> Any:
    """The mean of 1 - R_ij over pairs, which is the sum of |x_i - mean|^2 over n - 1; |mean|^2."""
    middle = jnp.mean(rows, axis=0)
    return jnp.sum((rows - middle[None]) ** 2) / (rows.shape[0] - 1), jnp.sum(middle**2)


def _layer(rows: Any, key: Any, numbers: Any, sizes: tuple[int, int, int]) -> Any:
    """One layer: rows F before and after it."""
    (heads, d, d_k), n = sizes, rows.shape[0]
    b, eta, v = numbers
    own, other, left, right, inner, outer = _drawn(
        key,
        _wishart(n, d_k, heads),
        _wishart(n, d - n),
        (heads, n, _columns(n, d_k)),
        (heads, _columns(n, d_k), n),
        (n, n),
        (n, _columns(n, d - n)),
    )

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
