"""Domains that several formulas of random layers share."""

import dataclasses
import math
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Other, Reals
from attnflow.special.formula import Optional as OrNone
from attnflow.wording import shown


@dataclasses.dataclass(frozen=True)
class OrInfinite(Other):
    """A number of an interval, or inf, whose formula is that of the limit.

    Arguments:
        description: the limit, in words.
        finite: the interval of the other numbers.
    """

    finite: Reals | Integers = Reals(scalar=True)

    def checked(self, name: str, value: Any) -> Any:
        """The value as a float or an int, or a refusal that names the argument."""
        if np.ndim(value) == 0 and not isinstance(value, str) and value == math.inf:
            return math.inf
        try:
            return self.finite.checked(name, value)
        except InvalidInput:
            raise InvalidInput(f"`{name}` is {shown(value)}; give {self}.") from None

    def __str__(self) -> str:
        return f"{self.finite}, or inf ({self.description})"


@dataclasses.dataclass(frozen=True)
class WithInfinite(Other):
    """Numbers from 0 on in an array of any shape, inf among them, whose formula is that of the limit.

    Arguments:
        description: the limit, in words.
        high: the largest finite number.
    """

    high: float = 1e300

    def checked(self, name: str, value: Any) -> Any:
        """The value as float64, or a refusal that names the argument."""
        if isinstance(value, float) and value == math.inf:
            return np.asarray(value)
        try:
            numbers = np.asarray(value, dtype=np.float64)
            infinite = numbers == math.inf
            return np.where(infinite, math.inf, Reals(0.0, self.high).checked(name, np.where(infinite, 0.0, numbers)))
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(f"`{name}` is {shown(value)}; give {self}.") from None

    def __str__(self) -> str:
        return f"{Reals(0.0, self.high)}, or inf ({self.description})"


OVERLAP = Reals(-1.0, 1.0)
SHARE = Reals(0.0, 1.0)
TIME = Reals(0.0)
ROWS = OrNone(OrInfinite("independent Gaussian entries of Q^T K, as None", Integers(1, scalar=True)))
"""The number d_k of rows of Q and K."""


def rows_of(d_k: int | None) -> int | None:
    """The number of rows of Q and K, or None for infinitely many."""
    return None if d_k is None or d_k == math.inf else int(d_k)
