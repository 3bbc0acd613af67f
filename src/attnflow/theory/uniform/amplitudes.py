"""Growth of one harmonic of a nearly uniform density beyond the exponential: terms of second and third order."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import eval_gegenbauer, exprel, roots_jacobi

from attnflow.special import divided_exprel
from attnflow.theory.checks import checked_degrees, checked_dimension, checked_model
from attnflow.theory.uniform.spectrum import growth_rates


def quadratic_growth(beta: float, d: int, k: int, *, model: str = "SA") -> float:
    """The coefficient c of a' = lambda_k (a + c a^2) for the density 1 + a P_k(<x, e>) on S^{d-1}, P_k(1) = 1.

    c = (1 - r) g/2 for SA, with r = l_k/l_0 of the kernel (l_k: Funk-Hecke) and g = mean(P_k^3)/mean(P_k^2) over the
    sphere; c = g/2 for USA0 and USA. It vanishes for odd k, and on the circle, where P_k = cos(k theta). Then
    log a(t) = log a(0) + lambda_k t + c (a(t) - a(0)) up to terms of order a^2. beta > 0, k >= 1.
    """
    degree, d, model = int(checked_degrees(k, 1)), checked_dimension(d), checked_model(model)
    if degree % 2 or d == 2:
        return 0.0
    share = _share(beta, d, degree) if model == "SA" else 0.0
    x, weights = roots_jacobi(2 * degree + 1, (d - 3) / 2, (d - 3) / 2)  # exact up to degree 4k + 1
    values = eval_gegenbauer(degree, d / 2 - 1, x)
    values /= eval_gegenbauer(degree, d / 2 - 1, 1.0)
    return float((1 - share) / 2 * np.sum(weights * values**3) / np.sum(weights * values**2))


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


def _share(beta: float, d: int, k: int) -> float:
    """l_k/l_0 of the kernel: lambda_k of SA is k (k+d-2) l_k/(beta l_0)."""
    return float(beta * growth_rates(beta, d, k=k) / (k * (k + d - 2)))
