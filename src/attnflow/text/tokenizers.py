"""From text to ids, and from ids to words: what tokens of a text are called.

Networks and embeddings read texts through the same classes.
"""

import abc
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from attnflow.checks import shown
from attnflow.errors import InvalidInput, MissingExtra

WORD = re.compile(r"\w+(?:['’-]\w+)*")
"""Letters, digits and underscores; apostrophes and hyphens inside a word."""
NAMED = 5
"""Unknown words that a refusal names."""


def split_words(text: str) -> list[str]:
    """The words of a text in order, as they are written; punctuation is left out."""
    found = WORD.findall(given_text(text))
    if not found:
        raise InvalidInput(f"`text` is {shown(text)}, which has no word; give a text with at least one word.")
    return found


class AbstractTokenizer(abc.ABC):
    """From text to ids and back to words."""

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text."""

    @abc.abstractmethod
    def words(self, ids: Sequence[int]) -> list[str]:
        """The word of every id."""

    @property
    def special(self) -> tuple[int, ...]:
        """The places of the tokens that `encode` adds to a text."""
        return ()


class Words(AbstractTokenizer):
    """Words from a list; a word that is not in the list is looked up in small letters, then refused."""

    def __init__(self, names: Sequence[str]):
        """The id of a word is its place in `names`."""
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}

    def encode(self, text: str) -> list[int]:
        found = split_words(text)
        numbers = [self.numbers.get(word, self.numbers.get(word.lower())) for word in found]
        unknown = list(dict.fromkeys(word for word, one in zip(found, numbers, strict=True) if one is None))
        if unknown:
            more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
            raise InvalidInput(
                f"`text` has the words {', '.join(map(repr, unknown[:NAMED]))}{more}, which are not among the "
                f"{len(self.names)} words of the embedding; leave them out, or give an embedding that has them."
            )
        return [one for one in numbers if one is not None]

    def words(self, ids: Sequence[int]) -> list[str]:
        return [self.names[one] for one in ids]


class Bytes(AbstractTokenizer):
    """The bytes of a text are its ids."""

    def __init__(self, name: str = "the text", vocabulary: int = 256):
        """For a network of this name and vocabulary; left out, all bytes."""
        self.name, self.vocabulary = name, vocabulary

    def encode(self, text: str) -> list[int]:
        found = list(given_text(text).encode())
        if max(found) >= self.vocabulary:
            raise InvalidInput(
                f"{self.name} has {self.vocabulary} ids and no words, so that `text` cannot be read; give ids."
            )
        return found

    def words(self, ids: Sequence[int]) -> list[str]:
        return [chr(one) if 32 < one < 127 else f"<{one}>" for one in ids]


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
        return self.first + self.inner.encode(given_text(text)).ids

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


def given_text(text: Any) -> str:
    """`text`, if it is one that is not empty."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"`text` is {shown(text)}; give a text with at least one word.")
    return text
