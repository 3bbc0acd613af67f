"""The five solids, real harmonics on S^2, and a quadrature whose nodes are tokens."""

import itertools
import math

import numpy as np
from scipy.special import lpmv

GOLDEN = (1 + math.sqrt(5)) / 2


def _signs(*rows: tuple[float, float, float]) -> np.ndarray:
    """All signs of the entries, and unit length."""
    every = {
        tuple(s * v + 0.0 for s, v in zip(signs, row, strict=True))
        for row in rows
        for signs in itertools.product((1, -1), repeat=3)
    }
    found = np.array(sorted(every))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


VERTICES = {
    "poles": np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]),
    "tetrahedron": np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / math.sqrt(3),
    "octahedron": _signs((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "cube": _signs((1, 1, 1)),
    "icosahedron": _signs((0, 1, GOLDEN), (1, GOLDEN, 0), (GOLDEN, 0, 1)),
    "dodecahedron": _signs((1, 1, 1), (0, GOLDEN, 1 / GOLDEN), (GOLDEN, 1 / GOLDEN, 0), (1 / GOLDEN, 0, GOLDEN)),
}
"""Unit vectors, (vertex, 3); those of the cube and of the dodecahedron are centres of faces of the one before."""


def harmonics(degree: int, x: np.ndarray) -> np.ndarray:
    """Real spherical harmonics of mean square 1 at x (n, 3): (n, 2 degree + 1)."""
    c, phi = x[:, 2], np.arctan2(x[:, 1], x[:, 0])
    columns = []
    for m in range(-degree, degree + 1):
        size = math.factorial(degree - abs(m)) / math.factorial(degree + abs(m))
        scale = math.sqrt((2 * degree + 1) * size * (2 if m else 1))
        around = np.cos(m * phi) if m >= 0 else np.sin(-m * phi)
        columns.append(scale * lpmv(abs(m), degree, c) * around)
    return np.stack(columns, axis=1)


def nodes(latitudes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss latitudes, twice as many longitudes: positions and masses, exact up to degree 2 latitudes - 1."""
    c, masses = np.polynomial.legendre.leggauss(latitudes)
    phi = np.pi * np.arange(2 * latitudes) / latitudes
    around = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    flat = np.sqrt(1 - c**2)[:, None, None] * around
    up = np.broadcast_to(c[:, None, None], (*flat.shape[:2], 1))
    x = np.concatenate([flat, up], axis=-1).reshape(-1, 3)
    return x, np.repeat(masses, 2 * latitudes) / (4 * latitudes)


def skewness(degree: int, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w = mean(u^3) and |Pi u^2|^2 of harmonics with coefficients u (..., 2 degree + 1), exactly."""
    x, masses = nodes(2 * degree + 1)
    y = harmonics(degree, x)
    values = u @ y.T
    return np.asarray(values**3 @ masses), np.asarray(np.sum(((values**2 * masses) @ y) ** 2, axis=-1))
