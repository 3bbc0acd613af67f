"""Angles between points, and a bound on distances of measures where no token feels another."""

from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.tokens import Tokens


def angles(x: Any, y: Any) -> np.ndarray:
    """Angles between the unit vectors x (n, d) and y (m, d), accurate when they are small."""
    x, y = np.atleast_2d(np.asarray(x, float)), np.atleast_2d(np.asarray(y, float))
    apart = np.linalg.norm(x[:, None] - y[None], axis=-1)
    together = np.linalg.norm(x[:, None] + y[None], axis=-1)
    return np.asarray(2 * np.arctan2(apart, together))


def shared_mass_bound(inputs: list[Tokens], targets: list[Tokens]) -> float:
    """A lower bound of W_1 of the first pair plus W_1 of the second, for schedules in which no token feels another.

    What the two inputs have in common stays common, so W_1 + W_1' >= m_0 min distance of the targets' supports, with
    m_0 the mass at common positions (ours, with arXiv:2411.04551, whose theorem needs attention for this reason).
    """
    if len(inputs) != 2 or len(targets) != 2:
        raise InvalidInput("give two inputs and two targets.")
    same = angles(inputs[0].positions, inputs[1].positions) < 1e-12
    shared = np.minimum(np.asarray(inputs[0].masses)[:, None], np.asarray(inputs[1].masses)[None])
    return float(np.sum(shared * same) * angles(targets[0].positions, targets[1].positions).min())
