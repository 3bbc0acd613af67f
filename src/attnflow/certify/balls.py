"""Numbers with proved errors: the way to FLINT's ball arithmetic, its precision, and floats rounded outwards."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from attnflow.errors import InvalidInput, MissingExtra


def flint() -> Any:
    """The module `flint`; without it one sentence says what to install."""
    try:
        import flint as found
    except ImportError:
        raise MissingExtra("proofs need python-flint; install `attnflow[certify]`.") from None
    return found


@contextlib.contextmanager
def precision(bits: int) -> Iterator[Any]:
    """FLINT's module with this working precision; the precision before is restored. It is global, not per thread."""
    module = flint()
    before = module.ctx.prec
    module.ctx.prec = bits
    try:
        yield module
    finally:
        module.ctx.prec = before


def below(x: Any) -> float:
    """A float that is at most every number of the ball; -inf where that is not known."""
    found = float(x.lower())
    return math.nextafter(found, -math.inf) if found == found else -math.inf


def above(x: Any) -> float:
    """A float that is at least every number of the ball; inf where that is not known."""
    found = float(x.upper())
    return math.nextafter(found, math.inf) if found == found else math.inf


def largest(x: Any) -> float:
    """A float that is at least |y| for every y in the ball; inf where that is not known."""
    found = float(x.abs_upper())
    return math.nextafter(found, math.inf) if found == found else math.inf


def hull(low: float, high: float) -> Any:
    """The ball around [low, high], both ends read exactly and included."""
    arb = flint().arb
    return arb(low).union(arb(high))


def finite(name: str, value: Any) -> float:
    """A finite float; a number that a float cannot hold exactly is refused."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or found != value:
        raise InvalidInput(f"`{name}` is {value!r}; give a finite float, which is read as the exact binary64 number.")
    return found


def span(name: str, value: Any) -> tuple[float, float]:
    """(low, high) of an interval, or twice the same for one number."""
    ends = tuple(value) if isinstance(value, tuple | list) else (value, value)
    low, high = (finite(name, one) for one in ends) if len(ends) == 2 else (math.nan, math.nan)
    if not low <= high:
        raise InvalidInput(f"`{name}` is {value!r}; give one number, or two with the smaller first.")
    return low, high


class Ball:
    """A real number known to lie in [mid - rad, mid + rad], at FLINT's precision; its text shows the proved digits.

    ```python
    ball = attnflow.certify.jump_threshold(2)
    ball.low, ball.high, ball.contains("2.446"), str(ball)
    ```
    """

    def __init__(self, arb: Any):
        self.arb = arb

    @property
    def mid(self) -> float:
        """The middle, rounded to a float."""
        return float(self.arb.mid())

    @property
    def rad(self) -> float:
        """At least the radius, as a float; `mid` may be off by rounding."""
        return above(self.arb.rad())

    @property
    def low(self) -> float:
        """A float at or below the number."""
        return below(self.arb)

    @property
    def high(self) -> float:
        """A float at or above the number."""
        return above(self.arb)

    def contains(self, number: Any) -> bool:
        """Whether the ball holds this number: a float, read exactly, or decimal text such as "2.4469"."""
        with precision(400) as module:
            return bool(self.arb.contains(module.arb(number)))

    def __float__(self) -> float:
        return self.mid

    def __repr__(self) -> str:
        return f"Ball({self.arb.str(30)})"
