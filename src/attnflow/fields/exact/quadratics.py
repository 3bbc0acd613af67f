"""The integrals of 1/P and of t/P over [0, 1] for a quadratic P > 0, accurate for every position of its zeros."""

from typing import Any

import jax.numpy as jnp
import numpy as np

_NODES, _WEIGHTS = (v.tolist() for v in np.polynomial.legendre.leggauss(10))
_LOG = [(-1) ** k / (k + 1) for k in range(17)]
_ARTANH = [1 / (2 * k + 1) for k in range(13)]


def inverse_moments(start: Any, slope: Any, curve: Any, end: Any, square: Any) -> tuple[Any, Any]:
    """The integrals of 1/P and t/P from 0 to 1, P = start + slope t + curve t^2 > 0.

    `end` = P(1) and `square` = slope^2 - 4 start curve are given, since the caller may know them better than a sum
    does. Both results have a small relative error, and so have their derivatives. The first integral is
    2 artanh(root/(2 start + slope))/root, root^2 = square: one logarithm, one arctangent, or a series near
    square = 0. The second one has three forms. With P = start (1 + m t)(1 + n t) and f(z) = log(1 + z)/z:

    - zeros far from [0, 1]: Gauss-Legendre quadrature with 10 nodes;
    - two separate real zeros: (f(m) - f(n))/(n - m), where f(m) and f(n) differ by more than a tenth;
    - else: (log(end/start) - slope I)/(2 curve), I the first integral. Here `curve` is not small.
    """
    first = _inverse(start, slope, end, square)
    far = (jnp.abs(slope) < 0.3 * start) & (jnp.abs(curve) < 0.06 * start)
    apart = square > (0.2 * (start + jnp.abs(slope))) ** 2
    grown = jnp.log(end / start)
    whole = (grown - slope * first) / (2 * jnp.where(far | apart, 1.0, curve))
    second = jnp.where(apart, _divided(start, slope, curve, grown, square, apart & ~far), whole)
    return first, jnp.where(far, _quadrature(start, slope, curve, far), second)


def _inverse(start: Any, slope: Any, end: Any, square: Any) -> Any:
    """The integral of 1/P: analytic in `square`."""
    double = 2 * start + slope  # positive unless square < 0
    level = jnp.where(double > 0, double, 1.0)
    near = (jnp.abs(square) < 0.05 * double**2) & (double > 0)
    series = 2 * _polynomial(_ARTANH, jnp.where(near, square, 0.0) / level**2) / level
    real = (square > 0) & ~near
    root = jnp.sqrt(jnp.where(near | (square == 0), 1.0, jnp.abs(square)))
    logs = jnp.log1p(jnp.where(real, root * (double + root) / (2 * start * end), 0.0)) / root
    turn = 2 * jnp.arctan2(root, double) / root
    return jnp.where(near, series, jnp.where(real, logs, turn))


def _divided(start: Any, slope: Any, curve: Any, grown: Any, square: Any, use: Any) -> Any:
    """(f(low) - f(high))/(high - low), for P = start (1 + low t)(1 + high t); `grown` is log P(1)/P(0)."""
    slope, curve = jnp.where(use, slope / start, 2.0), jnp.where(use, curve / start, 0.75)
    root = jnp.where(use, jnp.sqrt(jnp.where(use, square, 1.0)) / start, 1.0)
    big = (slope + jnp.where(slope >= 0, root, -root)) / 2
    small = curve / big
    low, high = jnp.where(slope >= 0, small, big), jnp.where(slope >= 0, big, small)
    of_high = jnp.log1p(high)
    steep = low < -0.5  # 1 + low may be tiny: take it from P(1)
    of_low = jnp.where(steep, jnp.where(use, grown, 0.0) - of_high, jnp.log1p(jnp.where(steep, 0.0, low)))
    return (_by(of_low, low) - _by(of_high, high)) / root / start


def _by(log: Any, z: Any) -> Any:
    """log/z, where log = log(1 + z); the series where z is small keeps derivatives accurate."""
    small = jnp.abs(z) < 0.125
    return jnp.where(small, _polynomial(_LOG, jnp.where(small, z, 0.0)), log / jnp.where(small, 1.0, z))


def _quadrature(start: Any, slope: Any, curve: Any, use: Any) -> Any:
    slope, curve = jnp.where(use, slope / start, 0.0), jnp.where(use, curve / start, 0.0)
    total = jnp.zeros_like(slope)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t = (1 + node) / 2
        total = total + weight / 2 * t / (1 + t * (slope + t * curve))
    return total / start


def _polynomial(coefficients: Any, z: Any) -> Any:
    value = jnp.full_like(z, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * z + c
    return value
