"""Centres of causal attention: tokens that nobody before them is close to, around which the others gather.

With values V = I a token is caught by an earlier one at an angle below some c beta^{-1/2} (arXiv:2411.04990). What is
counted here is how many tokens of an iid uniform sequence are not.
"""

import functools

import numpy as np
from scipy.special import betainc

from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike

RENYI = 0.7475979202534114
"""Renyi's parking constant: the part of a long line that unit intervals cover when they arrive at random (1958)."""
ANGLE = Reals(1e-300, np.pi)
LAST, POINTS = 22, 28
"""The longest line on which intervals are counted by polynomials, and their number of points on a unit of it."""


@formula(n=Integers(1), angle=ANGLE, d=Integers(2, 10**6, scalar=True), relative="3e-16 * (20 + d)")
def strong_centres(*, n: ArrayLike, angle: ArrayLike, d: int) -> np.ndarray:
    """Expected number of strong centres among n iid uniform tokens on S^{d-1}: farther than `angle` from all before.

    (1 - (1-v)^n)/v, v the measure of a cap of that angle (angle/pi on the circle): exact, tends to 1/v for many
    tokens (arXiv:2411.04990 for the definition).

    Arguments:
        n: numbers of tokens.
        angle: angles in radians; both broadcast.
        d: dimension of the space around the sphere.
    """
    shape = (d - 1) / 2
    cap = angle / np.pi if d == 2 else betainc(shape, shape, np.sin(angle / 2) ** 2)
    safe = np.where(cap > 0, cap, 1.0)
    with np.errstate(divide="ignore"):
        return np.where(cap > 0, -np.expm1(n * np.log1p(-np.minimum(safe, 1.0))) / safe, n * 1.0)


@formula(angle=ANGLE, relative=1e-14)
def renyi_centres(angle: ArrayLike) -> np.ndarray:
    """Expected number of centres among infinitely many iid uniform tokens on the circle: farther than `angle` from all
    centres before.

    1 + M(2 pi/angle - 1), M Renyi's parking function, M(x+1) = 1 + (2/x) times its integral from 0 to x, M = 0 below 1
    (arXiv:2411.04990; Renyi 1958). That is 0.74759792 2 pi/angle up to less than 1e-10 for angle <= 1/2. Saturation
    needs far more than 2 pi/angle tokens.
    """
    x = 2 * np.pi / angle - 1  # above 1, where M jumps to 1, for every float up to pi is below pi
    # M(x) is m x + m - 1 up to (2 e/x)^x
    return np.asarray(1 + np.where(x < LAST, _parking(np.minimum(x, LAST)), RENYI * x + RENYI - 1))


def _parking(x: np.ndarray) -> np.ndarray:
    """M(x) for 1 < x <= 22."""
    counts = np.ones(x.shape)
    for k, smooth in enumerate(_pieces(), start=2):
        counts = np.where(x > k, smooth(np.clip(x, k, k + 1)), counts)
    return counts


@functools.cache
def _pieces() -> list[np.polynomial.Chebyshev]:
    """M on [2, 3], [3, 4], ... by Chebyshev polynomials; singularities are 1 or more away from each interval."""
    chebyshev = np.polynomial.Chebyshev

    def on_next_unit(x: np.ndarray, primitive: np.polynomial.Chebyshev, before: float) -> np.ndarray:
        return 1 + 2 / (x - 1) * (before + primitive(x - 1))

    pieces, before = [chebyshev([1.0], [1, 2])], 0.0
    for k in range(2, LAST + 1):
        primitive = pieces[-1].integ(lbnd=k - 1)
        pieces.append(chebyshev.interpolate(on_next_unit, POINTS, [k, k + 1], args=(primitive, before)))
        before += float(primitive(k))
    return pieces[1:]
