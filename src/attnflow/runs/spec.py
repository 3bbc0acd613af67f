"""A run specification: plain TOML, resolved to every default it relies on, and built into objects."""

import dataclasses
import hashlib
import inspect
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from attnflow.axes import Along
from attnflow.errors import InvalidSpec
from attnflow.runs.made import make
from attnflow.runs.nearest import did_you_mean
from attnflow.runs.plugins import Given, Plugins, chosen, current, words
from attnflow.runs.presets import preset_names, preset_text
from attnflow.runs.registry import ARGUMENTS, BATCHED, DEFAULTS, HIDDEN

TOP = {"name": "run", "about": "", "precision": "float64"}
SOLVE = ("until", "method", "noise", "save", "stop", "chunk", "tol")


@dataclasses.dataclass(frozen=True)
class Spec:
    """A resolved specification."""

    table: dict[str, Any]
    plugins: Plugins = dataclasses.field(default_factory=current, compare=False, repr=False)
    """Where words come from that are not the package's."""

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.table["name"]

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved content: equal hashes mean equal runs."""
        content = [self.table, *self.plugins.hashes] if self.plugins.loaded else self.table
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_toml(self) -> str:
        """The resolved specification as TOML."""
        return tomli_w.dumps(self.table)

    def build(self) -> dict[str, Any]:
        """The arguments of `solve`: field, tokens, until, method, noise, save, stop, chunk, tol."""
        with self.plugins.active():
            return self._made()

    def observables(self) -> dict[str, Any]:
        """name -> function of the tokens, for all that `observe` asks for."""
        with self.plugins.active():
            return {table["name"]: _build("observable", table) for table in self.table.get("observe", [])}

    def _made(self) -> dict[str, Any]:
        tokens = _build("tokens", self.table["tokens"])
        if self.table["precision"] != "float64":
            tokens = tokens.astype(np.dtype(self.table["precision"]))
        solve = self.table["solve"]
        return {
            "tokens": tokens,
            "field": _build("field", self.table["field"]),
            "until": float(solve.get("until", np.inf)),
            "method": _build("method", solve["method"]),
            "noise": _build("noise", solve["noise"]) if "noise" in solve else None,
            "save": _build("save", solve["save"]) if "save" in solve else None,
            "stop": tuple(_build("stop", table) for table in solve["stop"]),
            "chunk": solve["chunk"],
            "tol": solve.get("tol"),
        }


def load_spec(source: str | Path, changes: Sequence[str] = (), plugins: Given = ()) -> Spec:
    """The specification in a TOML file or of a preset's name, with changes such as "field.beta=9".

    `plugins` are Python files that `register` further words; they are executed, a specification never is.
    """
    path = Path(source)
    if path.suffix == ".toml" or path.exists():
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidSpec(
                f"cannot read {str(path)!r} ({error.strerror}); give a TOML file or a preset, one of "
                f"{', '.join(preset_names())}."
            ) from None
    else:
        text = preset_text(str(source))
    return parse_spec(text, changes, plugins)


def parse_spec(text: str, changes: Sequence[str] = (), plugins: Given = ()) -> Spec:
    """Parse, change, resolve and check a specification; nothing is run."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSpec(f"the specification is not valid TOML: {error}.") from None
    for change in sorted(changes, key=lambda c: not c.partition("=")[0].strip().endswith(".name")):
        _apply(table, change)  # names first: they start their part afresh
    with chosen(plugins).active():
        spec = Spec(_resolve(table))
    spec.build()
    return spec


def _apply(table: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    if not equals or not key.strip():
        raise InvalidSpec(f"`--set {change}` is not of the form part.key=value, say field.beta=9.")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    *path, last = key.strip().split(".")
    for step in path:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise InvalidSpec(f"`--set {change}`: {step!r} is a value, not a table.")
    if last == "name" and path and table.get("name") != parsed:
        table.clear()  # the keys of another kind mean nothing to the new one
    table[last] = parsed


def _resolve(table: dict[str, Any]) -> dict[str, Any]:
    parts = ("tokens", "field", "solve")
    for key in table:
        if key not in (*TOP, *parts, "observe"):
            known = (*TOP, *parts, "observe")
            raise InvalidSpec(f"unknown key {key!r} in the specification{did_you_mean(key, known)}")
    for part in parts:
        if not isinstance(table.get(part), dict):
            raise InvalidSpec(f"the specification has no table [{part}]; `attnflow presets` shows complete ones.")
    resolved: dict[str, Any] = {key: table.get(key, default) for key, default in TOP.items()}
    for key in ("name", "about"):
        if not isinstance(resolved[key], str):
            raise InvalidSpec(f"`{key}` is {resolved[key]!r}; give a text.")
    if not resolved["name"] or set(resolved["name"]) & set("/\\\0"):
        raise InvalidSpec(f"`name` is {resolved['name']!r}; it becomes part of a folder name, so no slashes.")
    if resolved["precision"] not in ("float64", "float32"):
        raise InvalidSpec(f"`precision` is {resolved['precision']!r}; use 'float64' or 'float32'.")
    if "observe" in table:
        resolved["observe"] = _fill_observe(table["observe"])
    resolved["tokens"] = _fill("tokens", "tokens", table["tokens"])
    resolved["field"] = _fill("field", "field", table["field"])
    resolved["solve"] = _fill_solve(table["solve"])
    return resolved


def _fill_observe(asked: Any) -> list[dict[str, Any]]:
    if not isinstance(asked, list):
        raise InvalidSpec(f'`observe` is {asked!r}; give a list of tables, [{{ name = "order-parameter" }}].')
    filled = [_fill("observable", f"observe[{k}]", item) for k, item in enumerate(asked)]
    names = [item["name"] for item in filled]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSpec(f"`observe` names {name!r} twice; ask for each observable once.")
    return filled


def _fill_solve(table: dict[str, Any]) -> dict[str, Any]:
    for key in table:
        if key not in SOLVE:
            raise InvalidSpec(f"unknown key 'solve.{key}'{did_you_mean(key, SOLVE)}")
    defaults = dict(DEFAULTS["solve"])
    if "noise" in table:  # without a method of one's own, the one that `solve` takes for noise
        defaults["method"] = {"name": "layers", "step": 0.01, "update": {"name": "project-renormalise"}}
    full = {key: _named(table.get(key, default), default) for key, default in defaults.items()}
    long = isinstance(full["method"], dict) and full["method"].get("name") == "long-time"
    full["until"] = table.get("until", np.inf if long else None)
    until = full["until"]
    if isinstance(until, bool) or not isinstance(until, int | float) or not until > 0:
        raise InvalidSpec(f"`solve.until` is {until!r}; give a positive time.")
    if not long and not np.isfinite(until):
        raise InvalidSpec(f'`solve.until` is {until}; only method = {{ name = "long-time" }} goes that far.')
    if long and "save" in table:
        raise InvalidSpec("`solve.save` is given, but the method 'long-time' keeps frames of its own; leave it out.")
    if isinstance(full["chunk"], bool) or not isinstance(full["chunk"], int) or full["chunk"] < 1:
        raise InvalidSpec(f"`solve.chunk` is {full['chunk']!r}; give a positive integer.")
    if not isinstance(full["stop"], list):
        raise InvalidSpec(f'`solve.stop` is {full["stop"]!r}; give a list of tables, [{{ name = "consensus" }}].')
    filled: dict[str, Any] = {
        "chunk": full["chunk"],
        "method": _fill("method", "solve.method", full["method"]),
        "stop": [_fill("stop", "solve.stop", item) for item in full["stop"]],
    }
    if np.isfinite(until):  # left out it means consensus; JSON has no infinity
        filled["until"] = float(until)
    if not long:
        filled["save"] = _fill("save", "solve.save", full["save"])
    if "tol" in table:
        if isinstance(table["tol"], bool) or not isinstance(table["tol"], int | float) or not 0 < table["tol"] < 1:
            raise InvalidSpec(f"`solve.tol` is {table['tol']!r}; give the accuracy of sums over pairs, in (0, 1).")
        filled["tol"] = float(table["tol"])
    if "noise" in table:
        filled["noise"] = _fill("noise", "solve.noise", table["noise"])
    return filled


def _named(value: Any, default: Any) -> Any:
    """A table without a name changes the default one."""
    if isinstance(value, dict) and isinstance(default, dict) and "name" not in value:
        return default | value
    return value


def _fill(kind: str, where: str, table: Any) -> dict[str, Any]:
    """`table` with the defaults of its maker written out; unknown names and keys are refused."""
    if not isinstance(table, dict) or "name" not in table:
        raise InvalidSpec(f"`{where}` is {table!r}; give a table with a `name`, one of {', '.join(words(kind))}.")
    name = table["name"]
    if name not in words(kind):
        hint = f" (if it comes from a plugin, give --plugin FILE){did_you_mean(str(name), words(kind))}"
        raise InvalidSpec(f"`{where}.name` is {name!r}{hint}")
    parameters = {k: p for k, p in inspect.signature(words(kind)[name]).parameters.items() if k not in HIDDEN}
    for key in table:
        if key != "name" and key not in parameters:
            raise InvalidSpec(f"unknown key '{where}.{key}'{did_you_mean(key, parameters)}")
    filled: dict[str, Any] = {"name": name}
    for key, parameter in parameters.items():
        value = table.get(key, DEFAULTS.get(name, {}).get(key, parameter.default))
        if value is None:
            continue
        if value is inspect.Parameter.empty:
            raise InvalidSpec(f"`{where}` of the kind {name!r} needs the key {key!r}.")
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            filled[key] = _fill_part(name, key, f"{where}.{key}", value)
        elif key in table and key in ARGUMENTS and "weight" not in ARGUMENTS[key]:
            _fill(ARGUMENTS[key][0], f"{where}.{key}", value)  # refuses what is not a table
        elif isinstance(value, bool | int | float | str | list):
            filled[key] = value
        elif isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0:
            filled[key] = value.item()
    return filled


def _fill_part(name: str, key: str, where: str, value: Any) -> Any:
    """A table, or a list of tables, given for the argument `key` of the maker `name`."""
    if key not in ARGUMENTS:
        raise InvalidSpec(f"`{where}` is a table; the key {key!r} of {name!r} takes a value.")
    if isinstance(value, list):
        return [_fill_part(name, key, f"{where}[{k}]", item) for k, item in enumerate(value)]
    table = _named(value, DEFAULTS.get(name, {}).get(key))
    return _fill(_kind(key, table), where, table)


def _kind(key: str, table: Any) -> str:
    """Which part of a specification a table for the argument `key` describes."""
    kinds = ARGUMENTS[key]
    return next((kind for kind in kinds if isinstance(table, dict) and table.get("name") in words(kind)), kinds[0])


def _build(kind: str, table: dict[str, Any]) -> Any:
    batches = kind in ("field", "mask", "weight", "noise", "encoding")
    arguments: dict[str, Any] = {}
    for key, value in table.items():
        if key == "name":
            continue
        if isinstance(value, dict):
            arguments[key] = _build(_kind(key, value), value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            arguments[key] = [_build(_kind(key, item), item) for item in value]
        elif batches and key in BATCHED and isinstance(value, list):
            arguments[key] = Along(key, value)
        else:
            arguments[key] = value
    maker = words(kind)[table["name"]]
    positional = [
        arguments.pop(key)
        for key, p in inspect.signature(maker).parameters.items()
        if p.kind is inspect.Parameter.POSITIONAL_ONLY and key in arguments
    ]
    return make(kind, table["name"], *positional, **arguments)
