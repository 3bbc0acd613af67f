"""What a layer does with its attention output."""

import abc
from typing import Any

import equinox as eqx

from attnflow.lazy import listing
from attnflow.spaces import AbstractSpace, Euclidean

__all__ = ["AbstractUpdate", "Project", "ProjectRenormalise", "Renormalise"]
__dir__ = listing(__all__)


class AbstractUpdate(eqx.Module):
    """What a layer does with its attention output A: three rules with one ODE limit, all of order 1."""

    @abc.abstractmethod
    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        """The positions after the layer."""

    @abc.abstractmethod
    def image(self, space: AbstractSpace) -> AbstractSpace:
        """Where points of `space` are after a layer: `space` itself, or R^dim if the rule leaves it."""


class Renormalise(AbstractUpdate):
    """x <- N(x + h A): post-layer-norm, the network as built."""

    def __call__(self, space: AbstractSpace, x: Any, drive: Any, step: Any) -> Any:
        return space.retract(x + step * drive)

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
