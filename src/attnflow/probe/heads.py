"""Numbers of heads: the fitted inverse temperature, the entropy of attention, and what the matrices say."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.probe.states import Variables, cosines
from attnflow.probe.stream import Stream

FEWEST = 3
"""Pairs that a row needs in order to count in a fit."""
INTERVAL = (0.025, 0.975)
"""Ends of bootstrap intervals, as shares."""


class Fit(NamedTuple):
    """log A_ij = beta cos(x_i, x_j) + a_i, fitted within rows, one entry a head."""

    beta: np.ndarray
    r2: np.ndarray
    """Explained share of the variance within rows."""
    low: np.ndarray
    high: np.ndarray
    """Ends of the bootstrap interval over rows."""


def fit_beta(
    overlaps: np.ndarray, attention: np.ndarray, kept: np.ndarray, *, bootstrap: int = 200, seed: Any = 0
) -> Fit:
    """The inverse temperature of each head: the slope of log-attention on cosines within rows, by least squares.

    A softmax only shifts the rows of its logits, so the slope is the one of the logits themselves. Pairs of a token
    with itself, pairs with tokens that are not kept, and weights that are 0 do not count.

    Arguments:
        overlaps: (n, n) cosines.
        attention: (head, n, n) weights.
        kept: (n,) tokens that count, as queries and as keys.
        bootstrap: number of resamples of rows; 0 for none.
        seed: of the resamples.
    """
    heads, n, _ = attention.shape
    used = (attention > 0) & kept[:, None] & kept[None, :] & ~np.eye(n, dtype=bool)
    used &= (used.sum(axis=-1) >= FEWEST)[..., None]
    count = np.maximum(used.sum(axis=-1, keepdims=True), 1)
    y = np.log(np.where(used, attention, 1.0), dtype=np.float64)
    c = np.where(used, overlaps, 0.0)
    y = np.where(used, y - y.sum(axis=-1, keepdims=True) / count, 0.0)
    c = np.where(used, c - c.sum(axis=-1, keepdims=True) / count, 0.0)
    cc, cy, yy = (np.einsum("hij,hij->hi", a, b) for a, b in ((c, c), (c, y), (y, y)))
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = cy.sum(axis=1) / cc.sum(axis=1)
        r2 = cy.sum(axis=1) ** 2 / (cc.sum(axis=1) * yy.sum(axis=1))
    if not bootstrap:
        return Fit(beta, r2, np.full(heads, np.nan), np.full(heads, np.nan))
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=bootstrap).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (weights @ cy.T) / (weights @ cc.T)
    low, high = np.nanquantile(slopes, INTERVAL, axis=0) if np.isfinite(slopes).any() else (beta, beta)
    return Fit(beta, r2, low, high)


def attended(
    stream: Stream, vectors: Sequence[np.ndarray], sinks: Sequence[np.ndarray], bootstrap: int, seed: int
) -> Variables:
    """Fits, entropies and the share of attention that sinks take, for every text, layer and head.

    `vectors` are the unit vectors (layer, token, d) of every text.
    """
    assert stream.attention is not None
    shape = (stream.texts, stream.states, stream.heads)
    names = (
        "beta",
        "beta_r2",
        "beta_low",
        "beta_high",
        "attention_entropy",
        "attention_perplexity",
        "attention_to_sinks",
    )
    found = {name: np.full(shape, np.nan) for name in names}
    for text, tables in enumerate(stream.attention):
        kept = ~sinks[text]
        for layer, weights in enumerate(tables):
            fit = fit_beta(cosines(vectors[text][layer]), weights, kept, bootstrap=bootstrap, seed=[seed, text, layer])
            entropy = -np.sum(
                np.where(weights > 0, weights * np.log(np.where(weights > 0, weights, 1.0)), 0.0), axis=-1
            )
            visible = np.arange(1, weights.shape[-1] + 1) if stream.causal else weights.shape[-1]
            rows = kept if kept.any() else np.ones_like(kept)
            values = (
                *fit,
                entropy[:, rows].mean(axis=1),
                (np.exp(entropy) / visible)[:, rows].mean(axis=1),
                weights[..., sinks[text]].sum(axis=-1)[:, rows].mean(axis=1),
            )
            for name, value in zip(names, values, strict=True):
                found[name][text, layer] = value
    return {name: (("text", "layer", "head"), values) for name, values in found.items()}


def matrices(network: Any, states: int) -> Variables:
    """Spectrum and antisymmetric share of B = Q^T K, and the sign of O V, for every layer and head.

    B has rank d_k at most and is kept as its factors: singular values come from triangular factors of Q^T and K^T, and
    eigenvalues of O V are those of V O.
    """
    found: dict[str, list[list[Any]]] = {"singular": [], "share": [], "trace": [], "sign": []}
    for layer in range(network.layers):
        rows: dict[str, list[Any]] = {key: [] for key in found}
        own = network.heads_of(layer)
        stacked = zip(own.query, own.key, own.value, own.output, strict=True)
        for number, head in enumerate(stacked):
            query, key, value, output = (np.asarray(one, np.float64) for one in head)
            if query.shape != key.shape or output.shape != value.shape[::-1]:
                raise InvalidInput(
                    f"head {number} of layer {layer} has shapes {query.shape}, {key.shape}, {value.shape} and "
                    f"{output.shape}; give query and key (d_k, d), value (d_v, d), output (d, d_v)."
                )
            for name, one in zip(found, (*spectrum_of(query, key), sign_of(value, output)), strict=True):
                rows[name].append(one)
        for name in found:
            found[name].append(rows[name])
    arrays = {name: np.array(values, float) for name, values in found.items()}
    filled = {
        name: np.pad(a, [(0, states - len(a))] + [(0, 0)] * (a.ndim - 1), constant_values=np.nan)
        for name, a in arrays.items()
    }
    dims = ("layer", "head")
    return {
        "qk_singular_value": ((*dims, "singular"), filled["singular"]),
        "qk_antisymmetric_share": (dims, filled["share"]),
        "qk_trace": (dims, filled["trace"]),
        "ov_sign": (dims, filled["sign"]),
    }


def spectrum_of(query: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Singular values of B = Q^T K, |B - B^T|/(2 |B|) in the Frobenius norm, and the trace of B.

    The share is 0 for a symmetric B, 1 for an antisymmetric one and near 1/√2 for a matrix of independent entries. All
    come from Gram matrices of d_k rows: with Q Q^T = U D U^T the singular values are those of √D U^T (K K^T)^(1/2), to
    2e-8 of the largest one, which is what weights in float32 leave.
    """
    mixed, own, other = key @ query.T, query @ query.T, key @ key.T
    values = np.linalg.svd(_root(own).T @ _root(other), compute_uv=False)
    square, twice = float(np.sum(own * other)), float(np.sum(mixed * mixed.T))
    share = np.sqrt(max(square - twice, 0.0) / (2 * square)) if square > 0 else np.nan
    return values, float(share), float(np.trace(mixed))


def _root(gram: np.ndarray) -> np.ndarray:
    """R with R R^T = gram."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def sign_of(value: np.ndarray, output: np.ndarray) -> float:
    """tr(O V)/sum |eigenvalues|: 1 where all eigenvalues are positive (attractive), -1 where all are negative."""
    eigenvalues = np.linalg.eigvals(value @ output)
    size = np.abs(eigenvalues).sum()
    return float(eigenvalues.sum().real / size) if size > 0 else float("nan")
