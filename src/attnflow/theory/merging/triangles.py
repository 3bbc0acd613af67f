"""Three clusters on the circle that attract each other and yet stay apart: possible for negative beta only."""

import itertools

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_integers

GRID = 2000
"""Points on which roots are bracketed."""


def three_clusters(counts: ArrayLike, beta: float) -> np.ndarray:
    """Stable equilibria of three clusters of `counts` equal tokens on the circle: angles opposite them, (states, 3).

    Clusters of masses m_1, m_2, m_3 balance iff g(a_k)/m_k is the same for the three angles a_k in (0, pi), a_k that
    between the other two clusters, with sum a_k = 2 pi and the pull g(a) = e^{beta (cos a - 1)} sin a. SA and USA0
    have the same equilibria. Stable means: all three rates of the clusters but that of rotations are negative, and so
    is the rate -m_k - sum_l m_l g'(angle of k and l) at which tokens leave a cluster of more than one. Equal clusters
    at 120 degrees are stable iff beta < -2/3 (arXiv:2507.22857). beta < 0.
    """
    counts, beta = checked_integers("counts", counts, 1), float(beta)
    if counts.shape != (3,):
        raise InvalidInput(f"counts is {counts!r}; give the numbers of tokens in three clusters.")
    if not (np.isfinite(beta) and beta < 0):
        raise InvalidInput(f"beta is {beta!r}; three clusters are stable for negative beta only.")
    masses = counts / counts.sum()
    heaviest = int(np.argmax(masses))
    found = []
    for upper in itertools.product((False, True), repeat=2):
        found += [one for one in _balanced(masses, heaviest, upper, beta) if _is_stable(one, masses, counts, beta)]
    return np.array(found).reshape(-1, 3)


def three_cluster_threshold(n: int, *, tol: float = 1e-4) -> float:
    """The beta below which n >= 3 equal tokens on the circle have a stable state of three clusters, by bisection.

    -2/3 if 3 divides n; -2.2124 for 4, -1.4429 for 5 and -1.7169 for 7 tokens.
    """
    n = int(checked_integers("n", n, 3))
    splits = [(a, b, n - a - b) for a in range(1, n // 3 + 1) for b in range(a, (n - a) // 2 + 1)]
    if n % 3 == 0:
        return -2 / 3
    low, high = -8.0, -0.5
    while high - low > tol:
        middle = (low + high) / 2
        stable = any(len(three_clusters(split, middle)) for split in splits)
        low, high = (middle, high) if stable else (low, middle)
    return (low + high) / 2


def _pull(angle: ArrayLike, beta: float) -> np.ndarray:
    """g(a) e^{2 beta}: at most of order 1 for beta < 0."""
    return np.sin(angle) * np.exp(beta * (1 + np.cos(angle)))


def _slope(angle: ArrayLike, beta: float) -> np.ndarray:
    """g'(a) e^{2 beta}."""
    return (np.cos(angle) - beta * np.sin(angle) ** 2) * np.exp(beta * (1 + np.cos(angle)))


def _inverse(level: np.ndarray, upper: bool, beta: float) -> np.ndarray:
    """The angle below or above the peak of g at which g has this level, by bisection."""
    peak = np.arccos((1 - np.sqrt(1 + 4 * beta**2)) / (-2 * beta))
    # g rises up to the peak and falls to 0 at pi
    low, high = np.full_like(level, 0.0), np.full_like(level, peak)
    if upper:
        low, high = np.full_like(level, np.pi), np.full_like(level, peak)
    for _ in range(50):
        middle = (low + high) / 2
        below = _pull(middle, beta) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _balanced(masses: np.ndarray, heaviest: int, upper: tuple[bool, ...], beta: float) -> list[np.ndarray]:
    """Angles that balance, those of the lighter clusters below or above the peak of g."""
    from scipy.optimize import brentq

    others = [k for k in range(3) if k != heaviest]

    def angles(first: np.ndarray) -> np.ndarray:
        found = np.empty((len(first), 3))
        found[:, heaviest] = first
        for k, up in zip(others, upper, strict=True):
            found[:, k] = _inverse(_pull(first, beta) * masses[k] / masses[heaviest], up, beta)
        return found

    low = np.linspace(1e-3, np.pi - 1e-6, GRID)
    excess = angles(low).sum(axis=1) - 2 * np.pi
    cross = np.flatnonzero(np.sign(excess[:-1]) * np.sign(excess[1:]) < 0)
    return [
        angles(np.array([brentq(lambda a: float(angles(np.array([a])).sum()) - 2 * np.pi, low[k], low[k + 1])]))[0]
        for k in cross
    ]


def _is_stable(angles: np.ndarray, masses: np.ndarray, counts: np.ndarray, beta: float) -> bool:
    slopes, matrix = _slope(angles, beta), np.zeros((3, 3))
    for i, j in itertools.permutations(range(3), 2):
        matrix[i, j] = masses[j] * slopes[3 - i - j]
        matrix[i, i] -= masses[j] * slopes[3 - i - j]
    # the eigenvalue of rotations is 0; the other two have this sum and product
    trace = float(np.trace(matrix))
    minors = sum(matrix[i, i] * matrix[j, j] - matrix[i, j] * matrix[j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    # g'(0) e^{2 beta} = e^{2 beta}
    leaving = np.diag(matrix) - masses * np.exp(2 * beta)
    return bool(trace < 0 and minors > 0 and (leaving[counts > 1] < 0).all())
