"""The matrices Q, K, V as linear maps; the identity costs nothing."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from attnflow.axes import Along
from attnflow.errors import InvalidInput
from attnflow.precision import is_concrete


class AbstractLinearMap(eqx.Module):
    """A linear map of R^d."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "point in"]) -> Float[Array, "point out"]:
        """The image of every row of `x`."""

    @abc.abstractmethod
    def check(self, name: str, dim: int) -> None:
        """Refuse a map that does not act on R^dim."""


class Identity(AbstractLinearMap):
    """x -> x."""

    def __call__(self, x: Float[Array, "point in"]) -> Float[Array, "point out"]:
        return x

    def check(self, name: str, dim: int) -> None:
        """The identity acts on every space."""


class Matrix(AbstractLinearMap):
    """x -> M x. `Along(dim, matrices)` gives one matrix per member of a batch."""

    matrix: Float[Array | np.ndarray, "out in"] | Along

    def __init__(self, matrix: Any):
        if isinstance(matrix, Along) or not is_concrete(matrix):
            self.matrix = matrix
            return
        values = np.asarray(matrix, dtype=np.float64)
        if values.ndim != 2 or not np.isfinite(values).all():
            raise InvalidInput(f"a matrix of shape {values.shape} was given; it must be 2-dimensional and finite.")
        self.matrix = values

    def __call__(self, x: Float[Array, "point in"]) -> Float[Array, "point out"]:
        return x @ jnp.asarray(self.matrix, x.dtype).T

    def check(self, name: str, dim: int) -> None:
        shape = self.matrix.values.shape[1:] if isinstance(self.matrix, Along) else self.matrix.shape
        if len(shape) != 2 or shape[1] != dim:
            raise InvalidInput(f"`{name}` has shape {shape}, but the tokens live in dimension {dim}.")


def as_linear_map(value: AbstractLinearMap | ArrayLike | Along | None) -> AbstractLinearMap:
    """None is the identity, an array a matrix."""
    if value is None:
        return Identity()
    return value if isinstance(value, AbstractLinearMap) else Matrix(value)
