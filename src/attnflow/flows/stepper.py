"""What the driver moves: something long that is done slice by slice."""

import abc
from typing import Any, NamedTuple

import numpy as np

from attnflow.flows.observables import Views
from attnflow.flows.outcome import Outcome, Reached
from attnflow.flows.sink import Layout


class Rows(NamedTuple):
    """Rows that are complete."""

    tables: dict[str, dict[str, np.ndarray]]
    """Row dimension -> variable -> rows. Variables of frames that only stop conditions need are here too."""
    views: Views | None = None
    """The frames among them, as observables see them."""


class Slice(NamedTuple):
    """What comes back from a slice of work."""

    state: Any
    rows: Rows | None
    """Rows completed by this slice; None if there are none, and then nothing is committed."""
    outcome: Outcome | None = None
    """How the work ended, if it did."""
    resume: Any = None
    """The last state that longer work would pass through too, where that is not `state` (a last step was shortened).

    Rows that are completed from then on are computed again when the work is continued.
    """


class AbstractStepper(abc.ABC):
    """Something long: tokens that move, clusters that merge, densities, an optimiser."""

    @property
    @abc.abstractmethod
    def batch(self) -> tuple[str, ...]:
        """Names of the batch dimensions; frames have them first."""

    @property
    @abc.abstractmethod
    def goal(self) -> tuple[float, int]:
        """The time to be reached, and the number of rows asked for: what progress is measured by."""

    @abc.abstractmethod
    def layout(self) -> Layout:
        """What is going to be saved, without observables."""

    @abc.abstractmethod
    def start(self) -> Views | None:
        """The first frame, on which observables are tried out; None where there is nothing to observe."""

    @abc.abstractmethod
    def begin(self) -> Any:
        """The state with which the work begins: a pytree of arrays."""

    @abc.abstractmethod
    def work(self, state: Any) -> Slice:
        """A bounded amount of work: a fraction of a second, if a single step does not take longer."""

    @abc.abstractmethod
    def unfinished(self, state: Any) -> Rows | None:
        """The complete rows of a chunk that was cut short."""

    @abc.abstractmethod
    def hold(self, state: Any, members: np.ndarray, time: float, frame: Any) -> Any:
        """The state in which `members` (a mask) stay for ever as they are in `frame`, one row of the views."""

    @abc.abstractmethod
    def are_still(self, times: np.ndarray, frames: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        """(member, row) whether no motion can be resolved, and whether tokens are apart; None where that is not known.

        `frames` are variables with the axes (member, row, ...) at `times`.
        """

    @abc.abstractmethod
    def reached(self, state: Any, rows: dict[str, int]) -> Reached:
        """How far the work has come, with so many rows committed."""

    @abc.abstractmethod
    def steps(self, state: Any) -> dict[str, int]:
        """Counts of steps so far, by kind."""

    @abc.abstractmethod
    def finish(self, state: Any) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Variables without rows that are known at the end."""


class AbstractSingle(AbstractStepper):
    """One system without a batch: when it stops, the work ends; its rows are complete when they come."""

    @property
    def batch(self) -> tuple[str, ...]:
        return ()

    def unfinished(self, state: Any) -> Rows | None:
        return None

    def hold(self, state: Any, members: np.ndarray, time: float, frame: Any) -> Any:
        return state

    def are_still(self, times: np.ndarray, frames: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        return None
