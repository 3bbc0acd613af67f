"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow_gallery.key_dimension import simulate


def own_values(original: Any) -> Any:
    """Every token has a V of its own."""

    def values(numbers: np.ndarray, means: simulate.Pair) -> simulate.Pair:
        first, _ = original(numbers, means)
        second, _ = original(numbers[::-1], (means[0] + means[1], means[1]))
        return first, second - first

    return values


def unweighted(found: tuple[simulate.Pair, np.ndarray]) -> tuple[simulate.Pair, np.ndarray]:
    """All pairs count alike."""
    return found[0], np.ones_like(found[1])


def turned(original: Any) -> Any:
    """A is orthogonal: it keeps all angles."""
    return lambda pair, outer, inner: pair


def more_keys(keys: int) -> int:
    """d_k larger by 2; independent entries stay what they are."""
    return keys if keys == simulate.IID else keys + 2


FREE, ALONE = altered("keys", lambda _: simulate.IID), altered("inner", lambda _: None)
"""One Gaussian matrix in place of the product of two."""
MUTATIONS = (
    Mutation("exponents: one Gaussian matrix in place of QᵀK", simulate, "scored", FREE),
    Mutation("exponents: d_k larger by 2", simulate, "scored", altered("keys", more_keys)),
    Mutation("exponents: weights left out", simulate, "keyed", result(unweighted)),
    Mutation("a V of its own for every token", simulate, "values", own_values),
    Mutation("b 50 % larger", simulate, "softmax_mean", scaled("scale", 1.5)),
    Mutation("cosines and drift: one Gaussian matrix in place of QᵀK", simulate, "images", ALONE),
    Mutation("cosines and drift: A orthogonal", simulate, "images", turned),
)
