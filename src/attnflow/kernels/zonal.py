"""Kernels that are functions of <q, k>."""

import abc
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from attnflow.kernels.base import AbstractKernel, Block, Expansion
from attnflow.kernels.quadrature import by_quadrature, degree_by_quadrature


class AbstractZonal(AbstractKernel):
    """A kernel that is a function of <q, k>. Its expansion is found by quadrature, so that every series takes it."""

    is_isotropic = True

    @abc.abstractmethod
    def profile(self, s: Float[Array, "..."]) -> Float[Array, "..."]:
        """log K where <q, k> = s; K itself if `is_signed`. Acts on arrays."""

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        return self.profile(query @ key.T)

    def expansion(self, d: int, degree: int) -> Expansion | None:
        types = [leaf.dtype for leaf in jax.tree.leaves(self) if eqx.is_inexact_array(leaf)]
        return by_quadrature(self.profile, self.is_signed, d, degree, types[0] if types else float)

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return degree_by_quadrature(self, d, error)

    def is_bounded(self, unit: bool) -> Any:
        return False

    def magnitude(self, query: Any, key: Any) -> Any:
        return None
