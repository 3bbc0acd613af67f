"""Checks of arguments that every room shares. A refusal is one sentence: the argument, its value and how to fix it."""

import inspect
import numbers
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np

from attnflow.errors import AttnflowError, InvalidInput
from attnflow.precision import is_concrete
from attnflow.wording import shown as shown

T = TypeVar("T")
LARGEST_SEED = 2**63 - 1
"""The largest integer of TOML and of labels."""
ABOVE_ZERO = float(np.finfo(np.float64).tiny)
"""The least number that counts as positive."""


def instance(name: str, value: T, kind: Any, hint: str) -> T:
    """`value`, if it is of a `kind` (a class, or several); `hint` says what to give, "a mask such as Causal()"."""
    if not isinstance(value, kind):
        raise not_instance(name, value, kind, hint)
    return value


def not_instance(name: str, value: Any, kind: Any, hint: str) -> InvalidInput:
    """The refusal of something that is no `kind`; a class of that kind may only lack its brackets."""
    if not isinstance(value, type):
        return InvalidInput(f"`{name}` is {shown(value)}; give {hint}.")
    bare = issubclass(value, kind) and not inspect.isabstract(value) and _works_bare(value)
    return InvalidInput(
        f"`{name}` is the class {value.__name__}; {f'write {value.__name__}()' if bare else f'give {hint}'}."
    )


def flag(name: str, value: Any) -> bool:
    """`value` as a bool; numbers and texts are refused, because they were meant for another argument."""
    return bool(instance(name, value, bool | np.bool_, "True or False"))


def whole(name: str, value: Any, least: int, most: int | None = None, *, largest: int = 2**53) -> int:
    """`value` as an int, if it is an integer in [least, most] (and not a bool); `largest` where `most` is not given."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):
        wanted = "a positive integer" if least == 1 else f"an integer of at least {least}"
        wanted = "an integer" if least <= -(2**53) else wanted
        wanted = wanted if most is None else f"an integer from {least} to {most}"
        raise InvalidInput(f"`{name}` is {shown(value)}; give {wanted}.")
    if value > largest and most is None:
        raise InvalidInput(f"`{name}` is {shown(value)}; give a smaller integer.")
    return int(value)


def number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf) -> float:
    """`value` as a float, if it is one finite real number in [low, high] that is not traced."""
    if not is_concrete(value):
        raise InvalidInput(f"`{name}` is being traced by a JAX transformation; give a plain number.")
    found = reals(value)
    if found is None or found.ndim:
        raise not_real(name, value)
    in_range(name, found, low, high)
    return float(found)


def end_time(value: Any, *, endless: bool = False) -> float:
    """The argument `until` as a float: a time above 0, which is finite unless `endless`."""
    if isinstance(value, float | np.floating) and value == np.inf:
        if endless:
            return float(np.inf)
        raise InvalidInput("`until` is inf; give a finite time, or use solve_long, which goes to consensus.")
    return number("until", value, low=ABOVE_ZERO)


def generator(seed: Any) -> np.random.Generator:
    """NumPy's random numbers from a seed, an integer of at least 0."""
    return np.random.default_rng(whole("seed", seed, 0, largest=LARGEST_SEED))


def in_range(name: str, values: np.ndarray, low: float, high: float) -> None:
    """Refuse numbers that are not finite or not in [low, high]."""
    bad = ~(np.isfinite(values) & (values >= low) & (values <= high))
    if not bad.any():
        return
    if np.isfinite(high):
        left = "(0" if low == ABOVE_ZERO else f"[{low:g}"
        wanted = f"a number in {left}, {high:g}]" if np.isfinite(low) else f"a finite number of at most {high:g}"
    elif low == ABOVE_ZERO:
        wanted = "a finite number above 0"
    else:
        wanted = f"a finite number of at least {low:g}" if np.isfinite(low) else "a finite number"
    raise InvalidInput(f"`{name}` is {values[bad].flat[0]}; give {wanted}.")


def not_real(name: str, value: Any) -> InvalidInput:
    """The refusal of something that is not one real number."""
    too_large = isinstance(value, numbers.Real) and not _has_bool(value)
    return InvalidInput(f"`{name}` is {shown(value)}; give a {'smaller' if too_large else 'real'} number.")


def reals(value: Any) -> np.ndarray | None:
    """`value` as an array of float64, or None if it does not consist of real numbers.

    Texts and booleans are no numbers here, and neither are lists of unequal length, complex numbers, masked entries
    and integers too large for a float. The caller writes the message.
    """
    if _has_bool(value) or np.ma.is_masked(value):
        return None
    try:
        raw = np.asarray(value)
        if raw.dtype == object and not all(isinstance(v, numbers.Real) and not _has_bool(v) for v in raw.flat):
            return None
        if raw.dtype != object and not (
            jnp.issubdtype(raw.dtype, np.integer) or jnp.issubdtype(raw.dtype, np.floating)
        ):
            return None
        return raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _works_bare(kind: type) -> bool:
    """Whether the class can be called without arguments."""
    try:
        kind()
    except (TypeError, AttnflowError):
        return False
    return True


def _has_bool(value: Any) -> bool:
    """Whether a bool hides in a list of numbers, where NumPy would make a number of it."""
    if isinstance(value, list | tuple):
        return any(_has_bool(item) for item in value)
    return isinstance(value, bool | np.bool_)
