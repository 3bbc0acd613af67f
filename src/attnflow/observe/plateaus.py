"""Plateaus: long stretches of (log) time in which the clusters neither merge nor move."""

from typing import NamedTuple

import numpy as np

from attnflow.special.formula import Other, Reals, formula


class Plateau(NamedTuple):
    """One stretch of constant cluster count; times as natural logarithms, for they may be beyond float range."""

    log_start: float
    """-inf for the start of the flow."""
    log_end: float
    clusters: int
    energy: float

    @property
    def start(self) -> float:
        """The time at which it begins, infinite where that is no float."""
        return _time(self.log_start)

    @property
    def end(self) -> float:
        """The time at which it ends, infinite where that is no float."""
        return _time(self.log_end)


@formula(
    time=Other("times, ascending from 0 or later"),
    count=Other("the number of clusters at each time"),
    condensed=Other("whether clusters are tight at each time"),
    energy=Other("the energy at each time"),
    factor=Reals(1.0, scalar=True),
    relative=1e-15,
)
def plateaus(
    time: np.ndarray, count: np.ndarray, condensed: np.ndarray, energy: np.ndarray, *, factor: float = 2.0
) -> list[Plateau]:
    """Stretches of saved times with condensed tokens and one cluster count that last by `factor` in time or more.

    A plateau ends at the last saved time before the count changes; its energy is the median over the stretch. The
    final stretch of consensus is a plateau like the others.
    """
    with np.errstate(divide="ignore"):
        log_time = np.log(time)
    found = []
    start = 0
    for k in range(1, len(time) + 1):
        if k < len(time) and count[k] == count[start] and condensed[k] == condensed[start]:
            continue
        begin = start + 1 if time[start] == 0 and start + 1 < k else start  # no time is a multiple of 0
        lasts = time[k - 1] >= factor * time[begin] and time[begin] > 0
        if condensed[start] and (lasts or (k == len(time) and count[start] == 1)):
            middle = float(np.median(energy[start:k]))
            found.append(Plateau(float(log_time[start]), float(log_time[k - 1]), int(count[start]), middle))
        start = k
    return found


def _time(log_time: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(log_time))
