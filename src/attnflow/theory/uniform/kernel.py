"""The kernel e^{beta <x, y>} on the sphere: quotients of its Bessel functions, and its mean, in logarithms."""

import numpy as np
from scipy.special import gammaln

from attnflow.special import bessel_ratios

FAR = 100.0
"""From this distance hypot(order, beta) on, eight terms of the expansion for large orders are exact to rounding."""
SMALL = 1e-3
"""Below this share of the order, beta is so small that three terms of a continued fraction are exact to rounding."""


def _debye_polynomials() -> list[np.ndarray]:
    """V_k with log I_q = h - q asinh(q/x) - log(2 pi h)/2 + log sum_k V_k(q^2/h^2)/h^k, h = hypot(q, x).

    U_k(p) = p^k V_k(p^2) of DLMF 10.41.10: U_{k+1} = p^2 (1 - p^2) U_k'/2 + (integral of (1 - 5 p^2) U_k)/8.
    """
    whole, polynomials = np.polynomial.Polynomial([1.0]), []
    p2, flux = np.polynomial.Polynomial([0.0, 0.0, 0.5, 0.0, -0.5]), np.polynomial.Polynomial([0.125, 0.0, -0.625])
    for k in range(1, 9):
        whole = p2 * whole.deriv() + (flux * whole).integ()
        polynomials.append(whole.coef[k::2])
    return polynomials


DEBYE = _debye_polynomials()


def log_ratios(order: float, beta: np.ndarray, count: int) -> np.ndarray:
    """-log(I_{order+j}/I_{order+j-1}) at beta for j = 1, ..., count on a new last axis, to relative accuracy.

    Near the origin by the continued fraction, elsewhere by differences of the expansion for large orders that do not
    cancel: the numbers are near (order + j - 1/2)/beta where beta is large. Infinite at beta = 0.
    """
    x = np.asarray(beta, dtype=np.float64)[..., None]
    upper = order + np.arange(1.0, count + 1)
    lower = upper - 1
    with np.errstate(all="ignore"):
        h, h_lower = np.hypot(upper, x), np.hypot(lower, x)
        # asinh(upper/x) - asinh(lower/x) is asinh of this
        between = (upper + lower) / x / (upper * (h_lower / x) + lower * (h / x))
        logs = np.arcsinh(upper / x) + lower * np.arcsinh(between) - (upper + lower) / (h + h_lower)
        logs += np.log1p((upper + lower) / h_lower / h_lower) / 4 + _correction(lower, h_lower) - _correction(upper, h)
        inner = min(count, int(FAR) + 1)  # beyond, all orders are far from the origin
        near = h[..., :inner] < FAR
        if near.any():
            fractions = bessel_ratios(order, np.minimum(x[..., 0], FAR), inner)
            logs[..., :inner] = np.where(near, -np.log(fractions), logs[..., :inner])
        square = _small_ratios(upper, x) * x / (2 * upper + 2)  # upper to first order
        return np.where(x < SMALL * upper, np.log(2 * upper) - np.log(x) + np.log1p(square), logs)


def ratios(order: float, beta: np.ndarray, count: int) -> np.ndarray:
    """I_{order+j}/I_{order+j-1} at beta for j = 1, ..., count on a new last axis, to relative accuracy."""
    x, upper = np.asarray(beta, dtype=np.float64), order + np.arange(1.0, count + 1)
    small = _small_ratios(upper, x[..., None])
    return np.where(x[..., None] < SMALL * upper, small, np.exp(-log_ratios(order, x, count)))


def _small_ratios(upper: np.ndarray, x: np.ndarray) -> np.ndarray:
    """I_q/I_{q-1} at x < q `SMALL` from the first three terms of the continued fraction, q = `upper`."""
    half = np.where(x < SMALL * upper, x / (2 * upper), 0.0)
    square = half * half * (upper / (upper + 1))
    return np.asarray(half / (1 + square / (1 + square * (upper / (upper + 2)))))


def log_mean(beta: np.ndarray, d: float) -> np.ndarray:
    """log l_0, l_0 = Gamma(d/2) (2/beta)^nu I_nu(beta) = sum_m (beta^2/4)^m / (m! (d/2)_m): to relative accuracy."""
    return _log_means(beta, d)[0]


def log_mean_kernel(beta: np.ndarray, d: float) -> np.ndarray:
    """log(e^{-beta} l_0) with the mean l_0 of the kernel over the sphere, as in `log_mean`."""
    return _log_means(beta, d)[1]


def _log_means(beta: np.ndarray, d: float) -> tuple[np.ndarray, np.ndarray]:
    """log l_0 and log(e^{-beta} l_0)."""
    b, nu = np.asarray(beta, dtype=np.float64), d / 2 - 1
    with np.errstate(over="ignore"):
        short = b * (b / d) <= 200
    x = np.where(short, b, 0.0)[..., None]
    m = np.arange(1.0, 200)  # the terms peak before m = 50 and fall by 4 at least from m = 100 on
    with np.errstate(under="ignore"):
        series = np.log1p(np.sum(np.cumprod((x / 2) * (x / 2 / (m * (nu + m))), -1), -1))
    x = np.where(short, 200.0 + d, b)
    if nu < FAR:  # the expansion for large orders holds FAR orders further up
        q = nu + FAR
        h = np.hypot(q, x)
        top = q * (q / (h + x)) - q * np.arcsinh(q / x) - np.log(h) / 2 - np.log(2 * np.pi) / 2 + _correction(q, h)
        scaled = gammaln(nu + 1) + nu * np.log(2 / x) + np.sum(log_ratios(nu, x, int(FAR)), -1) + top
        return np.where(short, series, scaled + x), np.where(short, series - b, scaled)
    # the same with Stirling's series of the factor Gamma(nu + 1) (2/x)^nu, so that no large terms cancel
    h = np.hypot(nu, x)
    half = x / (h + nu) * (x / nu) / 2  # (h/nu - 1)/2
    stirling = 1 / (12 * nu) - 1 / (360 * nu**3) + 1 / (1260 * nu**5)
    common = -nu * np.log1p(half) + np.log(nu / h) / 2 + stirling + _correction(nu, h)
    return (
        np.where(short, series, 2 * nu * half + common),
        np.where(short, series - b, -nu * (x / (h + x)) * (1 + x / (h + nu)) + common),
    )


def _correction(q: np.ndarray | float, h: np.ndarray) -> np.ndarray:
    """log sum_k V_k(q^2/h^2)/h^k."""
    square, total = (q / h) ** 2, np.zeros_like(h)
    for polynomial in DEBYE[::-1]:
        total = (total + np.polynomial.polynomial.polyval(square, polynomial)) / h
    return np.asarray(np.log1p(total))
