"""Linear stability of the uniform measure on the sphere."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from attnflow.errors import InvalidInput
from attnflow.special import bessel_ratios, log_scaled_bessel
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_beta, checked_degrees, checked_dimension, checked_integers, checked_model

STEEPEST = 1e10
"""The largest beta for which all growing degrees are listed, of which there are about sqrt(beta)."""
LARGEST_LOG = math.log(np.finfo(np.float64).max)


def growth_rates(beta: ArrayLike, d: int, *, k: ArrayLike | None = None, model: str = "SA") -> np.ndarray:
    """Growth rate of a degree-k harmonic perturbation of the uniform measure on S^{d-1}.

    lambda_k = k (k+d-2) l_k / (beta l_0) for SA, with l_k/l_0 = I_{k+nu}(beta)/I_nu(beta), nu = d/2 - 1;
    USA0 multiplies by e^{-beta} l_0, USA by l_0 (arXiv:2410.23228; Funk-Hecke). beta and k broadcast, beta >= 0,
    d >= 2. Without k, beta is one number and the degrees are 1, 2, ... as long as the SA rate is above 1e-12 (the
    models differ in their clock alone). Rates too large for a float (USA, beta > 700) are refused, rates too small
    are 0: `log_growth_rates` gives both.
    """
    beta, d, model = checked_beta(beta), checked_dimension(d), checked_model(model)
    if k is None and beta.ndim:
        raise InvalidInput(f"beta is {beta!r}; without k it must be one number.")
    if k is None and beta > STEEPEST:
        raise InvalidInput(f"beta is {float(beta):g}; without k it may be at most {STEEPEST:g}.")
    degrees = np.arange(1, 21 + int(12 * np.sqrt(beta + 1))) if k is None else checked_degrees(k, 0)
    steps, clock = _steps(beta, d, int(np.max(degrees, initial=1))), _log_clock(beta, d, model)
    logs = _pick(beta, _log_rates(steps, d) + clock[..., None], degrees)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"beta is {beta!r}; rates under {model} leave float range there, use log_growth_rates.")
    # a product keeps more digits than a sum of logarithms, as long as it does not underflow on the way
    every = np.arange(1, steps.shape[-1] + 1)
    products = np.concatenate([np.zeros((*beta.shape, 1)), every * (every + d - 2) * np.cumprod(steps, -1)], -1)
    plain = _pick(beta, products, degrees)
    factor = _pick(beta, np.broadcast_to(np.exp(np.minimum(clock, LARGEST_LOG))[..., None], products.shape), degrees)
    safe = (plain > 1e-280) & (factor > 1e-280) & (factor < 1e280)
    rates = np.where(safe, np.where(safe, plain, 0.0) * np.where(safe, factor, 0.0), np.exp(logs))
    if k is not None:
        return rates
    return rates[: np.flatnonzero(plain > 1e-12)[-1] + 1]


def log_growth_rates(beta: ArrayLike, d: int, k: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """The logarithm of `growth_rates`, for rates outside float range (USA at beta = 1e4, d = 4096 with k = 500).

    A sum of logarithms of Bessel ratios; -inf where the rate is 0 (k = 0, and k >= 2 at beta = 0). beta and k
    broadcast. The absolute error is a few 1e-16 times the sum of the partial sums' sizes (arXiv:2312.10794).
    """
    beta, d, model = checked_beta(beta), checked_dimension(d), checked_model(model)
    degrees = checked_degrees(k, 0)
    steps = _steps(beta, d, int(np.max(degrees, initial=1)))
    return _pick(beta, _log_rates(steps, d) + _log_clock(beta, d, model)[..., None], degrees)


def critical_noise(beta: ArrayLike, d: int, *, k: ArrayLike = 1, model: str = "SA") -> np.ndarray:
    """The noise kappa_k = lambda_k/(k (k+d-2)) at which degree k is neutral: it grows below and decays above.

    Brownian noise sqrt(2 kappa) dB on S^{d-1} lowers the growth rate of degree k by kappa k (k+d-2), so kappa_k is
    l_k/(beta l_0) for SA and decreases in k. Degree 1 decides, whichever degree grows fastest without noise: the
    uniform measure is unstable below kappa_1 = I_{d/2}(beta)/(beta I_{d/2-1}(beta)), 1/d at beta = 0. The threshold
    of USA is that of arXiv:2606.05140.
    """
    degrees = checked_degrees(k, 1)
    return growth_rates(beta, d, k=degrees, model=model) / (degrees * (degrees + d - 2))


def multiplicity(k: ArrayLike, d: int) -> np.ndarray:
    """How many independent spherical harmonics of degree k there are on S^{d-1}.

    N(k, d) = (2k+d-2) (k+d-3)! / (k! (d-2)!): 1 for k = 0, and for k >= 1 it is 2 on the circle and 2k+1 on S^2.
    Exact integers (int64) where all of them fit, floats otherwise; beyond float range it raises.
    """
    d, degrees = checked_dimension(d), checked_degrees(k, 0)
    counts = [
        math.comb(j + d - 1, d - 1) - (math.comb(j + d - 3, d - 1) if j > 1 else 0) for j in degrees.ravel().tolist()
    ]
    return whole_numbers(counts, "k", k).reshape(degrees.shape)


def dominant_degree(beta: ArrayLike, d: int) -> Numbers:
    """The degree k_max whose harmonics grow fastest around the uniform measure; the same for SA, USA0 and USA.

    lambda_{k+1}/lambda_k is a product of two factors that both decrease in k, so the rates have one peak, and k_max
    is one more than the number of degrees where that quotient exceeds 1. k_max (k_max+d-2) is near 2 beta for large
    beta (sqrt(2 beta) on the circle); at beta = 0 it is 1. beta >= 0, any shape (arXiv:2410.23228).
    """
    beta, d = checked_beta(beta), checked_dimension(d)
    if np.max(beta, initial=0.0) > STEEPEST:
        raise InvalidInput(f"beta is {np.max(beta):g}; it may be at most {STEEPEST:g}.")
    # log of the quotient is below 2/k - k/beta up to terms that help, so the peak lies below 2 sqrt(beta)
    top = 10 + int(2 * np.sqrt(np.max(beta, initial=0.0)))
    k = np.arange(1.0, top)
    quotients = (k + 1) * (k + d - 1) / (k * (k + d - 2)) * bessel_ratios(d / 2 - 1, beta, top)[..., 1:]
    return 1 + np.sum(quotients > 1, axis=-1)


def switching_threshold(k: ArrayLike, d: ArrayLike) -> np.ndarray:
    """The beta at which degrees k and k+1 are equally unstable: k_max steps from k to k+1 there.

    The root of I_{nu+k+1}/I_{nu+k}(beta) = k (k+d-2)/((k+1)(k+d-1)): the left side increases from 0 to 1, so there
    is exactly one; near k (k+d-1)/2 + (d-1)/4. k >= 1 and d >= 2 broadcast (arXiv:2312.10794).
    """
    from scipy.optimize import brentq

    degrees = checked_degrees(k, 1)
    dimensions = checked_integers("d", d, 2)

    def root(j: int, dim: int) -> float:
        share = j * (j + dim - 2) / ((j + 1) * (j + dim - 1))
        guess = j * (j + dim - 1) / 2 + (dim - 1) / 4
        return float(
            brentq(
                lambda beta: float(bessel_ratios(dim / 2 - 1 + j, beta, 1)[0]) - share, guess / 2, 2 * guess, xtol=1e-13
            )
        )

    pairs = np.broadcast(degrees, dimensions)
    return np.array([root(int(j), int(dim)) for j, dim in pairs]).reshape(pairs.shape)


def linear_modes(t: ArrayLike, beta: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """Expected number M(t) of modes of the smoothed density of iid uniform tokens on the circle, while it is linear.

    M(t) = sqrt(sum k^4 I_k^2 e^{2 lambda_k t} / sum k^2 I_k^2 e^{2 lambda_k t}), the Kac-Rice count of a Gaussian
    field with a flat initial spectrum (arXiv:2410.23228 for lambda_k, arXiv:2412.09080 for the modes): from near
    sqrt(3 beta/2) at t = 0 to k_max. Many tokens and small fluctuations, d = 2; t >= 0 and beta >= 0 broadcast.
    """
    beta, model = checked_beta(beta), checked_model(model)
    t = np.asarray(t, dtype=np.float64)
    if not (np.isfinite(t) & (t >= 0)).all():
        raise InvalidInput(f"t is {t!r}; times must be finite and at least 0.")
    # beyond k_max both I_k and lambda_k fall, so the terms left out are below those of t = 0, k^4 e^{-k^2/beta}
    top = 30 + int(10 * np.sqrt(np.max(beta, initial=0.0)))
    steps = _steps(beta, 2, top)
    with np.errstate(divide="ignore", over="ignore"):
        # the clock of SA; a time beyond e^690 has long chosen its mode
        clock = np.exp(np.minimum(np.log(t) + _log_clock(beta, 2, model), 690.0))
        k = np.arange(1, top + 1)
        rates = k**2 * np.cumprod(steps, -1)
        rates = rates - np.max(rates, -1, keepdims=True)
        log_bessel = np.cumsum(np.log(steps), -1)  # log(I_k / (beta I_0)): the constant cancels
        weights = 2 * (np.log(k) + log_bessel) + 2 * rates * clock[..., None]
        return np.asarray(np.exp((logsumexp(weights + 2 * np.log(k), -1) - logsumexp(weights, -1)) / 2))


def linear_time(n: float, beta: float) -> float:
    """When the smoothed fluctuations of n iid uniform tokens on the circle reach the mean, by linear theory, for SA.

    The root t of sum_k 2 (I_k/I_0)^2 e^{2 lambda_k t} = n: K * mu has relative variance sum_k 2 (I_k/I_0)^2/n at t = 0,
    and degree k grows like e^{lambda_k t} (arXiv:2410.23228 for lambda_k). 0 if the sum exceeds n from the beginning.
    n >= 1, beta > 0; near log(n) e/4 for large n.
    """
    from scipy.optimize import brentq

    if not (np.isfinite(n) and n >= 1):
        raise InvalidInput(f"n is {n!r}; it must be finite and at least 1.")
    if not float(checked_beta(beta)) > 0:
        raise InvalidInput(f"beta is {beta!r}; it must be positive, as a flat kernel smooths all fluctuations away.")
    k = np.arange(1, 30 + int(10 * np.sqrt(beta)))
    rates = growth_rates(beta, 2, k=k)
    logs = np.log(2 * (beta * rates / k**2) ** 2)  # (I_k/I_0)^2

    def excess(t: float) -> float:
        return float(logsumexp(logs + 2 * rates * t) - np.log(n))

    return 0.0 if excess(0.0) >= 0 else float(brentq(excess, 0.0, 1 + (np.log(n) - logs.max()) / rates[logs.argmax()]))


def _steps(beta: np.ndarray, d: int, top: int) -> np.ndarray:
    """l_1/(beta l_0), l_2/l_1, ..., l_top/l_{top-1} on the last axis; the first is finite at beta = 0."""
    ratios = bessel_ratios(d / 2 - 1, beta, max(top, 2))
    first = 1 / (d + beta * ratios[..., 1])
    return np.concatenate([first[..., None], ratios[..., 1:]], -1)[..., : max(top, 1)]


def _log_rates(steps: np.ndarray, d: int) -> np.ndarray:
    """Logarithms of the SA rates of degrees 0, 1, 2, ... (-inf for a rate of 0)."""
    k = np.arange(1.0, steps.shape[-1] + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(k * (k + d - 2)) + np.cumsum(np.log(steps), -1)
    return np.concatenate([np.full((*steps.shape[:-1], 1), -np.inf), logs], -1)


def _log_clock(beta: np.ndarray, d: int, model: str) -> Numbers:
    """Log of a model's rates over those of SA: log l_0 for USA, log l_0 - beta for USA0."""
    if model == "SA":
        return np.zeros(beta.shape)
    return log_mean_kernel(beta, d) + (beta if model == "USA" else 0.0)


def log_mean_kernel(beta: np.ndarray, d: int) -> np.ndarray:
    """log(e^{-beta} l_0), l_0 = Gamma(d/2) (2/beta)^nu I_nu(beta) = sum_m (beta^2/4)^m / (m! (d/2)_m)."""
    nu, positive = d / 2 - 1, np.where(beta >= 1, beta, 1.0)
    log_bessel = log_scaled_bessel(nu, positive)
    direct = np.asarray(gammaln(d / 2) + nu * np.log(2 / positive) + log_bessel)
    # where I_nu itself is tiny the series is short, for its terms peak where m (m + nu) = beta^2/4, below beta/2
    short = np.asarray((beta < 1) | (log_bessel < -600))
    if not short.any():
        return direct
    small = beta[short][:, None]
    m = np.arange(1.0, 60 + int(small.max() / 2 + 10 * np.sqrt(small.max())))
    with np.errstate(divide="ignore"):
        terms = np.cumsum(2 * np.log(small / 2) - np.log(m * (m + nu)), -1)
    direct[short] = np.logaddexp(0.0, logsumexp(terms, -1)) - beta[short]
    return direct


def _pick(beta: np.ndarray, table: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """table[..., k] (degrees on the last axis) for every pair of the broadcast of beta and k."""
    rows = np.arange(beta.size).reshape(beta.shape)
    return np.asarray(table.reshape(beta.size, table.shape[-1])[np.broadcast_arrays(rows, degrees)[0], degrees])


def whole_numbers(counts: list[int], name: str, value: ArrayLike) -> np.ndarray:
    """Python integers as int64 where they fit, as floats otherwise; refused beyond float range."""
    largest = max(counts, default=0)
    if largest < 2**63:
        return np.array(counts, dtype=np.int64)
    if largest >= 2**1024 - 2**970:
        raise InvalidInput(f"{name} is {value!r}; the count leaves float range there (d too large with it).")
    return np.array([float(count) for count in counts])
