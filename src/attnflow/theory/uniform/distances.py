"""Distances of all pairs of tokens: the Beta distribution of iid uniform tokens, and its first change."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, eval_gegenbauer, gammaln

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_dimension, checked_model, checked_reals
from attnflow.theory.uniform.correlations import pair_correlation
from attnflow.theory.uniform.spectrum import growth_rates, multiplicity


def mean_distance(d: int) -> float:
    """E |x - y| = 2^{d-1} Gamma(d/2)^2/(sqrt(pi) Gamma(d - 1/2)) for independent uniform x, y on S^{d-1}, d >= 2.

    4/pi on the circle, 4/3 on S^2, sqrt(2) for d -> infinity; E |x - y|^2 = 2 and the median is sqrt(2) for every d.
    """
    d = checked_dimension(d)
    return float(np.exp((d - 1) * np.log(2) + 2 * gammaln(d / 2) - gammaln(d - 0.5)) / np.sqrt(np.pi))


def overlap_distribution(overlap: ArrayLike, d: int) -> np.ndarray:
    """P(<x, y> <= overlap) for independent uniform x, y on S^{d-1}: (1 + <x, y>)/2 is Beta((d-1)/2, (d-1)/2)."""
    s, power = _overlaps(overlap), (checked_dimension(d) - 1) / 2
    return np.asarray(betainc(power, power, (1 + s) / 2))


def overlap_shift(
    overlap: ArrayLike, t: float, beta: float, *, d: int, n: int | None = None, model: str = "SA"
) -> np.ndarray:
    """n times the change of P(<x_1, x_2> <= overlap) at time t, for n tokens that start iid and uniform on S^{d-1}.

    The density of s = <x_1, x_2> is that of the Beta distribution, f, times 1 + (1/n) sum_k N(k, d) c_k P_k(s), with
    the `pair_correlation` c_k (its closure where n is given) and N the multiplicity. Since P_k is an eigenfunction,
    the integral is -sum_k N c_k f(s) (1 - s^2) P_k'(s)/(k (k+d-2)): no quadrature. Derived here; e^{2 lambda_k t} << n.
    Summed over degrees whose rate under SA exceeds 1e-12.
    """
    s, d, model = _overlaps(overlap), checked_dimension(d), checked_model(model)
    time = float(checked_reals("t", t, 0.0))
    rates = growth_rates(beta, d, model="SA")
    degrees = np.arange(1, len(rates) + 1)
    weights = np.array([float(pair_correlation(time, beta, d, k=int(k), n=n, model=model)) for k in degrees])
    weights *= multiplicity(degrees, d) / (degrees * (degrees + d - 2))
    power = (d - 3) / 2
    log_density = gammaln(d / 2) - gammaln((d - 1) / 2) - np.log(np.pi) / 2
    weight = np.exp(log_density) * (1 - s**2) ** (power + 1)
    if d == 2:  # P_k = cos(k theta), and (1 - s^2) P_k' f = k sin(k theta)/pi
        theta = np.arccos(s)[..., None]
        return np.asarray(-np.sum(weights * degrees * np.sin(degrees * theta), axis=-1) / np.pi)
    half = d / 2 - 1
    slopes = 2 * half * eval_gegenbauer(degrees - 1, half + 1, s[..., None]) / eval_gegenbauer(degrees, half, 1.0)
    return np.asarray(-weight * np.sum(weights * slopes, axis=-1))


def _overlaps(value: ArrayLike) -> np.ndarray:
    found = checked_reals("overlap", value, -1.0)
    if (found > 1).any():
        raise InvalidInput(f"overlap is {value!r}; it must be from -1 to 1.")
    return found
