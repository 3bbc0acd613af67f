"""The command line; `main` is the command `attnflow`."""

import codecs
import os
import signal
import sys
import threading
import unicodedata
from typing import Any, NoReturn

__all__ = ["main"]

INTERRUPTED = 130
NARROWEST, WIDEST = 20, 10_000
"""Columns of a terminal; another number in COLUMNS says nothing about it."""


def main() -> None:
    """Run the command line. Ctrl-C ends it with one line, also while it is still being imported.

    Long work takes Ctrl-C itself, to keep what it has done (`console.stoppable`).
    """
    os.environ.setdefault("ATTNFLOW_PROGRESS", "off")  # commands show bars of their own
    if not (columns := os.environ.get("COLUMNS", "80")).isdecimal() or not NARROWEST <= int(columns[:9]) <= WIDEST:
        del os.environ["COLUMNS"]
    show_what_can_be_shown()
    in_charge = threading.current_thread() is threading.main_thread()
    if in_charge and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave_at_once)
    try:
        from attnflow.cli.commands import carry_out

        carry_out()
    finally:
        if in_charge and signal.getsignal(signal.SIGINT) is leave_at_once:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def leave_at_once(number: int, frame: Any) -> NoReturn:
    """End the process after Ctrl-C: no work is under way, so that there is nothing to keep."""
    os.write(2, b"interrupted.\n")
    os._exit(INTERRUPTED)  # an exception could come up in code that catches it, or prints it


def show_what_can_be_shown() -> None:
    """Let output in an encoding such as ASCII show other characters in its place, rather than fail."""
    codecs.register_error("attnflow", _instead)
    for stream in (sys.stdout, sys.stderr):
        if "utf" not in (getattr(stream, "encoding", None) or "utf").lower() and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="attnflow")


def _instead(error: UnicodeError) -> tuple[str, int]:
    """What stands in the place of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(spelled, error.object[error.start : error.end])), error.end


def spelled(character: str) -> str:
    """A character in ASCII: beta for β, u for ü, a hyphen for dashes and minus, * for a dot, else a question mark.

    Superscripts are question marks: 10⁵ must not become 105.
    """
    name = unicodedata.name(character, "")
    if character.isalpha() and unicodedata.category(character) != "Lm":
        plain = unicodedata.normalize("NFD", character)[0]
        greek = name.split(" LETTER ")[-1].split(" WITH ")[0]
        return plain if plain.isascii() else greek.lower() if name.startswith("GREEK ") and " " not in greek else "?"
    if character.isspace():
        return " "
    return "-" if "DASH" in name or name == "MINUS SIGN" else "*" if name == "MIDDLE DOT" else "?"
