"""What a layer does with its attention output."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from attnflow.axes import Number, scalar
from attnflow.lazy import listing
from attnflow.spaces import AbstractSpace, Euclidean

__all__ = ["AbstractUpdate", "Project", "ProjectRenormalise", "Renormalise"]
__dir__ = listing(__all__)


class AbstractUpdate(eqx.Module):
    """What a layer does with its attention output A: three rules with one ODE limit, of order 1 (for skip = 1)."""

    @abc.abstractmethod
    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        """The positions after the layer."""

    @abc.abstractmethod
    def image(self, space: AbstractSpace) -> AbstractSpace:
        """Where points of `space` are after a layer: `space` itself, or R^dim if the rule leaves it."""


class Renormalise(AbstractUpdate):
    """x <- N(skip x + h A): post-layer-norm, the network as built for skip = 1.

    `skip` is the weight of the residual connection. Only skip/h matters, and with h = 1 the time counts layers:
    `Layers(1.0, Renormalise(skip=0.0))` is attention without a skip connection, which has no ODE limit.
    """

    skip: Number = eqx.field(converter=scalar("skip", low=0.0, batch=False), default=1.0)

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return space.retract(jnp.asarray(self.skip, x.dtype) * x + step * drive)

    def image(self, space: AbstractSpace) -> AbstractSpace:
        return space


class ProjectRenormalise(AbstractUpdate):
    """x <- N(x + h P_x A)."""

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return space.retract(x + step * space.tangent(x, drive))

    def image(self, space: AbstractSpace) -> AbstractSpace:
        return space


class Project(AbstractUpdate):
    """x <- x + h P_x A: leaves the sphere by O(h) over times of order 1; for comparison only."""

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return x + step * space.tangent(x, drive)

    def image(self, space: AbstractSpace) -> AbstractSpace:
        return Euclidean(space.dim)
