"""Streams: the activations of a trained network, as tokens with a dimension `layer`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.axes import row_lengths, unit_rows
from attnflow.checks import flag, instance
from attnflow.describe import html_table
from attnflow.errors import InvalidInput
from attnflow.probe.arrays import as_array, as_reals
from attnflow.tokens import Tokens

ROWS = 1e-3
"""How far the sum of a row of attention may be from 1: half precision has three digits."""
EQUAL_NORMS = 1e-3
"""Relative spread of norms below which all states of a layer count as normalised."""


class Stream:
    """The states of every token at every depth of a network, for one text or several.

    State 0 is what enters the first layer, state l is the residual stream after layer l. Numbers of a layer (attention,
    sub-layers) stand at the state that the layer acts on.

    Arguments:
        hidden: (layer, token, d) states; or a list of such arrays, one for each text, with numbers of tokens of their
            own; or one array (text, layer, token, d). A list of arrays (token, d) is a list of layers. Arrays may
            be of NumPy, JAX, torch or xarray.
        attention: (layer, head, token, token), rows sum to 1; or one for each text. One layer less than there are
            states, or as many where the last state is missing.
        ids: (token,) integers that say which tokens are equal; or one array for each text.
        causal: whether tokens see earlier ones alone.
        after_attention: (layer, token, d) states after the attention of each layer; or one for each text.
        unembedding: (V, d) rows of words e_w: the logits of a state x are √d <g x/|x|, e_w>, with the RMS norm of a
            decoder. For another final norm give a function of states (n, d) that returns logits (n, V).
        final_gain: (d,) the gain g of the final norm, 1 if left out or multiplied into the unembedding.
        labels: words to show for the tokens, one list or one for each text.
        name: the network.
        facts: what else is known, such as checksums; kept in datasets.

    Attributes:
        hidden, attention, after_attention, ids, labels: tuples with one entry a text, or None.
        notes: what a reader of the numbers should know.
        checked: of a stream from a file, True if it has the checksum that the file carries, False if the file carries
            none (other programs and earlier versions write none); None for a stream that was made in memory.
    """

    def __init__(
        self,
        hidden: Any,
        attention: Any = None,
        ids: Any = None,
        causal: bool = False,
        *,
        after_attention: Any = None,
        unembedding: Any = None,
        final_gain: Any = None,
        labels: Any = None,
        name: str = "",
        facts: Mapping[str, Any] | None = None,
    ):
        self.hidden, self.one_text = _states(hidden)
        self.causal = flag("causal", causal)
        self.name = instance("name", name, str, "a text")
        self.facts = dict(instance("facts", {} if facts is None else facts, Mapping, "a dictionary"))
        self.attention = self._of_texts("attention", attention, 4)
        self.after_attention = self._of_texts("after_attention", after_attention, 3)
        self.ids = self._per_token("ids", ids)
        self.labels = self._per_token("labels", labels)
        self.unembedding = unembedding if unembedding is None or callable(unembedding) else self._words(unembedding)
        self.final_gain = None if final_gain is None else self._gain(final_gain)
        for text, states in enumerate(self.hidden):
            _check_parts(text, states, self.attention, self.after_attention, self.causal)
        self.notes = tuple(self._noticed())
        self.checked: bool | None = None

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.hidden)

    @property
    def states(self) -> int:
        """Number of states of a token, one more than layers where the last state is known."""
        return len(self.hidden[0])

    @property
    def layers(self) -> int:
        """Number of layers."""
        known = [part[0] for part in (self.attention, self.after_attention) if part is not None]
        return len(known[0]) if known else self.states - 1

    @property
    def heads(self) -> int:
        """Number of heads; 0 where attention is not known."""
        return 0 if self.attention is None else self.attention[0].shape[1]

    @property
    def width(self) -> int:
        """Dimension d of the states."""
        return self.hidden[0].shape[2]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of tokens of each text."""
        return tuple(states.shape[1] for states in self.hidden)

    def text(self, number: int) -> "Stream":
        """The stream of one text."""

        def one(part: Any) -> Any:
            return None if part is None else part[number]

        return Stream(
            one(self.hidden),
            one(self.attention),
            one(self.ids),
            self.causal,
            after_attention=one(self.after_attention),
            unembedding=self.unembedding,
            final_gain=self.final_gain,
            labels=one(self.labels),
            name=self.name,
            facts=self.facts,
        )

    def tokens(
        self, kept: Sequence[np.ndarray] | None = None, *, rows: int | None = None, states: slice = slice(None)
    ) -> Tokens:
        """The states as tokens x/|x| on the sphere, with dimensions `text` (of several texts) and `layer`.

        Every observable applies to them. Texts of unequal length are filled up by absent rows. `kept` leaves tokens
        out: one boolean array (token,) for each text, for example from `find_sinks`. `rows` fills up to so many rows
        where texts are shorter, so that texts of other lengths share compiled programs. `states` takes some of the
        states, all if left out.
        """
        longest = max(*self.lengths, 0 if rows is None else rows)
        numbers = range(self.states)[states]
        positions = np.zeros((self.texts, len(numbers), longest, self.width))
        present = np.zeros(positions.shape[:-1], bool)
        for text, every in enumerate(self.hidden):
            positions[text, :, : every.shape[1]] = unit(every[states], f"hidden of text {text}")
            present[text, :, : every.shape[1]] = True if kept is None else kept[text]
        labels = (None, tuple(numbers))
        if self.one_text:
            return Tokens(positions[0], present=present[0], dims=("layer",), coordinates=labels[1:])
        return Tokens(positions, present=present, dims=("text", "layer"), coordinates=labels)

    def save(self, path: str | Path) -> Path:
        """Write the stream to a file, `.npz` or `.safetensors`, with a checksum; `open_stream` reads it."""
        from attnflow.probe.stored import write

        return write(self, Path(path))

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{key}: {value}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_table(f"Stream {self.name}".strip(), self._facts())

    def _facts(self) -> dict[str, Any]:
        low, high = min(self.lengths), max(self.lengths)
        checksums = {} if self.checked is None else {"checksum": "verified" if self.checked else "none in the file"}
        known = {
            "attention": self.attention,
            "after attention": self.after_attention,
            "ids": self.ids,
            "unembedding": self.unembedding,
        }
        return (
            {
                "name": self.name or "unnamed",
                "texts": self.texts,
                "tokens": low if low == high else f"{low} to {high}",
                "layers": self.layers,
                "width": self.width,
                "heads": self.heads,
                "causal": self.causal,
                "known": ", ".join(key for key, value in known.items() if value is not None) or "states alone",
            }
            | checksums
            | {f"note {k + 1}": note for k, note in enumerate(self.notes)}
        )

    def _of_texts(self, name: str, given: Any, rank: int) -> tuple[np.ndarray, ...] | None:
        """One array for each text; a list of layers is one text."""
        if given is None:
            return None
        parts = [given] if self.one_text else list(given)
        if len(parts) != self.texts:
            raise InvalidInput(f"`{name}` has {len(parts)} entries for {self.texts} texts; give one for each.")
        found = []
        for text, part in enumerate(parts):
            if isinstance(part, list | tuple):
                part = np.stack([as_reals(f"{name}[{layer}]", one) for layer, one in enumerate(part)])
            array = as_reals(name, part)
            if array.ndim != rank:
                wanted = "(layer, head, token, token)" if rank == 4 else "(layer, token, d)"
                raise InvalidInput(f"`{name}` of text {text} has shape {array.shape}; give {wanted}.")
            found.append(array)
        return tuple(found)

    def _per_token(self, name: str, given: Any) -> tuple[np.ndarray, ...] | None:
        if given is None:
            return None
        parts = [given] if self.one_text else list(given)
        found = tuple(as_array(name, part) for part in parts)
        if len(found) != self.texts or any(a.shape != (n,) for a, n in zip(found, self.lengths, strict=False)):
            shapes = ", ".join(str(a.shape) for a in found[:4])
            raise InvalidInput(f"`{name}` has shapes {shapes}; give one entry for each token, {self.lengths[:4]}.")
        if name == "ids" and any(a.dtype.kind not in "iu" for a in found):
            raise InvalidInput(f"`ids` has dtype {found[0].dtype}; give whole numbers.")
        return found

    def _words(self, given: Any) -> np.ndarray:
        words = as_reals("unembedding", given)
        if words.ndim != 2 or words.shape[1] != self.width:
            raise InvalidInput(f"`unembedding` has shape {words.shape}; give (words, {self.width}), or a function.")
        return words

    def _gain(self, given: Any) -> np.ndarray:
        gain = as_reals("final_gain", given)
        if gain.shape != (self.width,):
            raise InvalidInput(f"`final_gain` has shape {gain.shape}; give one number for each of {self.width}.")
        return gain

    def _noticed(self) -> list[str]:
        found = []
        if self.texts > 1 and self.states == 1:
            found.append(
                f"each of {self.texts} texts has one state, hence no layer. Arrays (text, token, d), one a layer, as "
                "transformers returns them, are to be stacked: hidden=np.stack(states, axis=1)."
            )
        norms = [row_lengths(states) for states in self.hidden]
        several = [one for one in norms if one.shape[1] > 1] or [np.ones((1, 2))]  # one token alone shows no spread
        spreads = [(np.ptp(one, axis=1) / np.maximum(one.max(axis=1), np.finfo(float).tiny))[1:] for one in several]
        if all(len(one) and (one < EQUAL_NORMS).all() for one in spreads):
            found.append(
                "all tokens of a layer have equal norms in every layer: these are states after a norm. That is right "
                "for post-norm networks (BERT); for a pre-norm network give the residual stream before the norm."
            )
        elif all(len(one) > 1 and one[-1] < EQUAL_NORMS for one in spreads):
            found.append(
                "the tokens of the last state alone have equal norms: it seems to be taken after the final norm, as "
                "hidden_states[-1] of transformers is. Give the residual stream before that norm."
            )
        if self.attention is not None and not self.causal:
            above = max(float(np.triu(one, 1).max()) for one in self.attention)
            if above == 0 and max(self.lengths) > 1:
                found.append("attention never looks ahead, although `causal` is False: give causal=True for a decoder.")
        return found


def unit(states: np.ndarray, name: str = "hidden") -> np.ndarray:
    """States divided by their norms, in float64."""
    x = np.asarray(states, np.float64)
    if not x.any(axis=-1).all():
        where = np.argwhere(~x.any(axis=-1))[0].tolist()
        raise InvalidInput(f"`{name}` is zero at {where}, which has no direction; leave that token out.")
    return unit_rows(x)


def _states(hidden: Any) -> tuple[tuple[np.ndarray, ...], bool]:
    """The states of every text, and whether one text was given."""
    if isinstance(hidden, list | tuple):
        parts = [as_reals(f"hidden[{k}]", one) for k, one in enumerate(hidden)]
        if not parts:
            raise InvalidInput("`hidden` is empty; give states of shape (layer, token, d).")
        ranks = {part.ndim for part in parts}
        if ranks == {2}:
            if len({part.shape for part in parts}) > 1:
                shapes = " and ".join(map(str, dict.fromkeys(part.shape for part in parts)))
                raise InvalidInput(f"`hidden` has layers of shapes {shapes}; give the same tokens in every layer.")
            return (_checked(np.stack(parts)),), True
        if ranks == {3}:
            if len({(part.shape[0], part.shape[2]) for part in parts}) > 1:
                shapes = " and ".join(map(str, dict.fromkeys(part.shape for part in parts)))
                raise InvalidInput(f"`hidden` has texts of shapes {shapes}; layers and width must be the same.")
            return tuple(_checked(part) for part in parts), False
        raise InvalidInput(
            f"`hidden` is a list of arrays with {sorted(ranks)} dimensions; give (layer, token, d) for each text."
        )
    array = as_reals("hidden", hidden)
    if array.ndim == 4:
        return tuple(_checked(part) for part in array), False
    return (_checked(array),), True


def _checked(states: np.ndarray) -> np.ndarray:
    if states.ndim != 3 or not states.size:
        raise InvalidInput(f"`hidden` has shape {states.shape}; give (layer, token, d), or a list of such arrays.")
    return states


def _check_parts(text: int, states: np.ndarray, attention: Any, after_attention: Any, causal: bool) -> None:
    count, n, d = states.shape
    layers = []
    if attention is not None:
        table = attention[text]
        if table.shape[2:] != (n, n):
            raise InvalidInput(
                f"`attention` of text {text} has shape {table.shape} for {n} tokens; give (layer, head, {n}, {n})."
            )
        sums = table.sum(axis=-1)
        if (bad := np.argwhere(~(np.abs(sums - 1) <= ROWS))).size or (table < 0).any():
            where = bad[0].tolist() if bad.size else np.argwhere(table < 0)[0].tolist()
            raise InvalidInput(
                f"`attention` of text {text} has a row at {where} with sum {sums[tuple(where[:3])]:.4g} or a negative "
                "weight; give the weights after the softmax, in the order (layer, head, query, key)."
            )
        if causal and np.triu(table, 1).max() > ROWS:
            raise InvalidInput(f"`attention` of text {text} looks ahead, although `causal` is True; give causal=False.")
        layers.append(("attention", len(table)))
    if after_attention is not None:
        if after_attention[text].shape[1:] != (n, d):
            raise InvalidInput(
                f"`after_attention` of text {text} has shape {after_attention[text].shape}; give (layer, {n}, {d})."
            )
        layers.append(("after_attention", len(after_attention[text])))
    for name, found in layers:
        if found not in (count - 1, count):
            raise InvalidInput(
                f"`{name}` has {found} layers and `hidden` {count} states; give {count - 1}, the layers between states."
            )
    if len({found for _, found in layers}) > 1:
        said = " and ".join(f"`{name}` {found}" for name, found in layers)
        raise InvalidInput(f"the numbers of layers differ, {said}; give the same for both.")
