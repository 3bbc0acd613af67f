"""Slots in which clusters are kept, what a step in them costs, and the span of tokens in many dimensions."""

import dataclasses
from typing import Any

import numpy as np

SLOTS = (8, 32, 64, 128, 512)
"""Clusters are kept in so many slots: each number is compiled once, and merges compile nothing."""
COST = (0.04, 0.42, 1.0, 4.0, 64.0)
"""Milliseconds of a step of one of many systems in so many slots, in three dimensions."""
COMPILE, STEPS = 4000.0, 6
"""Milliseconds in which a program for another number of slots is compiled, and steps from one merge to the next."""


@dataclasses.dataclass(frozen=True)
class Slots:
    """The numbers of slots through which systems go, the largest first; make it with `choose_slots`."""

    sizes: tuple[int, ...]

    def of(self, count: Any) -> np.ndarray:
        """The least number of slots in which so many clusters have room, for each of several counts."""
        rising = np.asarray(self.sizes[::-1])
        return np.asarray(rising[np.searchsorted(rising, count)])

    def next(self, size: int) -> int:
        """The number of clusters that move from so many slots to fewer; 1 if they stay to the end."""
        return max((fewer for fewer in self.sizes if fewer < size), default=1)

    def share_done(self, n: int, made: Any) -> np.ndarray:
        """The share of the work that is done after so many merges of n tokens: the first ones cost more."""
        costs = np.asarray(COST)[np.searchsorted(SLOTS, self.of(np.arange(n, 1, -1)))]
        done = np.concatenate([[0.0], np.cumsum(costs)])
        return np.asarray(done[np.asarray(made)] / max(done[-1], COST[0]))


def choose_slots(n: int, systems: int = 1, *, dim: int = 3, sensitive: bool = False) -> Slots:
    """The numbers of slots for so many systems of n tokens: fewer ones, where they save more than they take to compile.

    Half of the time of a step in three dimensions does not depend on the dimension, and a perturbation that is carried
    along more than doubles it.
    """
    factor = systems * STEPS * (0.5 + dim / 6) * (2.5 if sensitive else 1.0)
    cost = dict(zip(SLOTS, COST, strict=True))
    sizes = [next(size for size in SLOTS if size >= n)]
    for fewer in SLOTS[::-1]:
        if fewer < sizes[-1] and factor * fewer * (cost[sizes[-1]] - cost[fewer]) > COMPILE:
            sizes.append(fewer)
    return Slots(tuple(sizes))


def within_span(x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Coordinates of unit vectors (..., token, dim) in a space of as many dimensions as there are tokens; its basis.

    Attention with Q = K = V = I turns with the tokens and never leaves their span, so n tokens in more than n
    dimensions move as their coordinates do, exactly. The space has n dimensions even where the span has fewer: a small
    perturbation in any direction is then, up to a rotation of everything, one within the space. Without more dimensions
    than tokens the coordinates are `x` and there is no basis.
    """
    n, d = x.shape[-2:]
    if d <= n:
        return x, None
    basis, triangle = np.linalg.qr(np.swapaxes(x, -1, -2))
    coordinates = np.swapaxes(triangle, -1, -2)
    return coordinates / np.linalg.norm(coordinates, axis=-1, keepdims=True), basis
