"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, result, with_arguments
from attnflow_gallery.many_heads import simulate


def shifted(x: np.ndarray) -> np.ndarray:
    """Tokens of a prompt that are not quite equal."""
    return x + 1e-3 * np.arange(x.shape[1])[:, None] * np.eye(1, x.shape[2])


def repeated(matrices: np.ndarray) -> np.ndarray:
    """Every second matrix is the one before it."""
    return np.asarray(matrices[np.arange(len(matrices)) // 2 * 2])


MUTATIONS = (
    Mutation("heads with a bias", simulate, "fitted", with_arguments(bias=True)),
    Mutation("no head sees the constant coordinate", simulate, "fit_heads", with_arguments(bias=False)),
    Mutation("eight heads whatever H", simulate, "fit_heads", altered("heads", lambda _: 8)),
    Mutation("two tokens whatever n", simulate, "fit_heads", altered("tokens", lambda _: 2)),
    Mutation("prompts near the diagonal", simulate, "on_diagonal", result(shifted)),
    Mutation(
        "3 I is not among the heads",
        simulate,
        "dictionary",
        lambda original: lambda rng, d: rng.standard_normal((8, d, d)),
    ),
    Mutation("heads in pairs of equal ones", simulate, "independent", result(repeated)),
)
"""`fitted` is what fits without a bias; `fit_heads` also fits with one."""
