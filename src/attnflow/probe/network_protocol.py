"""What the probe asks of a network. Any object with these names will do; none of its classes is imported here."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from attnflow.probe.stream import Stream

NULLS = ("permuted", "init", "attention only", "perceptron only", "norms only", "biases zero")
"""Kinds of null networks that a network may offer."""


class Head(NamedTuple):
    """The matrices of one head, in float64. Logits are x^T Q^T K y; the head adds O V (mean of y) to a token."""

    query: np.ndarray
    """(d_k, d) Q, with the gain of the norm before it and 1/sqrt(d_k) multiplied in where there are such."""
    key: np.ndarray
    """(d_k, d) K."""
    value: np.ndarray
    """(d_v, d) V."""
    output: np.ndarray
    """(d, d_v) O."""


@runtime_checkable
class Network(Protocol):
    """A network whose activations can be looked at."""

    name: str
    layers: int
    heads: int
    width: int
    causal: bool

    def run(self, ids: Any) -> Stream:
        """The stream of one text, given by its token ids (token,)."""
        ...

    def null(self, kind: str, seed: int) -> "Network":
        """The same network with its training taken out.

        "permuted": every weight matrix with its entries permuted; "init": fresh initialisation; "attention only",
        "perceptron only", "norms only": the other sub-layers left out; "biases zero". A kind that the network does not
        offer raises `InvalidInput`.
        """
        ...

    def heads_of(self, layer: int) -> Sequence[Head] | Sequence[tuple[np.ndarray, ...]]:
        """The matrices (query, key, value, output) of every head of a layer."""
        ...
