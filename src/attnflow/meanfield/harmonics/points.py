"""Points of a sphere as functions on it take them: unit vectors, or one number each that is given by its name."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.checks import reals, shown
from attnflow.errors import InvalidInput

SLACK = 1e-6
"""How far from 1 the norm of a unit vector may be."""
MEANING = {"angles": "for a `CircleBasis`", "heights": "s = <x, e> for a `ZonalBasis`"}


def unit_vectors(dim: int, x: ArrayLike | None) -> np.ndarray:
    """`x` as unit vectors (..., dim), or a refusal."""
    rows = _numbers("x", x, f"unit vectors of R^{dim}")
    if rows.shape[-1:] != (dim,):
        raise InvalidInput(
            f"`x` has shape {rows.shape}; give unit vectors of R^{dim}, with a last axis of length {dim}."
        )
    norms = np.linalg.norm(rows, axis=-1)
    off = ~(np.abs(norms - 1) <= SLACK)
    if off.any():
        raise InvalidInput(f"`x` holds a vector of norm {norms[off][0]:.6g}, not 1; divide the rows by their norms.")
    return np.clip(rows, -1.0, 1.0)


def by_name(dim: int, wanted: str | None, x: ArrayLike | None, **named: ArrayLike | None) -> np.ndarray | None:
    """The numbers given by the name `wanted`, or None where `x` is to be read; anything else is refused."""
    given = {name: value for name, value in named.items() if value is not None}
    also = f", or `{wanted}` by name" if wanted else ""
    for name in given:
        if name != wanted:
            raise InvalidInput(f"`{name}` are {MEANING[name]} only; give `x`, unit vectors of R^{dim}{also}.")
    if len(given) + (x is not None) != 1:
        raise InvalidInput(
            f"{'both' if given else 'neither'} of `x` and `{wanted}` given; give one of them."
            if wanted
            else f"`x` is missing; give unit vectors of R^{dim}."
        )
    if wanted not in given:
        return None
    return _numbers(wanted, given[wanted], "real numbers, one for each point")


def _numbers(name: str, value: Any, hint: str) -> np.ndarray:
    found = reals(value)
    if found is None or not np.isfinite(found).all():
        raise InvalidInput(f"`{name}` is {shown(value)}; give {hint}.")
    return found
