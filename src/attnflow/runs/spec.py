"""A run specification: plain TOML, resolved to every default it relies on, and built into objects."""

import dataclasses
import hashlib
import inspect
import json
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from attnflow.axes import Along
from attnflow.checks import instance, shown
from attnflow.errors import AttnflowError, InvalidSpec
from attnflow.flows.save import continued
from attnflow.runs.kinds import KINDS, NEEDED, Kind
from attnflow.runs.made import make
from attnflow.runs.nearest import did_you_mean
from attnflow.runs.plugins import Given, Plugins, chosen, current, words
from attnflow.runs.presets import preset_names, preset_text
from attnflow.runs.registry import ARGUMENTS, BATCHED, DEFAULTS, HIDDEN, takes_batches
from attnflow.wording import fresh_path

TOP = {"name": "run", "about": "", "precision": "float64"}


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
        return content_hash(self.table, self.plugins.hashes)

    def to_toml(self) -> str:
        """The resolved specification as TOML."""
        return tomli_w.dumps(self.table)

    @property
    def kind(self) -> Kind:
        """What kind of run it is."""
        return next(kind for name, kind in KINDS.items() if name in self.table)

    def build(self) -> dict[str, Any]:
        """The arguments of the function that does the work: of `solve`, `evolve`, ..."""
        kind = self.kind
        with self.plugins.active():
            return kind.arguments(self.parts(), self.keys())

    def parts(self, *, lenient: bool = False) -> dict[str, Any]:
        """Tokens, field and what else the kind needs; with `lenient`, None for one whose words are not known."""
        made = {}
        with self.plugins.active():
            for part in self.kind.parts:
                try:
                    made[part] = build_part(part, self.table[part])
                except (AttnflowError, KeyError):
                    if not lenient:
                        raise
                    made[part] = None
        if made.get("tokens") is not None and self.table["precision"] != "float64":
            made["tokens"] = made["tokens"].astype(np.dtype(self.table["precision"]))
        return made

    def keys(self, *, lenient: bool = False) -> dict[str, Any]:
        """The other arguments: those of the table of the kind; with `lenient`, without those that cannot be made."""
        made: dict[str, Any] = {}
        with self.plugins.active():
            for key, value in self.table[self.kind.name].items():
                try:
                    made[key] = _argument(key, value)
                except (AttnflowError, KeyError):
                    if not lenient:
                        raise
        return made

    def extended(self, until: float, save: int | None = None) -> "Spec":
        """The specification of a longer run with all times of this one; `save` counts the new intervals."""
        kind = self.kind
        table = self.table[kind.name]
        last = table.get(kind.end, math.inf)
        if not until > last:
            raise InvalidSpec(
                f"`until` is {until:g}, but the run goes to {last:g} already; give a later time, or run the spec again."
            )
        longer = table | _end(f"{kind.name}.{kind.end}", kind.end, until, needed="save" in table)
        if math.isinf(until):
            longer.pop(kind.end)
        if "save" in table:
            keys = self.keys()
            step = keys["method"].layer_step if "method" in keys else None
            times = continued(keys["save"].times(float(last), step), save, float(until), step)
            longer["save"] = {"name": "at", "times": times[1:].tolist()}
        made = Spec(self.table | {kind.name: longer}, self.plugins)
        made.build()
        return made


def content_hash(table: dict[str, Any], plugins: Sequence[str]) -> str:
    """SHA-256 of a resolved table and of the hashes of its plugins, sorted."""
    content = [table, *plugins] if plugins else table
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def load_spec(source: str | Path, changes: Sequence[str] = (), plugins: Given = ()) -> Spec:
    """The specification in a TOML file or of a preset's name, with changes such as "field.beta=9".

    `plugins` are Python files that `register` further words; they are executed, a specification never is.
    """
    path = Path(instance("source", source, str | Path, "a TOML file, or the name of a preset"))
    try:
        if path.suffix == ".toml" or path.exists():
            text = path.read_text(encoding="utf-8-sig")
        else:
            text = preset_text(str(source))
    except OSError as error:
        raise InvalidSpec(
            f"cannot read {shown(str(path))} ({error.strerror}); give a TOML file or a preset, one of "
            f"{', '.join(preset_names())}."
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidSpec(f"{shown(str(path))} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from None
    return parse_spec(text, changes, plugins)


def parse_spec(text: str, changes: Sequence[str] = (), plugins: Given = ()) -> Spec:
    """Parse, change, resolve and check a specification; nothing is run."""
    table = _read_toml(instance("text", text, str, "the text of a TOML file; load_spec reads files"))
    for change in sorted(changes, key=lambda c: not c.partition("=")[0].strip().endswith(".name")):
        _apply(table, change)  # names first: they start their part afresh
    with chosen(plugins).active():
        spec = Spec(_resolve(table))
    spec.build()
    return spec


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSpec(f"the specification is not valid TOML: {' '.join(str(error).split())}.") from None
    except RecursionError:
        raise InvalidSpec("the specification is nested too deeply; write it with fewer brackets.") from None
    except ValueError:  # Python reads integers of up to 4300 digits
        raise InvalidSpec("the specification has a number of thousands of digits; write a smaller one.") from None


def _apply(table: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    if not equals or not key.strip():
        raise InvalidSpec(f"`--set` is {shown(change)}; write part.key=value, say field.beta=9.")
    try:
        found = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        found = {}
    parsed = found["value"] if len(found) == 1 else value  # what is no TOML value is a text
    *path, last = key.strip().split(".")
    for step in path:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise InvalidSpec(f"`--set` is {shown(change)}, but {shown(step)} is a value, not a table; change that.")
    if last == "name" and path and table.get("name") != parsed:
        table.clear()  # the keys of another kind mean nothing to the new one
    table[last] = parsed


def _plain(where: str, value: Any) -> None:
    """Refuse what TOML knows and specifications do not: dates and times."""
    if isinstance(value, dict):
        for key, item in value.items():
            _plain(f"{where}.{key}" if where else key, item)
    elif isinstance(value, list):
        for item in value:
            _plain(where, item)
    elif not isinstance(value, bool | int | float | str):
        raise InvalidSpec(f"`{where}` is the date or time {value}; give a number, a text, a list or a table.")


def _resolve(table: dict[str, Any]) -> dict[str, Any]:
    _plain("", table)
    kinds = [name for name in KINDS if name in table]
    if len(kinds) != 1:
        given = f"both [{kinds[0]}] and [{kinds[1]}]" if kinds else f"none of [{'], ['.join(KINDS)}]"
        raise InvalidSpec(f"the specification has {given}; give one of them. `attnflow presets` shows complete ones.")
    kind = KINDS[kinds[0]]
    known = (*TOP, *kind.parts, kind.name)
    for key in table:
        if key not in known:
            raise InvalidSpec(f"unknown key {shown(key)} in the specification{did_you_mean(key, known)}")
    for part in (*kind.parts, kind.name):
        if not isinstance(table.get(part), dict):
            raise InvalidSpec(f"the specification has no table [{part}]; `attnflow presets` shows complete ones.")
    resolved: dict[str, Any] = {key: table.get(key, default) for key, default in TOP.items()}
    for key in ("name", "about"):
        if not isinstance(resolved[key], str):
            raise InvalidSpec(f"`{key}` is {shown(resolved[key])}; give a text.")
    if not resolved["name"].strip(". ") or set(resolved["name"]) & set("/\\"):
        raise InvalidSpec(f"`name` is {shown(resolved['name'])}; it names the folder, so give letters, and no slashes.")
    fresh_path("name", resolved["name"])
    if resolved["precision"] not in ("float64", "float32"):
        raise InvalidSpec(f"`precision` is {shown(resolved['precision'])}; use 'float64' or 'float32'.")
    for part in kind.parts:
        resolved[part] = _fill(part, part, table[part])
    resolved[kind.name] = _fill_keys(kind, table[kind.name])
    return resolved


def _fill_keys(kind: Kind, table: dict[str, Any]) -> dict[str, Any]:
    """The table of a kind with its defaults written out."""
    for key in table:
        if key not in kind.keys:
            raise InvalidSpec(f"unknown key '{kind.name}.{key}'{did_you_mean(key, kind.keys)}")
    defaults = dict(kind.keys)
    if "noise" in table:  # without a method of one's own, the one that `solve` takes for noise
        defaults["method"] = {"name": "layers", "step": 0.01, "update": {"name": "project-renormalise"}}
    filled: dict[str, Any] = {}
    for key, default in defaults.items():
        value, where = _named(table.get(key, default), default), f"{kind.name}.{key}"
        if value is NEEDED:
            value = None  # refused below
        if key == kind.end:
            filled |= _end(where, key, value, needed=default is NEEDED)
        elif key == "stop":
            filled[key] = _list_of("stop", where, value)
        elif key == "observe":
            filled[key] = _observables(where, value)
        elif value is None:
            continue
        elif isinstance(default, dict) or key == "noise":
            filled[key] = _fill(_kind(key, value) if key in ARGUMENTS else key, where, value)
        else:
            filled[key] = value
    return filled


def _end(where: str, key: str, until: Any, *, needed: bool) -> dict[str, Any]:
    """How far to go; left out it means consensus (JSON has no infinity)."""
    if until is None and not needed:
        return {}
    if isinstance(until, bool) or not isinstance(until, int | float) or not until > 0:
        raise InvalidSpec(f"`{where}` is {shown(until)}; give a positive {'number' if key == 'steps' else 'time'}.")
    if isinstance(until, int) and until > 2**53:
        raise InvalidSpec(f"`{where}` is {shown(until)}; give a smaller number.")
    if not math.isfinite(until):
        if needed:
            raise InvalidSpec(f"`{where}` is {until}; only [solve_long] and [merge_times] go that far.")
        return {}
    return {key: int(until) if key == "steps" else float(until)}


def _argument(key: str, value: Any) -> Any:
    """What a key of the table of a kind means."""
    if key == "stop":
        return tuple(build_part("stop", table) for table in value)
    if key == "observe":
        return {name: build_part("observable", table) for name, table in value.items()}
    return build_part(key, value) if isinstance(value, dict) else value


def _list_of(kind: str, where: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise InvalidSpec(f'`{where}` is {shown(value)}; give a list of tables, [{{ name = "consensus" }}].')
    return [_fill(kind, f"{where}[{k}]", item) for k, item in enumerate(value)]


def _observables(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or "name" in value:
        raise InvalidSpec(f'`{where}` is {shown(value)}; give tables by name, order = {{ name = "order-parameter" }}.')
    return {name: _fill("observable", f"{where}.{name}", item) for name, item in value.items()}


def _named(value: Any, default: Any) -> Any:
    """A table without a name changes the default one."""
    if isinstance(value, dict) and isinstance(default, dict) and "name" not in value:
        return default | value
    return value


def _fill(kind: str, where: str, table: Any) -> dict[str, Any]:
    """`table` with the defaults of its maker written out; unknown names and keys are refused."""
    if not isinstance(table, dict) or "name" not in table:
        raise InvalidSpec(f"`{where}` is {shown(table)}; give a table with a `name`, one of {', '.join(words(kind))}.")
    name = table["name"]
    if not isinstance(name, str) or name not in words(kind):
        hint = f" (if it comes from a plugin, give --plugin FILE){did_you_mean(str(name), words(kind))}"
        raise InvalidSpec(f"`{where}.name` is {shown(name)}{hint}")
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
    name = table.get("name") if isinstance(table, dict) else None
    return next((kind for kind in kinds if isinstance(name, str) and name in words(kind)), kinds[0])


def build_part(kind: str, table: dict[str, Any]) -> Any:
    """The object that a filled table of this kind describes."""
    maker = words(kind)[table["name"]]
    batches = kind in ("field", "kernel", "mask", "weight", "noise", "encoding")
    arguments: dict[str, Any] = {}
    for key, value in table.items():
        if key == "name":
            continue
        if isinstance(value, dict):
            arguments[key] = build_part(_kind(key, value), value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            arguments[key] = [build_part(_kind(key, item), item) for item in value]
        elif batches and isinstance(value, list) and (key in BATCHED or takes_batches(maker, key)):
            arguments[key] = Along(key, value)
        else:
            arguments[key] = value
    positional = [
        arguments.pop(key)
        for key, p in inspect.signature(maker).parameters.items()
        if p.kind is inspect.Parameter.POSITIONAL_ONLY and key in arguments
    ]
    return make(kind, table["name"], *positional, **arguments)
