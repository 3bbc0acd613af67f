"""Conditions that end a flow early. They are looked at on every saved frame; a batch stops when all members agree."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import numpy as np

from attnflow.checks import ABOVE_ZERO, instance, number


class Frame(NamedTuple):
    """One saved frame, as a stop condition sees it: arrays over the members of the batch."""

    time: float
    positions: np.ndarray
    """(member, token, dim), absent rows included; they stand still."""
    speed: np.ndarray
    """(member,) largest speed of a token."""
    spread: np.ndarray
    """(member,) largest distance of a token to the mean of its system."""


class AbstractStop(eqx.Module):
    """A condition for ending a flow."""

    @abc.abstractmethod
    def holds(self, frame: Frame) -> np.ndarray:
        """(member,) whether the condition holds."""

    @abc.abstractmethod
    def describe(self) -> str:
        """What has happened when the condition holds, as half a sentence."""


class Consensus(AbstractStop):
    """All tokens of positive mass within `spread` of their mean."""

    spread: float = eqx.field(static=True, default=1e-3, converter=lambda v: number("spread", v, low=ABOVE_ZERO))

    def holds(self, frame: Frame) -> np.ndarray:
        return frame.spread <= self.spread

    def describe(self) -> str:
        return f"consensus: all tokens within {self.spread:g} of their mean"


class Still(AbstractStop):
    """No token faster than `speed`."""

    speed: float = eqx.field(static=True, converter=lambda v: number("speed", v, low=ABOVE_ZERO))

    def holds(self, frame: Frame) -> np.ndarray:
        return frame.speed <= self.speed

    def describe(self) -> str:
        return f"all speeds at most {self.speed:g}"


class When(AbstractStop):
    """A condition of your own: `When(lambda frame: frame.speed < 1e-3, "slow")`; true values per member."""

    condition: Callable[[Frame], np.ndarray] = eqx.field(static=True)
    description: str = eqx.field(static=True, default="the user's condition holds")

    def __check_init__(self) -> None:
        instance("condition", self.condition, Callable, "a function of a frame")
        instance("description", self.description, str, "a text")

    def holds(self, frame: Frame) -> np.ndarray:
        return np.asarray(self.condition(frame), dtype=bool)

    def describe(self) -> str:
        return self.description
