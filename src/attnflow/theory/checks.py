"""Arguments that most formulas share, and the sentences that refuse bad ones."""

import math

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput


def checked_beta(beta: ArrayLike) -> np.ndarray:
    """beta as an array of finite numbers, at least 0."""
    return checked_reals("beta", beta, 0.0)


def checked_integers(name: str, value: ArrayLike, least: int) -> np.ndarray:
    """An argument as an array of integers, none below `least`."""
    try:
        found = np.asarray(value)
    except ValueError:  # rows of unequal length
        found = np.asarray(np.nan)
    if isinstance(value, int) and abs(value) > 2**53:
        found = np.asarray(np.inf)
    whole = found.dtype.kind in "iuf" and np.isfinite(found).all() and (found == np.floor(found)).all()
    if not whole or (found < least).any() or (found > 2**53).any():
        raise InvalidInput(f"{name} is {written(value)}; it must be an integer from {least} to 2^53.")
    return found.astype(np.int64)


def checked_integer(name: str, value: int, least: int) -> int:
    """An argument as one integer, at least `least`."""
    found = checked_integers(name, value, least)
    if found.ndim:
        raise InvalidInput(f"{name} is {written(value)}; it must be one integer, at least {least}.")
    return int(found)


def checked_degrees(k: ArrayLike, least: int) -> np.ndarray:
    """Degrees as an array of integers, none below `least`."""
    return checked_integers("k", k, least)


def checked_dimension(d: int) -> int:
    """The dimension of the space around the sphere S^{d-1}: one integer, at least 2."""
    return checked_integer("d", d, 2)


def checked_model(model: str) -> str:
    """One of the three names of the dynamics."""
    if model not in ("SA", "USA0", "USA"):
        raise InvalidInput(f"model is {written(model)}; use 'SA', 'USA0' or 'USA'.")
    return model


def checked_reals(name: str, value: ArrayLike, least: float) -> np.ndarray:
    """An argument as an array of finite real numbers, none below `least`."""
    found = as_reals(name, value)
    if not (np.isfinite(found) & (found >= least)).all():
        bound = "" if least == -math.inf else f" and at least {least:g}"
        raise InvalidInput(f"{name} is {written(value)}; it must be finite{bound}.")
    return found


def as_reals(name: str, value: ArrayLike) -> np.ndarray:
    """An argument as an array of real numbers; texts are none."""
    try:
        given = np.asarray(value)
        if given.dtype.kind in "USc":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} is {written(value)}; it must be a real number.") from None


def written(value: object) -> str:
    """A value as a refusal shows it: on one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def checked_keys(d_k: int | None) -> int | None:
    """The number of rows of Q and K, or None for infinitely many."""
    if d_k is None or d_k == math.inf:
        return None
    found = checked_integers("d_k", d_k, 1)
    if found.ndim:
        raise InvalidInput(f"d_k is {written(d_k)}; it must be one integer, at least 1, or None.")
    return int(found)
