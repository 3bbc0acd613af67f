"""Axes of a sweep: which keys take which values, as people write them."""

import dataclasses
import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidInput, TooLarge

MOST = 10_000_000
"""Points of a sweep."""
Point = dict[str, Any]
"""A value for every swept key."""
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+)(log)?)?")
_RULES = ("log", "linear", "range")


@dataclasses.dataclass(frozen=True)
class Axis:
    """Keys that vary together (mostly one), and a value of each for every place along the axis."""

    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    def __post_init__(self) -> None:
        name = ", ".join(self.keys)
        if not self.keys or not all(key and key == key.strip() for key in self.keys):
            raise InvalidInput(f"the axis {shown(name)} names no key; write part.key, say field.beta.")
        if not self.values:
            raise InvalidInput(f"the axis {name!r} has no values; give at least one.")
        for value in self.values:
            if len(value) != len(self.keys):
                raise InvalidInput(f"the axis {name!r} has the value {shown(value)}; give one value for each key.")
        if len(set(map(told_apart, self.values))) < len(self.values):
            seen = [told_apart(value) for value in self.values]
            twice = next(value for k, value in enumerate(self.values) if seen[k] in seen[:k])
            raise InvalidInput(f"the axis {name!r} has the value {_said(twice)} more than once; give it once.")

    @property
    def dim(self) -> str:
        """What the dimension of the result is called."""
        return self.keys[0]

    def __len__(self) -> int:
        return len(self.values)

    def coordinate(self, key: str) -> np.ndarray:
        """The values of one key along the axis; tables and lists as texts."""
        found = [value[self.keys.index(key)] for value in self.values]
        plain = all(isinstance(one, bool | int | float) for one in found) or all(isinstance(one, str) for one in found)
        return np.asarray(found if plain else [str(one) for one in found])

    def to_json(self) -> dict[str, Any]:
        """As sweep.json has it."""
        return {"keys": list(self.keys), "values": [list(value) for value in self.values]}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Axis":
        """The inverse of `to_json`."""
        return cls(tuple(found["keys"]), tuple(tuple(value) for value in found["values"]))


def told_apart(value: Any) -> str:
    """Equal for equal values: 1 and 1.0 are one value, 1 and True are not."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(told_apart, value))}]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(float(value)) if abs(value) < 2**53 else repr(value)
    return repr(value)


def _said(value: tuple[Any, ...]) -> str:
    return shown(value[0] if len(value) == 1 else value)


def axes_of(over: Mapping[Any, Any]) -> tuple[Axis, ...]:
    """Axes from a dictionary: keys are names, or tuples of names that vary together.

    Values are lists, ranges and arrays, texts such as "1:81:9log", or tables {"log": [1, 81], "num": 9}.
    """
    if not isinstance(over, Mapping):
        raise InvalidInput(f"`over` is {shown(over)}; give values by key, as in {{'field.beta': [1, 4, 9]}}.")
    axes = []
    for given, values in over.items():
        keys = given if isinstance(given, tuple) else tuple(part.strip() for part in str(given).split(","))
        if not all(isinstance(key, str) for key in keys):
            raise InvalidInput(f"`over` has the key {shown(given)}; give texts such as 'field.beta'.")
        found = values_of(", ".join(keys), values)
        axes.append(Axis(keys, tuple((one,) if len(keys) == 1 else _several(keys, one) for one in found)))
    return checked(axes)


def _several(keys: tuple[str, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"the axis {', '.join(keys)!r} has the value {shown(value)}; give one value for each key.")
    return tuple(value)


def zipped(axes: Sequence[Axis]) -> Axis:
    """One axis of several that vary together."""
    if len({len(axis) for axis in axes}) > 1:
        sizes = ", ".join(f"{axis.dim} has {len(axis)} values" for axis in axes)
        raise InvalidInput(f"axes that vary together need as many values each, but {sizes}.")
    keys = tuple(key for axis in axes for key in axis.keys)
    return Axis(keys, tuple(tuple(itertools.chain(*values)) for values in zip(*(a.values for a in axes), strict=True)))


def checked(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes, if they make a sweep: no key twice, and not too many points."""
    found = tuple(axes)
    if not found:
        raise InvalidInput("the sweep has no axis; give at least one, say --over field.beta=1:81:9log.")
    keys = [key for axis in found for key in axis.keys]
    if len(set(keys)) < len(keys):
        twice = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise InvalidInput(f"the key {twice!r} is on two axes; give it once.")
    if (count := math.prod(map(len, found))) > MOST:
        raise TooLarge(f"the sweep has {count:,} points, and at most {MOST:,} are carried out; give fewer values.")
    return found


def axis_of(text: str) -> Axis:
    """The axis of `KEY=VALUES`: a list 1,4,9, a TOML list, a range 0:64, 9 values 1:81:9, or 1:81:9log."""
    key, equals, values = str(text).partition("=")
    if not equals or not key.strip() or not values.strip():
        raise InvalidInput(
            f"`--over` is {shown(text)}; write KEY=VALUES, say field.beta=1:81:9log or tokens.seed=0:64."
        )
    return Axis((key.strip(),), tuple((one,) for one in values_of(key.strip(), values.strip())))


def values_of(name: str, given: Any) -> list[Any]:
    """The values that `given` describes."""
    if isinstance(given, str):
        return _from_text(name, given)
    if isinstance(given, Mapping):
        return _from_table(name, dict(given))
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if not isinstance(given, Sequence):
        raise InvalidInput(f"the values of {name!r} are {shown(given)}; give a list, a range or a text such as '0:64'.")
    return [plain(name, one) for one in given]


def plain(name: str, value: Any) -> Any:
    """A value as JSON has it; others are refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"the axis {name!r} has the value {value}; give finite numbers.")
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(name, one) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(name, one) for key, one in value.items()}
    raise InvalidInput(f"the axis {name!r} has the value {shown(value)}; give numbers, texts, lists or tables.")


def _from_text(name: str, text: str) -> list[Any]:
    if found := _RANGE.fullmatch(text.strip()):
        low, high, count, log = found.groups()
        if count is None:
            return _from_table(name, {"range": [_number(low), _number(high)]})
        return _from_table(name, {"log" if log else "linear": [float(low), float(high)], "num": int(count)})
    for attempt in (text, f"[{text}]"):
        try:
            value = tomllib.loads(f"value = {attempt}")
        except (ValueError, RecursionError):
            continue
        if len(value) == 1 and isinstance(value["value"], list):
            return [plain(name, one) for one in value["value"]]
    if ":" in text:
        raise InvalidInput(
            f"the values of {name!r} are {shown(text)}; write 0:64 (whole numbers), 1:81:9 (9 values) or 1:81:9log."
        )
    return [one.strip() for one in text.split(",")]  # words without quotes


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def _from_table(name: str, table: dict[str, Any]) -> list[Any]:
    rules = [rule for rule in _RULES if rule in table]
    if len(rules) != 1 or set(table) - {*rules, "num"}:
        raise InvalidInput(
            f"the values of {name!r} are {shown(table)}; write {{log = [1, 81], num = 9}}, "
            "{linear = [0, 1], num = 5} or {range = [0, 64]}."
        )
    rule, ends, count = rules[0], table[rules[0]], table.get("num")
    numbers = isinstance(ends, list | tuple) and len(ends) == 2
    if not numbers or not all(
        isinstance(e, int | float) and not isinstance(e, bool) and math.isfinite(e) for e in ends
    ):
        raise InvalidInput(f"`{rule}` of {name!r} is {shown(ends)}; give two numbers.")
    low, high = ends
    if rule == "range":
        if count is not None or not all(float(end).is_integer() for end in ends) or high <= low:
            raise InvalidInput(f"`range` of {name!r} is {shown(ends)}; give two whole numbers, the second larger.")
        if high - low > MOST:
            raise TooLarge(f"`range` of {name!r} has {int(high - low):,} values; give at most {MOST:,}.")
        return list(range(int(low), int(high)))
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST:
        raise InvalidInput(f"`num` of {name!r} is {shown(count)}; give the number of values, at least 1.")
    if rule == "log" and not (low > 0 and high > 0):
        raise InvalidInput(f"`log` of {name!r} is {shown(ends)}; give two numbers above 0.")
    made = np.geomspace(low, high, count) if rule == "log" else np.linspace(low, high, count)
    return made.tolist()


def points(axes: Sequence[Axis]) -> Iterator[Point]:
    """All points, the last axis fastest."""
    keys = [key for axis in axes for key in axis.keys]
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip(keys, itertools.chain(*values), strict=True))


def at(point: Point) -> str:
    """A point in words: "field.beta = 4, tokens.seed = 0"."""
    return ", ".join(f"{key} = {shown(value)}" for key, value in point.items())
