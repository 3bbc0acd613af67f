"""Embeddings from the user's own texts: which words stand near each other (PPMI), cut to few dimensions by an SVD."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import shown, whole
from attnflow.errors import InvalidInput
from attnflow.reading import read_text
from attnflow.text.embeddings import Embedding
from attnflow.text.tokenizers import WORD

SENTENCE = re.compile(r"[.!?;:]|\n\s*\n")
"""Where sentences end; no pair of words is counted across."""
DENSE = 1500
"""Words up to which all singular values are computed."""
ZERO = 1e-10
"""Singular values below this share of the largest are rounding errors."""


def ppmi_embedding(corpus: Any, *, dim: int, window: int = 4, vocabulary: int = 20_000) -> Embedding:
    """Rows of U_k S_k^(1/2), normalised, of the matrix PPMI = U S V^T of a corpus: words with like neighbours are near.

    PPMI(w, c) = max(0, log(#(w, c) N/(#w #c))), where #(w, c) counts pairs of words at most `window` apart in one
    sentence, #w = sum_c #(w, c), and N is the sum of all. Words are in small letters. Words without a neighbour that
    is more frequent than by chance have no direction and are left out. The matrix of a small corpus has few singular
    values that are large, about as many as there are topics: further dimensions add noise.

    Arguments:
        corpus: a text (str), a file (`pathlib.Path`), or a list of these.
        dim: k, at most the rank of the matrix.
        vocabulary: only so many of the most frequent words are kept.
    """
    dim, window, most = whole("dim", dim, 2), whole("window", window, 1), whole("vocabulary", vocabulary, 2)
    sentences = [[word.lower() for word in WORD.findall(part)] for part in _sentences(corpus)]
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted(sorted(counts), key=lambda word: -counts[word])[:most]
    if len(words) < 2:
        raise InvalidInput(f"`corpus` has {len(words)} different words; give a longer text.")
    vectors, sizes = _factors(_positive_information(sentences, words, window), dim)
    rank = int(np.sum(sizes > ZERO * sizes[0])) if sizes.size and sizes[0] > 0 else 0
    if rank < dim:
        raise InvalidInput(
            f"`dim` is {dim}, but the PPMI matrix of this corpus, of {len(words)} words, has the rank {rank}; give "
            f"{'a smaller `dim`' if rank >= 2 else 'a longer corpus'}."
        )
    length = np.linalg.norm(vectors, axis=1)
    kept = np.flatnonzero(length > np.sqrt(ZERO) * length.max())
    return Embedding([words[k] for k in kept], vectors[kept])


def _sentences(corpus: Any) -> list[str]:
    parts = [corpus] if isinstance(corpus, str | os.PathLike) else corpus
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(one, str | os.PathLike) for one in parts):
        raise InvalidInput(f"`corpus` is {shown(corpus)}; give a text, a pathlib.Path, or a list of these.")
    found = []
    for one in parts:
        if isinstance(one, str):
            found += SENTENCE.split(one)
            continue
        try:
            found += SENTENCE.split(read_text(one))
        except (OSError, UnicodeError) as error:
            raise InvalidInput(f"`corpus` has the file {str(one)!r}, which cannot be read as text ({error}).") from None
    return found


def _positive_information(sentences: list[list[str]], words: list[str], window: int) -> Any:
    """The sparse symmetric matrix PPMI."""
    from scipy.sparse import coo_array

    number = {word: k for k, word in enumerate(words)}
    rows: list[np.ndarray] = []
    for sentence in sentences:
        ids = np.array([number.get(word, -1) for word in sentence], np.int64)
        for apart in range(1, min(window, len(ids) - 1) + 1):
            rows.append(np.stack([ids[:-apart], ids[apart:]]))
    pairs = np.concatenate(rows, axis=1) if rows else np.zeros((2, 0), np.int64)
    pairs = pairs[:, (pairs >= 0).all(axis=0)]
    pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    count = coo_array((np.ones(pairs.shape[1]), tuple(pairs)), shape=(len(words), len(words))).tocsr().tocoo()
    each, total = np.asarray(count.sum(axis=1)).ravel(), count.sum()
    ratio = count.data * total / (each[count.coords[0]] * each[count.coords[1]])
    return coo_array((np.maximum(np.log(ratio), 0.0), count.coords), shape=count.shape).tocsr()


def _factors(matrix: Any, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """U_k S_k^(1/2) and the singular values, the largest first; the largest entry of a column is positive."""
    from scipy.sparse.linalg import svds

    if matrix.shape[0] <= max(DENSE, 2 * dim):
        u, s, _ = np.linalg.svd(matrix.toarray())
    else:
        u, s, _ = svds(matrix, k=dim, v0=np.ones(matrix.shape[0]))
        u, s = u[:, ::-1], s[::-1]
    u = u[:, :dim]
    u = u * np.where(u[np.argmax(np.abs(u), axis=0), np.arange(u.shape[1])] < 0, -1.0, 1.0)
    return u * np.sqrt(s[:dim]), s
