"""Formulas that declare where they hold and how accurate they are: one decorator refuses, documents and is tested."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.wording import shown

P = ParamSpec("P")
R = TypeVar("R")
LARGEST_INTEGER = 2**53
"""Above, not every integer is a float."""


@dataclasses.dataclass(frozen=True)
class Reals:
    """Real numbers of an interval, in an array of any shape; the formula receives float64.

    Arguments:
        low: left end of the interval.
        high: right end of the interval.
        ends: which finite ends belong to it: "both", "left", "right" or "none".
        scalar: True for one number, which the formula receives as a `float`.
    """

    low: float = -math.inf
    high: float = math.inf
    ends: str = "both"
    scalar: bool = False

    def __contains__(self, value: Any) -> bool:
        """True if every entry of a finite array lies in the interval."""
        above = value >= self.low if self.ends in ("both", "left") else value > self.low
        below = value <= self.high if self.ends in ("both", "right") else value < self.high
        return bool(np.all(np.isfinite(value) & above & below))

    def checked(self, name: str, value: Any) -> Any:
        """The value as float64, or a refusal that names the argument."""
        try:
            array = np.asarray(value)
            if array.dtype.kind not in "biuf" and array.dtype != object:
                raise TypeError
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise self._refusal(name, value) from None
        if array not in self or (self.scalar and array.ndim):
            raise self._refusal(name, value)
        return float(array) if self.scalar else array

    def _refusal(self, name: str, value: Any) -> InvalidInput:
        return InvalidInput(f"`{name}` is {shown(value)}; give {self}.")

    def __str__(self) -> str:
        noun = "a number" if self.scalar else "numbers"
        if self.low == -math.inf and self.high == math.inf:
            return "a finite number" if self.scalar else "finite numbers"
        left = "[" if self.low > -math.inf and self.ends in ("both", "left") else "("
        right = "]" if self.high < math.inf and self.ends in ("both", "right") else ")"
        return f"{noun} in {left}{self.low:.6g}, {self.high:.6g}{right}"


@dataclasses.dataclass(frozen=True)
class Integers:
    """Integers from `low` to `high`, in an array of any shape; the formula receives int64.

    Arguments:
        low: the smallest integer.
        high: the largest integer, at most 2^53.
        scalar: True for one integer, which the formula receives as an `int`.
    """

    low: int = -LARGEST_INTEGER
    high: int = LARGEST_INTEGER
    scalar: bool = False

    def checked(self, name: str, value: Any) -> Any:
        """The value as int64, or a refusal that names the argument."""
        try:
            array = np.asarray(value)
            if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
                raise OverflowError
            whole = array.dtype.kind in "iuf" and bool(np.all(np.isfinite(array) & (array == np.floor(array))))
            inside = whole and bool(np.all((array >= self.low) & (array <= self.high)))
        except (TypeError, ValueError, OverflowError):
            inside = False
        if not inside or (self.scalar and array.ndim):
            raise InvalidInput(f"`{name}` is {shown(value)}; give {self}.")
        return int(array) if self.scalar else array.astype(np.int64)

    def __str__(self) -> str:
        high = "2^53" if self.high == LARGEST_INTEGER else str(self.high)
        return f"{'an integer' if self.scalar else 'integers'} from {self.low} to {high}"


@dataclasses.dataclass(frozen=True)
class Word:
    """One of a few words, such as the name of a model."""

    words: tuple[str, ...]

    def checked(self, name: str, value: Any) -> Any:
        """The value, or a refusal that names the argument."""
        if not isinstance(value, str) or value not in self.words:
            raise InvalidInput(f"`{name}` is {shown(value)}; use {self}.")
        return value

    def __str__(self) -> str:
        *first, last = map(repr, self.words)
        return f"{', '.join(first)} or {last}" if first else last


@dataclasses.dataclass(frozen=True)
class Optional:
    """None, or a value of another domain."""

    domain: "Domain"

    def checked(self, name: str, value: Any) -> Any:
        """None or the checked value, or a refusal that names the argument."""
        return None if value is None else self.domain.checked(name, value)

    def __str__(self) -> str:
        return f"{self.domain}, or None"


@dataclasses.dataclass(frozen=True)
class Other:
    """Something that the formula checks itself, described in words: tokens, a function, a matrix."""

    description: str

    def checked(self, name: str, value: Any) -> Any:
        """The value; the formula checks it."""
        return value

    def __str__(self) -> str:
        return self.description


Domain = Reals | Integers | Word | Optional | Other
MODEL = Word(("SA", "USA0", "USA"))
"""The three clocks of attention with Q = K = V = I: softmax, and two that are not normalised."""


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """The largest error of a formula at any arguments of its domain: `relative` |value| + `absolute`.

    Both are numbers, or expressions in the arguments and NumPy (`np`), as "4e-16 * (1 + beta)". Arguments and the
    result are exact floats; a value outside the range of floats is refused, or is 0 or infinite where the formula says
    so.
    """

    relative: float | str = 0.0
    absolute: float | str = 0.0

    def __str__(self) -> str:
        parts = {"relative": self.relative, "absolute": self.absolute}
        stated = [f"{bound} {word}" for word, bound in parts.items() if bound != 0.0]
        return " plus ".join(stated) or "exact"


def formula(
    *, relative: float | str = 0.0, absolute: float | str = 0.0, **domain: Domain
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare where a formula holds and how accurate it is there.

    Arguments outside the domain are refused before the formula is evaluated; the others reach it converted. The
    declaration is appended to the docstring and kept as `function.domain` and `function.accuracy`, from which
    `tests/formulas` draws its points and tolerances.

    Arguments:
        relative: largest relative error, a number or an expression in the arguments.
        absolute: largest absolute error, likewise.
        domain: for every parameter of the function, by its name, what it may be.
    """

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        if set(domain) != set(signature.parameters):
            raise TypeError(f"{function.__name__} declares {sorted(domain)}, its parameters are {signature}")

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = {name: domain[name].checked(name, value) for name, value in bound.arguments.items()}
            try:
                return function(**arguments)  # type: ignore[call-arg]
            except NotAccurate as error:
                if error.formula:
                    raise
                given = ", ".join(f"{name}={shown(value)}" for name, value in bound.arguments.items())
                raise NotAccurate(f"{function.__name__}({given}): {error}", function.__name__) from None

        accuracy = Accuracy(relative, absolute)
        checked.domain, checked.accuracy = dict(domain), accuracy  # type: ignore[attr-defined]
        ranges = "; ".join(f"{name}: {kind}" for name, kind in domain.items())
        checked.__doc__ = f"{inspect.getdoc(function) or ''}\n\nDomain: {ranges}.\nAccuracy: {accuracy}.\n"
        return checked

    return declared
