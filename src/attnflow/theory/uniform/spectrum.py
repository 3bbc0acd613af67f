"""Linear stability of the uniform measure on the sphere."""

import math

import numpy as np
from scipy.special import logsumexp

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import MODEL, Integers, Optional, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.uniform.kernel import log_mean, log_mean_kernel, log_ratios, ratios
from attnflow.wording import shown

STEEPEST = 1e10
"""The largest beta for which all growing degrees are listed, of which there are about sqrt(beta)."""
LARGEST_LOG = math.log(np.finfo(np.float64).max)
BETA = Reals(0.0, 1e300)
DIMENSION = Integers(2, scalar=True)
DEGREES = Integers(0, 100_000)
GROWING = Integers(1, 100_000)
LOG_TWO = math.log(2)


@formula(
    beta=BETA,
    d=DIMENSION,
    k=Optional(DEGREES),
    model=MODEL,
    relative="2e-15 * (5 + np.sqrt(12 * np.sqrt(beta) if k is None else np.max(k))"
    " + (0 if model == 'SA' else np.minimum(np.max(beta), 750)))",
)
def growth_rates(beta: ArrayLike, d: int, *, k: ArrayLike | None = None, model: str = "SA") -> np.ndarray:
    """Growth rate of a degree-k harmonic perturbation of the uniform measure on S^{d-1}.

    lambda_k = k (k+d-2) l_k / (beta l_0) for SA, with l_k/l_0 = I_{k+nu}(beta)/I_nu(beta), nu = d/2 - 1;
    USA0 multiplies by e^{-beta} l_0, USA by l_0 (arXiv:2410.23228; Funk-Hecke). Rates too large for a float (USA,
    beta > 700) are refused, rates too small are 0: `log_growth_rates` gives both.

    Arguments:
        beta: inverse temperatures, any shape; without k one number up to 1e10.
        d: dimension of the space around the sphere.
        k: degrees, broadcast with beta. Left out, they are 1, 2, ... as long as the SA rate is above 1e-12 (the models
            differ in their clock alone).
        model: dynamics of the tokens.
    """
    if k is None and beta.ndim:
        raise InvalidInput(f"`beta` is {shown(beta.tolist())}; without k it must be one number.")
    if k is None and beta > STEEPEST:
        raise InvalidInput(f"`beta` is {float(beta):g}; without k it may be at most {STEEPEST:g}.")
    degrees = np.arange(1, 21 + int(12 * np.sqrt(beta + 1))) if k is None else k
    top = max(int(np.max(degrees, initial=1)), 1)
    quotients, clock = _quotients(beta, d, top), _log_clock(beta, d, model)
    logs = _pick(beta, _log_rates(beta, d, top) + clock[..., None], degrees)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(
            f"`beta` is {shown(beta.tolist())}; rates of {model} leave float range there, use log_growth_rates."
        )
    # a product keeps more digits than a sum of logarithms; 2^900 keeps it in range where a rate is
    every = np.arange(1.0, top + 1)
    with np.errstate(under="ignore"):
        products = np.cumprod(np.concatenate([np.full((*beta.shape, 1), 2.0**900), quotients], -1), -1)[..., 1:]
        plain = np.concatenate([np.zeros((*beta.shape, 1)), every * (every + (d - 2)) * products], -1)
        octaves = np.rint(np.clip(clock, -4000, 4000) / LOG_TWO)
        mantissa = plain * np.exp(np.clip(clock, -4000, 4000) - octaves * LOG_TWO)[..., None]
        scaled = np.ldexp(mantissa, (octaves - 900).astype(int)[..., None])
        rates = np.where(_pick(beta, plain, degrees) > 1e-270, _pick(beta, scaled, degrees), np.exp(logs))
    if k is not None:
        return rates
    return rates[: np.flatnonzero(plain[1:] > 2.0**900 * 1e-12)[-1] + 1]


@formula(
    beta=BETA,
    d=DIMENSION,
    k=DEGREES,
    model=MODEL,
    relative="1e-15 * (5 + np.sqrt(k))",
    absolute="1e-15 * (5 + k)",
)
def log_growth_rates(beta: ArrayLike, d: int, k: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """The logarithm of `growth_rates`, for rates outside float range (USA at beta = 1e4, d = 4096 with k = 500).

    A sum of logarithms of Bessel ratios; -inf where the rate is 0 (k = 0, and k >= 2 at beta = 0).
    arXiv:2312.10794.

    Arguments:
        beta: inverse temperatures, any shape.
        d: dimension of the space around the sphere.
        k: degrees, broadcast with beta.
        model: dynamics of the tokens.
    """
    logs = _log_rates(beta, d, max(int(np.max(k, initial=1)), 1))
    return _pick(beta, logs + _log_clock(beta, d, model)[..., None], k)


@formula(
    beta=BETA,
    d=DIMENSION,
    k=GROWING,
    model=MODEL,
    relative="2e-15 * (5 + np.sqrt(np.max(k)) + (0 if model == 'SA' else np.minimum(np.max(beta), 750)))",
)
def critical_noise(beta: ArrayLike, d: int, *, k: ArrayLike = 1, model: str = "SA") -> np.ndarray:
    """The noise kappa_k = lambda_k/(k (k+d-2)) at which degree k is neutral: it grows below and decays above.

    Brownian noise sqrt(2 kappa) dB on S^{d-1} lowers the growth rate of degree k by kappa k (k+d-2), so kappa_k is
    l_k/(beta l_0) for SA and decreases in k. Degree 1 decides, whichever degree grows fastest without noise: the
    uniform measure is unstable below kappa_1 = I_{d/2}(beta)/(beta I_{d/2-1}(beta)), 1/d at beta = 0. The threshold
    of USA is that of arXiv:2606.05140.

    Arguments:
        beta: inverse temperatures, any shape.
        d: dimension of the space around the sphere.
        k: degrees, broadcast with beta.
        model: dynamics of the tokens.
    """
    return np.asarray(growth_rates(beta, d, k=k, model=model) / (k * (k + (d - 2.0))))


@formula(k=Integers(0), d=DIMENSION, relative=2.3e-16)
def multiplicity(k: ArrayLike, d: int) -> np.ndarray:
    """How many independent spherical harmonics of degree k there are on S^{d-1}.

    N(k, d) = (2k+d-2) (k+d-3)! / (k! (d-2)!): 1 for k = 0, and for k >= 1 it is 2 on the circle and 2k+1 on S^2.
    Exact integers (int64) where all of them fit, floats otherwise; beyond float range it is refused.
    """
    counts = [choose(j + d - 3, j - 1) * (2 * j + d - 2) // j if j else 1 for j in k.ravel().tolist()]
    return whole_numbers(counts, "k", k).reshape(k.shape)


@formula(beta=Reals(0.0, STEEPEST), d=DIMENSION)
def dominant_degree(beta: ArrayLike, d: int) -> Numbers:
    """The degree k_max whose harmonics grow fastest around the uniform measure; the same for SA, USA0 and USA.

    lambda_{k+1}/lambda_k is a product of two factors that both decrease in k, so the rates have one peak, and k_max
    is one more than the number of degrees where that quotient exceeds 1. k_max (k_max+d-2) is near 2 beta for large
    beta (sqrt(2 beta) on the circle); at beta = 0 it is 1. Any shape of beta (arXiv:2410.23228).

    Raises:
        NotAccurate: if beta is a `switching_threshold` to the last digits.
    """
    # log of the quotient is below 2/k - k/beta up to terms that help, so the peak lies below 2 sqrt(beta)
    top = 10 + int(2 * np.sqrt(np.max(beta, initial=0.0)))
    k = np.arange(1.0, top)
    rise = log_rise(k, d)
    fall = log_ratios(d / 2 - 1, beta, top)[..., 1:]
    if np.any(np.abs(fall - rise) <= 2e-14 / (1 + beta[..., None]) + 2e-15 * rise):
        raise NotAccurate("two degrees grow equally fast to the last digit of beta.")
    return 1 + np.sum(rise > fall, axis=-1)


@formula(k=Integers(1, 10**6), d=Integers(2), relative=1e-14)
def switching_threshold(k: ArrayLike, d: ArrayLike) -> np.ndarray:
    """The beta at which degrees k and k+1 are equally unstable: k_max steps from k to k+1 there.

    The root of I_{nu+k+1}/I_{nu+k}(beta) = k (k+d-2)/((k+1)(k+d-1)): the left side increases from 0 to 1, so there
    is exactly one; near k (k+d-1)/2 + (d-1)/4. k and d broadcast (arXiv:2312.10794).
    """
    pairs = np.broadcast(k, d)

    def threshold(j: int, dim: int) -> float:
        guess = j * ((j + (dim - 1.0)) / 2) + (dim - 1.0) / 4
        return float(
            root(
                lambda beta: float(log_rise(j, dim) - log_ratios(dim / 2 - 1 + j, np.asarray(beta), 1)[0]),
                0.9 * guess,
                1.1 * guess,
                smallest=0.0,
            )
        )

    return np.array([threshold(int(j), int(dim)) for j, dim in pairs]).reshape(pairs.shape)


@formula(
    t=Reals(0.0),
    beta=Reals(0.0, 1e8),
    model=MODEL,
    relative="4e-15 * (20 + np.sqrt(beta)) + np.minimum("
    "2e-14 * t * np.exp(np.minimum(np.max(beta), 700.0) if model == 'USA' else 0.0), 1e-9)",
)
def linear_modes(t: ArrayLike, beta: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """Expected number M(t) of modes of the smoothed density of iid uniform tokens on the circle, while it is linear.

    M(t) = sqrt(sum k^4 I_k^2 e^{2 lambda_k t} / sum k^2 I_k^2 e^{2 lambda_k t}), the Kac-Rice count of a Gaussian
    field with a flat initial spectrum (arXiv:2410.23228 for lambda_k, arXiv:2412.09080 for the modes): from near
    sqrt(3 beta/2) at t = 0 to k_max. Many tokens and small fluctuations, d = 2; t and beta broadcast.

    Raises:
        NotAccurate: if t is so large that the last digits of two rates decide which of their degrees wins.
    """
    # beyond k_max both I_k and lambda_k fall, so the terms left out are below those of t = 0, k^4 e^{-k^2/beta}
    top = 30 + int(10 * np.sqrt(np.max(beta, initial=0.0)))
    with np.errstate(divide="ignore", over="ignore"):
        # the clock of SA; a time beyond e^690 has long chosen its mode
        clock = np.exp(np.minimum(np.log(t) + _log_clock(beta, 2, model), 690.0))
        k = np.arange(1, top + 1)
        quotients = _quotients(beta, 2, top)
        rates = k**2 * np.cumprod(quotients, -1)
        fastest = np.max(rates, -1, keepdims=True)
        log_bessel = np.cumsum(np.log(quotients), -1)  # log(I_k / (beta I_0)): the constant cancels
        weights = 2 * (np.log(k) + log_bessel) + 2 * (rates - fastest) * clock[..., None]
        total = logsumexp(weights, -1)
        # two rates are apart by their difference, known to a few last digits, times t
        runner_up = 1 - np.exp(np.max(weights, -1) - total)
        if np.any(2e-14 * clock * runner_up * fastest[..., 0] > 1e-9):
            raise NotAccurate("the last digits of two growth rates decide about the number of modes at this time.")
        return np.asarray(np.exp((logsumexp(weights + 2 * np.log(k), -1) - total) / 2))


@formula(
    n=Reals(1.0, 1e300, scalar=True),
    beta=Reals(0.0, 1e8, ends="right", scalar=True),
    relative=1e-14,
    absolute=1e-13,
)
def linear_time(n: float, beta: float) -> float:
    """When the smoothed fluctuations of n iid uniform tokens on the circle reach the mean, by linear theory, for SA.

    The root t of sum_k 2 (I_k/I_0)^2 e^{2 lambda_k t} = n: K * mu has relative variance sum_k 2 (I_k/I_0)^2/n at t = 0,
    and degree k grows like e^{lambda_k t} (arXiv:2410.23228 for lambda_k). 0 if the sum exceeds n from the beginning;
    near log(n) e/4 for large n.
    """
    k = np.arange(1, 30 + int(10 * np.sqrt(beta)))
    rates = growth_rates(beta, 2, k=k)
    with np.errstate(divide="ignore"):
        logs = LOG_TWO + 2 * (np.log(beta) + log_growth_rates(beta, 2, k) - 2 * np.log(k))  # 2 (I_k/I_0)^2
    log_n = math.log(n)

    def excess(t: float) -> float:
        return float(logsumexp(logs + 2 * rates * t) - log_n)

    if excess(0.0) >= 0:
        return 0.0
    return float(root(excess, 0.0, 1 + (log_n - logs.max()) / rates[logs.argmax()], smallest=0.0))


def log_rise(k: Numbers | int, d: int) -> Numbers:
    """log of (k+1)(k+d-1)/(k (k+d-2)), by which a rate would grow from degree k to k+1 if the kernel did not fall."""
    return np.log1p((2.0 * k + (d - 1.0)) / k / (k + (d - 2.0)))


def _quotients(beta: np.ndarray, d: int, top: int) -> np.ndarray:
    """l_1/(beta l_0), l_2/l_1, ..., l_top/l_{top-1} on the last axis; the first is finite at beta = 0."""
    steps = ratios(d / 2 - 1, beta, max(top, 2))
    first = 1 / (d + beta * steps[..., 1])
    return np.concatenate([first[..., None], steps[..., 1:]], -1)[..., :top]


def _log_rates(beta: np.ndarray, d: int, top: int) -> np.ndarray:
    """Logarithms of the SA rates of degrees 0, 1, 2, ..., top (-inf for a rate of 0)."""
    k = np.arange(1.0, top + 1)
    falls = log_ratios(d / 2 - 1, beta, max(top, 2))[..., :top]
    falls[..., 0] = np.log(d + beta * ratios(d / 2 - 1, beta, 2)[..., 1])
    logs = np.log(k) + np.log(k + (d - 2)) - np.cumsum(falls, -1)
    return np.concatenate([np.full((*beta.shape, 1), -np.inf), logs], -1)


def _log_clock(beta: np.ndarray, d: int, model: str) -> Numbers:
    """Log of a model's rates over those of SA: log l_0 for USA, log l_0 - beta for USA0."""
    if model == "SA":
        return np.zeros(beta.shape)
    return log_mean(beta, d) if model == "USA" else log_mean_kernel(beta, d)


def _pick(beta: np.ndarray, table: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """table[..., k] (degrees on the last axis) for every pair of the broadcast of beta and k."""
    rows = np.arange(beta.size).reshape(beta.shape)
    return np.asarray(table.reshape(beta.size, table.shape[-1])[np.broadcast_arrays(rows, degrees)[0], degrees])


def choose(n: int, m: int) -> int:
    """The binomial coefficient n over m, or 2^1024 if it is above."""
    smaller = min(m, n - m)
    if smaller > 0 and smaller * (math.log(n) - math.log(smaller)) > 1024 * LOG_TWO:  # it is above (n/smaller)^smaller
        return 2**1024
    return math.comb(n, m)


def whole_numbers(counts: list[int], name: str, value: ArrayLike) -> np.ndarray:
    """Python integers as int64 where they fit, as floats otherwise; refused beyond float range."""
    largest = max(counts, default=0)
    if largest < 2**63:
        return np.array(counts, dtype=np.int64)
    if largest >= 2**1024 - 2**970:
        raise InvalidInput(
            f"`{name}` is {shown(value.tolist())}; the count leaves float range there (d too large with it)."
        )
    return np.array([float(count) for count in counts])
