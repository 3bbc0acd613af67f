"""Equal clusters at the vertices of a regular tetrahedron."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc

from attnflow.errors import InvalidInput
from attnflow.special.formula import MODEL, Reals, formula
from attnflow.special.numbers import ArrayLike


class SolidRates(NamedTuple):
    """Rates of small displacements of clusters at the vertices."""

    double: np.ndarray
    """Of two displacements."""
    triple: np.ndarray
    """Of three others; the three rotations have rate 0."""
    splitting: np.ndarray
    """Of a massless token beside a cluster: negative, a cluster does not split."""


@formula(beta=Reals(0.0), model=MODEL, relative=1e-12)
def tetrahedron_rates(beta: ArrayLike, *, model: str = "SA") -> SolidRates:
    """Rates of four equal clusters at the vertices of a regular tetrahedron on S^2: all displacements grow.

    With z = 4 beta/3 on the clock USA0: (2 beta/3) e^{-z} twice, (2/3 + 4 beta/9) e^{-z} three times, and
    -(1 - (1 + z) e^{-z})/4 for splitting; SA multiplies by 4/(1 + 3 e^{-z}), USA by e^beta. Derived here. All of the
    five solids are stationary, for a rotation that fixes a vertex fixes its axis alone.

    Arguments:
        beta: inverse temperature.
        model: clock of the rates, "SA", "USA" or "USA0".
    """
    if model == "USA" and (beta > 700).any():
        raise InvalidInput(f"`beta` is {beta!r}; above 700 rates under USA leave float range, use 'USA0'.")
    z = 4 / 3 * np.minimum(beta, 1e300)
    clock = 4 / (1 + 3 * np.exp(-z)) if model == "SA" else np.exp(beta if model == "USA" else 0 * beta)
    fade = np.exp(-beta / 3) if model == "USA" else clock * np.exp(-z)
    return SolidRates(beta * (2 / 3) * fade, (2 / 3 + beta * (4 / 9)) * fade, -clock * gammainc(2, z) / 4)
