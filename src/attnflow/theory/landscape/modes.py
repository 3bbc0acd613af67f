"""Expected number of modes of the kernel density of random tokens: how many clusters there are to begin with."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special as sp

from attnflow.errors import InvalidInput
from attnflow.special import bessel_ratios
from attnflow.special.formula import Integers, Optional, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.landscape.counting import count_circle_modes, count_line_modes, inflection_angle
from attnflow.wording import shown


@dataclass(frozen=True)
class ModeEstimate:
    """An expected number of modes, its standard error (0 when exact) and the method, "exact" or "Monte Carlo"."""

    value: float
    standard_error: float
    method: str


@formula(beta=Reals(0.0), relative=3e-15)
def expected_modes(beta: ArrayLike) -> Numbers:
    """Expected number of modes on the circle of sum_i e^{beta cos(t - theta_i)}, theta iid uniform, as n -> infinity.

    The formula of Kac and Rice for the Gaussian limit: sqrt(sum_k k^4 I_k(beta)^2 / sum_k k^2 I_k(beta)^2), which is
    sqrt(1 + (3/2) beta I_2(2 beta)/I_1(2 beta)), as the sums are integrals of f''^2 and f'^2 for f = e^{beta cos t}. It
    is 1 at beta = 0, and sqrt(3 beta/2) for large beta (cf. arXiv:2412.09080).

    Arguments:
        beta: inverse temperature.
    """
    ratio = bessel_ratios(1.0, 2 * np.minimum(beta, 1e300), 1)[..., 0]
    return np.hypot(1.0, np.sqrt(1.5 * ratio) * np.sqrt(beta))


@formula(beta=Reals(0.0), relative=1e-15)
def two_point_modes(beta: ArrayLike) -> Numbers:
    """Expected number of modes on the line for two iid standard normal samples: 1 + erfc(beta^{-1/2}), exactly.

    The density sum_i e^{-beta (t - X_i)^2/2} has two modes when the samples are more than 2 beta^{-1/2} apart.

    Arguments:
        beta: inverse squared width of the kernel; at 0 the limit 1.
    """
    with np.errstate(divide="ignore"):
        return 1 + sp.erfc(1 / np.sqrt(beta))


@formula(x=Reals(), n=Integers(1), beta=Reals(1e-290), relative=5e-12)
def line_mode_density(x: ArrayLike, n: ArrayLike, beta: ArrayLike) -> Numbers:
    """Expected modes per unit length at x of sum_i e^{-beta (x - X_i)^2/2}, X_i iid standard normal, i = 1, ..., n.

    The formula of Kac and Rice, with f' and f'' taken as Gaussian with their exact means and covariances
    (arXiv:2412.09080). That is good where many samples fall in a bandwidth, n p(x) >> sqrt(beta) with p the normal
    density, and wrong in the tails: never integrate it over the whole line. Beyond the edge |x| = sqrt(2
    log(n/sqrt(beta))), where there is about one sample a bandwidth, it is refused. Tends to sqrt(3 beta/2)/(2 pi) where
    noise dominates.

    Arguments:
        x: place on the line.
        n: number of samples.
        beta: inverse squared width of the kernel.

    Raises:
        InvalidInput: beyond the edge.
    """
    edge = 2 * np.log(n) - np.log(beta)
    if not np.all((edge >= 0) & (np.abs(x) <= np.sqrt(np.abs(edge)))):
        raise InvalidInput(
            f"`x` is {shown(x)}; the density holds for |x| <= sqrt(2 log(n/sqrt(beta))), where samples are many."
        )
    # With w = e^{-beta y^2/2}, y = x - X: f' = -beta y w and f'' = beta (beta y^2 - 1) w. Under w (w^2), y is normal:
    p, q = 1 + beta, 1 + 2 * beta
    a1, b1 = x / p, x / q
    a2, b2 = a1**2 + 1 / p, b1**2 + 1 / q
    b3, b4 = b1**3 + 3 * b1 / q, b1**4 + 6 * b1**2 / q + 3 / q**2
    # excess = (E[w^2]/E[w]^2 - 1)/beta^2; the covariances below are divided by (beta E[w])^2 and by the power of beta
    # that they vanish with, which removes the cancellation at small beta
    log_excess = 0.5 * np.log1p(beta**2 / q) + beta**2 * x**2 / (p * q)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(beta < 1e-9, 0.5 + x**2, np.expm1(log_excess) / beta**2)
    slack = 1 / (p * q) + x**2 * (2 + 3 * beta) / (p * q) ** 2  # (a2 - b2)/beta
    v11 = beta**2 * excess * b2 + (1 / q - beta * (x / (p * q)) ** 2 * (2 + 3 * beta))
    v12 = -(excess * beta * (beta * b3 - b1) + b3 - a1 * a2 + x / (p * q))
    v22 = excess * (beta**2 * b4 - 2 * beta * b2 + 1) + b4 - a2**2 + 2 * slack
    # f' = beta E[w] sqrt(n) (...), f'' = beta^2 E[w] sqrt(n) (...): the density scales with beta
    root, deviation = np.sqrt(n), np.sqrt(v11)
    mean = -a1 * root / deviation
    spread = np.sqrt(v22 - v12**2 / v11)
    r = (root / beta * ((beta * x**2 - p) / p**2) - v12 * mean / deviation) / spread  # a2 - 1/beta, beside noise
    return beta * (spread * _mean_below(r)) * _normal(mean) / deviation


def _mean_below(r: Numbers) -> Numbers:
    """E[max(-Z, 0)] of a normal Z with mean r and variance 1: phi(r) - r Phi(-r), without cancellation."""
    with np.errstate(over="ignore"):
        direct = _normal(r) - r * sp.ndtr(-r)
    # 1 - r m(r) with Mills's ratio m is m/(r + 2/(r + 3/(r + ...))), after Laplace
    far = np.maximum(r, 2.0)
    fraction = far
    for k in range(100, 1, -1):
        fraction = far + k / fraction
    mills = np.sqrt(np.pi / 2) * sp.erfcx(far / np.sqrt(2))
    return np.where(r > 2, _normal(far) * mills / fraction, direct)


NUMBER = Integers(1, 10**7, scalar=True)
SAMPLES = Optional(Integers(2, 10**7, scalar=True))
SEED = Integers(0, scalar=True)


@formula(n=NUMBER, beta=Reals(0.0, scalar=True), samples=SAMPLES, seed=SEED, relative=2e-15)
def line_modes(n: int, beta: float, *, samples: int | None = None, seed: int = 0) -> ModeEstimate:
    """Expected number of modes on the line of sum_i e^{-beta (t - X_i)^2/2}, X_i iid standard normal, i = 1, ..., n.

    Exact for n = 1, 2 and for beta = 0 (the limit 1); otherwise the mean of `count_line_modes` over random samples of n
    points, with its standard error. The order is sqrt(beta log beta) for n^c < beta < n^{2-c} (arXiv:2412.09080). The
    standard error is 0 also when all samples had equally many modes.

    Arguments:
        n: number of points.
        beta: inverse squared width of the kernel.
        samples: number of random samples; None for 2e5/n of them, at least 100 and at most 2000 (seconds).
        seed: of the random samples, which are rows of `np.random.default_rng(seed).standard_normal`.

    Raises:
        NotAccurate: if rounding decides about a mode of a random sample.
    """
    if n <= 2 or beta == 0:
        return ModeEstimate(float(two_point_modes(beta)) if n == 2 else 1.0, 0.0, "exact")
    rng = np.random.default_rng(seed)
    return _monte_carlo(n, samples, lambda: count_line_modes(rng.standard_normal(n), beta))


@formula(n=NUMBER, beta=Reals(0.0, 1e300, scalar=True), samples=SAMPLES, seed=SEED, relative=2e-15)
def circle_modes(n: int, beta: float, *, samples: int | None = None, seed: int = 0) -> ModeEstimate:
    """Expected number of modes on the circle of sum_i e^{beta cos(t - theta_i)}, theta_i iid uniform, i = 1, ..., n.

    Tends to `expected_modes` as n -> infinity. Exact for n = 1, for beta = 0 (the limit 1), and for n = 2, where it is
    2 - 2 a/pi with cos(a) = beta sin(a)^2: there are two modes when the angle is more than 2 a. Otherwise the mean of
    `count_circle_modes` over random samples of n angles, with its standard error, which is 0 also when all samples had
    equally many modes.

    Arguments:
        n: number of angles.
        beta: inverse temperature.
        samples: number of random samples; None for 2e5/n of them, at least 100 and at most 2000 (seconds).
        seed: of the random samples, which are rows of `np.random.default_rng(seed).uniform(0, 2 pi)`.

    Raises:
        NotAccurate: if rounding decides about a mode of a random sample.
    """
    if n <= 2 or beta == 0:
        return ModeEstimate(2 - 2 * inflection_angle(beta) / np.pi if n == 2 else 1.0, 0.0, "exact")
    rng = np.random.default_rng(seed)
    return _monte_carlo(n, samples, lambda: count_circle_modes(rng.uniform(0, 2 * np.pi, n), beta))


def _monte_carlo(n: int, samples: int | None, draw: Callable[[], int]) -> ModeEstimate:
    size = int(np.clip(2e5 / n, 100, 2000)) if samples is None else samples
    counts = np.array([draw() for _ in range(size)], dtype=np.float64)
    return ModeEstimate(float(counts.mean()), float(counts.std(ddof=1) / np.sqrt(size)), "Monte Carlo")


def _normal(r: Numbers) -> Numbers:
    return np.exp(-0.5 * r**2) / np.sqrt(2 * np.pi)
