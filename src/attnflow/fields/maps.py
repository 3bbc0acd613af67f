"""What every linear map of a field has in common, perhaps with a bias."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float


class AbstractLinearMap(eqx.Module):
    """A linear map of R^d into R^rows, or one per head (an axis in front), that may depend on time.

    A map with a bias, x -> M x + b, is one too: it says so by `is_linear`.
    """

    @abc.abstractmethod
    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        """The image of every row of `x`."""

    @abc.abstractmethod
    def rows(self, dim: int) -> int:
        """The dimension of the image of R^dim."""

    @abc.abstractmethod
    def bound(self, t: Any, dtype: Any) -> Any:
        """A bound of the images of vectors of norm 1 at time t, one for each head that the map has matrices for."""

    @abc.abstractmethod
    def check(self, dim: int, heads: int | None) -> None:
        """Refuse a map that does not act on R^dim, or has another number of heads."""

    @property
    @abc.abstractmethod
    def heads(self) -> int | None:
        """Number of heads that the map has matrices for; None is one matrix for all."""

    @property
    @abc.abstractmethod
    def is_linear(self) -> bool:
        """Whether multiples of x have multiples of its image: no bias."""

    @property
    @abc.abstractmethod
    def is_continuous(self) -> bool:
        """Whether it changes continuously with time."""
