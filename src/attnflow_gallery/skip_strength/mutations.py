"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.tokens import Tokens
from attnflow_gallery.skip_strength import simulate


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def _others_alone(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    seen = weights * (1 - np.eye(len(x)))
    return np.asarray(seen @ x / seen.sum(axis=1, keepdims=True))


def _normalised(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _unit(weights @ x)


def _by_hand(output: Any) -> Any:
    """Layers with another attention output, in NumPy."""

    def layered(beta: float, skip: float, tokens: Tokens, layers: int) -> np.ndarray:
        frames = [np.asarray(tokens.positions)]
        for _ in range(layers):
            x = frames[-1]
            weights = np.exp(beta * (x @ x.T - 1))
            frames.append(_unit(skip * x + output(weights / weights.sum(axis=1, keepdims=True), x)))
        return np.array(frames)

    return lambda original: layered


MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "attention", scaled("beta", 1 + 1e-4)),
    Mutation("beta 10 % larger", simulate, "attention", scaled("beta", 1.1)),
    Mutation("tokens do not see themselves", simulate, "layered", _by_hand(_others_alone)),
    Mutation("attention normalised before the sum", simulate, "layered", _by_hand(_normalised)),
    Mutation("skip 1 % larger", simulate, "method", scaled("skip", 1.01)),
    Mutation("skip larger by 0.1", simulate, "method", altered("skip", lambda skip: skip + 0.1)),
)
