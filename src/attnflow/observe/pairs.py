"""Observables of pairs: overlaps and attention weights."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput, TooLarge
from attnflow.fields import Attention
from attnflow.precision import double
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

LARGEST_MATRIX = 8192


def overlaps(tokens: Tokens, *, limit: int = LARGEST_MATRIX) -> np.ndarray:
    """The matrix of <x_i, x_j>, shape (..., n, n), for at most `limit` tokens."""
    _small_enough(tokens.n, limit, "overlaps", "Use `overlap_histogram`, which works in blocks.")
    return np.asarray(tokens.positions) @ np.swapaxes(np.asarray(tokens.positions), -1, -2)


def overlap_histogram(tokens: Tokens, *, bins: int = 100, block: int = 1024) -> tuple[np.ndarray, np.ndarray]:
    """(density, edges): histogram over [-1, 1] of <x_i, x_j>, i < j, each pair weighing m_i m_j; one system.

    For tokens that are not on a unit sphere it is the histogram of the cosines of x_i and x_j.

    Works through blocks of `block` tokens, so memory is O(block^2).
    """
    if tokens.dims:
        raise InvalidInput(f"`tokens` has batch dimensions {tokens.dims}; pick one system with `member`.")
    edges = np.linspace(-1.0, 1.0, bins + 1)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    if not isinstance(tokens.space, Sphere):
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        x = x / np.where(norms > 0, norms, 1.0)
    counts = np.zeros(bins)
    for i in range(0, tokens.n, block):
        for j in range(i, tokens.n, block):
            values = np.clip(x[i : i + block] @ x[j : j + block].T, -1.0, 1.0)
            weights = np.outer(m[i : i + block], m[j : j + block])
            if i == j:
                weights = np.triu(weights, 1)
            counts += np.histogram(values, edges, weights=weights)[0]
    total = counts.sum()
    return (counts / (total * np.diff(edges)) if total > 0 else counts), edges


@double
def attention_matrix(field: Attention, tokens: Tokens, *, t: float = 0.0, limit: int = LARGEST_MATRIX) -> Any:
    """A_ij, the weight that token i gives to token j at time t; one system.

    Rows sum to 1 whatever the normaliser of `field`: these are the softmax weights.
    """
    if not isinstance(field, Attention):
        raise InvalidInput(f"`field` is {type(field).__name__}; only Attention has an attention matrix.")
    if tokens.dims:
        raise InvalidInput(f"`tokens` has batch dimensions {tokens.dims}; pick one system with `member`.")
    _small_enough(tokens.n, limit, "the attention matrix", "Raise `limit`, or look at fewer tokens.")
    field.check(tokens)
    x, place = jnp.asarray(tokens.positions), jnp.asarray(tokens.place)
    kernel = field.kernel
    logits = kernel.log_weight(kernel.query_features(t, x, place), kernel.key_features(t, x, place))
    logits = logits + field.mask.bias(place, place).astype(x.dtype)
    return jax.nn.softmax(logits + jnp.log(jnp.asarray(tokens.masses))[None, :], axis=1)


def _small_enough(n: int, limit: int, what: str, mend: str) -> None:
    if n > limit:
        raise TooLarge(f"{what} of {n} tokens would take {n * n * 8 / 2**30:.2f} GiB; the limit is {limit}. {mend}")
