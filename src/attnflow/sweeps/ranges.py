"""Axes of a sweep: which keys take which values, as people write them."""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidInput, TooLarge
from attnflow.parsing import parse_toml

MOST = 10_000_000
"""Points of a sweep."""
ROUNDING = 1e-13
"""Relative error of `logspace`, which multiplies powers."""
Point = dict[str, Any]
"""A value for every swept key."""
_NUMBER = r"[+-]?(?:\d{1,300}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_CALL = re.compile(r"(\w+)\s*\((.*)\)")
_COLONS = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+)(log)?)?")
"""What older versions read as a range."""
FORMS = {
    "range": "range(0,64) or range(0,64,8)",
    "linspace": "linspace(1,81,9)",
    "logspace": "logspace(1,81,9)",
}
"""The ranges that a text may write, with an example of each."""


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

    Values are lists, ranges and arrays, or texts such as "1,4,9", "range(0,64)" and "logspace(1,81,9)".
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
        raise InvalidInput(
            "the sweep has no axis; give `over` a key and its values, say field.beta and logspace(1,81,9)."
        )
    keys = [key for axis in found for key in axis.keys]
    if len(set(keys)) < len(keys):
        twice = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise InvalidInput(f"the key {twice!r} is on two axes; give it once.")
    if (count := math.prod(map(len, found))) > MOST:
        raise TooLarge(f"the sweep has {count:,} points, and at most {MOST:,} are carried out; give fewer values.")
    return found


def with_integers(axes: Sequence[Axis], is_integer: Callable[[str], bool]) -> tuple[Axis, ...]:
    """The axes with 32 in place of 32.0 where `is_integer` says that the key takes integers; 32.5 is refused there.

    `linspace`, `logspace` and arrays of floats are then as good as lists of integers.
    """

    def converted(key: str, value: Any, integer: bool) -> Any:
        if not integer or not isinstance(value, float):
            return value
        if abs(value - round(value)) > ROUNDING * abs(value):
            raise InvalidInput(f"the axis {key!r} has the value {value:.6g}, and it takes integers; give a range(...).")
        return round(value)

    def of_integers(axis: Axis) -> Axis:
        has_floats = [any(isinstance(value, float) for value in column) for column in zip(*axis.values, strict=True)]
        integers = [floats and is_integer(key) for key, floats in zip(axis.keys, has_floats, strict=True)]
        rows = (zip(axis.keys, values, integers, strict=True) for values in axis.values)
        return (
            Axis(axis.keys, tuple(tuple(converted(*entry) for entry in row) for row in rows)) if any(integers) else axis
        )

    return tuple(map(of_integers, axes))


def axis_of(text: str) -> Axis:
    """The axis that the text "KEY=VALUES" describes.

    Values are a list 1,4,9 (words may stand without quotes), a TOML list [1, 4, 9], range(0,64), range(0,64,8),
    linspace(1,81,9), or logspace(1,81,9), which is geometric from 1 to 81.
    """
    key, equals, values = str(text).partition("=")
    if not equals or not key.strip() or not values.strip():
        raise InvalidInput(
            f"the axis {shown(text)} has no key or no values; write KEY=VALUES, say 'field.beta=logspace(1,81,9)' or "
            "'tokens.seed=range(0,64)'."
        )
    return Axis((key.strip(),), tuple((value,) for value in values_of(key.strip(), values.strip())))


def values_of(name: str, values: Any) -> list[Any]:
    """The values of the axis `name`, from a list, a range, an array of one dimension or a text."""
    if isinstance(values, str):
        return _from_text(name, values.strip())
    if isinstance(values, np.ndarray) and values.ndim == 1:
        values = values.tolist()
    if not isinstance(values, Sequence):
        raise InvalidInput(
            f"the values of {name!r} are {shown(values)}; give a list, a range or a text such as 'logspace(1,81,9)'."
        )
    return [plain(name, value) for value in values]


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
    if ends := _COLONS.fullmatch(text):
        raise InvalidInput(f"the values of {name!r} are {shown(text)}; write {_instead_of_colons(*ends.groups())}.")
    if (call := _CALL.fullmatch(text)) and "(" not in call[2]:
        return _from_call(name, text, call[1], [part.strip() for part in call[2].split(",")])
    for attempt in (text, f"[{text}]"):
        try:
            table = parse_toml(f"value = {attempt}")
        except ValueError:
            continue
        if len(table) == 1 and isinstance(table["value"], list):
            return [plain(name, value) for value in table["value"]]
    words = [word.strip() for word in text.split(",")]  # without quotes
    if not all(words) or set(text) & set("[](){}:\"'"):
        raise InvalidInput(
            f"the values of {name!r} are {shown(text)}; write a list 1,4,9 or [1, 4, 9], a text with brackets or "
            "colons in quotes, range(0,64), linspace(1,81,9) or logspace(1,81,9)."
        )
    return words


def _instead_of_colons(first: str, last: str, third: str | None, log: str | None) -> str:
    """The ranges that may be meant by 0:64, 1:81:9 or 1:81:9log."""
    if log:
        return f"logspace({first},{last},{third})"
    steps = ",".join([first, last, *([third] if third else [])])
    evenly = f"linspace({first},{last},{third or 'N'}) for {third or 'N'} values"
    are_whole = all(isinstance(_number(end), int) for end in (first, last))
    return f"range({steps}) for whole numbers, or {evenly}" if are_whole else evenly


def _from_call(name: str, text: str, form: str, arguments: list[str]) -> list[Any]:
    """The values of range(...), linspace(...) or logspace(...)."""
    wrong = f"the values of {name!r} are {shown(text)}"
    if form not in FORMS:
        raise InvalidInput(f"{wrong}; write range(0,64), linspace(1,81,9) or logspace(1,81,9).")
    numbers = [_number(argument) for argument in arguments if re.fullmatch(_NUMBER, argument)]
    if len(numbers) < len(arguments) or not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"{wrong}; give numbers, as in {FORMS[form]}.")
    if form == "range":
        if not all(isinstance(number, int) for number in numbers) or len(numbers) > 3 or numbers[2:] == [0]:
            raise InvalidInput(f"{wrong}; give whole numbers, as in {FORMS[form]}.")
        return list(_no_more_than_possible(name, range(*map(int, numbers))))
    first, last, count = numbers if len(numbers) == 3 else (0, 0, 0)
    if not isinstance(count, int) or count < 1:
        raise InvalidInput(f"{wrong}; give two ends and the number of values, as in {FORMS[form]}.")
    if form == "logspace" and not min(first, last) > 0:
        raise InvalidInput(f"{wrong}; give two ends above 0.")
    _no_more_than_possible(name, range(count))
    with np.errstate(over="ignore", invalid="ignore"):
        spaced = (np.geomspace if form == "logspace" else np.linspace)(float(first), float(last), count)
    return [plain(name, value) for value in spaced.tolist()]


def _no_more_than_possible(name: str, values: range) -> range:
    try:
        count = len(values)
    except OverflowError:
        count = MOST + 1
    if count > MOST:
        raise TooLarge(f"the axis {name!r} has more than {MOST:,} values; give fewer.")
    return values


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def points(axes: Sequence[Axis]) -> Iterator[Point]:
    """All points, the last axis fastest."""
    keys = [key for axis in axes for key in axis.keys]
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip(keys, itertools.chain(*values), strict=True))


def at(point: Point) -> str:
    """A point in words: "field.beta = 4, tokens.seed = 0"."""
    return ", ".join(f"{key} = {shown(value)}" for key, value in point.items())
