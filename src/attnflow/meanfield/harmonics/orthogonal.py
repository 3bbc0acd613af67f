"""Polynomials orthonormal for the distribution of one coordinate of a uniform point of S^{d-1}, on the host.

The distribution of s = <x, e> has density C_d (1 - s^2)^{(d-3)/2}; phi_k = sqrt(N(k, d)) P_k with P_k(1) = 1 are its
orthonormal polynomials (Gegenbauer; Chebyshev on the circle, Legendre on S^2). The orthonormal recurrence
s phi_k = b_{k+1} phi_{k+1} + b_k phi_{k-1}, b_k^2 = k (k+d-3) / ((2k+d-2) (2k+d-4)), never forms N (DLMF 18.9).
"""

import numpy as np

from attnflow.special.numbers import Numbers


def recurrence(d: int, count: int) -> np.ndarray:
    """b_1, ..., b_count."""
    k = np.arange(1.0, count + 1)
    with np.errstate(invalid="ignore"):
        squares = k * (k + d - 3) / ((2 * k + d - 2) * (2 * k + d - 4))
    squares[:1] = 1.0 / d  # E s^2, which the formula gives but on the circle, where it is 0/0
    return np.sqrt(squares)


def orthonormal(d: int, degree: int, s: np.ndarray) -> np.ndarray:
    """phi_0(s), ..., phi_degree(s); shape (degree + 1, *s.shape)."""
    b = recurrence(d, degree + 1)
    found = np.ones((degree + 1, *s.shape))
    for k in range(degree):
        found[k + 1] = (s * found[k] - (b[k - 1] * found[k - 1] if k else 0.0)) / b[k]
    return found


def expansion(d: int, coefficients: np.ndarray, s: Numbers) -> Numbers:
    """sum_k coefficients_k phi_k(s), without a table."""
    b = recurrence(d, len(coefficients))
    before, here = np.zeros_like(s), np.ones_like(s)
    total = np.zeros_like(s)
    for k, c in enumerate(coefficients):
        total += c * here
        before, here = here, (s * here - (b[k - 1] * before if k else 0.0)) / b[k]
    return total


def slopes(d: int, degree: int) -> np.ndarray:
    """The numbers D_k with phi_k' = D_k phi_{k-1} of dimension d + 2, for k = 1, ..., degree: D_k^2 = k(k+d-2) d/(d-1).

    (Integrate the square of phi_k' against 1 - s^2 by parts, and use that phi_k is an eigenfunction.)
    """
    k = np.arange(1.0, degree + 1)
    return np.sqrt(k * (k + d - 2) * d / (d - 1))


def gauss(d: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (increasing) and weights (of sum 1), exact for polynomials of degree up to 2 count - 1.

    Eigenvalues of the Jacobi matrix (Golub and Welsch), one Newton step, and the weights 1 / sum_{k<count} phi_k^2,
    which keep their relative accuracy where they are tiny.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    nodes = eigvalsh_tridiagonal(np.zeros(count), recurrence(d, count - 1)) if count > 1 else np.zeros(1)
    nodes = (nodes - nodes[::-1]) / 2
    values = orthonormal(d, count, nodes)
    derivative = slopes(d, count)[-1] * orthonormal(d + 2, count - 1, nodes)[-1]
    nodes = nodes - values[-1] / derivative
    nodes = (nodes - nodes[::-1]) / 2
    weights = 1.0 / np.sum(orthonormal(d, count - 1, nodes) ** 2, axis=0)
    weights = (weights + weights[::-1]) / 2
    return nodes, weights / np.sum(weights)
