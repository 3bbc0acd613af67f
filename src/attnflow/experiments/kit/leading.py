"""Who leads whom, and rates of approach, from two flows whose difference estimates the error."""

from collections.abc import Iterable
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)


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
