"""(e^z - 1)/z without loss of digits, for compiled code with its derivatives, and for the host."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SMALL = 1e-8
"""Below, 1 + z/2 is exact to rounding."""


@jax.custom_jvp
def expm1_ratio(z: Any) -> Any:
    """(e^z - 1)/z, 1 at z = 0, with derivatives that keep their digits at and near z = 0."""
    return _quotient(z, jnp)


def host_expm1_ratio(z: np.ndarray) -> np.ndarray:
    """(e^z - 1)/z, 1 at z = 0, by NumPy."""
    return np.asarray(_quotient(z, np))


def _quotient(z: Any, numpy: Any) -> Any:
    small = numpy.abs(z) < SMALL
    safe = numpy.where(small, 1.0, z)
    return numpy.where(small, 1.0 + 0.5 * z, numpy.expm1(safe) / safe)


@expm1_ratio.defjvp
def _expm1_ratio_jvp(primals: Any, tangents: Any) -> Any:
    """With phi = (e^z - 1)/z, phi' = (e^z - phi)/z, and for |z| < 1 the series sum_k (k + 1)/(k + 2)! z^k."""
    (z,), (change,) = primals, tangents
    small = jnp.abs(z) < 1
    near, far = jnp.where(small, z, 0.0), jnp.where(small, 1.0, z)
    series = jnp.zeros_like(near)
    for k in range(18, -1, -1):  # the next term is below 1e-18
        series = series * near + (k + 1) / math.factorial(k + 2)
    return expm1_ratio(z), change * jnp.where(small, series, (jnp.exp(far) - expm1_ratio(far)) / far)
