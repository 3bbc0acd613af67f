"""One network: run on a text, compared with its nulls, its layers as fields."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.checks import shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.precision import full_precision
from attnflow.probe.arrays import program_size
from attnflow.probe.network_protocol import Heads
from attnflow.probe.networks.families.base import AbstractSource, Architecture, Stacked, Table
from attnflow.probe.networks.families.forward import HALVES, embedded, run_layers
from attnflow.probe.networks.nulls import Null, check_kind, halves_of, kinds_of
from attnflow.probe.networks.tokenizers import Ids
from attnflow.probe.stream import Stream
from attnflow.text.tokenizers import AbstractTokenizer

if TYPE_CHECKING:
    from attnflow.fields import AbstractField

BLOCK = 32 << 20
"""Bytes of the layers that are handed to one compiled call, at most, unless a single layer has more."""


class Network:
    """A trained network, or a null of one; made by `network` and `random_network`.

    Attributes:
        name: what it is called; nulls add their kind and seed.
        architecture: its family and sizes.
        facts: where its weights come from.
        dtype: float32, in which networks are trained, or float64.
    """

    def __init__(
        self,
        name: str,
        architecture: Architecture,
        source: AbstractSource,
        tokenizer: AbstractTokenizer,
        facts: Mapping[str, Any],
        dtype: Any = np.float32,
        kind: str | None = None,
    ):
        """A network with these weights; `kind` is that of a null."""
        self.name, self.architecture, self.facts = name, architecture, dict(facts)
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise InvalidInput(f"`dtype` is {shown(dtype)}; give 'float32' or 'float64'.")
        self._source, self._tokenizer, self._kind = source, tokenizer, kind

    def __repr__(self) -> str:
        one = self.architecture
        return f"<{self.name}: {one.family}, {one.layers} layers, {one.heads} heads, width {one.width}>"

    @property
    def layers(self) -> int:
        """Layers that a text goes through."""
        return self.architecture.layers

    @property
    def heads(self) -> int:
        """Heads of one layer."""
        return self.architecture.heads

    @property
    def width(self) -> int:
        """Coordinates of a token."""
        return self.architecture.width

    @property
    def causal(self) -> bool:
        """Whether a token sees itself and earlier ones alone."""
        return self.architecture.causal

    @property
    def nulls(self) -> tuple[str, ...]:
        """The kinds of null that this family has."""
        return kinds_of(self.architecture)

    @property
    def special(self) -> tuple[int, ...]:
        """The places of the special tokens that `encode` adds, such as (0, -1) for [CLS] and [SEP]."""
        return self._tokenizer.special

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, with the special tokens that the network was trained with."""
        return np.asarray(self._tokenizer.encode(text), np.int64)

    def words(self, ids: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """The word, or the piece of one, for every id."""
        return tuple(self._tokenizer.words([int(one) for one in self._checked(ids)]))

    def run(self, ids: str | Sequence[int] | np.ndarray, *, depth: int | None = None) -> Stream:
        """Send a text, or its ids, through all layers: the stream of its states, in the dtype of the network.

        States are those of the residual stream, before the final norm where the family has one.

        `depth` is the number of layers if it is to be another one, for a network that applies one layer again and
        again (ALBERT). Weights that are not the trained ones are made block by block of layers and not kept.
        """
        found = self._checked(self.encode(ids) if isinstance(ids, str) else ids)
        shape, count = self.architecture, self._depth(depth)
        n, dtype = len(found), self.dtype.type
        if shape.places and n > shape.places:
            raise InvalidInput(f"`ids` has {n} tokens, but {self.name} knows {shape.places} places; give fewer.")
        size = program_size(n)
        numbers = count * (shape.heads * size * size + 2 * size * shape.width) * self.dtype.itemsize
        require_memory(numbers, f"a text of {n} tokens with all attention weights", "give a shorter text")
        rows = {name: self._source.outside(name) for name in shape.outside_shapes() if name != "read-out"}
        rows["words"] = rows["words"][found]
        if "places" in rows:
            rows["places"] = rows["places"][:n]
        hidden = np.empty((count + 1, n, shape.width), dtype)
        middle, attention = np.empty_like(hidden[1:]), np.empty((count, shape.heads, n, n), dtype)
        hidden[0] = embedded(shape, rows, dtype)
        x: Any = np.zeros((size, shape.width), dtype)
        x[:n] = hidden[0]
        acts = np.array([half in halves_of(self._kind) for half in HALVES])
        with full_precision():
            for first, last, weights in self._blocks(count):
                repeats = last - first if shape.shared else None
                after, between, tables = run_layers(shape, acts, weights, x, n, repeats)
                x = after[-1]
                hidden[first + 1 : last + 1] = np.asarray(after)[:, :n]
                middle[first:last] = np.asarray(between)[:, :n]
                attention[first:last] = np.asarray(tables)[:, :, :n, :n]
        labels = tuple(self._tokenizer.words(found.tolist()))
        stream = Stream(
            hidden,
            attention,
            found,
            self.causal,
            after_attention=middle,
            unembedding=self.unembedding,
            final_gain=None if self.unembedding is None else self._source.outside("final.gain"),
            labels=labels,
            name=self.name,
            facts=self.facts,
        )
        if isinstance(self._tokenizer, Ids):
            stream.notes = (*stream.notes, Ids.note)
        return stream

    def null(self, kind: str, seed: int = 0) -> "Network":
        """A null of this kind (`nulls` lists them); `seed` fixes the random ones."""
        if self._kind is not None:
            raise InvalidInput(f"{self.name} is a null already; take the null of the trained network.")
        check_kind(self.architecture, kind)
        seed = whole("seed", seed, 0)
        name = f"{self.name}, {kind}" + (f", seed {seed}" if kind in ("permuted", "init") else "")
        source = Null(self.architecture, self._source, kind, seed)
        facts = {**self.facts, "null": kind, "null_seed": seed}
        return Network(name, self.architecture, source, self._tokenizer, facts, self.dtype, kind)

    def held(self) -> "Network":
        """The same network with all weights in memory, 4 bytes each: for a null that runs on many texts.

        A null makes its weights anew in every run, so that comparisons need little memory.
        """
        shape = self.architecture
        numbers = shape.stored_layers * sum(int(np.prod(size)) for size in shape.layer_shapes().values())
        require_memory(4 * numbers, f"all weights of {self.name}", "run the null without `held()`")
        outside = {name: self._source.outside(name) for name in shape.outside_shapes()}
        source = Stacked(self._source.block(0, shape.stored_layers), outside)
        return Network(self.name, shape, source, self._tokenizer, self.facts, self.dtype, self._kind)

    def heads_of(self, layer: int) -> Heads:
        """The matrices of every head of a layer, factored; a null has those of its own."""
        shape, own = self.architecture, self.weights_of(layer)
        k, d, shared = shape.key_width, shape.width, shape.heads // shape.groups

        def split(name: str, count: int) -> np.ndarray:
            return own[name].astype(np.float64).reshape(count, k, d)

        key, value = (np.repeat(split(name, shape.groups), shared, axis=0) for name in ("key", "value"))
        output = own["output"].astype(np.float64).reshape(d, shape.heads, k).transpose(1, 0, 2)
        return Heads(split("query", shape.heads), key, value, output)

    def weights_of(self, layer: int) -> Table:
        """All weights of a layer by their names, float32."""
        number = whole("layer", layer, 0)
        if number >= self.layers:
            raise InvalidInput(f"`layer` is {number}, but {self.name} has the layers 0 to {self.layers - 1}.")
        return self._source.layer(0 if self.architecture.shared else number)

    def outside(self, name: str) -> np.ndarray:
        """An array outside of the layers, such as "words", the embedding."""
        if name not in self.architecture.outside_shapes():
            names = ", ".join(map(repr, self.architecture.outside_shapes()))
            raise InvalidInput(f"`name` is {name!r}; {self.name} has {names}.")
        return self._source.outside(name)

    def field(self, layer: int) -> "AbstractField":
        """The attnflow field of a layer, on `Euclidean(width)`, in float64.

        `Alternate(1.0, update=Renormalise())` makes the layer of the network of it, to rounding, and repeats it; with
        another method the layer is continued as an ODE.
        """
        from attnflow.probe.networks.as_field import field_of

        return field_of(self.architecture, halves_of(self._kind), self.weights_of(layer), self.heads_of(layer))

    @property
    def unembedding(self) -> np.ndarray | None:
        """The matrix of `Stream.unembedding`: rows of words, without the gain of the final norm."""
        if self.architecture.family != "llama":
            return None
        return self._source.outside("words" if self.architecture.tied else "read-out")

    def _depth(self, depth: int | None) -> int:
        if depth is None:
            return self.layers
        if not self.architecture.shared:
            raise InvalidInput(f"`depth` is {shown(depth)}, but the layers of {self.name} differ; leave it out.")
        return whole("depth", depth, 1)

    def _blocks(self, count: int) -> Iterator[tuple[int, int, Table]]:
        """(first, last, stacked weights) of all layers, in blocks of one size, so that one program serves all."""
        if self.architecture.shared:
            yield 0, count, {name: own.astype(self.dtype) for name, own in self._source.layer(0).items()}
            return
        size = sum(int(np.prod(shape)) for shape in self.architecture.layer_shapes().values()) * self.dtype.itemsize
        most = max(1, BLOCK // size)
        step = max(length for length in range(1, count + 1) if count % length == 0 and length <= most)
        for first in range(0, count, step):
            block = self._source.block(first, first + step)
            yield first, first + step, {name: own.astype(self.dtype, copy=False) for name, own in block.items()}

    def _checked(self, ids: Any) -> np.ndarray:
        found, size = np.asarray(ids), self.architecture.vocabulary
        if found.ndim != 1 or not found.size or found.dtype.kind not in "iu":
            raise InvalidInput(f"`ids` is {shown(ids)}; give a text, or its ids as a list of at least one integer.")
        if found.min() < 0 or found.max() >= size:
            raise InvalidInput(f"`ids` go from {found.min()} to {found.max()}; {self.name} has 0 to {size - 1}.")
        return found.astype(np.int64)
