"""Configurations with their certified indices: regular ones, rings, antipodal clusters."""

import itertools

import numpy as np

GOLDEN = (1 + 5**0.5) / 2
SIGNS = (1, -1)


def unit(points):
    points = np.array(points, dtype=float)
    return points / np.linalg.norm(points, axis=1)[:, None]


def ring(n, d):
    angles = 2 * np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angles), np.sin(angles), np.zeros((n, d - 2))])


def poles(first, second, d):
    return np.eye(d)[[0] * (first + second)] * np.repeat([1.0, -1.0], [first, second])[:, None]


def cyclic(a, b, c):
    return [(a, b, c), (b, c, a), (c, a, b)]


def simplex(d):
    """d + 1 points on S^{d-1}."""
    centred = np.eye(d + 1) - 1 / (d + 1)
    return unit(centred @ np.linalg.svd(centred)[2][:d].T)


CUBE = unit(list(itertools.product(SIGNS, repeat=3)))
ICOSAHEDRON = unit([p for a in SIGNS for b in (GOLDEN, -GOLDEN) for p in cyclic(0, a, b)])
DODECAHEDRON = unit(
    [*itertools.product(SIGNS, repeat=3), *(p for a in SIGNS for b in SIGNS for p in cyclic(0, a / GOLDEN, b * GOLDEN))]
)
CUBOCTAHEDRON = unit([p for a in SIGNS for b in SIGNS for p in cyclic(a, b, 0)])


def cross(d):
    return np.vstack([np.eye(d), -np.eye(d)])


def antiprism(beta):
    """The square antiprism that is in equilibrium at this beta: the polar height is found by bisection of the force."""

    def tokens(z):
        r = np.sqrt(1 - z * z)
        angles = np.pi / 2 * np.arange(4)
        up = np.column_stack([r * np.cos(angles), r * np.sin(angles), np.full(4, z)])
        down = np.column_stack([r * np.cos(angles + np.pi / 4), r * np.sin(angles + np.pi / 4), np.full(4, -z)])
        return np.vstack([up, down])

    def force(z):
        x = tokens(z)
        weights = np.exp(beta * (x @ x[0] - 1))
        pull = weights @ x
        return pull[2] - (pull @ x[0]) * z

    low, high = 0.2, 0.9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if force(low) * force(middle) > 0 else (low, middle)
    return tokens(low)


TABLE = [
    *(
        (f"{n}-gon on S^1", ring(n, 2), betas, (n - 1, 0, 1))
        for n, betas in ((3, (1.0, 5.0)), (5, (1.0, 5.0)), (12, (5.0, 20.0)))
    ),
    ("4-gon on S^2", ring(4, 3), (1.0, 5.0), (4, 1, 3)),
    ("6-gon on S^2", ring(6, 3), (1.0, 9.0), (6, 3, 3)),
    ("12-gon on S^2", ring(12, 3), (1.0, 9.0), (12, 9, 3)),
    ("30-gon on S^2", ring(30, 3), (5.0,), (30, 27, 3)),
    ("6-gon on S^3", ring(6, 4), (1.0,), (7, 6, 5)),
    ("12-gon on S^3", ring(12, 4), (1.0, 9.0), (13, 18, 5)),
    ("tetrahedron", simplex(3), (1.0, 9.0), (5, 0, 3)),
    ("octahedron", cross(3), (1.0, 9.0), (9, 0, 3)),
    ("icosahedron", ICOSAHEDRON, (1.0, 9.0), (21, 0, 3)),
    ("16-cell", cross(4), (1.0, 9.0), (18, 0, 6)),
    ("5-cell", simplex(4), (1.0,), (9, 0, 6)),
    ("cube", CUBE, (1.0, 3.0, 9.0), (11, 2, 3)),
    *((f"antiprism at {beta}", antiprism(beta), (beta,), (13, 0, 3)) for beta in (1.0, 3.0, 9.0)),
    ("cuboctahedron", CUBOCTAHEDRON, (1.0, 9.0), (20, 1, 3)),
    ("dodecahedron", DODECAHEDRON, (1.0, 9.0), (29, 8, 3)),
    ("2+3 on S^1", poles(2, 3, 2), (1.0, 5.0), (1, 3, 1)),
    ("5+7 on S^2", poles(5, 7, 3), (1.0, 5.0), (2, 20, 2)),
    ("5+7 on S^3", poles(5, 7, 4), (5.0,), (3, 30, 3)),
    ("triangle below 0", ring(3, 2), (-0.66,), (2, 0, 1)),
    ("triangle below -2/3", ring(3, 2), (-0.67,), (0, 2, 1)),
]
"""Name, tokens, betas, (unstable, stable, rotational)."""
CASES = [(name, tokens, beta, index) for name, tokens, betas, index in TABLE for beta in betas]
