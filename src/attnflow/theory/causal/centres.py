"""Centres of causal attention: tokens that nobody before them is close to, around which the others gather.

With values V = I a token is caught by an earlier one at an angle below some c beta^{-1/2} (arXiv:2411.04990). What is
counted here is how many tokens of an iid uniform sequence are not.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_dimension, checked_integers

RENYI = 0.7475979202534114
"""Renyi's parking constant: the part of a long line that unit intervals cover when they arrive at random (1958)."""


def strong_centres(*, n: ArrayLike, angle: ArrayLike, d: int) -> np.ndarray:
    """Expected number of strong centres among n iid uniform tokens on S^{d-1}: farther than `angle` from all before.

    (1 - (1-v)^n)/v, v the measure of a cap of that angle (angle/pi on the circle): exact, tends to 1/v for many
    tokens (arXiv:2411.04990 for the definition). n >= 1, 0 < angle <= pi; n and angle broadcast.
    """
    n, angle, d = checked_integers("n", n, 1), _angles(angle), checked_dimension(d)
    shape = (d - 1) / 2
    cap = angle / np.pi if d == 2 else betainc(shape, shape, np.sin(angle / 2) ** 2)
    safe = np.where(cap > 0, cap, 1.0)
    with np.errstate(divide="ignore"):
        return np.where(cap > 0, -np.expm1(n * np.log1p(-np.minimum(safe, 1.0))) / safe, n * 1.0)


def renyi_centres(angle: ArrayLike) -> np.ndarray:
    """Expected number of centres among infinitely many iid uniform tokens on the circle: farther than `angle` from all
    centres before.

    1 + M(2 pi/angle - 1), M Renyi's parking function, M(x+1) = 1 + (2/x) times its integral from 0 to x, M = 0 below 1
    (arXiv:2411.04990; Renyi 1958). That is 0.74759792 2 pi/angle up to less than 1e-10 for angle <= 1/2. Saturation
    needs far more than 2 pi/angle tokens. 0 < angle <= pi.
    """
    x = 2 * np.pi / _angles(angle) - 1
    far = RENYI * x + RENYI - 1
    return np.asarray(1 + np.where(x < _LAST, _parking(np.minimum(x, _LAST)), far))


_LAST, _POINTS = 14, 24


def _parking(x: np.ndarray) -> np.ndarray:
    """M(x) for 0 <= x <= 14, by Chebyshev polynomials on unit intervals, on each of which M is smooth."""
    chebyshev = np.polynomial.Chebyshev
    pieces, before = [chebyshev([0.0], [0, 1])], 0.0
    for k in range(1, _LAST + 1):
        primitive = pieces[-1].integ(lbnd=k - 1)
        pieces.append(chebyshev.interpolate(_next_interval, _POINTS, [k, k + 1], args=(primitive, before)))
        before += float(primitive(k))
    found = np.zeros(x.shape)
    for k, smooth in enumerate(pieces):
        found = np.where(x > k, smooth(np.clip(x, k, k + 1)), found)
    return found


def _next_interval(x: np.ndarray, primitive: Callable[[np.ndarray], np.ndarray], before: float) -> np.ndarray:
    """M on an interval, from the primitive of M on the one before and its integral up to there."""
    return 1 + 2 / np.maximum(x - 1, 1e-300) * (before + primitive(x - 1))


def _angles(angle: ArrayLike) -> np.ndarray:
    found = np.asarray(angle, dtype=np.float64)
    if not ((found > 0) & (found <= np.pi)).all():
        raise InvalidInput(f"angle is {angle!r}; give angles in radians, above 0 and at most pi.")
    return found
