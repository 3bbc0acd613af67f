"""TOML and JSON that may come from somebody else: depth, keys and values are counted before anything is made of them.

Whatever is refused is a `ValueError` whose text is a reason, "it is nested more than 64 deep", which readers put into
their sentence. A text within the bounds takes at most some hundred bytes for each of its values.
"""

import json
import re
import tomllib
from typing import Any

from attnflow.reading import LARGEST_TEXT
from attnflow.wording import bytes_shown

DEEPEST = 64
"""Tables and lists inside each other."""
MOST_PARTS = 16
"""Parts of a dotted key, a.b.c; `tomllib` takes a time that grows with their square."""
MOST_KEYS = 20_000
"""Keys and tables of a text in TOML; `tomllib` takes a kilobyte for each."""
MOST_NUMBERS = 4_000_000
"""Values of a text in TOML: tokens of a specification are a million numbers, in lists, with masses and labels."""
MOST_VALUES = 1_000_000
"""Values of a text in JSON."""
_TOML = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+",
    re.DOTALL,
)
"""Strings and comments; one that does not end goes on to the end, so that no text is scanned twice."""
_PART = r"\.[ \t]*+[\w-]++[ \t]*+"
_LONG_KEY = re.compile(rf"{_PART}(?:{_PART}){{{MOST_PARTS - 2}}}\.")
_SURROGATE = re.compile(r"\\u[dD][89abcdefABCDEF]")
_JSON = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def parse_toml(text: str | bytes) -> dict[str, Any]:
    """Parse TOML; the bounds are `DEEPEST`, `MOST_PARTS`, `MOST_KEYS`, `MOST_NUMBERS` and `LARGEST_TEXT` characters.

    Raises:
        ValueError: if the text is no TOML in UTF-8 or exceeds a bound; the text of the error is a reason without an
            end, such as "it is not valid TOML: Invalid value (at line 1, column 5)".
    """
    text = _decoded(text, LARGEST_TEXT)
    plain = _TOML.sub("_", text)
    tops = _require_shallow_brackets(plain)
    if max(tops, plain.count("=")) > MOST_KEYS:
        raise ValueError(f"it has more than {MOST_KEYS} keys and tables")
    if sum(map(plain.count, "[{,")) + text.count("\\") > MOST_NUMBERS:
        raise ValueError(f"it has more than {MOST_NUMBERS} values and escaped characters")
    if _LONG_KEY.search(plain):
        raise ValueError(f"it is nested too deeply: a key has more than {MOST_PARTS} parts")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not valid TOML: {' '.join(str(error).split())}") from None
    except ValueError:  # Python reads integers of up to 4300 digits
        raise ValueError("it has a number of thousands of digits") from None
    _require_shallow(table)
    return table


def parse_json(text: str | bytes, *, most: int = LARGEST_TEXT, most_values: int = MOST_VALUES) -> Any:
    """Parse JSON that is at most `DEEPEST` deep.

    Arguments:
        text: the text, in UTF-8 if it is bytes.
        most: largest number of characters.
        most_values: largest number of values, those inside of tables and lists included.

    Raises:
        ValueError: if the text is no JSON in UTF-8 or exceeds a bound; the text of the error is a reason.
    """
    text = _decoded(text, most)
    plain = _JSON.sub("", text)
    _require_shallow_brackets(plain)
    if sum(map(plain.count, "[{,")) > most_values:
        raise ValueError(f"it has more than {most_values} values")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON: {error}") from None
    except ValueError:
        raise ValueError("it has a number of thousands of digits") from None
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it has half of a character that JSON writes as two") from None
    return value


def _decoded(text: str | bytes, most: int) -> str:
    if len(text) > most:
        raise ValueError(f"it has {bytes_shown(len(text))}, more than {bytes_shown(most)}")
    try:
        return text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8 (byte {error.start})") from None


def _require_shallow_brackets(plain: str) -> int:
    """Refuse brackets deeper than `DEEPEST` in a text without strings; give the number of outermost brackets."""
    depth = tops = 0
    for bracket in plain.encode("utf-8", "replace").translate(None, _NO_BRACKETS):
        if bracket in b"]}":
            depth = max(depth - 1, 0)
            continue
        tops += depth == 0
        depth += 1
        if depth > DEEPEST:
            raise _too_deep()
    return tops


def _require_shallow(table: dict[str, Any]) -> None:
    """Refuse tables that dotted keys nest deeper than `DEEPEST`."""
    level: list[Any] = [table]
    for _ in range(DEEPEST + 1):
        entries = (entry for item in level for entry in (item.values() if isinstance(item, dict) else item))
        level = [entry for entry in entries if isinstance(entry, dict | list)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested too deeply: more than {DEEPEST} brackets or parts of keys inside each other")
