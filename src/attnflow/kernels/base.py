"""What every kernel says of itself: its values on blocks of pairs, and its expansion in degrees."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float

Block = Float[Array, "query key"]


class Expansion(NamedTuple):
    """K(x, y) = e^scale sum_k p_k P_k(<x, y>) on S^(d-1)."""

    scale: Any
    p: Float[Array, " degree"]
    """p_0, ..., p_degree. For a kernel with log values sum_k p_k = 1, so that e^scale is the weight of equal points."""
    rest: Any
    """The sum of |p_k| over all later degrees."""
    noise: Any
    """A bound of the rounding errors of all p_k together."""


class AbstractKernel(eqx.Module):
    """K(q, k) > 0, given by its logarithm; or a kernel that changes sign, given by its values.

    Inside compiled code the parameters are arrays of the type of the features.
    """

    is_isotropic: eqx.AbstractClassVar[bool]
    """Whether K(Rq, Rk) = K(q, k) for every rotation R."""

    @property
    @abc.abstractmethod
    def is_signed(self) -> bool:
        """Whether K changes sign: `block` then holds K itself, and only `Unnormalised` takes the kernel.

        A subclass has it as a constant, or as a field.
        """

    @abc.abstractmethod
    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        """log K of all pairs of two blocks of features; K itself if `is_signed`."""

    @abc.abstractmethod
    def expansion(self, d: int, degree: int) -> Expansion | None:
        """The expansion on S^(d-1) up to `degree`; None if K is no smooth function of <x, y>. May be traced."""

    @abc.abstractmethod
    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        """(degree, noise): where the expansion on S^(d-1) may be cut for an error of max(error, noise).

        Errors are absolute, in units of e^scale; `noise` is that of `Expansion`. None if there is no such degree.
        Asked on the host, of a kernel whose parameters are known.
        """

    @abc.abstractmethod
    def is_bounded(self, unit: bool) -> Any:
        """Whether log K <= 0, with 0 for equal features: for features of norm 1 if `unit`, else for all features.

        A bool, or an array where it depends on parameters, which may be traced.
        """

    @abc.abstractmethod
    def magnitude(self, query: Any, key: Any) -> Any:
        """A bound of the terms that `block` adds up, for features of these norms; None if there is none.

        Rounding errors of `block` are a few units in the last place of it. `Hardmax` needs it to tell ties.
        """


class AbstractPair(AbstractKernel):
    """A kernel given for one pair. Blocks are made by `jax.vmap`."""

    @abc.abstractmethod
    def pair(self, query: Float[Array, " feature"], key: Float[Array, " feature"]) -> Float[Array, ""]:
        """log K of one pair; K itself if `is_signed`."""

    def block(self, query: Float[Array, "query feature"], key: Float[Array, "key feature"]) -> Block:
        return jax.vmap(lambda q: jax.vmap(lambda k: self.pair(q, k))(key))(query)

    def expansion(self, d: int, degree: int) -> Expansion | None:
        return None

    def needed_degree(self, d: int, error: float) -> tuple[int, float] | None:
        return None

    def is_bounded(self, unit: bool) -> Any:
        return False

    def magnitude(self, query: Any, key: Any) -> Any:
        return None
