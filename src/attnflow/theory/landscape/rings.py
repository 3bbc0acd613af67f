"""Linear stability of n equispaced tokens, or n equal clusters, on the circle."""

import numpy as np
from scipy.special import ive

from attnflow.errors import InvalidInput
from attnflow.special.formula import MODEL, Integers, Optional, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.uniform.spectrum import LARGEST_LOG

LARGEST_RING = 10**6
"""The sums take as many terms."""
ENTRIES = 2**22
"""Of the table of modes and tokens at a time, 32 MB."""


@formula(
    beta=Reals(),
    n=Integers(1, LARGEST_RING, scalar=True),
    k=Optional(Integers(0)),
    model=MODEL,
    relative=1e-12,
)
def ring_growth_rates(beta: ArrayLike, n: int, *, k: ArrayLike | None = None, model: str = "SA") -> Numbers:
    """Exact eigenvalues of the displacement modes e^{2 pi i k j/n} of a ring of n equispaced tokens on the circle.

    USA0: lambda_k = (1/n) sum_j (beta sin^2 a_j - cos a_j) e^{-beta (1 - cos a_j)} (1 - cos k a_j), a_j = 2 pi j/n,
    which by Poisson summation is e^{-beta} sum_m (c_{k+mn} - c_{mn}), c_q = q^2 I_q(beta)/beta; SA divides by
    (1/n) sum_j e^{-beta (1 - cos a_j)}, USA multiplies by e^beta. The pair sum is used where all its terms are
    positive, the series elsewhere, so that neither cancels. n equal clusters move as n tokens (arXiv:2410.06833).

    Arguments:
        beta: inverse temperature, at least 0; with n <= 3 there is one distance, and it may be negative (three
            clusters are stable below -2/3, arXiv:2507.22857).
        n: number of tokens.
        k: modes, broadcast with `beta`; left out, 1, ..., n//2 on a new last axis.
        model: clock of the rates, "SA", "USA" or "USA0".

    Raises:
        InvalidInput: if a rate leaves the range of floats.
    """
    if n > 3 and (beta < 0).any():
        raise InvalidInput(f"`beta` is {beta!r}; with more than 3 tokens it must be at least 0.")
    modes = np.arange(1, n // 2 + 1) if k is None else np.asarray(k) % n
    if k is None:
        beta = beta[..., None]
    shape = np.broadcast_shapes(beta.shape, modes.shape)
    rates = np.empty(shape)
    betas, pairs = np.broadcast_to(beta, shape), np.broadcast_to(modes, shape)
    for value in np.unique(beta):
        equal = betas == value
        mantissa, exponent = _scaled_rates(float(value), n, pairs[equal], model)
        with np.errstate(divide="ignore"):
            too_large = exponent + np.log(np.abs(mantissa)) >= LARGEST_LOG
        if too_large.any():
            raise InvalidInput(
                f"`beta` is {value!r}; rates under {model} leave float range there, use log_escape_rate."
            )
        # two factors, for e^exponent alone may be out of range
        with np.errstate(under="ignore", over="ignore"):
            rates[equal] = mantissa * np.exp(exponent / 2) * np.exp(exponent / 2)
    return rates


@formula(
    beta=Reals(0.0),
    n=Integers(2, LARGEST_RING),
    model=MODEL,
    relative=1e-14,
    absolute=1e-12,
)
def log_escape_rate(beta: ArrayLike, n: ArrayLike, *, model: str = "SA") -> Numbers:
    """Log of the largest eigenvalue of a ring: how fast a symmetric plateau of n equal clusters is left.

    For beta >> n^2 it is near log((4/n)(beta sin^2 a - cos a)) - beta (1 - cos a), a = 2 pi/n (USA0, n even and at
    least 4; SA: n times that), far below float range at beta = 1e4 (arXiv:2410.06833).

    Arguments:
        beta: inverse temperature.
        n: number of tokens or clusters.
        model: clock of the rates, "SA", "USA" or "USA0".
    """
    pairs = np.broadcast(beta, n)
    return np.array([_log_largest(float(b), int(size), model) for b, size in pairs]).reshape(pairs.shape)


@formula(beta=Reals(0.0), n=Integers(2, LARGEST_RING), model=MODEL, relative=1e-12)
def escape_rate(beta: ArrayLike, n: ArrayLike, *, model: str = "SA") -> Numbers:
    """The largest eigenvalue of a ring of n equal clusters, e^`log_escape_rate`; 0 where it underflows.

    Arguments:
        beta: inverse temperature.
        n: number of tokens or clusters.
        model: clock of the rates, "SA", "USA" or "USA0".
    """
    logs = log_escape_rate(beta, n, model=model)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"`beta` is {beta!r}; rates under {model} leave float range there, use log_escape_rate.")
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
        rates = _fourier(k, beta)
        # n > 2 pi sqrt(beta) about: the term left out, m = 4, is below e^{-100} of the first
        for m in (1, 2, 3):
            rates = (
                rates + _fourier(m * n - k, beta) + _fourier(m * n + k, beta) - 2 * _fourier(np.asarray(m * n), beta)
            )
        rates = np.where(k == 0, 0.0, rates)
    else:
        force = (beta * _sine(2 * j, n) ** 2 - _sine(n - 4 * j, 2 * n)) * np.exp(-beta * excess)
        rows = np.array_split(k.reshape(-1, 1), 1 + k.size * n // ENTRIES)
        sums = [2 * _sine(part * j % n, n) ** 2 @ force for part in rows]
        rates = (np.concatenate(sums) / n).reshape(k.shape)
        # beta - beta (1 - cos a_1) without the difference
        exponent = beta * float(_sine(n - 4, 2 * n)) if model == "USA" else -beta * float(distance[0])
    if model == "SA":
        nearest = max(0.0, -beta * float(distance[0]))  # beta < 0: the neighbours outweigh the token itself
        rates = rates * n / (np.exp(-nearest) + np.sum(np.exp(-beta * distance - nearest)))
        exponent -= nearest
    return rates, exponent


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
