"""What a row of the table is."""

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

DISTANCES = (0.0, 1e-16, 1e-12, 1e-8, 1e-4)
"""On the family, one unit in the last place beside it, and farther."""
NEAR = DISTANCES[1:]
"""Where the formula is refused on the family itself."""
STEEP = (1e-16, 1e-12, 1e-8, 1e-4)
"""Inverses of large numbers."""
EPS = float(np.finfo(float).eps)
DIGITS = 40


class Row(NamedTuple):
    """A formula, a family, and what it must be at a distance of it."""

    formula: str
    """The room and the name, as in "merging.merge_time"; other parts of the library have their own words."""
    family: str
    found: Callable[[float], Any]
    exact: Callable[[float], Any]
    rtol: float
    """A few units in the last place for each operation, unless said otherwise in the row."""
    atol: float = 0.0
    """Where the formula promises an absolute accuracy."""
    at: tuple[float, ...] = DISTANCES

    def __str__(self) -> str:
        return f"{self.formula}: {self.family}"


def m(x: Any) -> Any:
    """A float, exactly, as a number of mpmath."""
    return mp.mpf(float(x))


def gap(x: float) -> Any:
    """1 - x, exactly."""
    return 1 - m(x)
