"""Frames of an ensemble in fixed steps, made with two step sizes whose difference estimates the error."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from attnflow.fields import AbstractField
from attnflow.flows import Fixed, advance
from attnflow.tokens import Tokens

EPS = float(np.finfo(float).eps)


class Frames(NamedTuple):
    """Positions at even times; arrays (frame, *batch, token, dim)."""

    time: np.ndarray
    fine: np.ndarray
    coarse: np.ndarray
    """The same with steps twice as long."""

    @property
    def error(self) -> np.ndarray:
        """(frame, *batch): the largest change of a token by halving the steps, 15 times the error of `fine`; rounding.

        Runge-Kutta of order 4 has an error e at the step h and 16 e at 2h.
        """
        change = np.linalg.norm(self.fine - self.coarse, axis=-1).max(axis=-1)
        return np.asarray(change + 64 * EPS * np.abs(self.fine).max(axis=(-2, -1)))


def frames(
    field: AbstractField,
    tokens: Tokens,
    until: float,
    legs: int,
    steps: int,
    on_leg: Callable[[float], None] = lambda share: None,
) -> Frames:
    """Follow an ensemble to `until` in `legs` legs of 2 x `steps` steps, and of `steps` steps; one program serves both.

    Arguments:
        on_leg: called with the share of the work that is done.
    """
    made: list[np.ndarray] = []
    for count, done, part in ((legs, 0.0, 1 / 3), (2 * legs, 1 / 3, 2 / 3)):
        times, now = np.linspace(0.0, until, count + 1), tokens
        found: list[Any] = [None]
        for k, (begin, end) in enumerate(itertools.pairwise(times)):
            on_leg(done + part * k / count)
            now = advance(field, now, float(begin), float(end), Fixed((end - begin) / steps))
            found.append(now.positions)
        found[0] = np.broadcast_to(np.asarray(tokens.positions), np.shape(found[1]))
        made.append(np.stack(found))
    return Frames(np.linspace(0.0, until, legs + 1), made[1][::2], made[0])


def leaders(matrices: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Of attention matrices: whom each token sees most, and the sum of its other weights; arrays (matrix, token)."""
    leader, doubt = [], []
    for weights in map(np.array, matrices):
        leader.append(np.argmax(weights, axis=1))
        weights[np.arange(len(weights)), leader[-1]] = 0.0
        doubt.append(weights.sum(axis=1))
    return np.array(leader), np.array(doubt)


def rates(before: Any, after: Any, span: float, extra: Any, sure: Any) -> tuple[np.ndarray, np.ndarray]:
    """At which distances fall over a time `span`, and tolerances; 1 where not `sure`, no number if none is.

    Arguments:
        before, after: distances of a fine and of a coarse flow.
        extra: what may have changed them `after`, beyond the error of the flow.
    """
    off = np.abs(after[0] - after[1]) + np.abs(before[0] - before[1]) * np.exp(-span) + extra
    first = np.where(sure, before[0], np.exp(span) if np.any(sure) else np.nan)
    rate = -np.log(np.where(sure, after[0], 1.0) / first) / span
    return rate, np.where(sure, off / first * np.exp(span) / span, 1e-300)
