"""What the lab offers, and so what it takes: kinds that have a picture and words that need no file, as forms.

The page draws the forms; `offered_spec` reads the specification that comes back with the same words and no others.
"""

import inspect
import tomllib
from collections.abc import Callable
from typing import Any

import tomli_w

from attnflow.errors import InvalidInput
from attnflow.flows import AbstractWork
from attnflow.lab.limits import check_size, check_values
from attnflow.runs import Spec, parse_spec, preset_names, preset_text
from attnflow.runs.kinds import entries, parts_of, takes_several
from attnflow.runs.plugins import Plugins
from attnflow.runs.registry import DEFAULTS, HIDDEN, REGISTRY
from attnflow.runs.spec import resolve_spec
from attnflow.wording import shown

KINDS = ("solve", "solve_long", "evolve", "evolve_cells")
"""Kinds of work whose frames are tokens or densities that the page can draw."""
FILES = {"file"}
"""Words that read files: they are taken neither from a client nor from the specification of a folder."""
UNDRAWN = {"classifier", "data", "placed", "task"}
"""Parts of other kinds of work alone."""
HEAVY = {"million"}
"""Presets beyond the limits of the lab."""


class _Offered(Plugins):
    """The words of the package that the lab takes, as if there were no others; plugins are none of them."""

    def words(self, kind: str) -> dict[str, Callable[..., Any]]:
        """name -> maker, those that the lab takes."""
        if kind == "kind":
            return {name: REGISTRY[kind][name] for name in KINDS}
        return {name: maker for name, maker in REGISTRY[kind].items() if name not in FILES and kind not in UNDRAWN}


OFFERED = _Offered()


def forms() -> dict[str, Any]:
    """All kinds with their fields, all words with their arguments, and complete examples."""
    kinds: dict[str, Any] = OFFERED.words("kind")
    words = {
        part: {} if part == "observable" else {name: _arguments(name, maker) for name, maker in makers.items()}
        for part in sorted(REGISTRY.keys() - {"kind"})
        if (makers := OFFERED.words(part))
    }
    presets = {name: tomllib.loads(preset_text(name)) for name in preset_names() if name not in HEAVY}
    examples = {name: table for name, table in presets.items() if any(kind in table for kind in KINDS)}
    return {"kinds": {name: _kind(kind) for name, kind in kinds.items()}, "words": words, "examples": examples}


def check_table(table: Any) -> dict[str, Any]:
    """Refuse a specification beyond the limits of the lab or with a kind, a key or a word that it does not offer.

    Nothing that the specification describes is made, no file is opened.

    Arguments:
        table: the specification, as a client or an address says it.

    Returns:
        The same table.
    """
    if not isinstance(table, dict):
        raise InvalidInput(f"the specification is {shown(table)}; send a table.")
    check_values(table)
    check_size(table.get("tokens"))
    check_files(table)
    resolve_spec(table, OFFERED)
    return table


def offered_spec(table: Any) -> Spec:
    """The specification that a client sends, if the lab takes it; it is read and made with the offered words alone."""
    return parse_spec(tomli_w.dumps(check_table(table)), plugins=OFFERED)


def check_files(node: Any, where: str = "") -> None:
    """Refuse a specification that names a word which reads a file, wherever it stands.

    Arguments:
        node: the table, or a part of it.
        where: the key that leads to the part, for the refusal; empty for the table, whose `name` is that of a run.
    """
    if isinstance(node, list):
        for inner in node:
            check_files(inner, where)
    elif isinstance(node, dict):
        if where and isinstance(node.get("name"), str) and node["name"] in FILES:
            raise InvalidInput(f"`{where}` names a file; the lab reads none. Send the positions as an array.")
        for key, inner in node.items():
            check_files(inner, key)


def _kind(kind: type[AbstractWork]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "parts": [one.part] if one.part else [],
            "several": one.name in ("stop", "observe"),
            "apart": one.apart,
            "needed": one.needed,
            "default": _plain(one.default),
        }
        for one in entries(kind)
        if one.name not in ("keep", "chunk", "observe", "stop")
    ]


def _arguments(name: str, maker: Any) -> list[dict[str, Any]]:
    found = []
    for key, parameter in inspect.signature(maker).parameters.items():
        if key in HIDDEN or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        given = DEFAULTS.get(name, {}).get(key, parameter.default)
        needed = given is inspect.Parameter.empty
        found.append(
            {
                "name": key,
                "parts": list(parts_of(maker, key)),
                "several": takes_several(maker, key),
                "needed": needed,
                "default": None if needed else _plain(given),
            }
        )
    return found


def _plain(value: Any) -> Any:
    """A default that JSON can say; None where it cannot."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None
