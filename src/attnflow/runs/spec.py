"""A run specification: plain TOML, resolved to every default it relies on, and built into objects."""

import dataclasses
import functools
import inspect
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from attnflow.axes import Along
from attnflow.checks import instance, shown
from attnflow.errors import AttnflowError, InvalidSpec, RunError
from attnflow.flows import AbstractWork, At
from attnflow.parsing import parse_toml
from attnflow.runs.earlier import LAST_RUNS, counting_all_tokens
from attnflow.runs.files import content_hash
from attnflow.runs.folder import Run
from attnflow.runs.kinds import (
    TOP,
    arguments_of,
    is_count_or_time,
    is_integer,
    is_whole,
    keys_of,
    parts_of,
    tables_of,
    takes_several,
    written,
)
from attnflow.runs.made import make
from attnflow.runs.nearest import did_you_mean
from attnflow.runs.plugins import Given, Plugins, chosen, current, words
from attnflow.runs.recorded import checked
from attnflow.runs.registry import BATCHED, DEFAULTS, HIDDEN, takes_batches
from attnflow.runs.texts import changed, load_text
from attnflow.runs.token_files import with_files
from attnflow.wording import fresh_path


@dataclasses.dataclass(frozen=True)
class Spec:
    """A resolved specification."""

    table: dict[str, Any]
    plugins: Plugins = dataclasses.field(default_factory=current, compare=False, repr=False)
    """Where words come from that are not the package's."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The table travels to another process, and the texts of the plugins; the work is made there."""
        return Spec, (self.table, self.plugins)

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
    def kind(self) -> str:
        """The kind of work, which is the name of its table."""
        with self.plugins.active():
            return next(name for name in words("kind") if name in self.table)  # `_resolve` has found one

    @property
    def work_class(self) -> type[AbstractWork]:
        """The class of the work."""
        with self.plugins.active():
            found: Any = words("kind")[self.kind]
        return found

    @functools.cached_property
    def work(self) -> AbstractWork:
        """The work that the specification describes; made once."""
        return self.work_of({})

    def work_of(self, parts: dict[str, Any]) -> AbstractWork:
        """The same with parts that `parts` has, by their tables; others are added to it.

        Specifications of one sweep share most of their parts.
        """
        return self._made(parts, lenient=False)

    def work_as_known(self) -> AbstractWork:
        """The work as far as its words are known here: fields that only missing plugins can make are None."""
        return self._made({}, lenient=True)

    def _made(self, parts: dict[str, Any], *, lenient: bool) -> AbstractWork:
        kind, made = self.work_class, dict[str, Any]()
        with self.plugins.active():
            tables = tables_of(kind)
            known = {field: (part, self.table[field]) for field, part in tables.items()}
            for key, value in (known | self.table[self.kind]).items():
                name = json.dumps([key, value], default=str)
                try:
                    if name not in parts:
                        parts[name] = _built(*value) if key in tables else _argument(kind, key, value)
                    made[key] = parts[name]
                except (AttnflowError, KeyError):
                    if not lenient:
                        raise
                    made[key] = None
        if made.get("tokens") is not None and self.table["precision"] != "float64":
            made["tokens"] = made["tokens"].astype(np.dtype(self.table["precision"]))
        return kind(**made)

    def takes_integer(self, key: str) -> bool:
        """Whether the entry at a path such as "tokens.n" is an integer, as its maker declares."""
        path = key.split(".")
        value: Any = self.table
        with self.plugins.active():
            maker: Any = self.work_class
            if path[0] == self.kind:
                value = value[path.pop(0)]
            for part in path[:-1]:
                value = value.get(part)
                if not isinstance(value, dict) or "name" not in value or not parts_of(maker, part):
                    return False
                maker = words(_part(maker, part, value))[value["name"]]
            return bool(path) and is_integer(maker, path[-1])

    def extended(self, until: Any, save: int | None = None) -> "Spec":
        """The specification of longer work with all times of this one; `save` counts the new intervals."""
        work, table = self.work, dict(self.table[self.kind])
        end = work.end
        longer = work.longer(until, save)
        if end is not None:
            value = getattr(longer, end)
            table = {key: entry for key, entry in table.items() if key != end}
            table |= {} if value == math.inf else {end: value}
        times = getattr(longer, "save", None)
        if isinstance(times, At):
            table["save"] = {"name": "at", "times": list(times.chosen)}
        return Spec(self.table | {self.kind: table}, self.plugins)


def spec_of(run: Run, plugins: Given = ()) -> Spec:
    """The resolved specification of a run; refused if it or a plugin is not the one the run was made with."""
    manifest = run.manifest()
    if "experiment" in manifest:
        raise RunError(
            f"{str(run.path)!r} holds the experiment {manifest['experiment']!r}, not a flow; continue it with "
            f"`attnflow resume {run.path}`, or open its parts with attnflow.experiments."
        )
    if "work" in run.table():
        raise RunError(
            f"{str(run.path)!r} holds work that was made in Python; open or continue it with runs.ensure(work, "
            f"{str(run.path.parent)!r}), or read its arrays with xarray.open_zarr."
        )
    loaded = checked(run.path, manifest, plugins)

    def parse(text: str) -> Spec:
        if manifest["format"] <= LAST_RUNS:
            text = tomli_w.dumps(counting_all_tokens(parse_toml(text)))
        return parse_spec(text, plugins=loaded)

    return run.read_spec(parse)


def load_spec(source: str | Path, changes: Sequence[str] = (), plugins: Given = ()) -> Spec:
    """The specification in a TOML file or of a preset's name, with changes such as "field.beta=9".

    `plugins` are Python files that `register` further words; they are executed, a specification never is.
    """
    return parse_spec(load_text(source), changes, plugins, folder=Path(source).parent)


def parse_spec(
    text: str, changes: Sequence[str] = (), plugins: Given = (), *, folder: str | Path | None = None
) -> Spec:
    """Parse, change, resolve and check a specification; nothing is run.

    Files of tokens are read from `folder`, by default the current one, and become arrays of the specification.
    """
    table = changed(instance("text", text, str, "the text of a TOML file; load_spec reads files"), changes)
    spec = resolve_spec(with_files(table, Path(folder or ".")), plugins)
    spec.work  # noqa: B018 (refuses what cannot be made)
    return spec


def resolve_spec(table: dict[str, Any], plugins: Given = ()) -> Spec:
    """The specification of a table, with every default; its parts are not made."""
    with chosen(plugins).active():
        return Spec(_resolve(table))


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
    every = words("kind")
    kinds = [name for name in every if name in table]
    if len(kinds) != 1:
        given = f"both [{kinds[0]}] and [{kinds[1]}]" if kinds else f"none of [{'], ['.join(every)}]"
        raise InvalidSpec(f"the specification has {given}; give one of them. `attnflow presets` shows complete ones.")
    kind: Any = every[kinds[0]]
    parts = tables_of(kind)
    known = (*TOP, *parts, kinds[0])
    for key in table:
        if key not in known:
            raise InvalidSpec(f"unknown key {shown(key)} in the specification{did_you_mean(key, known)}")
    lists = [field for field in parts if takes_several(kind, field)]
    for part in (*parts, kinds[0]):
        if not isinstance(table.get(part), list if part in lists else dict):
            wanted = f"list of tables [[{part}]]" if part in lists else f"table [{part}]"
            if part in table:
                raise InvalidSpec(f"`{part}` is {shown(table[part])}; it must be a {wanted}, with keys of its own.")
            raise InvalidSpec(f"the specification has no {wanted}; `attnflow presets` shows complete ones.")
    resolved: dict[str, Any] = {key: table.get(key, default) for key, default in TOP.items()}
    for key in ("name", "about"):
        if not isinstance(resolved[key], str):
            raise InvalidSpec(f"`{key}` is {shown(resolved[key])}; give a text.")
    if not resolved["name"].strip(". ") or set(resolved["name"]) & set("/\\"):
        raise InvalidSpec(f"`name` is {shown(resolved['name'])}; it names the folder, so give letters, and no slashes.")
    fresh_path("name", resolved["name"])
    if resolved["precision"] not in ("float64", "float32"):
        raise InvalidSpec(f"`precision` is {shown(resolved['precision'])}; use 'float64' or 'float32'.")
    for field, part in parts.items():
        resolved[field] = (_list_of if field in lists else _fill)(part, field, table[field])
    resolved[kinds[0]] = _fill_keys(kinds[0], kind, table[kinds[0]])
    return resolved


def _fill_keys(name: str, kind: type[AbstractWork], table: dict[str, Any]) -> dict[str, Any]:
    """The table of a kind with its defaults written out."""
    keys, defaults = keys_of(kind), kind.defaults(table)
    for key in table:
        if key not in keys:
            raise InvalidSpec(f"unknown key '{name}.{key}'{did_you_mean(key, keys)}")
    filled: dict[str, Any] = {}
    for key in keys:
        part, where, needed = (*parts_of(kind, key), "value")[0], f"{name}.{key}", key not in defaults
        default = None if needed else written(part, defaults[key])
        value = _named(table.get(key, default), default)
        if key == kind.end and is_count_or_time(kind, key):
            filled |= _end(where, key, value, needed=needed, whole=is_whole(kind, key))
        elif key == "stop":
            filled[key] = _list_of("stop", where, value)
        elif key == "observe":
            filled[key] = _observables(where, value)
        elif value is None and needed:
            raise InvalidSpec(f"`{where}` is missing; the kind {name!r} needs it.")
        elif value is None:
            continue
        elif isinstance(value, list) and takes_several(kind, key):
            filled[key] = [_fill(_part(kind, key, one), f"{where}[{k}]", one) for k, one in enumerate(value)]
        elif part != "value":
            filled[key] = _fill(_part(kind, key, value), where, value)
        elif isinstance(value, dict) and not isinstance(default, dict):
            raise InvalidSpec(f"`{where}` is a table; the key {key!r} of {name!r} takes a value.")
        else:
            filled[key] = value
    return filled


def _end(where: str, key: str, until: Any, *, needed: bool, whole: bool) -> dict[str, Any]:
    """How far to go; left out it means consensus (JSON has no infinity)."""
    if until is None and not needed:
        return {}
    if isinstance(until, bool) or not isinstance(until, int | float) or not until > 0:
        raise InvalidSpec(f"`{where}` is {shown(until)}; give a positive {'number' if whole else 'time'}.")
    if whole and math.isfinite(until) and until != int(until):
        raise InvalidSpec(f"`{where}` is {shown(until)}; give a whole number.")
    if isinstance(until, int) and until > 2**53:
        raise InvalidSpec(f"`{where}` is {shown(until)}; give a smaller number.")
    if not math.isfinite(until):
        if needed:
            raise InvalidSpec(f"`{where}` is {until}; only [solve_long] and [merge_times] go that far.")
        return {}
    return {key: int(until) if whole else float(until)}


def _argument(kind: type[AbstractWork], key: str, value: Any) -> Any:
    """What a key of the table of a kind means."""
    if key == "stop":
        return tuple(build_part("stop", table) for table in value)
    if key == "observe":
        return {name: build_part("observable", table) for name, table in value.items()}
    if isinstance(value, list) and takes_several(kind, key):
        return [build_part(_part(kind, key, table), table) for table in value]
    is_part = isinstance(value, dict) and parts_of(kind, key)
    return build_part(_part(kind, key, value), value) if is_part else value


def _built(part: str, table: Any) -> Any:
    """The object of a table, or the objects of a list of tables."""
    return [build_part(part, one) for one in table] if isinstance(table, list) else build_part(part, table)


def _list_of(kind: str, where: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        example = f'[{{ name = "{next(iter(words(kind)))}" }}]'
        raise InvalidSpec(f"`{where}` is {shown(value)}; give a list of tables, {example}.")
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
    parameters = {k: p for k, p in arguments_of(words(kind)[name]).items() if k not in HIDDEN}
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
            filled[key] = _fill_part(words(kind)[name], name, key, f"{where}.{key}", value)
        elif key in table and (parts := parts_of(words(kind)[name], key)) and "weight" not in parts:
            _fill(parts[0], f"{where}.{key}", value)  # refuses what is not a table
        elif isinstance(value, bool | int | float | str | list):
            filled[key] = value
        elif isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0:
            filled[key] = value.item()
    return filled


def _fill_part(maker: Callable[..., Any], name: str, key: str, where: str, value: Any) -> Any:
    """A table, or a list of tables, given for the argument `key` of the maker called `name`."""
    if not parts_of(maker, key):
        raise InvalidSpec(f"`{where}` is a table; the key {key!r} of {name!r} takes a value.")
    if isinstance(value, list):
        return [_fill_part(maker, name, key, f"{where}[{k}]", item) for k, item in enumerate(value)]
    table = _named(value, DEFAULTS.get(name, {}).get(key))
    return _fill(_part(maker, key, table), where, table)


def _part(maker: Callable[..., Any], key: str, table: Any) -> str:
    """Which part of a specification a table for the argument `key` of a maker describes."""
    parts = parts_of(maker, key)
    name = table.get("name") if isinstance(table, dict) else None
    return next((part for part in parts if isinstance(name, str) and name in words(part)), parts[0])


def build_part(kind: str, table: dict[str, Any]) -> Any:
    """The object that a filled table of this kind describes."""
    maker = words(kind)[table["name"]]
    batches = kind in ("field", "kernel", "mask", "weight", "noise", "encoding")
    arguments: dict[str, Any] = {}
    for key, value in table.items():
        if key == "name":
            continue
        if isinstance(value, dict):
            arguments[key] = build_part(_part(maker, key, value), value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            arguments[key] = [build_part(_part(maker, key, item), item) for item in value]
        elif batches and isinstance(value, list) and (key in BATCHED or takes_batches(maker, key)):
            arguments[key] = Along(key, value)
        else:
            arguments[key] = value
    positional = [
        arguments.pop(key)
        for key, p in arguments_of(maker).items()
        if p.kind is inspect.Parameter.POSITIONAL_ONLY and key in arguments
    ]
    return make(kind, table["name"], *positional, **arguments)
