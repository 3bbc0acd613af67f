"""When two clusters are at a given angle: a search in saved frames, which knows no formula."""

from typing import Any

import numpy as np

from attnflow.errors import FlowFailed
from attnflow.fields import AbstractField
from attnflow.flows import AbstractMethod, Evenly, LogSpaced, Trajectory, When, solve
from attnflow.tokens import Tokens

HORIZON = 1e7
"""Where the search for a crossing gives up."""


def pair_angle(positions: np.ndarray) -> Any:
    """The angle of a pair, accurate when it is small: positions (..., 2, dim)."""
    x, y = positions[..., 0, :], positions[..., 1, :]
    return 2 * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1))


def crossing(field: AbstractField, tokens: Tokens, method: AbstractMethod, until: float) -> tuple[float, float]:
    """A time close to the crossing of the angle `until` by a pair, and the rate at which log(angle) falls there.

    Frames around the crossing are taken ever denser, until the angle falls by less than 1% between two of them.
    """
    crossed = When(lambda frame: pair_angle(frame.positions) <= until, f"the angle is {until:g}")
    flow = solve(field, tokens, HORIZON, save=LogSpaced(800, 0.1), method=method, stop=crossed)
    begin = 0.0
    while True:
        span, fall, begin, tokens = _bracket(flow, begin, tokens)
        if fall < 0.01:
            rate = fall / span
            return begin + float(np.log(pair_angle(np.asarray(tokens.positions)) / until)) / rate, rate
        flow = solve(field, tokens, span, save=Evenly(64), method=method, stop=crossed)


def _bracket(flow: Trajectory, begin: float, tokens: Tokens) -> tuple[float, float, float, Tokens]:
    """Length of the last interval between frames, fall of log(angle) over it, and its beginning."""
    if flow.outcome.ending.value != "stopped":
        raise FlowFailed(f"the clusters did not merge: {flow.outcome.message}", flow)
    before, after = flow.positions.values[-2:]
    low, high = flow.time.values[-2:]
    fall = np.log(pair_angle(before)) - np.log(max(pair_angle(after), 1e-300))
    return float(high - low), float(fall), begin + float(low), Tokens(before, tokens.masses)
