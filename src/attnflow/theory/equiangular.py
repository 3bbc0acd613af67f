"""Tokens with one common overlap: the reduction to a single ODE."""

import numpy as np
from numpy.typing import ArrayLike


def equiangular_overlap(t: ArrayLike, beta: float, n: int, overlap0: float = 0.0, model: str = "SA") -> np.ndarray:
    """The common overlap gamma(t) of n tokens that start with <x_i, x_j> = overlap0 for all i != j.

    SA: gamma' = 2 e (1-gamma)(1+(n-1)gamma)/(1+(n-1)e), e = exp(-beta (1-gamma)); USA0 has n below; USA
    runs e^beta faster (arXiv:2312.10794, section 6). The logarithm of 1 - gamma is integrated (LSODA, tolerance
    1e-11), so that the approach to 1 keeps its relative accuracy.
    """
    from scipy.integrate import solve_ivp

    if n < 2 or not -1 / (n - 1) <= overlap0 < 1:
        raise ValueError(f"n is {n} and overlap0 is {overlap0}; they need n >= 2 and -1/(n-1) <= overlap0 < 1.")
    if model not in ("SA", "USA0", "USA"):
        raise ValueError(f"model is {model!r}; use 'SA', 'USA0' or 'USA'.")
    times = np.ravel(np.asarray(t, dtype=np.float64))
    if (times < 0).any() or not np.isfinite(times).all():
        raise ValueError(f"t is {t!r}; times must be finite and at least 0.")
    clock = np.exp(beta) if model == "USA" else 1.0

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        gap = np.exp(z)
        e = np.exp(-beta * gap)
        weight = 1 + (n - 1) * e if model == "SA" else n
        return -2 * e * (n - (n - 1) * gap) / weight

    order = np.argsort(times)
    spans = times[order] * clock
    found = np.full(len(times), float(overlap0))
    late = spans > 0
    if late.any():
        solution = solve_ivp(
            slope, (0.0, spans[-1]), [np.log1p(-overlap0)], "LSODA", t_eval=spans[late], rtol=1e-11, atol=1e-12
        )
        found[order[late]] = -np.expm1(solution.y[0])
    return found.reshape(np.shape(t))
