"""Growth of one harmonic of a nearly uniform density beyond the exponential: terms of second and third order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import eval_gegenbauer, exprel, roots_jacobi

from attnflow.special import divided_exprel
from attnflow.theory.checks import checked_degrees, checked_dimension, checked_model
from attnflow.theory.uniform.spectrum import growth_rates, multiplicity


class PatternSkewness(NamedTuple):
    """Of w, the mean of u^3, for a random harmonic u of one degree with mean square 1."""

    variance: float
    """Of w; its mean is 0."""
    square: float
    """Mean of |Pi(u^2)|^2, Pi the projection on the degree."""
    bias: float
    """Mean of dw/dA at amplitude A = 0, over the coefficient kappa of `pattern_coefficient`."""


def pattern_coefficient(beta: float, d: int, k: int, *, model: str = "SA") -> float:
    """The coefficient kappa of h' = lambda_k (h + kappa Pi(h^2)) for a density 1 + h, h any harmonic of degree k.

    Pi is the projection on degree k. kappa = (1 - l_k/l_0)/2 for SA, l_k the Funk-Hecke multipliers of the kernel, and
    1/2 for USA0 and USA (-div(h grad h) = -Laplacian(h^2)/2; the softmax adds -(b h)^2/2 to log Z; derived here). For
    odd k and on the circle Pi(h^2) = 0. With h = A u, |u| = 1: u turns by du/dA = kappa (Pi(u^2) - w u), and the
    skewness w = mean(u^3) grows by dw/dA = 3 kappa (|Pi(u^2)|^2 - w^2) >= 0: towards peaks. beta > 0, k >= 1.
    """
    degree, d, model = int(checked_degrees(k, 1)), checked_dimension(d), checked_model(model)
    return (1 - _share(beta, d, degree)) / 2 if model == "SA" else 0.5


def pattern_skewness(d: int, k: int) -> PatternSkewness:
    """Skewness of a random harmonic of degree k on S^{d-1}: its direction u is uniform on the sphere of its degree.

    With K harmonics of the degree and W = mean(P_k^3): variance 6 K^2 W/((K+2)(K+4)), mean |Pi(u^2)|^2 = 2 K^2 W/(K+2),
    bias 6 W K^2 (K+1)/((K+2)(K+4)). All 0 for odd k. Growth near the uniform measure is alike for all K, so that a
    small isotropic start keeps its direction (derived here).
    """
    degree, d = int(checked_degrees(k, 1)), checked_dimension(d)
    count, cube = float(multiplicity(degree, d)), 0.0 if degree % 2 or d == 2 else _powers(d, degree)[1]
    scale = count**2 * cube / (count + 2)
    return PatternSkewness(6 * scale / (count + 4), 2 * scale, 6 * scale * (count + 1) / (count + 4))


def quadratic_growth(beta: float, d: int, k: int, *, model: str = "SA") -> float:
    """The coefficient c of a' = lambda_k (a + c a^2) for the density 1 + a P_k(<x, e>) on S^{d-1}, P_k(1) = 1.

    c = (1 - r) g/2 for SA, with r = l_k/l_0 of the kernel (l_k: Funk-Hecke) and g = mean(P_k^3)/mean(P_k^2) over the
    sphere; c = g/2 for USA0 and USA. It vanishes for odd k, and on the circle, where P_k = cos(k theta). Then
    log a(t) = log a(0) + lambda_k t + c (a(t) - a(0)) up to terms of order a^2. beta > 0, k >= 1.
    """
    degree, d, model = int(checked_degrees(k, 1)), checked_dimension(d), checked_model(model)
    if degree % 2 or d == 2:
        return 0.0
    square, cube = _powers(d, degree)
    return pattern_coefficient(beta, d, degree, model=model) * cube / square


def cubic_growth(t: ArrayLike, start: float, beta: float, *, k: int, model: str = "SA") -> np.ndarray:
    """log a(t) - log a(0) - lambda_k t to order a^2, for 1 + a cos(k theta) on the circle with a(0) = `start`.

    With b the amplitude of cos(2k theta), r_j = I_{jk}/I_0 at beta for SA (0 for USA0 and USA), l_j = lambda_{jk}:
    b' = l_2 b + l_1 (1 - r_1) a^2,
    a' = l_1 a (1 - r_1 (1 - r_1) a^2/4) - (l_1 (1 + r_2)/2 - l_2/4) a b.
    Both are integrated with a = start e^{l_1 t} on the right; what is left out is of order a^4. beta > 0, k >= 1.
    """
    degree, model, t = int(checked_degrees(k, 1)), checked_model(model), np.asarray(t, dtype=np.float64)
    one, two = growth_rates(beta, 2, k=np.array([degree, 2 * degree]), model=model)
    r1, r2 = (_share(beta, 2, degree), _share(beta, 2, 2 * degree)) if model == "SA" else (0.0, 0.0)
    square = start**2 * t * exprel(2 * one * t)  # the integral of a^2
    double = one * (1 - r1) * (start * t) ** 2 * divided_exprel(2 * one * t, two * t)  # of b
    return np.asarray(-one * r1 * (1 - r1) / 4 * square - (one * (1 + r2) / 2 - two / 4) * double)


def _powers(d: int, k: int) -> tuple[float, float]:
    """Means of P_k^2 and P_k^3 over the sphere, P_k(1) = 1; d >= 3."""
    x, weights = roots_jacobi(2 * k + 1, (d - 3) / 2, (d - 3) / 2)  # exact up to degree 4k + 1
    values = eval_gegenbauer(k, d / 2 - 1, x)
    values /= eval_gegenbauer(k, d / 2 - 1, 1.0)
    weights = weights / weights.sum()
    return float(weights @ values**2), float(weights @ values**3)


def _share(beta: float, d: int, k: int) -> float:
    """l_k/l_0 of the kernel: lambda_k of SA is k (k+d-2) l_k/(beta l_0)."""
    return float(beta * growth_rates(beta, d, k=k) / (k * (k + d - 2)))
