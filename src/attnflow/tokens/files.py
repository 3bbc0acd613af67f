"""Tokens from a file: vectors, and labels where the file has them."""

import csv
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from attnflow.archives import DAMAGED, load_npy, open_npz
from attnflow.checks import instance, shown
from attnflow.errors import InvalidTokens, TooLarge
from attnflow.feasible import require_memory
from attnflow.reading import open_file, read_text, require_size
from attnflow.spaces import AbstractSpace
from attnflow.tokens.ensemble import Tokens, from_array

ARRAYS = ("positions", "labels", "masses")
"""What an .npz file may hold."""
TEXT_RATIO = 8
"""Bytes of memory for each byte of a table in a text, at least."""
HEADER = 2
"""Numbers in the first line of a file of word vectors: how many rows and columns follow."""


def from_file(path: str | Path, *, space: AbstractSpace | None = None, normalise: bool = False) -> Tokens:
    """Tokens from a file, on the sphere of R^dim unless `space` says otherwise; `normalise` as in `from_array`.

    `.npy` holds positions, `.npz` the arrays `positions` and, if it has them, `labels` and `masses`. Any other file is
    text in UTF-8, one token a line: its coordinates and at most one column of labels, separated by commas, tabs or
    spaces. A first line of names is left out, and so is the first line "rows columns" of a file of word vectors.
    """
    found = read_tokens(path)
    return from_array(
        found["positions"], masses=found.get("masses"), labels=found.get("labels"), space=space, normalise=normalise
    )


def read_tokens(path: str | Path, most: int | None = None) -> dict[str, Any]:
    """The arrays of a file, of at most `most` bytes, by the names of the arguments of `from_array`."""
    file = Path(instance("path", path, str | Path, "the name of a file, such as 'words.csv'"))
    try:
        with open_file(file) as stream:
            size = require_size(stream, most)
            if file.suffix == ".npy":
                return {"positions": load_npy(stream)}
            if file.suffix == ".npz":
                return _archive(file, stream)
        require_memory(TEXT_RATIO * size, f"the table in {shown(str(file))}", "save its numbers by numpy.save")
        return _table(file, read_text(file, size))
    except OSError as error:
        raise InvalidTokens(f"cannot read {shown(str(file))} ({error.strerror or error}); give another file.") from None
    except UnicodeDecodeError as error:
        raise InvalidTokens(
            f"{shown(str(file))} is not text in UTF-8 (byte {error.start}); save it as UTF-8."
        ) from None
    except (InvalidTokens, TooLarge):
        raise
    except DAMAGED as error:
        raise InvalidTokens(f"{shown(str(file))} holds no plain arrays ({error}); save them by numpy.savez.") from None


def _archive(file: Path, stream: BinaryIO) -> dict[str, Any]:
    with open_npz(stream) as arrays:
        if "positions" not in arrays:
            raise InvalidTokens(
                f"{shown(str(file))} holds {', '.join(arrays) or 'nothing'}; save an array `positions`, and `labels` "
                "and `masses` beside it."
            )
        return {name: arrays[name] for name in ARRAYS if name in arrays}


def _table(file: Path, text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InvalidTokens(f"{shown(str(file))} is empty; give one token a line.")
    mark = next((mark for mark in "\t,;" if mark in lines[-1]), None)
    rows = list(csv.reader(lines, delimiter=mark)) if mark else [line.split() for line in lines]
    if len(rows) > 1 and (len(rows[0]) == HEADER < len(rows[1]) or not any(map(_is_number, rows[0]))):
        del rows[0]
    width = len(rows[0])
    uneven = next((k for k, row in enumerate(rows) if len(row) != width), None)
    if uneven is not None:
        raise InvalidTokens(
            f"{shown(str(file))}: token {uneven} has {len(rows[uneven])} columns and token 0 has {width}; give all "
            "lines as many, and put labels that hold the separator into quotes."
        )
    texts = [k for k in range(width) if not all(_is_number(row[k]) for row in rows)]
    if len(texts) > 1:
        raise InvalidTokens(
            f"{shown(str(file))}: the columns {texts} are no numbers; give coordinates and one column of labels."
        )
    numbers = [k for k in range(width) if k not in texts]
    found: dict[str, Any] = {"positions": np.array([[float(row[k]) for k in numbers] for row in rows])}
    return found | ({"labels": [row[texts[0]].strip() for row in rows]} if texts else {})


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
