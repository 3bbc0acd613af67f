"""From a sentence to tokens on the sphere, and from a flow to next-token distributions at every depth."""

from typing import Any

import numpy as np

from attnflow.checks import instance, number
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.fields.encodings import AbstractEncoding, NoEncoding, Rotary, Sinusoidal
from attnflow.precision import in_float64
from attnflow.text.distributions import NextTokenDistribution, next_token_distribution
from attnflow.text.embeddings import Embedding, random_embedding
from attnflow.text.readouts import AbstractReadOut
from attnflow.text.tokenizers import split_words
from attnflow.tokens import Tokens, from_array, stack


def from_text(text: str, *, embedding: Embedding | None = None, encoding: AbstractEncoding | None = None) -> Tokens:
    """A text as tokens on the sphere: x_i = (e_w + s p(i))/|e_w + s p(i)| for the word w at place i.

    ```python
    words = af.text.random_embedding(["need", "a", "new", "paper", "on", "AI"], vocabulary=2000)
    tokens = af.from_text("Need a new paper on AI", embedding=words)
    tokens.labels
    ```

    Masses are equal, places are 0, 1, 2, ..., and every token has its word as label. Without an encoding equal words
    are equal tokens.

    Arguments:
        embedding: left out, `random_embedding` of the words of the text, in dimension 64; else `Embedding` (a matrix),
            `ppmi_embedding` (texts), `embedding_of` (a network).
        encoding: `Sinusoidal(s)` adds s times the `sinusoids` p(i) once, here. A rotary encoding acts in every layer
            and belongs to the field: `Attention(beta, encoding=Rotary())`.
    """
    if embedding is None:
        embedding = random_embedding(list(dict.fromkeys(split_words(text))))
    instance("embedding", embedding, Embedding, "one such as text.random_embedding(words)")
    rows = embedding.encode(text)
    x = np.asarray(embedding.vectors[rows], np.float64)
    if encoding is not None and not isinstance(encoding, NoEncoding):
        if isinstance(encoding, Rotary):
            raise InvalidInput("`encoding` is Rotary, which acts in the field; give it to `Attention(encoding=...)`.")
        added: Any = instance("encoding", encoding, Sinusoidal, "Sinusoidal(size)")
        number("size", added.size)
        x = np.asarray(in_float64(added.before)(x, np.arange(len(x))))
    try:
        return from_array(x, normalise=True, labels=embedding.tokenizer.words(rows.tolist()))
    except InvalidTokens as error:
        raise InvalidInput(f"a word and its encoding cancel ({error}); give another `size`.") from None


def distribution_along(
    flow: Any, words: Any, *, beta: float = 1.0, readout: AbstractReadOut | None = None
) -> NextTokenDistribution:
    """`next_token_distribution` of every saved frame of a flow: all arrays have one more axis, the time, in front."""
    if not all(hasattr(flow, name) for name in ("time", "tokens", "dataset")):
        raise InvalidInput(f"`flow` is a {type(flow).__name__}; give what `solve` or `solve_long` returns.")
    frames = [flow.tokens(k) for k in range(len(flow))]
    if not frames:
        raise InvalidInput("`flow` has no frame; save at least one.")
    return next_token_distribution(stack("frame", range(len(frames)), frames), words, beta=beta, readout=readout)
