"""The matrices Q, K, V, O as linear maps; the identity costs nothing."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.fields.structure import matrix_bound
from attnflow.fields.weights import AbstractWeight, as_weight


class AbstractLinearMap(eqx.Module):
    """A linear map of R^d, or one per head (an axis in front), that may depend on time."""

    @abc.abstractmethod
    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        """The image of every row of `x`."""

    @abc.abstractmethod
    def bound(self, t: Any, dtype: Any) -> Any:
        """A bound of the operator norm at time t, one for each head that the map has matrices for."""

    @abc.abstractmethod
    def check(self, dim: int, heads: int | None) -> None:
        """Refuse a map that does not act on R^dim, or has another number of heads."""

    @property
    @abc.abstractmethod
    def heads(self) -> int | None:
        """Number of heads that the map has matrices for; None is one matrix for all."""

    @property
    @abc.abstractmethod
    def is_continuous(self) -> bool:
        """Whether it changes continuously with time."""


class Identity(AbstractLinearMap):
    """x -> x."""

    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        return x

    def bound(self, t: Any, dtype: Any) -> Any:
        return jnp.ones((), dtype)

    def check(self, dim: int, heads: int | None) -> None:
        """The identity acts on every space."""

    @property
    def heads(self) -> int | None:
        return None

    @property
    def is_continuous(self) -> bool:
        return True


class Matrix(AbstractLinearMap):
    """x -> M x; a weight of shape (out, in), or (heads, out, in)."""

    weight: AbstractWeight
    role: str = eqx.field(static=True)

    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        matrix = self.weight.at(t, x.dtype)
        if matrix.ndim == 2:
            return x @ matrix.T
        return (x[None] if x.ndim == 2 else x) @ matrix.mT

    def bound(self, t: Any, dtype: Any) -> Any:
        return matrix_bound(self.weight.at(t, dtype))

    def check(self, dim: int, heads: int | None) -> None:
        shape = self.weight.shape
        wanted = f"(anything, {dim})" if heads is None else f"(anything, {dim}) or ({heads}, anything, {dim})"
        if len(shape) not in ((2,) if heads is None else (2, 3)) or shape[-1] != dim:
            raise InvalidInput(
                f"`{self.role}` has shape {shape}, but the tokens live in dimension {dim}; give shape {wanted}."
            )

    @property
    def heads(self) -> int | None:
        return self.weight.shape[0] if len(self.weight.shape) == 3 else None

    @property
    def is_continuous(self) -> bool:
        return self.weight.is_continuous


def as_linear_map(role: str, value: Any) -> AbstractLinearMap:
    """None is the identity; an array, a function of time or a weight is a matrix."""
    if value is None:
        return Identity()
    return value if isinstance(value, AbstractLinearMap) else Matrix(as_weight(role, value), role)
