"""Tokens with one common overlap: the reduction to a single ODE, and its solution in closed form."""

import functools

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special import scaled_exp1, scaled_expi
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_beta, checked_integers, checked_model
from attnflow.theory.uniform.spectrum import LARGEST_LOG


def equiangular_overlap(
    t: ArrayLike, beta: ArrayLike, n: ArrayLike, *, overlap0: ArrayLike = 0.0, model: str = "SA"
) -> np.ndarray:
    """The common overlap gamma(t) of n tokens that start with <x_i, x_j> = overlap0 for all i != j.

    SA: gamma' = 2 e (1-gamma)(1+(n-1)gamma)/(1+(n-1)e), e = exp(-beta (1-gamma)); USA0 has n below; USA
    runs e^beta faster (arXiv:2312.10794, section 6). The closed form of `equiangular_time` is inverted by bisection
    in the logarithm of the log-odds, for any finite t and any beta >= 0, with broadcasting: the overlap is that of a
    time within a relative 1e-12 of t. For large beta the escape itself is that sharp: it takes a time of order 1
    after a wait of order e^beta. The simplex, overlap0 = -1/(n-1), never moves.
    """
    t, beta, n, overlap0 = np.broadcast_arrays(
        np.asarray(t, dtype=np.float64),
        checked_beta(beta),
        checked_integers("n", n, 2),
        _overlaps("overlap0", overlap0),
    )
    model = checked_model(model)
    if not (np.isfinite(t) & (t >= 0)).all():
        raise InvalidInput(f"t is {t!r}; times must be finite and at least 0.")
    if (overlap0 < -1 / (n - 1)).any():
        raise InvalidInput(f"overlap0 is {overlap0!r}; n tokens cannot have a common overlap below -1/(n-1).")
    moving = (t > 0) & (overlap0 > -1 / (n - 1))
    found = np.array(overlap0)
    if moving.any():
        found[moving] = _invert(t[moving], beta[moving], n[moving], overlap0[moving], model)
    return found


def equiangular_time(
    overlap: ArrayLike, beta: ArrayLike, n: ArrayLike, *, overlap0: ArrayLike = 0.0, model: str = "SA"
) -> np.ndarray:
    """The time at which n tokens with common overlap overlap0 have the common overlap `overlap`: exact.

    With x = beta (1-gamma), y = beta (1+(n-1)gamma)/(n-1), F = Ei(x) + e^{x+y} E1(y) and the log-odds
    L = log((1+(n-1)gamma)/(1-gamma)): USA0 takes J/2, SA takes (J + (n-1) dL)/(2n), where J = F(overlap0) -
    F(overlap) and dL is the gain of L; USA is e^beta faster, and beta = 0 gives dL/2. As a function of beta, the
    time to 0.99 is the transition curve of the histogram of overlaps for tokens in high dimension
    (arXiv:2312.10794, section 6). -1/(n-1) < overlap0 <= overlap < 1, beta >= 0, all arguments broadcast; a time
    out of float range is refused.
    """
    mantissa, exponent = _time(overlap, beta, n, overlap0, model)
    with np.errstate(divide="ignore"):
        logs = np.log(mantissa) + exponent
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"beta is {beta!r}; the time leaves float range there, use log_equiangular_time.")
    # two factors, for e^exponent alone may be out of range
    return np.asarray(mantissa * np.exp(exponent / 2) * np.exp(exponent / 2))


def log_equiangular_time(
    overlap: ArrayLike, beta: ArrayLike, n: ArrayLike, *, overlap0: ArrayLike = 0.0, model: str = "SA"
) -> np.ndarray:
    """The logarithm of `equiangular_time`, for any beta >= 0; -inf where overlap equals overlap0.

    From overlap 0 it is near beta - log(2 beta) for beta >> n (SA; arXiv:2312.10794).
    """
    mantissa, exponent = _time(overlap, beta, n, overlap0, model)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mantissa) + exponent)


def _time(
    overlap: ArrayLike, beta: ArrayLike, n: ArrayLike, overlap0: ArrayLike, model: str
) -> tuple[Numbers, Numbers]:
    """Mantissa and exponent of the time between two overlaps, after the checks."""
    model = checked_model(model)
    overlap, beta, n, overlap0 = np.broadcast_arrays(
        _overlaps("overlap", overlap), checked_beta(beta), checked_integers("n", n, 2), _overlaps("overlap0", overlap0)
    )
    if (overlap0 <= -1 / (n - 1)).any():
        raise InvalidInput(f"overlap0 is {overlap0!r}; it must exceed -1/(n-1), below or at which no tokens move.")
    if (overlap < overlap0).any():
        raise InvalidInput(
            f"overlap is {overlap!r}; it must be at least overlap0 = {overlap0!r}, for overlaps increase."
        )
    gain = overlap - overlap0
    # the quotient of the gaps, by the form that keeps its digits: a short way, or an end close to 1
    part = gain / (1 - overlap0)
    fall = np.where(part < 0.5, np.log1p(-np.minimum(part, 0.5)), np.log((1 - overlap) / (1 - overlap0)))
    log_odds = np.log1p((n - 1) * gain / (1 + (n - 1) * overlap0)) - fall
    return _scaled_time(log_odds, beta, n, overlap0, model)


def _scaled_time(
    log_odds: Numbers, beta: np.ndarray, n: np.ndarray, overlap0: np.ndarray, model: str
) -> tuple[Numbers, Numbers]:
    """Mantissa and exponent of the time in which the log-odds gain `log_odds` >= 0.

    t_USA0 = 1/2 int e^{beta (1-gamma)} dL; the factor e^{beta (1-overlap0)}, its largest value, is the exponent.
    """
    gap0, height0 = 1 - overlap0, 1 + (n - 1) * overlap0
    start = beta * gap0
    gap, gain = _move(log_odds, n, gap0, height0)
    # closed form; Ei and E1 come without their exponentials. Below 1e-17, e^beta is 1 and quadrature is exact
    warm = beta > 1e-17
    positive = np.where(warm, beta, 1.0)
    first = scaled_expi(positive * gap0), scaled_exp1(positive * height0 / (n - 1))
    # 1e-300 stands in for a gap that has underflowed, where the overlap is 1 anyway
    fade, height = np.exp(-beta * gain), height0 + (n - 1) * gain
    last = fade * scaled_expi(positive * np.maximum(gap, 1e-300)), fade * scaled_exp1(positive * height / (n - 1))
    closed = (first[0] - last[0]) + (first[1] - last[1])
    size = np.abs(first[0]) + np.abs(first[1]) + np.abs(last[0]) + np.abs(last[1])
    # a short way: the difference cancels, but the integrand hardly varies and quadrature is exact
    nodes, weights = _quadrature()
    _, inner = _move(log_odds[..., None] * (1 + nodes) / 2, n[..., None], gap0[..., None], height0[..., None])
    short = log_odds / 2 * np.sum(weights * np.exp(-beta[..., None] * inner), -1)
    integral = np.where(warm & (closed > 0.02 * size), closed, short)
    if model == "SA":
        return (integral + (n - 1) * log_odds * np.exp(-start)) / (2 * n), start
    return integral / 2, start - beta if model == "USA" else start


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(24)


def _move(log_odds: Numbers, n: np.ndarray, gap0: Numbers, height0: Numbers) -> tuple[Numbers, Numbers]:
    """1 - gamma and gamma - overlap0 after a gain in log-odds, both with full relative accuracy."""
    decay, lost = np.exp(-log_odds), -np.expm1(-log_odds)
    total = n * decay + height0 * lost
    return gap0 * (n * decay / total), gap0 * (height0 * lost / total)


def _invert(t: np.ndarray, beta: np.ndarray, n: np.ndarray, overlap0: np.ndarray, model: str) -> np.ndarray:
    """The overlap at time t > 0, by bisection on the logarithm of the gain in log-odds.

    dt/dL falls from its value at the start to 1/2, which brackets the gain between t/(dt/dL at the start) and 2t.
    """
    log_t = np.log(t) + (beta if model == "USA" else 0.0)
    clock = "USA0" if model == "USA" else model
    start = beta * (1 - overlap0)
    log_slope = np.logaddexp(start, np.log(n - 1)) - np.log(2 * n) if clock == "SA" else start - np.log(2)
    # a gain of e^8 in log-odds is an overlap of 1 in floats, for every n
    high = np.minimum(log_t + np.log(2), 8.0)
    low = np.minimum(log_t - log_slope, high)
    for _ in range(72):  # the bracket is at most about 1e4 wide, and 1e4/2^72 is below the last digit
        middle = (low + high) / 2
        mantissa, exponent = _scaled_time(np.exp(middle), beta, n, overlap0, clock)
        with np.errstate(divide="ignore"):  # a gain that underflows takes no time
            early = np.log(mantissa) + exponent < log_t
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    _, gain = _move(np.exp(high), n, 1 - overlap0, 1 + (n - 1) * overlap0)
    return np.minimum(overlap0 + gain, 1.0)


def _overlaps(name: str, value: ArrayLike) -> np.ndarray:
    found = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(found) & (found < 1)).all():
        raise InvalidInput(f"{name} is {value!r}; it must be finite and below 1.")
    return found
