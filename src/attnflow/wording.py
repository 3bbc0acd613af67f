"""Values and paths as refusals show them. Light: the command line needs it before anything else is imported."""

import math
import os
import unicodedata
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput

LONGEST = 60
"""Characters of a value that a message shows."""
PLAIN = 6
"""Times between 10^-6 and 10^6 are shown as plain numbers."""
LONGEST_REASON = 200
"""Characters of the error of another library that a message shows."""
LONGEST_NAME = 200
"""Bytes of the name of a file; most file systems take 255, and names get endings."""


def shown(value: Any) -> str:
    """`value` as a message shows it: on one line, and not too long."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # integers of more than 4300 digits, lists nested a thousand times
        text = f"an integer of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def reason(error: BaseException) -> str:
    """What an error of another library says, on one line and not too long; its name where it says nothing."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


def time_shown(log_time: float, digits: int = 9) -> str:
    """The time t of this natural logarithm, as a number or, where it is large or small, as a power of ten: "10^79.7".

    The digits are those of t, or those of the exponent.
    """
    exponent = log_time / math.log(10)
    return (
        f"{math.exp(log_time):.{digits}g}"
        if abs(exponent) < PLAIN or log_time == -math.inf
        else f"10^{exponent:.{digits}g}"
    )


def bytes_shown(count: float) -> str:
    """A number of bytes with a unit that leaves digits before the point: "310 kB", "1.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"


def fresh_path(name: str, path: str | Path) -> Path:
    """A path for something new, if a person can type it again: no option, on one line, not too long."""
    if not isinstance(path, str | Path):
        raise InvalidInput(f"`{name}` is {shown(path)}; give the path of a folder or file.")
    text = str(path)
    if text.startswith("-"):
        raise InvalidInput(f"`{name}` is {shown(text)}, which reads like an option; begin with another character.")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text):
        raise InvalidInput(f"`{name}` is {shown(text)}; give a path without line breaks and control characters.")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(text).parts) or len(text) > 4096:
        raise InvalidInput(f"`{name}` is {shown(text)}, {len(text)} characters; give a shorter path.")
    return Path(path)
