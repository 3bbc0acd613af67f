"""What one pass of a text through a network leaves."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class States:
    """Hidden states and attention weights of one text, in the dtype in which the network was run.

    Attributes:
        hidden: (layers + 1, token, width), the residual stream before every layer and after the last one; before the
            final norm, where the family has one.
        after_attention: (layers, token, width), the stream between the two halves of every layer.
        attention: (layers, heads, token, token), rows sum to 1.
        ids: (token,), what was read.
        causal: whether a token sees itself and earlier tokens alone.
        unembedding: (vocabulary, width) with logits = unembedding @ (hidden[-1] divided by its root mean square), where
            the family reads out so; None where the file has no read-out.
        labels: the words of the tokens.
        name: the network, and its null.
        facts: where the weights come from: package, checksum, format, family, null, seed.
    """

    hidden: np.ndarray
    after_attention: np.ndarray
    attention: np.ndarray
    ids: np.ndarray
    causal: bool
    unembedding: np.ndarray | None
    labels: tuple[str, ...]
    name: str
    facts: Mapping[str, Any]
