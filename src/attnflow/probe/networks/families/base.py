"""What all families of networks share: their sizes, the names of their weights, and a source of weights by layers.

A network is a table of weights for every layer and a few arrays outside of the layers. The names of weights are those
of attnflow (`query`, `key`, `value`, `output`, `gate`, `up`, `inner`, `outer`, `norm1.gain`, ...), whatever a file
calls them; a name that ends in `.bias` or `.gain` is a vector, every other one a matrix (rows, columns).
"""

import abc
import dataclasses
from collections.abc import Mapping

import numpy as np

Table = dict[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class Architecture:
    """The sizes and choices that fix the forward pass of a network, its weights aside.

    Attributes:
        family: "llama" (pre-norm, RMSNorm, rotary encoding, gated perceptron, causal) or "bert" (post-norm, LayerNorm,
            learned places, sees everyone).
        heads, groups: query heads, and key heads that they share (grouped queries); equal in most networks.
        width, key_width, hidden: of the stream, of one head, of the perceptron.
        shared: one layer is applied `layers` times (ALBERT).
        embedding: width of the table of words; other than `width` it is followed by a linear map (ALBERT).
        places: the longest text that a table of places has; 0 for none.
        eps: of the norms.
        base, pairing: of the rotary encoding; see `encodings.Rotary`.
        scale: standard deviation of matrices at initialisation.
    """

    family: str
    layers: int
    heads: int
    width: int
    hidden: int
    vocabulary: int
    groups: int
    key_width: int
    eps: float
    activation: str
    shared: bool = False
    embedding: int = 0
    places: int = 0
    base: float = 1e4
    pairing: str = "neighbours"
    tied: bool = True
    scale: float = 0.02

    @property
    def causal(self) -> bool:
        """Whether a token sees itself and earlier ones alone."""
        return self.family == "llama"

    @property
    def stored_layers(self) -> int:
        """Layers that have weights of their own."""
        return 1 if self.shared else self.layers

    def layer_shapes(self) -> Shapes:
        """The weights of one layer."""
        d, own, others = self.width, self.heads * self.key_width, self.groups * self.key_width
        maps: Shapes = {"query": (own, d), "key": (others, d), "value": (others, d), "output": (d, own)}
        if self.family == "llama":
            gains: Shapes = {"norm1.gain": (d,), "norm2.gain": (d,)}
            return gains | maps | {"gate": (self.hidden, d), "up": (self.hidden, d), "outer": (d, self.hidden)}
        maps |= {"inner": (self.hidden, d), "outer": (d, self.hidden)}
        biases: Shapes = {f"{name}.bias": shape[:1] for name, shape in maps.items()}
        norms: Shapes = {f"norm{k}.{what}": (d,) for k in (1, 2) for what in ("gain", "bias")}
        return maps | biases | norms

    def outside_shapes(self) -> Shapes:
        """The arrays outside of the layers."""
        d, width = self.width, self.embedding or self.width
        words: Shapes = {"words": (self.vocabulary, width)}
        if self.family == "llama":
            return words | {"final.gain": (d,)} | ({} if self.tied else {"read-out": (self.vocabulary, d)})
        start: Shapes = {"places": (self.places, width), "kind": (width,)}
        start |= {"start.gain": (width,), "start.bias": (width,)}
        return words | start | ({"start": (d, width), "start-map.bias": (d,)} if self.embedding else {})


class AbstractSource(abc.ABC):
    """Where the weights of a network come from, layer by layer."""

    @abc.abstractmethod
    def layer(self, number: int) -> Table:
        """The weights of one layer; those of the trained network are views, not copies."""

    @abc.abstractmethod
    def block(self, first: int, last: int) -> Table:
        """The weights of several layers, with the layer as first axis."""

    @abc.abstractmethod
    def outside(self, name: str) -> np.ndarray:
        """An array outside of the layers."""


class Stacked(AbstractSource):
    """All weights in memory, once, as float32: the layers of each weight in one array."""

    def __init__(self, layers: Mapping[str, np.ndarray], outside: Mapping[str, np.ndarray]):
        """`layers` have the layer as first axis."""
        self.stacked, self.arrays = dict(layers), dict(outside)

    def layer(self, number: int) -> Table:
        return {name: values[number] for name, values in self.stacked.items()}

    def block(self, first: int, last: int) -> Table:
        return {name: values[first:last] for name, values in self.stacked.items()}

    def outside(self, name: str) -> np.ndarray:
        return self.arrays[name]


def is_matrix(name: str) -> bool:
    """Whether a weight is a matrix, and neither a bias nor the gain of a norm."""
    return not name.endswith((".bias", ".gain"))
