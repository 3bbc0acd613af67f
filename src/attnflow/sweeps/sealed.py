"""JSON files with a digest, by which an alteration is noticed when they are read."""

import hashlib
import json
from typing import Any

from attnflow.parsing import parse_json
from attnflow.sweeps.ranges import MOST

LARGEST = 1 << 31
"""Bytes of a file that describes a sweep of all points that are allowed, or its results."""
MOST_VALUES = 4 * MOST
"""Values in it."""


def sealed(kind: str, table: dict[str, Any]) -> bytes:
    """The content of a file: a table as JSON, with a digest of it and of `kind`, a word for what it describes."""
    return json.dumps(table | {"digest": _digest(kind, table)}, indent=1).encode()


def unsealed(kind: str, content: bytes, *, required: bool = True) -> dict[str, Any]:
    """The table of a file that `sealed` made.

    Arguments:
        kind: the word with which it was made.
        content: what the file holds.
        required: False to accept a table without a digest, as earlier versions wrote it.

    Raises:
        ValueError: if the file was truncated or altered, or describes something else.
    """
    table = parse_json(content, most=LARGEST, most_values=MOST_VALUES)
    if not isinstance(table, dict):
        raise ValueError("it holds no table")
    digest = table.pop("digest", None)
    if digest != _digest(kind, table) and (required or digest is not None):
        raise ValueError("it was altered, or is another file")
    return table


def _digest(kind: str, table: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([kind, table], sort_keys=True).encode()).hexdigest()
