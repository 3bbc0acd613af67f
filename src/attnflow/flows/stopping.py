"""Conditions that end a flow early. They are looked at on every saved frame; members of a batch stop on their own."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from attnflow.checks import ABOVE_ZERO, instance, number
from attnflow.errors import InvalidInput
from attnflow.lazy import listing

__all__ = ["AbstractStop", "Consensus", "Frame", "Still", "When"]
__dir__ = listing(__all__)


class Frame:
    """One saved frame, as a stop condition sees it: its time, and variables as arrays over the members of the batch.

    `frame.positions` is (member, token, dim), `frame.speed` and `frame.spread` are (member,); observables of the flow
    have the names that `observe` gives them. `frame["clusters"]` is the same as `frame.clusters`.
    """

    def __init__(self, time: float, values: dict[str, np.ndarray]):
        self.time, self._values = time, values

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._values:
            raise InvalidInput(
                f"a stop condition asks for {name!r}; frames here have {', '.join(sorted(self._values))}. Name what "
                "else it needs in `needs`, or put a function into `observe`."
            )
        return self._values[name]

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]


class AbstractStop(eqx.Module):
    """A condition for ending a flow."""

    @property
    @abc.abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The built-in variables that the condition looks at."""

    @abc.abstractmethod
    def holds(self, frame: Frame) -> Any:
        """(member,) whether the condition holds; one value counts for all members."""

    @abc.abstractmethod
    def describe(self) -> str:
        """What has happened when the condition holds, as half a sentence."""


class Consensus(AbstractStop):
    """All tokens of positive mass within `spread` of their mean."""

    spread: float = eqx.field(static=True, default=1e-3, converter=lambda v: number("spread", v, low=ABOVE_ZERO))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("spread",)

    def holds(self, frame: Frame) -> np.ndarray:
        return frame["spread"] <= self.spread

    def describe(self) -> str:
        return f"consensus: all tokens within {self.spread:g} of their mean"


class Still(AbstractStop):
    """No token faster than `speed`."""

    speed: float = eqx.field(static=True, converter=lambda v: number("speed", v, low=ABOVE_ZERO))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("speed",)

    def holds(self, frame: Frame) -> np.ndarray:
        return frame["speed"] <= self.speed

    def describe(self) -> str:
        return f"all speeds at most {self.speed:g}"


class When(AbstractStop):
    """A condition of your own: `When(lambda frame: frame.speed < 1e-3, "slow")`; true values per member.

    `needs` are the built-in variables that it looks at, where these are not kept anyway.
    """

    condition: Callable[[Frame], Any] = eqx.field(static=True)
    description: str = eqx.field(static=True, default="the user's condition holds")
    needs: tuple[str, ...] = eqx.field(static=True, default=())

    def __check_init__(self) -> None:
        instance("condition", self.condition, Callable, "a function of a frame")
        instance("description", self.description, str, "a text")
        instance("needs", self.needs, tuple, "names of variables, as in ('speed',)")

    def holds(self, frame: Frame) -> np.ndarray:
        return np.asarray(self.condition(frame), dtype=bool)

    def describe(self) -> str:
        return self.description


def conditions(stop: Any) -> tuple[AbstractStop, ...]:
    """One condition or several, as a tuple."""
    several = stop if isinstance(stop, Sequence) and not isinstance(stop, str) else (stop,)
    return tuple(instance("stop", one, AbstractStop, "a condition such as Consensus(), or a list") for one in several)
