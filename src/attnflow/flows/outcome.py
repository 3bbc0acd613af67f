"""How a flow ended, and how far it has come."""

import dataclasses
import enum


class Ending(enum.Enum):
    """Why integration stopped."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FROZEN = "frozen"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The ending and one sentence about it."""

    ending: Ending
    message: str

    @property
    def ok(self) -> bool:
        """Whether the flow went where it was asked to go."""
        return self.ending is not Ending.FAILED

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to integrate."""
        return self.ending in (Ending.FINISHED, Ending.STOPPED, Ending.FROZEN)


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a running flow is."""

    time: float
    """Time reached by the slowest member."""
    until: float
    """Time to be reached, unless a stop condition ends the flow before."""
    frames: int
    """Frames saved."""
    of: int
    """Frames asked for."""
    steps: int
    """Steps taken, rejected ones included, over all members."""
    elapsed: float
    """Seconds of integration in this process."""
    rate: float
    """Steps per second."""
    remaining: float
    """Seconds left at the present pace (an upper bound when a stop condition may end the flow); NaN at first."""
    note: str = ""
    """What a method says instead of the time, where that tells more."""
