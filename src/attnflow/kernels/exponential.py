"""The kernel of attention, e^(beta (<q, k> - 1)), and the Gaussian, which it is on the unit sphere."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import describe
from attnflow.axes import Batched, scalar
from attnflow.kernels.base import AbstractKernel, Block, Expansion
from attnflow.kernels.quadrature import BEYOND
from attnflow.special.degrees import multiplicity_ratios, truncation_degrees

STEEPEST = 1e10
"""The largest beta of an expansion, which has about 10 sqrt(beta) degrees."""
LARGEST_BETA = 1e15
"""Beyond, rounding of <q, k> changes the weights of `Exponential` by more than a factor of e: it is `Hardmax`."""


class Exponential(AbstractKernel, describe.Inlined):
    """exp(beta (<q, k> - 1)): on the unit sphere at most 1 for beta >= 0, a Gaussian of bandwidth beta^(-1/2).

    beta is an inverse temperature, at most 1e15 in size; softmax(Q K^T / sqrt(d_k)) is beta = 1/sqrt(d_k).
    """

    beta: Any

    def __init__(self, beta: Batched):
        self.beta = scalar("beta", low=-LARGEST_BETA, high=LARGEST_BETA)(beta)

    is_isotropic = True
    is_signed = False

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        beta = jnp.asarray(self.beta, query.dtype)
        return (beta * query) @ key.T - beta

    def expansion(self, d: int, degree: int) -> Expansion | None:
        """Quotients of neighbouring Bessel functions by their downward recurrence, which forgets where it started.

        p_k/p_{k-1} = N(k)/N(k-1) I_{v+1}/I_v, v = k + d/2 - 2, N the number of harmonics of a degree, and
        I_{v+1}/I_v = beta/(2 (v + 1) + beta I_{v+2}/I_{v+1}). NaN for beta < 0.
        """
        beta = jnp.asarray(self.beta)
        count = degree + BEYOND
        order = jnp.arange(count, dtype=beta.dtype) + (d / 2 - 1)
        start = beta / (order[-1] + 1.5 + jnp.sqrt((order[-1] + 2.5) ** 2 + beta**2))

        def down(ratio: Any, v: Any) -> Any:
            ratio = beta / (2 * (v + 1) + beta * ratio)
            return ratio, ratio

        _, ratios = jax.lax.scan(down, start, order, reverse=True)
        steps = jnp.asarray(multiplicity_ratios(d, count), beta.dtype) * ratios
        p = jnp.concatenate([jnp.ones((1,), beta.dtype), jnp.cumprod(steps)])
        p = jnp.where(beta >= 0, p / jnp.sum(p), jnp.nan)
        zero = jnp.zeros((), beta.dtype)
        return Expansion(zero, p[: degree + 1], jnp.sum(p[degree + 1 :]), zero)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        beta = float(np.asarray(self.beta))
        return None if not 0 <= beta <= STEEPEST else (int(truncation_degrees(np.asarray(error), beta, d)), 0.0)

    def is_bounded(self, unit: bool) -> Any:
        return unit and self.beta >= 0

    def magnitude(self, query: Any, key: Any) -> Any:
        return abs(self.beta) * (1 + query * key)


class Gaussian(AbstractKernel):
    """exp(-beta |q - k|^2 / 2): a Gaussian of bandwidth beta^(-1/2) in R^d; on the unit sphere it is `Exponential`."""

    beta: Any

    def __init__(self, beta: Batched):
        self.beta = scalar("beta")(beta)

    is_isotropic = True
    is_signed = False

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        """By products of vectors taken from the first key, so that the tokens' common position costs no digits."""
        beta = jnp.asarray(self.beta, query.dtype)
        origin = jax.lax.stop_gradient(key[:1])
        q, k = query - origin, key - origin
        sizes = jnp.sum(q * q, axis=1)[:, None] + jnp.sum(k * k, axis=1)[None, :]
        return (beta * q) @ k.T - 0.5 * beta * sizes

    def expansion(self, d: int, degree: int) -> Expansion | None:
        return Exponential(self.beta).expansion(d, degree)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return Exponential(self.beta).needed_degree(d, error)

    def is_bounded(self, unit: bool) -> Any:
        return self.beta >= 0

    def magnitude(self, query: Any, key: Any) -> Any:
        return 2 * abs(self.beta) * (query + key) ** 2
