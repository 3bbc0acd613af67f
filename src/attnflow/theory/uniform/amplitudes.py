"""Growth of one harmonic of a nearly uniform density beyond the exponential: terms of second and third order."""

from typing import NamedTuple

import numpy as np
from scipy.special import exprel

from attnflow.errors import InvalidInput
from attnflow.special import divided_exprel
from attnflow.special.formula import MODEL, Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.kernel import log_ratios
from attnflow.theory.uniform.spectrum import DIMENSION, choose, growth_rates
from attnflow.wording import shown

STEEPNESS = Reals(0.0, 1e300, scalar=True)
DEGREE = Integers(1, 50_000, scalar=True)


class PatternSkewness(NamedTuple):
    """Of w, the mean of u^3, for a random harmonic u of one degree with mean square 1."""

    variance: float
    """Of w; its mean is 0."""
    square: float
    """Mean of |Pi(u^2)|^2, Pi the projection on the degree."""
    bias: float
    """Mean of dw/dA at amplitude A = 0, over the coefficient kappa of `pattern_coefficient`."""


@formula(beta=STEEPNESS, d=DIMENSION, k=DEGREE, model=MODEL, relative=2e-14)
def pattern_coefficient(beta: float, d: int, k: int, *, model: str = "SA") -> float:
    """The coefficient kappa of h' = lambda_k (h + kappa Pi(h^2)) for a density 1 + h, h any harmonic of degree k.

    Pi is the projection on degree k. kappa = (1 - l_k/l_0)/2 for SA, l_k the Funk-Hecke multipliers of the kernel, and
    1/2 for USA0 and USA (-div(h grad h) = -Laplacian(h^2)/2; the softmax adds -(b h)^2/2 to log Z; derived here). For
    odd k and on the circle Pi(h^2) = 0. With h = A u, |u| = 1: u turns by du/dA = kappa (Pi(u^2) - w u), and the
    skewness w = mean(u^3) grows by dw/dA = 3 kappa (|Pi(u^2)|^2 - w^2) >= 0: towards peaks. beta > 0, k >= 1.
    """
    return float(_drop(beta, d, k)) / 2 if model == "SA" else 0.5


@formula(d=DIMENSION, k=DEGREE, relative="1e-15 * (10 + np.sqrt(k))")
def pattern_skewness(d: int, k: int) -> PatternSkewness:
    """Skewness of a random harmonic of degree k on S^{d-1}: its direction u is uniform on the sphere of its degree.

    With K harmonics of the degree and W = mean(P_k^3): variance 6 K^2 W/((K+2)(K+4)), mean |Pi(u^2)|^2 = 2 K^2 W/(K+2),
    bias 6 W K^2 (K+1)/((K+2)(K+4)). All 0 for odd k. Growth near the uniform measure is alike for all K, so that a
    small isotropic start keeps its direction (derived here).
    """
    if k % 2 or d == 2:
        return PatternSkewness(0.0, 0.0, 0.0)
    harmonics, quotient = choose(k + d - 3, k - 1) * (2 * k + d - 2) // k, _cube_quotient(d, k)
    # K above 2^1024 is infinite beside 4; W = quotient/K
    count = float(harmonics) if harmonics < 2**1023 else np.inf
    square = 2 * quotient / (1 + 2 / count)
    return PatternSkewness(3 * square / (count + 4), square, 3 * square * (1 + 1 / count) / (1 + 4 / count))


@formula(beta=STEEPNESS, d=DIMENSION, k=DEGREE, model=MODEL, relative="2e-14 + 1e-15 * np.sqrt(k)")
def quadratic_growth(beta: float, d: int, k: int, *, model: str = "SA") -> float:
    """The coefficient c of a' = lambda_k (a + c a^2) for the density 1 + a P_k(<x, e>) on S^{d-1}, P_k(1) = 1.

    c = (1 - r) g/2 for SA, with r = l_k/l_0 of the kernel (l_k: Funk-Hecke) and g = mean(P_k^3)/mean(P_k^2) over the
    sphere; c = g/2 for USA0 and USA. It vanishes for odd k, and on the circle, where P_k = cos(k theta). Then
    log a(t) = log a(0) + lambda_k t + c (a(t) - a(0)) up to terms of order a^2.
    """
    if k % 2 or d == 2:
        return 0.0
    return pattern_coefficient(beta, d, k, model=model) * _cube_quotient(d, k)


@formula(
    t=Reals(0.0),
    start=Reals(-1.0, 1.0, scalar=True),
    beta=STEEPNESS,
    k=DEGREE,
    model=MODEL,
    relative="1e-14 * (50 + np.sqrt(k))",
    absolute="0.0 if model == 'SA' else 1e-14 * start**2 * np.exp(np.minimum("
    "4 * t * k * np.exp(np.minimum(beta, 700.0) if model == 'USA' else 0.0), 700.0))",
)
def cubic_growth(t: ArrayLike, start: float, beta: float, *, k: int, model: str = "SA") -> np.ndarray:
    """log a(t) - log a(0) - lambda_k t to order a^2, for 1 + a cos(k theta) on the circle with a(0) = `start`.

    With b the amplitude of cos(2k theta), r_j = I_{jk}/I_0 at beta for SA (0 for USA0 and USA), l_j = lambda_{jk}:
    b' = l_2 b + l_1 (1 - r_1) a^2,
    a' = l_1 a (1 - r_1 (1 - r_1) a^2/4) - (l_1 (1 + r_2)/2 - l_2/4) a b.
    Both are integrated with a = start e^{l_1 t} on the right; what is left out is of order a^4. Refused beyond float
    range.

    Arguments:
        t: times.
        start: amplitude at time 0.
        beta: inverse temperature.
        k: degree.
        model: dynamics of the tokens.
    """
    one, two = growth_rates(beta, 2, k=np.array([k, 2 * k]), model=model)
    if model == "SA":
        drops = float(_drop(beta, 2, k)), float(_drop(beta, 2, 2 * k))
        r1, r2 = 1 - drops[0], 1 - drops[1]
        # (r_1 + r_1 r_2 - 2 r_2)/(2 r_1) of l_1, by the gaps where they are small
        pull = one * (1 + r2) / 2 - two / 4
        if r1 > 0.5:
            pull = one * (drops[1] - 2 * drops[0] + drops[0] * drops[1]) / (2 * r1)
    else:
        drops, r1, pull = (1.0, 1.0), 0.0, one / 2 - two / 4
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        square = start * (start * t) * exprel(2 * one * t)  # the integral of a^2
        double = one * drops[0] * (start * t) ** 2 * divided_exprel(2 * one * t, two * t)  # of b
        bend = np.asarray(-one * r1 * drops[0] / 4 * square - pull * double)
    if not np.isfinite(bend).all():
        raise InvalidInput(f"`t` is {shown(t.tolist())}; the square of the amplitude leaves float range there.")
    return bend


def _cube_quotient(d: int, k: int) -> float:
    """mean(P_k^3)/mean(P_k^2) over the sphere for even k, P_k(1) = 1, d >= 3: Dougall's coefficient of C_k in C_k^2.

    With nu = d/2 - 1 and j = k/2: (k + nu)/(3j + nu) ((nu)_j/j!)^3 ((2nu)_{3j}/(nu)_{3j}) (k!/(2nu)_k)^2, as a product
    over i = 1, ..., j of factors below 1.
    """
    nu, i = d / 2 - 1, np.arange(1.0, k // 2 + 1)
    factors = ((nu + i - 1) / i) ** 3
    for step in (1, 2, 3):
        factors *= (2 * nu + 3 * i - step) / (nu + 3 * i - step)
    for step in (0, 1):
        factors *= ((2 * i - step) / (2 * nu + 2 * i - 1 - step)) ** 2
    with np.errstate(under="ignore"):
        return float((k + nu) / (1.5 * k + nu) * np.prod(factors))


def _drop(beta: float, d: int, k: int) -> np.ndarray:
    """1 - l_k/l_0 of the kernel, to relative accuracy."""
    return np.asarray(-np.expm1(-np.sum(log_ratios(d / 2 - 1, np.asarray(beta), k))))
