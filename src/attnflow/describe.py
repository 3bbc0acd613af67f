"""Objects in a few words: what `repr`, notebooks and legends say of fields, tokens and flows."""

import dataclasses
import enum
import html
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from attnflow.axes import is_along

SHORT = 6
"""Members of a batch dimension that are written out."""


class LeftOut:
    """A part that is there when nothing was asked for; it is not mentioned."""


class Inlined:
    """A part whose fields are arguments of the whole; they are named as such."""


class Bare:
    """A part that holds an array as it was given; the array stands for it."""


def brief(node: Any) -> str:
    """A field or another part as one would write it, without what is as usual: Attention(beta=9, mask=Causal())."""
    if is_along(node):
        return f"Along({node.dim!r}, {listed(np.asarray(node.values).tolist() if _is_known(node.values) else '…')})"
    if isinstance(node, tuple | list):
        return "[" + ", ".join(map(brief, node)) + "]"
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        inside = ", ".join(f"{name}={brief(value)}" for name, value in _parts(node).items())
        return f"{type(node).__name__}({inside})"
    return _value(node)


def flattened(node: Any, where: str = "") -> dict[str, str]:
    """The same as a table: dotted names of the parts -> what stands there."""
    if dataclasses.is_dataclass(node) and not isinstance(node, type) and not is_along(node):
        found = {where or "field": type(node).__name__}
        for name, value in _parts(node, usual=True).items():
            found |= flattened(value, f"{where}.{name}" if where else name)
        return found
    if isinstance(node, tuple | list):
        return {key: text for k, item in enumerate(node) for key, text in flattened(item, f"{where}[{k}]").items()}
    return {where: brief(node)}


def differences(tables: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The keys at which flat tables differ -> what each of the tables says, None where it says nothing."""
    keys = list(dict.fromkeys(key for table in tables for key in table))
    rows = {key: [table.get(key) for table in tables] for key in keys}
    return {key: row for key, row in rows.items() if any(value != row[0] for value in row)}


def nested(table: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Tables within tables as one flat table with dotted names."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{where}.{key}" if where else key
        found |= nested(value, name) if isinstance(value, Mapping) else {name: value}
    return found


def named(rows: Mapping[str, Sequence[Any]], count: int) -> list[str]:
    """A name for each of `count` tables from what `differences` found, such as "beta = 4, n = 64"."""
    last = {key: key.rpartition(".")[2] for key in rows}
    alone = {word for word in last.values() if list(last.values()).count(word) == 1} - {"name"}
    short = {key: word if word in alone else key for key, word in last.items()}
    names = [
        ", ".join(f"{short[key]} = {_said(row[k])}" for key, row in rows.items() if row[k] is not None)
        for k in range(count)
    ]
    if len(set(names)) == count and all(names):
        return names
    return [f"{name or 'flow'} ({k + 1})" for k, name in enumerate(names)]


def listed(values: Any) -> str:
    """A list, without its middle if it is long."""
    if not isinstance(values, list) or len(values) <= SHORT:
        return str(values)
    return f"[{values[0]}, {values[1]}, …, {values[-1]}]"


def html_table(title: str, rows: Mapping[str, Any], *pictures: str) -> str:
    """A small table for notebooks, and pictures below it (`sketches`)."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(str(key))}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for key, value in rows.items()
    )
    return f"<div><strong>{html.escape(title)}</strong><table>{cells}</table>{''.join(pictures)}</div>"


def _parts(node: Any, usual: bool = False) -> dict[str, Any]:
    """The fields of a part by name; those that are as usual only with `usual`."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if value is None or not field.repr:
            continue
        if not usual and (isinstance(value, LeftOut) or _is_default(field, value)):
            continue
        if isinstance(value, Inlined):
            found |= _parts(value, usual)
        elif isinstance(value, Bare):
            found[field.name] = next(iter(_parts(value).values()), value)
        else:
            found[field.name] = value
    return found


def _is_default(field: Any, value: Any) -> bool:
    """Whether a number or a word is the default of its field; "mean", for heads, is a default of the constructor."""
    if isinstance(value, np.ndarray | np.generic | jax.Array) and value.ndim == 0 and _is_known(value):
        value = value.item()
    plain = isinstance(value, bool | int | float | str)
    return plain and (value == field.default or (field.name, value) == ("average", "mean"))


def _is_known(value: Any) -> bool:
    return not isinstance(value, jax.core.Tracer)


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        kind = "" if _is_known(value) else "traced "
        if value.ndim == 0 and _is_known(value):
            return _said(value.item())
        return f"{kind}array({', '.join(map(str, value.shape))})"
    return getattr(value, "__name__", "") if callable(value) else _said(value)


def _said(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return listed(value) if isinstance(value, list) else str(value)
