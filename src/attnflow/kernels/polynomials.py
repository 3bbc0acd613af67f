"""The polynomials P_k of the sphere at evenly spaced angles, to the last digit.

By their recurrence in float64 an error of P_k grows like k units in the last place, and near s = +-1, where the sum of
a kernel by degrees is decided, like k^2 units. So numbers are pairs here: a float and what its rounding left out.
"""

import decimal
from typing import NamedTuple

import numpy as np

PI = decimal.Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
DIGITS = 45
SPLIT = 2.0**27 + 1.0


class Pair(NamedTuple):
    """high + low, |low| <= ulp(high)/2: 32 digits."""

    high: np.ndarray
    low: np.ndarray


def angles_and_nodes(count: int) -> tuple[np.ndarray, Pair]:
    """theta_i = (i + 1/2) pi/count and cos theta_i, i = 0, ..., count - 1; angles right to the last digit."""
    with decimal.localcontext() as context:
        context.prec = DIGITS
        step = PI / (2 * count)
        turn, (re, im) = _turned(2 * step), _turned(step)
        cosines = []
        for _ in range((count + 1) // 2):
            cosines.append(re)
            re, im = re * turn[0] - im * turn[1], re * turn[1] + im * turn[0]
        high = np.array([float(c) for c in cosines])
        low = np.array([float(c - decimal.Decimal(h)) for c, h in zip(cosines, high.tolist(), strict=True)])
        angles = np.array([float((2 * i + 1) * step) for i in range(count)])
    if count % 2:
        high[-1] = low[-1] = 0.0
    mirrored = slice(count // 2 - 1, None, -1)
    return angles, Pair(*(np.concatenate([half, -half[: count // 2][mirrored]]) for half in (high, low)))


def legendre(d: int, last: int, nodes: Pair) -> np.ndarray:
    """P_0, ..., P_last of S^(d-1) at the nodes, P_k(1) = 1: (k + d - 2) P_{k+1} = (2k + d - 2) s P_k - k P_{k-1}."""
    before, here = Pair(np.ones_like(nodes.high), np.zeros_like(nodes.high)), nodes
    rows = [before.high, here.high]
    for k in range(1, last):
        up, down = _times(_scaled(here, 2.0 * k + d - 2), nodes), _scaled(before, -float(k))
        before, here = here, _over(_plus(up, down), float(k + d - 2))
        rows.append(here.high)
    return np.stack(rows[: last + 1])


def _turned(angle: decimal.Decimal) -> tuple[decimal.Decimal, decimal.Decimal]:
    """(cos, sin) of a small angle by its power series."""
    parts, term, k = [decimal.Decimal(0), decimal.Decimal(0)], decimal.Decimal(1), 0
    while abs(term) > decimal.Decimal(10) ** -(DIGITS + 5):
        parts[k % 2] += term if k % 4 < 2 else -term
        k += 1
        term *= angle / k
    return parts[0], parts[1]


def _plus(a: Pair, b: Pair) -> Pair:
    total = a.high + b.high
    part = total - a.high
    rest = (a.high - (total - part)) + (b.high - part)
    return _tidy(total, rest + (a.low + b.low))


def _times(a: Pair, b: Pair) -> Pair:
    product = a.high * b.high
    return _tidy(product, _left_out(product, a.high, b.high) + (a.high * b.low + a.low * b.high))


def _scaled(a: Pair, factor: float) -> Pair:
    product = a.high * factor
    return _tidy(product, _left_out(product, a.high, np.asarray(factor)) + a.low * factor)


def _over(a: Pair, divisor: float) -> Pair:
    quotient = a.high / divisor
    product = quotient * divisor
    rest = (a.high - product) - _left_out(product, quotient, np.asarray(divisor)) + a.low
    return _tidy(quotient, rest / divisor)


def _tidy(high: np.ndarray, low: np.ndarray) -> Pair:
    total = high + low
    return Pair(total, low - (total - high))


def _left_out(product: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b - product, exactly, by halves of the digits (Dekker)."""
    (p, q), (r, s) = _halves(a), _halves(b)
    return ((p * r - product) + p * s + q * r) + q * s


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    c = SPLIT * a
    high = c - (c - a)
    return high, a - high
