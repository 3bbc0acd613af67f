"""Forms: the declared fields of works and words, as the page draws them. Nothing is written twice."""

import inspect
import tomllib
from typing import Any

from attnflow.flows import AbstractWork
from attnflow.runs import preset_names, preset_text
from attnflow.runs.kinds import entries, parts_of, takes_several
from attnflow.runs.registry import DEFAULTS, HIDDEN, REGISTRY

KINDS = ("solve", "solve_long", "evolve", "evolve_cells")
"""Kinds of work whose frames are tokens or densities that the page can draw."""
LEFT_OUT = {"tokens": {"file"}}
"""Words that read files."""
HEAVY = {"million"}
"""Presets beyond the limits of the lab."""


def forms() -> dict[str, Any]:
    """All kinds with their fields, all words with their arguments, and complete examples."""
    kinds = {name: _kind(REGISTRY["kind"][name]) for name in KINDS}  # type: ignore[arg-type]
    parts = {part for part in REGISTRY if part not in ("kind", "classifier", "data", "placed")}
    words = {part: _words(part) for part in sorted(parts)}
    presets = {name: tomllib.loads(preset_text(name)) for name in preset_names() if name not in HEAVY}
    examples = {name: table for name, table in presets.items() if any(kind in table for kind in KINDS)}
    return {"kinds": kinds, "words": words, "examples": examples}


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


def _words(part: str) -> dict[str, list[dict[str, Any]]]:
    return {
        name: _arguments(name, maker)
        for name, maker in REGISTRY[part].items()
        if name not in LEFT_OUT.get(part, ()) and part != "observable"
    }


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
