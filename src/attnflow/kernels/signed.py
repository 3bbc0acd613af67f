"""Kernels that change sign: powers of <q, k>, and the cosine similarity."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.axes import Batched, scalar
from attnflow.checks import whole
from attnflow.kernels.base import AbstractKernel, Block, Expansion
from attnflow.kernels.quadrature import by_quadrature, degree_by_quadrature
from attnflow.kernels.zonal import AbstractZonal


class Polynomial(AbstractZonal):
    """((offset + <q, k>) / (offset + 1))^degree, 1 for equal unit vectors; signed."""

    degree: int = eqx.field(static=True, converter=lambda degree: whole("degree", degree, 1, 10**6))
    offset: Batched = eqx.field(converter=scalar("offset", low=0.0), default=0.0)
    is_signed = True

    def profile(self, s: Float[Array, "..."]) -> Float[Array, "..."]:
        offset = jnp.asarray(self.offset, s.dtype)
        return ((offset + s) / (offset + 1)) ** self.degree


class Cosine(AbstractKernel):
    """<q, k>/(|q| |k|), the cosine similarity; signed. Features that vanish are heard by nobody."""

    is_isotropic = True
    is_signed = True

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        return _directions(query) @ _directions(key).T

    def expansion(self, d: int, degree: int) -> Expansion | None:
        return by_quadrature(lambda s: s, True, d, degree)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return degree_by_quadrature(self, d, error)

    def is_bounded(self, unit: bool) -> Any:
        return False

    def magnitude(self, query: Any, key: Any) -> Any:
        return None


def _directions(x: Any) -> Any:
    norms = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return x / jnp.where(norms > 0, norms, 1.0)
