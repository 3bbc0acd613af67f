"""What the probe asks of a network. Any object with these names will do; none of its classes is imported here."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class Heads(NamedTuple):
    """The matrices of all heads of one layer, in float64: softmax of <Q_h x, K_h y>/sqrt(d_k), then O_h V_h y is added.

    x and y are what the layer attends to: normalised tokens in the family Llama, whose queries and keys are also turned
    by the rotary encoding. Biases are left out. Heads that share keys (grouped queries) have copies.
    """

    query: np.ndarray
    """(head, d_k, d), without the factor 1/sqrt(d_k) of the logits."""
    key: np.ndarray
    """(head, d_k, d)."""
    value: np.ndarray
    """(head, d_v, d)."""
    output: np.ndarray
    """(head, d, d_v)."""


@runtime_checkable
class NetworkLike(Protocol):
    """A network whose activations can be looked at."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def layers(self) -> int:
        """Number of layers."""
        ...

    @property
    def heads(self) -> int:
        """Number of heads of a layer."""
        ...

    @property
    def width(self) -> int:
        """Dimension d of a state."""
        ...

    @property
    def causal(self) -> bool:
        """Whether a token sees itself and earlier ones alone."""
        ...

    @property
    def nulls(self) -> tuple[str, ...]:
        """The kinds of null networks that there are.

        "permuted": every weight matrix with its entries permuted; "init": fresh initialisation; "attention only",
        "perceptron only", "norms only": the other sub-layers left out; "biases zero".
        """
        ...

    def run(self, ids: Any) -> Any:
        """The `Stream` of one text, given by its token ids."""
        ...

    def null(self, kind: str, seed: int) -> "NetworkLike":
        """The same network with its training taken out; a kind that it does not have raises `InvalidInput`."""
        ...

    def heads_of(self, layer: int) -> Any:
        """The matrices of every head of a layer: `Heads`, or an object with its attributes."""
        ...
