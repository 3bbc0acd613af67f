"""Linear stability of n equispaced tokens, or n equal clusters, on the circle."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ive

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_beta, checked_integers, checked_model
from attnflow.theory.uniform.spectrum import LARGEST_LOG


def ring_growth_rates(beta: ArrayLike, n: int, *, k: ArrayLike | None = None, model: str = "SA") -> np.ndarray:
    """Exact eigenvalues of the displacement modes e^{2 pi i k j/n} of a ring of n equispaced tokens on the circle.

    USA0: lambda_k = (1/n) sum_j (beta sin^2 a_j - cos a_j) e^{-beta (1 - cos a_j)} (1 - cos k a_j), a_j = 2 pi j/n,
    which by Poisson summation is e^{-beta} sum_m (c_{k+mn} - c_{mn}), c_q = q^2 I_q(beta)/beta; SA divides by
    (1/n) sum_j e^{-beta (1 - cos a_j)}, USA multiplies by e^beta. The pair sum is used where all its terms are
    positive, the series elsewhere, so that neither cancels. Without k: modes 1, ..., n//2 on a new last axis.
    beta >= 0 broadcasts with k; with n <= 3 there is one distance, and beta may be negative (three clusters are
    stable below -2/3, arXiv:2507.22857). n equal clusters move as n tokens (arXiv:2410.06833).
    """
    n, model = _checked_size(n), checked_model(model)
    beta = np.asarray(beta, dtype=np.float64) if n <= 3 and np.isfinite(beta).all() else checked_beta(beta)
    modes = np.arange(1, n // 2 + 1) if k is None else checked_integers("k", k, 0) % n
    if k is None:
        beta = beta[..., None]
    shape = np.broadcast_shapes(beta.shape, modes.shape)
    rates = np.empty(shape)
    flat = np.broadcast_to(beta, shape)
    every = np.broadcast_to(modes, shape)
    for value in np.unique(beta):
        here = flat == value
        mantissa, exponent = _scaled_rates(float(value), n, every[here], model)
        with np.errstate(divide="ignore"):
            too_large = exponent + np.log(np.abs(mantissa)) >= LARGEST_LOG
        if too_large.any():
            raise InvalidInput(f"beta is {value!r}; rates under {model} leave float range there, use log_escape_rate.")
        # two factors, for e^exponent alone may be out of range
        rates[here] = mantissa * np.exp(exponent / 2) * np.exp(exponent / 2)
    return rates


def log_escape_rate(beta: ArrayLike, n: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """Log of the largest eigenvalue of a ring: how fast a symmetric plateau of n equal clusters is left.

    For beta >> n^2 it is near log((4/n)(beta sin^2 a - cos a)) - beta (1 - cos a), a = 2 pi/n (USA0, n even and at
    least 4; SA: n times that), far below float range at beta = 1e4 (arXiv:2410.06833). beta >= 0 and n >= 2
    broadcast.
    """
    model = checked_model(model)
    pairs = np.broadcast(checked_beta(beta), checked_integers("n", n, 2))
    return np.array([_log_largest(float(b), int(size), model) for b, size in pairs]).reshape(pairs.shape)


def escape_rate(beta: ArrayLike, n: ArrayLike, *, model: str = "SA") -> Numbers:
    """The largest eigenvalue of a ring of n equal clusters; see `log_escape_rate`. 0 where it underflows."""
    logs = log_escape_rate(beta, n, model=model)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"beta is {beta!r}; rates under {model} leave float range there, use log_escape_rate.")
    return np.exp(logs)


def _log_largest(beta: float, n: int, model: str) -> float:
    # a fine ring is near the continuum, whose fastest mode is near sqrt(2 beta)
    top = min(n // 2, 64 + int(4 * np.sqrt(beta))) if _is_fine(beta, n) else n // 2
    mantissa, exponent = _scaled_rates(beta, n, np.arange(1, top + 1), model)
    return float(np.log(np.max(mantissa)) + exponent)


def _is_fine(beta: float, n: int) -> bool:
    """Whether neighbours are so close that they attract each other's disturbances: cos a > beta sin^2 a."""
    return n > 4 and float(_sine(n - 4, 2 * n)) > beta * float(_sine(2, n)) ** 2


def _scaled_rates(beta: float, n: int, k: np.ndarray, model: str) -> tuple[np.ndarray, float]:
    """Mantissas and one exponent of the rates of modes k, 0 <= k < n."""
    exponent = beta if model == "USA" else 0.0
    j = np.arange(1, n)
    # 1 - cos a_j, and its excess over the first, as products: no cancellation for close neighbours
    distance = 2 * _sine(j, n) ** 2
    excess = 2 * _sine(j + 1, n) * _sine(j - 1, n)
    if n == 1:
        return np.zeros(k.shape), exponent
    if _is_fine(beta, n):
        k = np.minimum(k, n - k)
        found = _fourier(k, beta)
        # n > 2 pi sqrt(beta) about: the term left out, m = 4, is below e^{-100} of the first
        for m in (1, 2, 3):
            found = (
                found + _fourier(m * n - k, beta) + _fourier(m * n + k, beta) - 2 * _fourier(np.asarray(m * n), beta)
            )
        found = np.where(k == 0, 0.0, found)
    else:
        force = (beta * _sine(2 * j, n) ** 2 - _sine(n - 4 * j, 2 * n)) * np.exp(-beta * excess)
        turn = 2 * _sine(k.reshape(-1, 1) * j, n) ** 2
        found = (turn @ force / n).reshape(k.shape)
        exponent -= beta * float(distance[0])
    if model == "SA":
        nearest = max(0.0, -beta * float(distance[0]))  # beta < 0: the neighbours outweigh the token itself
        found = found * n / (np.exp(-nearest) + np.sum(np.exp(-beta * distance - nearest)))
        exponent -= nearest
    return found, exponent


def _fourier(q: np.ndarray, beta: float) -> np.ndarray:
    """e^{-beta} q^2 I_q(beta)/beta; for beta < 1 as q (I_{q-1} - I_{q+1})/2, which is finite at beta = 0."""
    if beta >= 1:
        return np.asarray(q * (q * ive(q, beta)) / beta)
    # q = 0 would ask for I_{-1}; its coefficient is 0
    return np.asarray(q * (ive(np.abs(q - 1), beta) - ive(q + 1, beta)) / 2)


def _sine(numerator: ArrayLike, denominator: int) -> Numbers:
    """sin(pi numerator/denominator) of integers, reduced exactly: true zeros, and no loss of digits near them."""
    turns, rest = np.divmod(np.asarray(numerator), denominator)
    return np.where(turns % 2, -1.0, 1.0) * np.sin(np.pi * np.minimum(rest, denominator - rest) / denominator)


def _checked_size(n: int) -> int:
    found = checked_integers("n", n, 1)
    if found.ndim:
        raise InvalidInput(f"n is {n!r}; it must be one integer, at least 1.")
    return int(found)
