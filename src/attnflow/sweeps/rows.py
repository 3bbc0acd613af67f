"""What one task leaves: named arrays with named dimensions, or the reason why there are none."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.wording import shown

KINDS = "biufU"
"""Types of arrays that are kept: truth values, numbers and texts."""
LONGEST = 400
"""Characters of an error that are kept."""


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of one task."""

    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = dataclasses.field(default_factory=dict)
    coordinates: frozenset[str] = frozenset()
    """The variables that label a dimension."""
    error: str = ""


def failed(error: BaseException) -> Row:
    """The row of a task that raised an error."""
    words = " ".join(str(error).split())
    name = type(error).__name__
    return Row(error=f"{name}: {words}"[:LONGEST] if words else name)


def row_of(value: Any) -> Row:
    """The row of what a function or work returned: a number, an array, a dictionary of these, a Dataset, a result."""
    dataset = getattr(value, "dataset", value)
    if hasattr(dataset, "data_vars"):
        return _from_dataset(dataset, getattr(value, "outcome", None))
    if not isinstance(value, Mapping):
        value = {"value": value}
    if not value:
        raise InvalidInput("the task returns an empty dictionary; return numbers or arrays by name.")
    variables = {}
    for name, one in value.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise InvalidInput(f"the task returns the name {shown(name)}; give texts without slashes.")
        array = _array(name, one)
        variables[name] = (tuple(f"{name}_{k}" for k in range(array.ndim)), array)
    return Row(variables)


def _from_dataset(dataset: Any, outcome: Any) -> Row:
    variables = {
        str(name): (tuple(map(str, array.dims)), _array(str(name), array.values))
        for name, array in dataset.variables.items()
    }
    if outcome is not None:
        variables["outcome"] = ((), np.asarray(outcome.ending.value))
    labels = frozenset(str(name) for name in dataset.coords if variables[str(name)][0] == (str(name),))
    return Row(variables, labels)


def _array(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in KINDS:
        raise InvalidInput(f"the task returns {shown(value)} as {name!r}; return numbers, texts or arrays of them.")
    return array
