"""Tokenizers that networks bring: lists of chemical words, tokenizer.json, and the keys of GGUF files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.reading import read_text
from attnflow.text.tokenizers import AbstractTokenizer, Bytes, Library, given_text

SMILES = re.compile(r"\[[^\]]*\]|Br|Cl|>>|%\d\d|.")
"""Words of chemical formulas: atoms in brackets, those of two letters, arrows, numbers of rings, single characters."""
PRETOKENIZERS = ("smollm", "gpt-2")
"""Ways to cut texts before byte pairs are merged, as GGUF calls them, that are known here."""


class Ids(AbstractTokenizer):
    """Stand in for the tokenizer that a network came without: texts are read as bytes, tokens are shown as ids."""

    note = (
        "the network has no tokenizer: texts are read as bytes and tokens are shown by their ids, as <52>; give ids, "
        "or put tokenizer.json beside the weights."
    )

    def __init__(self, name: str, vocabulary: int):
        """Read texts for a network of this name and number of ids."""
        self.bytes = Bytes(name, vocabulary)

    def encode(self, text: str) -> list[int]:
        return self.bytes.encode(text)

    def words(self, ids: Sequence[int]) -> list[str]:
        return [f"<{number}>" for number in ids]


class Vocabulary(AbstractTokenizer):
    """Words of chemical formulas from a list, one a line, with [CLS] in front and [SEP] at the end."""

    def __init__(self, path: Path):
        """`path` is a vocab.txt."""
        self.names = read_text(path).splitlines()
        self.numbers = {name: number for number, name in enumerate(self.names)}
        missing = [name for name in ("[CLS]", "[SEP]", "[UNK]") if name not in self.numbers]
        if missing:
            raise InvalidInput(f"{str(path)!r} lacks the words {', '.join(missing)}; give the list of an encoder.")

    def encode(self, text: str) -> list[int]:
        words = ["[CLS]", *SMILES.findall("".join(given_text(text).split())), "[SEP]"]
        return [self.numbers.get(word, self.numbers["[UNK]"]) for word in words]

    @property
    def special(self) -> tuple[int, ...]:
        return 0, -1

    def words(self, ids: Sequence[int]) -> list[str]:
        return [self.names[one] if one < len(self.names) else f"<{one}>" for one in ids]


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
