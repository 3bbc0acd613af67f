"""Random measures on the sphere that several experiments steer."""

import numpy as np

from attnflow.spaces import Sphere
from attnflow.tokens import Tokens


def cloud(rng: np.random.Generator, d: int, n: int, spread: float, centre: np.ndarray | None = None) -> Tokens:
    """n points about a centre (random if not given): the centre plus a Gaussian vector of that spread, normalised."""
    centre = Sphere(d).sample(rng, 1)[0] if centre is None else centre
    x = centre + spread * rng.standard_normal((n, d))
    return Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


def atoms(rng: np.random.Generator, d: int, count: int) -> Tokens:
    """Random atoms of equal mass."""
    return Tokens(Sphere(d).sample(rng, count))
