"""Tokens on the sphere for formulas that take them: random ones, and configurations on and near degenerate families."""

import numpy as np

FAMILIES = (
    "random",
    "coincident",
    "nearly coincident",
    "antipodal",
    "nearly antipodal",
    "orthogonal",
    "equator",
    "arc",
)


def tokens(rng, *, most=6, largest=5, families=FAMILIES):
    """Rows of unit length as nested lists: at most `most` tokens in at most `largest` dimensions, of a random family."""
    family = str(rng.choice(families))
    count, d = int(rng.integers(2, most + 1)), int(rng.integers(2, largest + 1))
    rows = rng.standard_normal((count, d))
    first, distance = rows[0] / np.linalg.norm(rows[0]), 10.0 ** -rng.choice([4, 8, 12, 15])
    if family == "coincident":
        rows[:] = first
    elif family == "nearly coincident":
        rows = first + distance * rows
    elif family == "antipodal":
        rows = first * rng.choice([-1.0, 1.0], size=(count, 1))
    elif family == "nearly antipodal":
        rows = first * rng.choice([-1.0, 1.0], size=(count, 1)) + distance * rows
    elif family == "orthogonal":
        rows = np.eye(d)[np.arange(count) % d]
    elif family == "equator":
        rows[:, -1] = 0.0
    elif family == "arc":
        angles = np.sort(rng.uniform(0, 2 * np.pi, count))
        rows = np.zeros((count, d))
        rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
