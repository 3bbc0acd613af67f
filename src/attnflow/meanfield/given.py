"""What is handed in, checked: every refusal is one sentence with the name, the value and how to fix it."""

from typing import Any, TypeVar

import numpy as np

from attnflow.errors import InvalidInput

T = TypeVar("T")


def number(name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_: bool = False) -> float:
    """A finite number in [low, high], or in (low, high) if `open_`; no boolean."""
    fits = isinstance(value, int | float | np.number | np.ndarray) and not isinstance(value, bool | np.bool_)
    if not fits or np.ndim(value) or np.iscomplexobj(value):
        raise InvalidInput(f"`{name}` is {value!r}; give one real number.")
    found = float(value)
    inside = low < found < high if open_ else low <= found <= high
    if not (np.isfinite(found) and inside):
        if low == -np.inf and high == np.inf:
            where = "a finite number"
        elif high == np.inf:
            where = f"a finite number {'above' if open_ else 'of at least'} {low:g}"
        else:
            where = f"a number in {'(' if open_ else '['}{low:g}, {high:g}{')' if open_ else ']'}"
        raise InvalidInput(f"`{name}` is {found!r}; give {where}.")
    return found


def of_kind(name: str, value: T, kind: Any, example: str) -> T:
    """`value`, which has to be a `kind`."""
    if not isinstance(value, kind):
        raise InvalidInput(f"`{name}` is {type(value).__name__}; give {example}.")
    return value


def generator(seed: Any) -> np.random.Generator:
    """Random numbers from a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(f"`seed` is {seed!r}; give an integer of at least 0.")
    return np.random.default_rng(seed)
