"""What a sweep repeats: a specification with changes, or a function of named parameters."""

import abc
import dataclasses
import functools
import inspect
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from attnflow.errors import AttnflowError, InvalidInput, InvalidSpec, RunError
from attnflow.flows import AbstractWork
from attnflow.flows.observables import content_of
from attnflow.parsing import parse_toml
from attnflow.runs import Spec
from attnflow.runs.described import Described
from attnflow.runs.files import content_hash
from attnflow.runs.kinds import is_integer
from attnflow.runs.nearest import did_you_mean
from attnflow.runs.plugins import Given, Plugins, execute_file, load, read
from attnflow.runs.spec import resolve_spec
from attnflow.runs.texts import changed, load_text, with_changes
from attnflow.sweeps.grouped import Cancel, rows_of_works
from attnflow.sweeps.ranges import Axis, Point, at
from attnflow.sweeps.rows import Row, failed, row_of
from attnflow.wording import shown

KEPT = 4096
"""Works that a process keeps between planning and carrying out."""
TOGETHER = {"specification": 16, "work": 16, "function": 256}
"""Tasks that are not done side by side: how many of them share a shard, at most."""


class Examined(NamedTuple):
    """What the plan needs to know about a task."""

    identity: str
    """A hash of all that decides the result."""
    shape: str | None
    """Tasks of one shape are done side by side."""
    pairs: int
    """Pairs of tokens, by which the width of a group is bounded."""


class AbstractSource(abc.ABC):
    """What is done at every point of a sweep."""

    kind: str

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """What sweep.json says of it; equal facts mean equal sources."""

    @abc.abstractmethod
    def check_axes(self, axes: Sequence[Axis]) -> None:
        """Refuse keys that it does not have."""

    @abc.abstractmethod
    def takes_integer(self, key: str, point: Point) -> bool:
        """Whether the values of a key are declared as integers; `point` is one of those of the sweep."""

    @abc.abstractmethod
    def examine(self, point: Point) -> Examined:
        """The identity and the shape of the task at a point; refused where it cannot be done."""

    @abc.abstractmethod
    def rows(self, points: Sequence[Point], width: int, cancel: Cancel = None) -> list[Row]:
        """Carry out tasks; one that fails is a row with its error."""


class SpecSource(AbstractSource):
    """A specification in TOML, with the plugins that it needs."""

    kind = "specification"

    def __init__(self, text: str, plugins: Given = ()):
        self.text, self.plugins = text, load(plugins)
        self.kept: dict[str, AbstractWork] = {}
        self.parts: dict[str, Any] = {}
        """Parts of works by their tables."""

    def facts(self) -> dict[str, Any]:
        rows = [{"path": one.source.place, "sha256": one.source.sha256} for one in self.plugins.loaded]
        return {"kind": self.kind, "text": self.text, "plugins": rows}

    @classmethod
    def from_facts(cls, facts: dict[str, Any], plugins: Given = ()) -> "SpecSource":
        """The source that sweep.json describes. Plugins are executed only if a person gives them again."""
        wanted = {row["sha256"]: row["path"] for row in facts["plugins"]}
        if not isinstance(plugins, Plugins):
            sources = read(plugins)
            _same_plugins({source.sha256 for source in sources}, wanted)
            plugins = Plugins(tuple(map(execute_file, sources)))
        _same_plugins(set(plugins.hashes), wanted)
        return cls(facts["text"], plugins)

    def check_axes(self, axes: Sequence[Axis]) -> None:
        """The specification refuses keys at the first point; what must not vary is refused here."""
        for axis in axes:
            for key in axis.keys:
                if key in ("name", "about"):
                    raise InvalidInput(f"the axis {key!r} changes nothing that is computed; leave it out.")

    def takes_integer(self, key: str, point: Point) -> bool:
        try:
            return self.spec(point).takes_integer(key)
        except AttnflowError:
            return False  # `examine` refuses the point in its words

    def spec(self, point: Point) -> Spec:
        """The resolved specification at a point."""
        changes = [f"{key}={_toml(value)}" for key, value in point.items()]
        return resolve_spec(changed(self.text, changes), self.plugins)

    def _made(self, point: Point) -> tuple[Spec, AbstractWork]:
        """The resolved specification at a point, and its work, checked."""
        spec = self.spec(point)
        if len(self.parts) > KEPT:
            self.parts.clear()
        with self.plugins.active():
            return spec, spec.work_of(self.parts).checked()

    def examine(self, point: Point) -> Examined:
        try:
            spec, work = self._made(point)
        except AttnflowError as error:
            raise InvalidSpec(f"the point {at(point)} is refused: {error}") from None
        if len(self.kept) < KEPT:
            self.kept[json.dumps(point)] = work
        tokens = getattr(work, "tokens", None)
        return Examined(spec.hash, work.shape(), getattr(tokens, "n", 1) ** 2)

    def rows(self, points: Sequence[Point], width: int, cancel: Cancel = None) -> list[Row]:
        with self.plugins.active():
            return rows_of_works([self._work(point) for point in points], width, cancel)

    def _work(self, point: Point) -> AbstractWork:
        """The work at a point; the one that was examined, if it is kept."""
        key = json.dumps(point)
        return self.kept.pop(key) if key in self.kept else self._made(point)[1]


class WorkSource(AbstractSource):
    """Work that was made in Python; the axes are fields of it that are plain values."""

    kind = "work"

    def __init__(self, work: AbstractWork):
        self.work = work

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": type(self.work).__name__, "sha256": Described(self.work).hash}

    def check_axes(self, axes: Sequence[Axis]) -> None:
        fields = [one.name for one in dataclasses.fields(self.work)]  # type: ignore[arg-type]
        for key in (key for axis in axes for key in axis.keys):
            if key not in fields:
                raise InvalidInput(
                    f"{type(self.work).__name__} has no field {key!r}{did_you_mean(key, fields).removesuffix('.')}; to "
                    "vary parts of a field or tokens, give a function of named parameters that returns the work."
                )

    def takes_integer(self, key: str, point: Point) -> bool:
        return is_integer(type(self.work), key)

    def _at(self, point: Point) -> AbstractWork:
        changed: AbstractWork = dataclasses.replace(self.work, **point)  # type: ignore[type-var]
        return changed

    def examine(self, point: Point) -> Examined:
        given = self._at(point)
        try:
            work = given.checked()
        except AttnflowError as error:
            raise InvalidInput(f"the point {at(point)} is refused: {error}") from None
        tokens = getattr(work, "tokens", None)
        return Examined(Described(given).hash, work.shape(), getattr(tokens, "n", 1) ** 2)

    def rows(self, points: Sequence[Point], width: int, cancel: Cancel = None) -> list[Row]:
        return rows_of_works([self._at(point).checked() for point in points], width, cancel)


class FunctionSource(AbstractSource):
    """A function of named parameters that returns numbers, arrays by name, a Dataset or work."""

    kind = "function"

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the code of the function and of what it uses."""
        try:
            return content_of(self.function)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise InvalidInput(
                f"the function cannot be sent to another process ({error}); define it at the top of a module, and let "
                "it use nothing that cannot be pickled."
            ) from None

    def facts(self) -> dict[str, Any]:
        module = getattr(self.function, "__module__", "")
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"kind": self.kind, "name": f"{module}.{name}", "sha256": self.digest}

    def check_axes(self, axes: Sequence[Axis]) -> None:
        keys = [key for axis in axes for key in axis.keys]
        try:
            parameters = inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            raise InvalidInput(
                "the arguments of the function cannot be read; wrap it in a function of yours."
            ) from None
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return
        for key in keys:
            if key not in parameters:
                raise InvalidInput(f"the function has no argument {key!r}{did_you_mean(key, parameters)}")
        for name, p in parameters.items():
            if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and name not in keys:
                raise InvalidInput(f"the function needs the argument {name!r}; give its values in `over`.")

    def takes_integer(self, key: str, point: Point) -> bool:
        return inspect.isfunction(self.function) and is_integer(self.function, key)

    def examine(self, point: Point) -> Examined:
        return Examined(content_hash({"function": self.digest, "point": point}, ()), None, 1)

    def rows(self, points: Sequence[Point], width: int, cancel: Cancel = None) -> list[Row]:
        found: dict[int, Row] = {}
        works: dict[int, AbstractWork] = {}
        for k, point in enumerate(points):
            if cancel is not None and cancel():
                raise KeyboardInterrupt
            try:
                value = self.function(**point)
                if isinstance(value, AbstractWork):
                    works[k] = value.checked()
                else:
                    found[k] = row_of(value)
            except Exception as error:
                found[k] = failed(error)
        found |= dict(zip(works, rows_of_works(list(works.values()), width, cancel), strict=True))
        return [found[k] for k in range(len(points))]


def _same_plugins(given: set[str], wanted: dict[str, str]) -> None:
    if missing := [path for digest, path in wanted.items() if digest not in given]:
        raise RunError(f"the sweep was made with the plugin {missing[0]!r} as it was then; give it with --plugin.")
    if given - set(wanted):
        raise RunError("a plugin is given that the sweep was not made with; leave it out.")


def split(text: str) -> tuple[str, dict[str, Any]]:
    """A specification without its table [sweep], and that table."""
    try:
        table = parse_toml(text)
    except ValueError:
        return text, {}  # the specification is refused where it is read
    if "sweep" not in table:
        return text, {}
    axes = table.pop("sweep")
    if not isinstance(axes, dict):
        raise InvalidSpec(f"`sweep` is {shown(axes)}; give a table of axes, [sweep].")
    return tomli_w.dumps(table), axes


def _toml(value: Any) -> str:
    """A value as `--set` reads it."""
    return tomli_w.dumps({"v": value}).partition("=")[2].strip() if not isinstance(value, dict) else _inline(value)


def _inline(table: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{tomli_w.dumps({key: 0}).partition('=')[0]}= {_toml(v)}" for key, v in table.items()) + "}"


def text_of(spec: Spec | str | Path, plugins: Given, changes: Sequence[str]) -> tuple[str, dict[str, Any], Plugins]:
    """The text of a specification with changes written into it, its axes, and its plugins."""
    if isinstance(spec, Spec):
        return with_changes(spec.to_toml(), changes), {}, spec.plugins if not plugins else load(plugins)
    text, axes = split(load_text(spec))
    return with_changes(text, changes, Path(spec).parent), axes, load(plugins)
