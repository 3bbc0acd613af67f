"""Work that was made in Python, as a run folder names it: by what it is made of."""

import dataclasses
from typing import Any

import tomli_w

from attnflow.flows import AbstractWork
from attnflow.flows.observables import content_of
from attnflow.runs.files import content_hash


@dataclasses.dataclass(frozen=True)
class Described:
    """What spec.toml says of work that no specification describes: its class, and each field with its hash.

    It is read, never built: the folder is opened or continued with the work itself (`runs.ensure`).
    """

    work: AbstractWork

    @property
    def name(self) -> str:
        """What the run is called."""
        return type(self.work).__name__

    @property
    def table(self) -> dict[str, Any]:
        """The class of the work, its fields in a few words, and their hashes."""
        fields = {one.name: getattr(self.work, one.name) for one in dataclasses.fields(self.work)}  # type: ignore[arg-type]
        kind = type(self.work)
        return {
            "name": self.name,
            "work": f"{kind.__module__}.{kind.__qualname__}",
            "fields": {name: _said(value) for name, value in fields.items()},
            "content": {name: content_of(value) for name, value in fields.items()},
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the content: equal hashes mean equal work."""
        return content_hash(self.table, ())

    def to_toml(self) -> str:
        """The content as TOML."""
        return tomli_w.dumps(self.table)


def _said(value: Any) -> str:
    """A value in a few words that are the same in every process."""
    if value is None or isinstance(value, bool | int | float | str):
        return str(value)
    return ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
