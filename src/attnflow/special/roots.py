"""Roots of functions of one variable, in brackets that are verified and widened; many at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import NotAccurate

LONGEST = 1e307
"""Brackets are widened by at most so much at a time."""
WIDENINGS = 2200
"""A bracket that is tripled or widened by `LONGEST` so often covers all floats."""


def root(
    function: Callable[..., Any],
    low: ArrayLike,
    high: ArrayLike,
    *arguments: ArrayLike,
    smallest: float = -1e308,
    largest: float = 1e308,
) -> np.ndarray:
    """Where `function(x, *arguments)` changes its sign, to the last two bits of x.

    [`low`, `high`] is a first guess: where the signs at its ends are equal it grows by its own width to both sides,
    within [`smallest`, `largest`], until they differ. SciPy then closes it: by
    Brent's method if there is one root, by Chandrupatla's if there are many.

    Arguments:
        function: continuous in x, and elementwise if there are many roots; with one change of sign between `smallest`
            and `largest` the root does not depend on the guess.
        low: left ends of the guess.
        high: right ends of the guess, above `low`; all shapes are broadcast.
        arguments: what else the function depends on, one value a root.
        smallest: x below this is never tried.
        largest: x above this is never tried.

    Returns:
        The roots, in the broadcast shape.

    Raises:
        NotAccurate: if the function has one sign on [`smallest`, `largest`], or is not a number somewhere.
    """
    with np.errstate(all="ignore"):
        return _root(function, smallest, largest, low, high, *arguments)


def _root(
    function: Callable[..., Any],
    smallest: float,
    largest: float,
    low: ArrayLike,
    high: ArrayLike,
    *arguments: ArrayLike,
) -> np.ndarray:
    from scipy.optimize import brentq, elementwise

    parts = [np.asarray(part, dtype=np.float64) for part in (low, high, *arguments)]
    low, high, *values = (np.array(part) for part in np.broadcast_arrays(*parts))
    at_low, at_high = (np.asarray(function(end, *values), dtype=np.float64) for end in (low, high))
    for _ in range(WIDENINGS):
        same = np.sign(at_low) * np.sign(at_high) > 0
        if not same.any():
            break
        if (same & (low <= smallest) & (high >= largest)).any():
            raise NotAccurate(f"an equation has no root between {smallest:g} and {largest:g}.")
        width = np.minimum(high - low, LONGEST)
        low = np.where(same, np.maximum(low - width, smallest), low)
        high = np.where(same, np.minimum(high + width, largest), high)
        at_low, at_high = (np.asarray(function(end, *values), dtype=np.float64) for end in (low, high))
    if np.isnan(at_low).any() or np.isnan(at_high).any():
        raise NotAccurate("the function of an equation is not a number at the end of its bracket.")
    if not low.shape:  # a scalar function need not take arrays
        if at_low == 0 or at_high == 0:
            return np.asarray(low if at_low == 0 else high)
        return np.asarray(
            brentq(function, float(low), float(high), args=tuple(values), xtol=1e-307, rtol=1e-15, maxiter=9999)
        )
    tolerances = {"xatol": 0.0, "xrtol": 4e-16, "fatol": 0.0, "frtol": 0.0}
    result = elementwise.find_root(function, (low, high), args=tuple(values), tolerances=tolerances, maxiter=2000)
    if not np.all(result.success):
        raise NotAccurate("an equation has no root in its bracket.")
    return np.asarray(result.x)
