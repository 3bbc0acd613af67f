"""The expansion of a kernel, a function of <x, y>, by quadrature, and how many degrees it needs."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.kernels.base import AbstractKernel, Expansion
from attnflow.kernels.polynomials import angles_and_nodes, legendre
from attnflow.precision import full_precision
from attnflow.special.degrees import multiplicity_ratios

BEYOND = 64
"""Degrees beyond the last that tell how much an expansion leaves out."""
ULPS = 4.0
"""Units in the last place by which a value of a kernel, its argument and a weight of the quadrature may be off."""


def degree_by_quadrature(kernel: AbstractKernel, d: int, error: float, most: int = 512) -> tuple[int, float] | None:
    """`needed_degree` by expansions of more and more degrees.

    A kernel with log values that is much larger elsewhere than at equal points has none: a token would see little
    besides the errors.
    """
    degree = 32
    while degree <= most:
        with full_precision():
            found = jax.tree.map(np.asarray, kernel.expansion(d, degree))
        size = np.sum(np.abs(found.p))
        if not np.isfinite(size) or (size > 2 and not kernel.is_signed):
            return None
        tails = np.cumsum(np.append(np.abs(found.p[1:]), found.rest)[::-1])[::-1]
        needed = int(np.sum(tails > max(error, float(found.noise))))
        if needed <= degree:
            return needed, float(found.noise)
        degree *= 2
    return None


def by_quadrature(profile: Callable[[Any], Any], is_signed: bool, d: int, degree: int, dtype: Any = float) -> Expansion:
    """The expansion of a function of <x, y>: p_k = N(k, d) times the mean of K P_k over the sphere.

    `noise` takes K and the numbers N w P_k to be off by a few units in the last place each, and <x, y>, at which K is
    read, by as many: that changes K by its slope.
    """
    nodes, matrix = _quadrature(d, degree + BEYOND)
    at = jnp.append(jnp.asarray(nodes, dtype), jnp.ones((), dtype))
    values, slopes = jax.jvp(profile, (at,), (jnp.ones_like(at),))
    scale = jnp.log(jnp.max(jnp.abs(values))) if is_signed else values[-1]
    k = values[:-1] * jnp.exp(-scale) if is_signed else jnp.exp(values[:-1] - scale)
    steep = jnp.abs(slopes[:-1]) * (jnp.exp(-scale) if is_signed else k)
    off = ULPS * (jnp.abs(k) + jnp.where(jnp.isfinite(steep), steep, 0.0))
    weights = jnp.asarray(matrix, k.dtype)
    p, noise = weights @ k, jnp.finfo(k.dtype).eps * (jnp.abs(weights) @ jax.lax.stop_gradient(off))
    beyond = jnp.maximum(jnp.abs(p) - noise, 0.0)[degree + 1 :]
    return Expansion(scale, p[: degree + 1], jnp.sum(beyond), jnp.sum(noise[: degree + 1]))


@functools.lru_cache(16)
def _quadrature(d: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes s_i, and the matrix N(k, d) w_i P_k(s_i) for k = 0, ..., last.

    At s = cos(theta), theta evenly spaced. The weight of the sphere is sin^(d-2) d theta: for even d a trigonometric
    polynomial, which equal weights integrate exactly; for odd d a polynomial in s times ds, for which there is Fejer's
    rule. Both are exact for K P_k of degrees up to 3 `last`, with weights and P_k known to the last digit.
    """
    from scipy.fft import dct

    count = 4 * last + d
    theta, nodes = angles_and_nodes(count)
    if d % 2:
        even = np.arange(0, count, 2)
        series = np.zeros(count)
        series[even] = 1 / (1 - even**2.0)
        w = dct(series, 3) * np.sin(theta) ** (d - 3)
    else:
        w = np.sin(theta) ** (d - 2)
    counts = np.cumprod(np.concatenate([[1.0], multiplicity_ratios(d, last)]))
    return nodes.high, counts[:, None] * legendre(d, last, nodes) * (w / np.sum(w))[None, :]
