"""Embeddings: a unit vector e_w for every word w, and how a text is cut into those words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.axes import finite_array, unit_rows
from attnflow.checks import generator, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.text.tokenizers import AbstractTokenizer, Bytes, Library, Words


class Embedding:
    """Unit rows e_w, one for each word.

    ```python
    given = af.text.Embedding(["new", "old", "paper"], [[1.0, 0.2], [-1.0, 0.2], [0.0, 3.0]])
    tokens = af.from_text("new paper", embedding=given)
    af.text.next_token_distribution(tokens, given.vectors, beta=5.0).probabilities
    ```
    """

    vectors: np.ndarray
    """(V, d) unit rows e_w."""
    tokenizer: Any
    """What cuts a text: `encode(text)` gives rows of `vectors`, `words(ids)` what they are called."""

    def __init__(self, words: Any, vectors: Any):
        """Normalise rows of any length but 0.

        Arguments:
            words: the V words; or a tokenizer whose ids are rows: `Bytes()`, one of the library `tokenizers`, or any
                object with `encode(text)` and `words(ids)`.
            vectors: (V, d) real numbers, d at least 2.
        """
        self.tokenizer = _tokenizer(words)
        table = np.asarray(vectors)
        if table.dtype != np.float32:
            table = finite_array("`vectors`", vectors)
        if table.ndim != 2 or len(table) < 1 or table.shape[1] < 2:
            raise InvalidInput(f"`vectors` has shape {table.shape}; give (words, d) with d at least 2.")
        if not np.isfinite(table).all():
            raise InvalidInput("`vectors` has an entry that is not finite; correct or remove it.")
        if isinstance(self.tokenizer, Words) and len(self.tokenizer.names) != len(table):
            raise InvalidInput(
                f"`words` has {len(self.tokenizer.names)} entries and `vectors` {len(table)} rows; give as many of "
                "each."
            )
        if not table.any(axis=1).all():
            row = int(np.argmin(table.any(axis=1)))
            raise InvalidInput(f"vectors[{row}] is 0 and has no direction; leave this word out.")
        self.vectors = unit_rows(table)

    def __repr__(self) -> str:
        return f"<Embedding: {len(self)} words in dimension {self.dim}>"

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return int(self.vectors.shape[1])

    @property
    def words(self) -> tuple[str, ...]:
        """What the rows are called."""
        return tuple(self.tokenizer.words(range(len(self))))

    def encode(self, text: str) -> np.ndarray:
        """The rows of the words of a text, in order."""
        found = np.asarray(self.tokenizer.encode(text), np.int64)
        if not found.size or found.max() >= len(self):
            raise InvalidInput(
                f"`text` has the ids {shown(found.tolist())}, but the embedding has the rows 0 to {len(self) - 1}; "
                "give the tokenizer that belongs to the vectors."
            )
        return found


def random_embedding(words: Any, *, dim: int = 64, seed: int = 0, vocabulary: int | None = None) -> Embedding:
    """Gaussian rows, normalised: independent uniform points of the sphere, whose overlaps are of size dim^(-1/2).

    Arguments:
        words: a list of words, of which each gets one row however often it occurs; or a tokenizer as for `Embedding`.
        dim: dimension d of the rows.
        seed: seed of the rows.
        vocabulary: the number of rows, if there are to be more than words: the further ones are called <k>. Rows do
            not change when there are more of them.
    """
    tokenizer, dim = _tokenizer(words, merges=True), whole("dim", dim, 2)
    count = _size(tokenizer)
    if vocabulary is not None:
        given, count = count, whole("vocabulary", vocabulary, count)
        if isinstance(tokenizer, Words):
            tokenizer = Words([*tokenizer.names, *(f"<{k}>" for k in range(given, count))])
    require_memory(16 * count * dim, f"an embedding of {count} words in dimension {dim}", "give fewer of either")
    return Embedding(tokenizer, generator(seed).standard_normal((count, dim)))


def embedding_of(network: Any) -> Embedding:
    """The embedding table of a network as `probe.network` gives it, with its tokenizer."""
    if not all(hasattr(network, name) for name in ("encode", "words", "outside")):
        raise InvalidInput(f"`network` is {shown(network)}; give one that `probe.network` opens.")
    return Embedding(network, network.outside("words"))


def _tokenizer(words: Any, *, merges: bool = False) -> Any:
    """Make something that has `encode` and `words`; a word that occurs twice is merged or refused."""
    if isinstance(words, AbstractTokenizer) or (hasattr(words, "encode") and hasattr(words, "words")):
        return words
    if hasattr(words, "get_vocab_size"):
        return Library(lambda: words, plain=False)
    if isinstance(words, str) or not isinstance(words, Sequence | np.ndarray) or not len(words):
        raise InvalidInput(f"`words` is {shown(words)}; give a list of words, or a tokenizer.")
    names = list(words)
    refused = next((name for name in names if not isinstance(name, str) or not name), None)
    if refused is not None:
        raise InvalidInput(f"`words` has the entry {shown(refused)}; give texts that are not empty.")
    if merges:
        names = list(dict.fromkeys(names))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"`words` has {twice!r} more than once; give every word once.")
    return Words(names)


def _size(tokenizer: Any) -> int:
    """How many ids a tokenizer has."""
    if isinstance(tokenizer, Words):
        return len(tokenizer.names)
    if isinstance(tokenizer, Bytes):
        return tokenizer.vocabulary
    if isinstance(tokenizer, Library):
        return int(tokenizer.inner.get_vocab_size())
    raise InvalidInput(f"`words` is {shown(tokenizer)}, which does not say its number of ids; give a list of words.")
