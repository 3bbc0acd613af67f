"""Oracles of `random_layers`."""

import mpmath as mp
import numpy as np

from tests.formulas.oracle import oracle
from tests.formulas.tokens import tokens

PROCEDURES = {
    "conditional_density": "runs a flow, step by step",
    "conditional_mean": "runs two flows on random layers",
    "gram_layers": "runs random layers, one after the other",
    "poisson_path": "runs a random path, step by step",
    "random_attention": "makes a field",
}


def points(rng, inside=True):
    """Three points of S^2, or of the ball."""
    rows = []
    while np.shape(rows) != (3, 3):
        rows = tokens(rng, most=3, largest=3)
    size = 1 - 10.0 ** -rng.choice([1, 3, 9]) if inside and rng.random() < 0.5 else 1.0
    return (size * np.array(rows)).tolist()


def vector(rng):
    """A vector of any length, sometimes towards a corner of the sphere."""
    b = rng.standard_normal(3) if rng.random() < 0.7 else -np.eye(3)[rng.integers(3)]
    length = 10.0 ** rng.choice([-200, -12, -3, 2.8, *rng.uniform(-1, 1.5, 6)])
    return (length * b / np.linalg.norm(b)).tolist()


def lifted(x, b):
    """A point of the ball in hyperbolic space or on its light cone, after the boost of the Lorentz group by b.

    Gives (time, place), and whether the point is on the sphere.
    """
    x, b = [mp.mpf(c) for c in x], [mp.mpf(c) for c in b]
    square, length = mp.fdot(x, x), mp.norm(b)
    e = [c / length if length else mp.mpf(0) for c in b]
    on_sphere = abs(1 - square) < 1e-14
    if on_sphere:
        time, place = mp.mpf(1), [c / mp.sqrt(square) for c in x]
    else:
        time, place = (1 + square) / (1 - square), [2 * c / (1 - square) for c in x]
    along = mp.fdot(place, e)
    moved = mp.cosh(length) * along + mp.sinh(length) * time - along
    return (
        mp.cosh(length) * time + mp.sinh(length) * along,
        [p + moved * c for p, c in zip(place, e, strict=True)],
        on_sphere,
    )


def digits(b):
    """Enough for e^(2 |b|)."""
    return mp.workdps(60 + int(2 * np.linalg.norm(b)))


CASES = (
    {"points": [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "b": [0.0, 0.0, 0.0]},
    {"points": [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "b": [20.0, 0.0, 0.0]},
    {"points": [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "b": [-400.0, 0.0, 0.0]},
)


@oracle(
    "layers.boost",
    draws={"points": points, "b": vector},
    cases=CASES,
    quick=8,
)
def boost(points, b):
    with digits(b):
        rows = []
        for x in points:
            time, place, on_sphere = lifted(x, b)
            rows.append([c / (time if on_sphere else 1 + time) for c in place])
        return rows


@oracle("layers.boost_log_det", draws={"points": lambda rng: points(rng, False), "b": vector}, cases=CASES)
def boost_log_det(points, b):
    """A light ray is stretched by the inverse of the growth of its time."""
    with digits(b):
        return [-(len(b) - 1) * mp.log(lifted(x, b)[0]) for x in points]
