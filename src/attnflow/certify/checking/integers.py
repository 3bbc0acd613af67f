"""Enclosures as integers: numbers of mpmath.iv rounded outwards to multiples of 2^-SCALE, and exact matrices of them.

A matrix of intervals is a middle and a radius, both arrays of Python integers, so that sums and products round nothing.
"""

from typing import Any

import numpy as np
from mpmath import iv, libmp

SCALE = 120


class Rejected(Exception):
    """The checker could not confirm a step."""


def need(condition: bool, reason: str) -> None:
    """Go on only if the condition is True itself; doubt rejects."""
    if condition is not True:
        raise Rejected(reason)


def bounded(amount: int, limit: int, unit: str) -> None:
    """Go on only if the work that a certificate asks for is within a constant limit; more than that rejects."""
    need(amount <= limit, f"the check takes more than {limit:,} {unit}, which is its limit")


def less(a: Any, b: Any) -> bool:
    """Whether every number of the interval a is below every number of b; doubt and NaN are False."""
    return bool(libmp.mpf_lt(iv.mpf(a)._mpi_[1], iv.mpf(b)._mpi_[0]))


def atan2(y: Any, x: Any) -> Any:
    """The angle of (x, y).

    mpmath 1.4.1 rounds it outwards only after a quotient and an arctangent that are rounded to nearest with four more
    bits than iv.prec. They are wrong by less than 2^-prec of the angle, by which the interval is widened.
    """
    return iv.atan2(y, x) * (1 + iv.mpf([-1, 1]) * iv.mpf(2) ** -iv.prec)


def interval(low: float, high: float) -> Any:
    """The interval between two floats, read exactly."""
    return iv.mpf([low, high])


def _shifted(part: tuple[int, int, int, int], up: bool, scale: int) -> int:
    """The number of raw mpmath form times 2^scale, rounded down or up."""
    sign, mantissa, exponent, _ = part
    if not mantissa and exponent:
        raise Rejected("a number is infinite or not a number")
    value, shift = (-int(mantissa) if sign else int(mantissa)), int(exponent) + scale
    if shift >= 0:
        return value << shift
    return -((-value) >> -shift) if up else value >> -shift


def ends(x: Any, scale: int = SCALE) -> tuple[int, int]:
    """Integers low and high with low <= 2^scale x <= high for all of the interval."""
    low, high = iv.mpf(x)._mpi_
    return _shifted(low, False, scale), _shifted(high, True, scale)


class Matrix:
    """All real matrices within `radius` of `middle`, entry by entry; both at the given binary scale."""

    def __init__(self, middle: np.ndarray, radius: np.ndarray, scale: int):
        self.middle, self.radius, self.scale = middle, radius, scale

    @classmethod
    def of(cls, rows: list[list[Any]], scale: int = SCALE) -> "Matrix":
        """From intervals of mpmath.iv."""
        pairs = [[ends(x, scale) for x in row] for row in rows]
        middle = np.array([[low + high for low, high in row] for row in pairs], dtype=object)
        radius = np.array([[high - low for low, high in row] for row in pairs], dtype=object)
        return cls(middle, radius, scale + 1)

    def floats(self) -> np.ndarray:
        """The middle as floats, for guesses."""
        return np.array([[one / (1 << self.scale) for one in row] for row in self.middle], dtype=np.float64)

    def times(self, factor: Any) -> "Matrix":
        """The matrices times every number of an interval."""
        low, high = ends(factor)
        middle, radius = low + high, high - low
        spread = abs(self.middle) * radius + self.radius * (abs(middle) + radius)
        return Matrix(self.middle * middle, spread, self.scale + SCALE + 1)

    def between(self, left: np.ndarray, right: np.ndarray | None = None) -> "Matrix":
        """left M right with exact float matrices, rounded to multiples of 2^-60 first: any guess will do."""
        exact, scale = fixed(left), self.scale + 60
        middle, radius = exact.dot(self.middle), abs(exact).dot(self.radius)
        if right is not None:
            exact, scale = fixed(right), scale + 60
            middle, radius = middle.dot(exact), radius.dot(abs(exact))
        return Matrix(middle, radius, scale)

    def plus(self, other: "Matrix") -> "Matrix":
        """The sums, at the finer scale of the two."""
        scale = max(self.scale, other.scale)
        a, b = 1 << scale - self.scale, 1 << scale - other.scale
        return Matrix(self.middle * a + other.middle * b, self.radius * a + other.radius * b, scale)

    def sizes(self) -> np.ndarray:
        """The largest absolute values, as integers at the scale."""
        return abs(self.middle) + self.radius


def fixed(values: np.ndarray) -> np.ndarray:
    """Floats rounded to multiples of 2^-60, as integers."""
    if not np.isfinite(values).all():
        raise Rejected("a guess is not finite")
    return np.array([[round(float(x) * 2.0**60) for x in row] for row in np.asarray(values)], dtype=object)
