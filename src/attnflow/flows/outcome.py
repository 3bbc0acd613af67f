"""How long work ended, and how far it has come."""

import dataclasses
import enum
import math
import time as clock


class Ending(enum.Enum):
    """Why the work stopped."""

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
        """Whether there is nothing left to do."""
        return self.ending in (Ending.FINISHED, Ending.STOPPED, Ending.FROZEN)


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where running work is."""

    time: float
    """Time reached by the slowest member; steps of a fit."""
    until: float
    """Time to be reached, unless a stop condition ends the flow before."""
    frames: int
    """Rows saved: frames of a flow, merges, steps of a fit."""
    of: int
    """Rows asked for."""
    steps: int
    """Steps taken, rejected ones included, over all members."""
    elapsed: float
    """Seconds of work in this process, compilation included."""
    rate: float
    """Steps per second."""
    remaining: float
    """Seconds left at the present pace (an upper bound when a stop condition may end the flow); NaN if unknown."""
    note: str = ""
    """What a stepper says instead of the time, where that tells more."""

    @property
    def left(self) -> str:
        """How long it will still take, in words; empty where that is not known, or more than four months."""
        if not self.remaining < 1e7:
            return ""
        number, unit = next(
            (s, u) for s, u in ((3600, "h"), (60, "min"), (1, "s")) if self.remaining >= 1.5 * s or s == 1
        )
        return f"about {self.remaining / number:.{int(unit == 'h')}f} {unit} left"


@dataclasses.dataclass(frozen=True)
class Reached:
    """What a stepper says of its progress."""

    time: float
    frames: int
    steps: int
    note: str = ""
    share: float = math.nan
    """The share of the work that is done, where a time does not say how far it is."""


class Pace:
    """Rate and time left, from the last few looks; `start` is from where the work goes on.

    The first slice is slow, because its program is compiled; it is all there is for a first estimate, and is left out
    of later ones.
    """

    def __init__(self, until: float, of: int, start: Reached):
        self.until, self.of = until, of
        self.began = clock.perf_counter()
        self.looks = [(0.0, self._share(start))]
        self.slices = 0

    def _share(self, reached: Reached) -> float:
        return reached.share if reached.share >= 0 else reached.time / self.until

    def progress(self, reached: Reached) -> Progress:
        """The progress at this moment."""
        elapsed = clock.perf_counter() - self.began
        self.slices += 1
        self.looks = [*self.looks[-19:], (elapsed, self._share(reached))]
        if self.slices == 2:
            del self.looks[0]
        (then, at), (now, here) = self.looks[0], self.looks[-1]
        remaining = (1 - here) * (now - then) / (here - at) if here > at else math.nan
        if here >= 1:
            remaining = 0.0
        rate = reached.steps / max(elapsed, 1e-9)
        return Progress(
            reached.time, self.until, reached.frames, self.of, reached.steps, elapsed, rate, remaining, reached.note
        )
