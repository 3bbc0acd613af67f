"""Orders of convergence from errors at h, h/2, h/4, ..., and how far they may be from their limit."""

import numpy as np
from numpy.typing import ArrayLike


def orders(errors: ArrayLike) -> np.ndarray:
    """log2 of the ratio of errors at h and h/2, along the last axis; no number where an error is 0."""
    values = np.asarray(errors, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log2(values[..., :-1] / values[..., 1:]))


def left_of_order(found: ArrayLike) -> np.ndarray:
    """How far the last of `orders` may be from its limit: 3 max(|d1|, |d2|/2), d1 and d2 its last two changes.

    An order is p + a h + b h^2 + ..., so that with h the last step d1 = -(a h + 3 b h^2) and d2 = -(2 a h + 12 b h^2).
    Then |a h + b h^2| <= (7/3) max(|d1|, |d2|/2) for all a and b, where d1 alone could vanish by accident; 3 leaves
    room for terms of third order. With two orders only there is no d2, and it is 3 |d1|.
    """
    changes = np.abs(np.diff(np.asarray(found, dtype=np.float64), axis=-1))[..., -2:]
    return np.asarray(3 * np.max(changes * np.array([0.5, 1.0])[-changes.shape[-1] :], axis=-1))
