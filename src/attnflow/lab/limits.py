"""What a client of the lab may ask for, and what it is refused."""

import json
import math
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.wording import shown

CLIENTS = 4
"""Clients at the same time; each has a process of its own."""
MESSAGE = 64 * 1024
"""Bytes of a message of a client."""
TOKENS = 100_000
"""Tokens of all members together, and every other whole number of a specification."""
COORDINATES = 10_000_000
"""Coordinates of all tokens together."""
CREDITS = 16
"""Frames that may be asked for before they have come."""
MEMORY = 6 * 2**30
"""Bytes of data of a worker."""
PER_CREDIT = 60.0
"""Seconds of work for one frame, compilation included."""
CANCEL = 2.0
"""Seconds after which work that was told to stop is ended with its process."""
IDLE = 600.0
"""Seconds without a message after which a client is sent away."""
CHANGES = 150
"""Changes of beta on the way of one flow."""
HOTTEST = 1e4
"""The largest beta that a change asks for."""
FOLDER = 2**30
"""Bytes of arrays of a run folder that is written for a client."""
DEPTH = 24
"""Tables and lists inside tables and lists."""

PIECES = 64
"""Frames of the WebSocket protocol in which one message may come."""
NUMBERS = 2**53
"""Numbers of flows are smaller, so that JavaScript can count them."""
Axes = tuple[int, ...] | None
"""Coordinates of tokens that are drawn; None for principal ones."""
KEYS = {"forms", "start", "set", "credit"}
"""What a message of the page may be."""

FREE = {"seed", "until", "times", "t"}
"""Keys whose numbers are not sizes."""
SIZES = ("n", "dim", "d", "circles")
"""Keys of tokens and their space whose product bounds the number of coordinates."""


def check_values(value: Any, where: str = "", depth: int = DEPTH) -> None:
    """Refuse values of a specification that are too large, nested too deeply, or that TOML cannot say.

    Arguments:
        value: a table, a list, a number or a text.
        where: the dotted keys that lead to it, for a refusal.
        depth: levels of tables and lists that it may have.
    """
    if isinstance(value, dict | list) and not depth:
        raise InvalidInput(f"`{where}` is nested too deeply; use at most {DEPTH} levels of tables and lists.")
    if isinstance(value, dict):
        for key, inner in value.items():
            check_values(key, where, depth)
            check_values(inner, f"{where}.{key}" if where else key, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            check_values(inner, where, depth - 1)
    elif isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidInput(f"`{where}` has {shown(value)}, which is no text in Unicode; write it anew.")
    elif value is None:
        raise InvalidInput(f"`{where}` is null; leave the key out, or give it a value.")
    elif isinstance(value, int):
        limit = NUMBERS if where.rpartition(".")[2] in FREE else TOKENS
        if abs(value) > limit:
            raise InvalidInput(f"`{where}` is {shown(value)}; the lab takes at most {limit}.")
    elif not math.isfinite(value):
        raise InvalidInput(f"`{where}` is {value}; give a finite number.")


def check_size(tokens: Any) -> None:
    """Refuse a table of tokens with more coordinates than the lab takes, before any are drawn."""
    if not isinstance(tokens, dict):
        return
    space = tokens.get("space")
    sizes = [(table, key) for table in (tokens, space) if isinstance(table, dict) for key in SIZES]
    total = math.prod(table[key] for table, key in sizes if _is_count(table.get(key)))
    if total > COORDINATES:
        raise InvalidInput(f"`tokens` has {total} coordinates; the lab takes at most {COORDINATES}.")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def check_tokens(count: int) -> None:
    """Refuse more tokens, in all members together, than the lab takes."""
    if count > TOKENS:
        raise InvalidInput(f"there are {count} tokens in all members together; the lab takes at most {TOKENS}.")


def checked_beta(beta: Any) -> float:
    """A beta that a client may ask for."""
    if isinstance(beta, bool) or not isinstance(beta, int | float) or not 0 <= beta <= HOTTEST:
        raise InvalidInput(f"`beta` is {shown(beta)}; give a number from 0 to {HOTTEST:g}.")
    return float(beta)


def checked_axes(axes: Any) -> Axes:
    """The coordinates that a client asks for: "principal" or nothing, or two or three different whole numbers."""
    if axes is None or axes == "principal":
        return None
    are_counts = isinstance(axes, list | tuple) and all(type(axis) is int and axis >= 0 for axis in axes)
    if not are_counts or not 2 <= len(set(axes)) == len(axes) <= 3:
        raise InvalidInput(f"`axes` is {shown(axes)}; give two or three coordinates, such as [0, 1, 4], or principal.")
    return tuple(axes)


def read_message(text: Any) -> dict[str, Any]:
    """The message of a client as a table with one of the keys `KEYS`.

    Raises:
        InvalidInput: if the text is something else, or if the number of a flow, which goes back to the page with
            every message about the flow, is not whole.
    """
    try:
        message = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or len(message) != 1 or not message.keys() <= KEYS:
        raise InvalidInput("messages are JSON with one of the keys forms, start, set and credit")
    (key, value), *_ = message.items()
    if key in ("start", "set") and not isinstance(value, dict):
        raise InvalidInput(f"`{key}` is {shown(value)}; send a table")
    number = value.get("number") if key == "start" else None
    if number is not None and not (type(number) is int and abs(number) < NUMBERS):
        raise InvalidInput(f"`number` is {shown(number)}; send a whole number below 2^53")
    return message


def is_single(root: Path) -> bool:
    """Whether what was chosen is one thing to open rather than a folder of such."""
    return root.is_file() or any((root / name).is_file() for name in ("manifest.json", "sweep.json"))
