"""Which saved frame an animation shows when: evenly in t, in log t, or slower where tokens of a long flow move."""

import dataclasses

import numpy as np

from attnflow.plots.times import TimeAxis

FIRST, LAST = 0.4, 1.4
"""Seconds for which the first and the last picture stand still."""
JUMP = 0.06
"""The most that the way between two frames counts; the way is the root of the mean square over tokens."""


@dataclasses.dataclass(frozen=True)
class Ticks:
    """The pictures of an animation, in their order."""

    frame: np.ndarray
    """The saved frame that is shown."""
    log_time: np.ndarray
    """Where the cursor stands: log t, -inf at the start."""
    seconds: np.ndarray
    """How long the picture stands."""

    def __len__(self) -> int:
        return len(self.frame)


def even_ticks(log_time: np.ndarray, axis: TimeAxis, seconds: float, fps: float) -> Ticks:
    """Saved frames at even distances on the time axis, t or log t; the cursor stands at the time of the frame.

    A frame that is nearest to several of these distances is one picture that stands longer.
    """
    at = axis.at(log_time)
    place = np.log(at) if axis.is_logarithmic else at
    wanted = np.linspace(place[0], place[-1], _moving(seconds, fps))
    middles = (place[1:] + place[:-1]) / 2
    frame, count = np.unique(np.searchsorted(middles, wanted), return_counts=True)
    return Ticks(frame, log_time[frame], _stood(count / fps))


def long_ticks(log_time: np.ndarray, path: np.ndarray, axis: TimeAxis, seconds: float, fps: float) -> Ticks:
    """Half of the seconds evenly in log t, half along the `path` that tokens have gone at each saved frame.

    Between two saved frames the cursor moves on and the picture stays that of the first: on a plateau nothing is to be
    seen. A jump from frame to frame counts as JUMP at most, and its picture stands so long after it. Frames before the
    left end of the axis are left out except for the start.
    """
    kept = np.append(0, np.flatnonzero(log_time > axis.first))
    marks = np.maximum(np.append(log_time[kept], axis.last), axis.first)
    moved = np.append(0, np.cumsum(np.append(0, np.minimum(np.diff(path[kept]), JUMP))))
    moved /= max(moved[-1], 1e-300)
    even = np.linspace(0, 1e-6, len(marks))  # two frames are never at one place
    pace = (marks - axis.first) / max(axis.last - axis.first, 1e-300) + moved + even
    wanted = np.linspace(0, pace[-1], _moving(seconds, fps))
    index = np.clip(np.searchsorted(pace, wanted, side="right") - 1, 0, len(kept) - 1)
    shown = np.interp(wanted, pace, marks)
    shown[0] = log_time[0]
    return Ticks(kept[index], shown, _stood(np.full(len(wanted), 1 / fps)))


def _moving(seconds: float, fps: float) -> int:
    """Pictures of an animation that lasts so long, the still ones counted once."""
    return max(round((seconds - FIRST - LAST) * fps), 2)


def _stood(seconds: np.ndarray) -> np.ndarray:
    seconds[0] += FIRST
    seconds[-1] += LAST
    return seconds
