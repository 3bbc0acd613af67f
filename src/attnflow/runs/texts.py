"""The text of a specification: read from a file or a preset, and changed by entries such as "field.beta=9"."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from attnflow.checks import instance, shown
from attnflow.errors import InvalidSpec
from attnflow.parsing import parse_toml
from attnflow.reading import read_text
from attnflow.runs.presets import preset_names, preset_text
from attnflow.runs.token_files import with_files


def load_text(source: str | Path) -> str:
    """The text of a TOML file or of a preset."""
    path = Path(instance("source", source, str | Path, "a TOML file, or the name of a preset"))
    try:
        return read_text(path) if path.suffix == ".toml" or path.exists() else preset_text(str(source))
    except OSError as error:
        raise InvalidSpec(
            f"cannot read {shown(str(path))} ({error.strerror}); give a TOML file or a preset, one of "
            f"{', '.join(preset_names())}."
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidSpec(f"{shown(str(path))} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from None


def with_changes(text: str, changes: Sequence[str], folder: str | Path = ".") -> str:
    """The specification with changes and files of tokens written into it, without comments; nothing is resolved."""
    return tomli_w.dumps(with_files(changed(text, changes), Path(folder)))


def changed(text: str, changes: Sequence[str]) -> dict[str, Any]:
    """The table of a specification with changes."""
    table = _read_toml(text)
    if not isinstance(changes, list | tuple) or not all(isinstance(change, str) for change in changes):
        raise InvalidSpec(f'`changes` is {shown(changes)}; give a list of texts, say ["field.beta=9"].')
    for change in sorted(changes, key=lambda c: not c.partition("=")[0].strip().endswith(".name")):
        _apply(table, change)  # names first: they start their part afresh
    return table


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise InvalidSpec(f"the specification cannot be read: {error}; write it as `attnflow presets` shows.") from None


def _apply(table: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    if not equals or not key.strip():
        raise InvalidSpec(f"`--set` is {shown(change)}; write part.key=value, say field.beta=9.")
    try:
        table_of_value = parse_toml(f"value = {value}")
    except ValueError:
        table_of_value = {}
    parsed = table_of_value["value"] if len(table_of_value) == 1 else value  # what is no TOML value is a text
    *path, last = key.strip().split(".")
    for step in path:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise InvalidSpec(f"`--set` is {shown(change)}, but {shown(step)} is a value, not a table; change that.")
    if last == "name" and path and table.get("name") != parsed:
        table.clear()  # the keys of another kind mean nothing to the new one
    table[last] = parsed
