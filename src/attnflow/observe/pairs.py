"""Observables of pairs: overlaps and attention weights."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import one_system
from attnflow.errors import InvalidInput, TooLarge
from attnflow.feasible import LARGEST_TABLE, length
from attnflow.fields import Attention
from attnflow.fields.argument_checks import checked_arguments
from attnflow.fields.pairs import Pairs
from attnflow.kernels import cast
from attnflow.observe.observable import observable
from attnflow.precision import in_float64, is_traced
from attnflow.special.formula import Integers, Other, formula
from attnflow.sums import Tiled
from attnflow.tokens import Measure, Tokens, all_present


@observable
@formula(tokens=Other("tokens of length up to 1"), limit=Integers(1, scalar=True), absolute=4e-16)
@checked_arguments
def overlaps(tokens: Tokens | Measure, *, limit: int = LARGEST_TABLE) -> np.ndarray:
    """The matrix of <x_i, x_j>, shape (..., n, n), for at most `limit` tokens."""
    all_present(tokens, "the matrix of overlaps")
    _small_enough(tokens.n, limit, "overlaps", "use `overlap_histogram`, which works in blocks")
    return np.asarray(tokens.positions) @ np.swapaxes(np.asarray(tokens.positions), -1, -2)


@formula(
    tokens=Other("tokens, one system"),
    bins=Integers(1, scalar=True),
    block=Integers(1, scalar=True),
    relative=1e-14,
)
@checked_arguments
def overlap_histogram(tokens: Tokens | Measure, *, bins: int = 100, block: int = 1024) -> tuple[np.ndarray, np.ndarray]:
    """(density, edges): histogram over [-1, 1] of <x_i, x_j>/(|x_i| |x_j|), i < j, weights m_i m_j; one system.

    Overlaps on an edge, or within rounding below it, belong to the upper bin.

    Works through blocks of `block` tokens, so memory is O(block^2).
    """
    tokens.single()
    tokens = tokens.member()  # without absent rows
    length("bins", bins, 1, 4)
    edges = np.linspace(-1.0, 1.0, bins + 1)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    x = x / np.where(norms > 0, norms, 1.0)
    counts = np.zeros(bins)
    equal = m.size > 0 and bool(np.all(m == m[0]))
    for i in range(0, tokens.n, block):
        for j in range(i, tokens.n, block):
            a, b = x[i : i + block], x[j : j + block]
            # in few dimensions waking the threads of a matrix product costs more than the product
            values = np.einsum("id,jd->ij", a, b) if x.shape[1] <= 8 else a @ b.T
            weights = None if equal else np.outer(m[i : i + block], m[j : j + block])
            if i == j:
                upper = _upper(len(values))
                values, weights = values[upper], None if weights is None else weights[upper]
            counts += counted(values, weights, bins)
    total = counts.sum()
    return (counts / (total * np.diff(edges)) if total > 0 else counts), edges


@functools.lru_cache(2)
def _upper(size: int) -> np.ndarray:
    """Which entries of a square matrix are above its diagonal."""
    return np.triu(np.ones((size, size), bool), 1)


def counted(values: np.ndarray, weights: np.ndarray | None, bins: int) -> np.ndarray:
    """The weight in each of `bins` equal bins of [-1, 1]; a value on an edge belongs to the upper bin."""
    place = ((values.ravel() + 1.0) * (bins / 2)).astype(np.intp)
    return np.bincount(np.clip(place, 0, bins - 1), None if weights is None else weights.ravel(), bins)


@observable
@formula(
    field=Other("attention of beta up to 1000 and matrices of norm 1; the error grows with larger ones"),
    tokens=Other("tokens of length 1, one system"),
    t=Other("a time"),
    limit=Integers(1, scalar=True),
    relative=1e-12,
)
@checked_arguments
@in_float64
def attention_matrix(field: Attention, tokens: Tokens | Measure, t: float = 0.0, *, limit: int = LARGEST_TABLE) -> Any:
    """A_ij, the weight of token j in the drive of token i at time t, which is sum_j A_ij V x_j; one system.

    Masses, mask, normaliser and clock are in it: these are the numbers that the field uses. Rows sum to 1 for Softmax,
    Hardmax and Sinkhorn (which also has sum_i m_i A_ij = m_j); those of Unnormalised have any sum. The row of a token
    that sees nobody is 0. A field with heads gives one matrix for each, shape (heads, n, n). Pairs are summed one by
    one, whatever the sum of `field` is, so the only error is rounding. Time grows like n^3.
    """
    if not isinstance(field, Attention):
        raise InvalidInput(f"`field` is {type(field).__name__}; give Attention.")
    if not is_traced((field, tokens)):
        one_system(field, tokens)
        field.check(tokens)
    all_present(tokens, "the attention matrix")
    heads = field.heads or 1
    _small_enough(tokens.n, limit, "the attention matrix", "raise `limit`, or look at fewer tokens", heads)
    return _matrix(field, tokens.measure, jnp.asarray(t, float))


@eqx.filter_jit
def _matrix(field: Attention, tokens: Measure, t: Any) -> Any:
    x, place = jnp.asarray(tokens.positions), jnp.asarray(tokens.place)
    masses, kernel = jnp.asarray(tokens.masses, x.dtype), cast(field.kernel, x.dtype)
    query, key = field.features.of_queries(t, x, place), field.features.of_keys(t, x, place)
    unit, identity = jnp.max(masses), jnp.eye(tokens.n, dtype=x.dtype)

    def one(head: tuple[Any, Any]) -> Any:
        pairs = Pairs(
            kernel,
            field.mask,
            Tiled(),
            query=head[0],
            query_place=place,
            key=head[1],
            key_place=place,
            masses=masses / unit,
            unit=unit,
            own=head[0],
        )
        return field.normaliser(pairs, identity)

    if field.heads is None:
        return one((query, key))
    stacked = (jnp.broadcast_to(a, (field.heads, *a.shape[-2:])) for a in (query, key))
    return jax.lax.map(one, tuple(stacked))


def _small_enough(n: int, limit: int, what: str, fix: str, heads: int = 1) -> None:
    if heads * n * n > limit * limit:
        gib, count = heads * n * n * 8 / 2**30, f" with {heads} heads" if heads > 1 else ""
        raise TooLarge(f"{what} of {n} tokens{count} would take {gib:.2f} GiB; the limit is {limit} tokens, so {fix}.")
