"""The settings of an experiment as TOML, and back."""

import dataclasses
import hashlib
import json
from typing import Any

import tomli_w

from attnflow.errors import InvalidSpec
from attnflow.experiments.catalogue import Experiment, find
from attnflow.parsing import parse_toml
from attnflow.runs.nearest import did_you_mean


@dataclasses.dataclass(frozen=True)
class Settings:
    """Which experiment, in which version, with which parameters."""

    name: str
    quick: bool
    parameters: Any

    @property
    def table(self) -> dict[str, Any]:
        """The content of spec.toml."""
        return {"experiment": self.name, "quick": self.quick, "parameters": _lists(dataclasses.asdict(self.parameters))}

    @property
    def hash(self) -> str:
        """SHA-256 of the content: equal hashes mean equal studies."""
        return hashlib.sha256(json.dumps(self.table, sort_keys=True).encode()).hexdigest()

    def to_toml(self) -> str:
        """The content as TOML."""
        return tomli_w.dumps(self.table)


def parse_settings(text: str, experiment: Experiment | None = None) -> Settings:
    """The settings in the text of a spec.toml, of `experiment` or of the one in the package that it names."""
    table = parse_toml(text)
    known = ("experiment", "quick", "parameters")
    for key in table:
        if key not in known:
            raise InvalidSpec(f"unknown key {key!r}{did_you_mean(key, known)}")
    for key, kind in zip(known, (str, bool, dict), strict=True):
        if not isinstance(table.get(key), kind):
            raise InvalidSpec(f"`{key}` is {table.get(key)!r}; it must be a {kind.__name__}.")
    maker = (experiment or find(table["experiment"])).module().Parameters
    fields = {field.name for field in dataclasses.fields(maker)}
    for key in table["parameters"]:
        if key not in fields:
            raise InvalidSpec(f"unknown key 'parameters.{key}'{did_you_mean(key, fields)}")
    return Settings(table["experiment"], table["quick"], maker(**_tuples(table["parameters"])))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, tuple | list) else value


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
