"""Text and ids: what a network reads, and what its tokens are called."""

import abc
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnflow.checks import shown
from attnflow.errors import InvalidInput, MissingExtra

SMILES = re.compile(r"\[[^\]]*\]|Br|Cl|>>|%\d\d|.")
"""Words of chemical formulas: atoms in brackets, those of two letters, arrows, numbers of rings, single characters."""
PRETOKENIZERS = ("smollm", "gpt-2")
"""Ways to cut texts before byte pairs are merged, as GGUF calls them, that are known here."""


class AbstractTokenizer(abc.ABC):
    """From text to ids and back to words."""

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text."""

    @abc.abstractmethod
    def words(self, ids: Sequence[int]) -> list[str]:
        """The word of every id."""

    @property
    @abc.abstractmethod
    def special(self) -> tuple[int, ...]:
        """The places of the tokens that `encode` adds to a text."""


class Bytes(AbstractTokenizer):
    """The bytes of a text are its ids: for networks that bring no words."""

    def __init__(self, name: str, vocabulary: int):
        """For a network of this name and vocabulary."""
        self.name, self.vocabulary = name, vocabulary

    def encode(self, text: str) -> list[int]:
        found = list(_given(text).encode())
        if max(found) >= self.vocabulary:
            raise InvalidInput(
                f"{self.name} has {self.vocabulary} ids and no words, so that `text` cannot be read; give ids."
            )
        return found

    @property
    def special(self) -> tuple[int, ...]:
        return ()

    def words(self, ids: Sequence[int]) -> list[str]:
        return [chr(one) if 32 < one < 127 else f"<{one}>" for one in ids]


class Vocabulary(AbstractTokenizer):
    """Words of chemical formulas from a list, one a line, with [CLS] in front and [SEP] at the end."""

    def __init__(self, path: Path):
        """`path` is a vocab.txt."""
        self.names = path.read_text(encoding="utf-8").splitlines()
        self.numbers = {name: number for number, name in enumerate(self.names)}
        missing = [name for name in ("[CLS]", "[SEP]", "[UNK]") if name not in self.numbers]
        if missing:
            raise InvalidInput(f"{str(path)!r} lacks the words {', '.join(missing)}; give the list of an encoder.")

    def encode(self, text: str) -> list[int]:
        words = ["[CLS]", *SMILES.findall("".join(_given(text).split())), "[SEP]"]
        return [self.numbers.get(word, self.numbers["[UNK]"]) for word in words]

    @property
    def special(self) -> tuple[int, ...]:
        return 0, -1

    def words(self, ids: Sequence[int]) -> list[str]:
        return [self.names[one] if one < len(self.names) else f"<{one}>" for one in ids]


class Library(AbstractTokenizer):
    """A tokenizer of the library `tokenizers`, made when it is first needed."""

    def __init__(self, make: Callable[[], Any], plain: bool, first: Sequence[int] = ()):
        """`make` gives the tokenizer; words are looked up if `plain`, else decoded; `first` ids begin every text."""
        self.make, self.plain, self.first = make, plain, list(first)

    @functools.cached_property
    def inner(self) -> Any:
        """The tokenizer of the library."""
        try:
            return self.make()
        except ImportError:
            raise MissingExtra("texts need the library tokenizers; install `attnflow[probe]`, or give ids.") from None

    def encode(self, text: str) -> list[int]:
        return self.first + self.inner.encode(_given(text)).ids

    @property
    def special(self) -> tuple[int, ...]:
        """Encoders of this library put one token in front and one after, or none."""
        try:
            around = self.inner.num_special_tokens_to_add(False) == 2
        except (MissingExtra, InvalidInput):  # ids can be run without their words
            around = False
        return (0, -1) if around else (0,) if self.first else ()

    def words(self, ids: Sequence[int]) -> list[str]:
        try:
            inner = self.inner
        except (MissingExtra, InvalidInput):  # ids can be run without their words
            return [f"<{one}>" for one in ids]
        if self.plain:
            return [inner.id_to_token(one) or f"<{one}>" for one in ids]
        return [inner.decode([one], skip_special_tokens=False) for one in ids]


def from_json(path: Path) -> Library:
    """The tokenizer of a tokenizer.json, without padding and truncation."""

    def make() -> Any:
        from tokenizers import Tokenizer

        try:
            made = Tokenizer.from_file(str(path))
        except Exception as error:
            raise InvalidInput(f"{str(path)!r} is no tokenizer ({shown(str(error))}); fetch it again.") from None
        made.no_padding()
        made.no_truncation()
        return made

    return Library(make, plain=True)


def from_gguf(facts: Mapping[str, Any]) -> Library:
    """The byte-pair tokenizer that the keys of a GGUF file describe."""
    key = "tokenizer.ggml."
    names, merges = facts.get(f"{key}tokens", []), facts.get(f"{key}merges", [])
    first = [facts[f"{key}bos_token_id"]] if facts.get(f"{key}add_bos_token") else []

    def make() -> Any:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        model, cut = facts.get(f"{key}model"), facts.get(f"{key}pre", "gpt-2")
        if model != "gpt2" or cut not in PRETOKENIZERS:
            raise InvalidInput(f"the tokenizer of this file, {model!r} with {cut!r}, is not known here; give ids.")
        numbers = {name: number for number, name in enumerate(names)}
        made = Tokenizer(models.BPE(vocab=numbers, merges=[tuple(one.split(" ", 1)) for one in merges]))
        pieces: Any = pre_tokenizers.ByteLevel(add_prefix_space=False)
        if cut == "smollm":
            pieces = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pieces])
        made.pre_tokenizer, made.decoder = pieces, decoders.ByteLevel()
        kinds = facts.get(f"{key}token_type", [])
        special = [name for name, kind in zip(names, kinds, strict=False) if kind == 3]  # "control" in GGUF
        made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
        return made

    return Library(make, plain=False, first=first)


def _given(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"`text` is {shown(text)}; give a text with at least one word.")
    return text
