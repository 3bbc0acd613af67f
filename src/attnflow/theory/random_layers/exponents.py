"""Nearby tokens in many random layers: whether they meet or separate, and what the key dimension decides.

For two tokens at overlap R near 1, log(1-R) has the drift Lambda = [(d-3) B - (d-1) A]/d and the variance rate
4 (A+B)/d per unit of tau = step^2 L/H, where A = E |m|^2 and B = E |dm|^2 for the softmax mean m at the tokens and its
derivative along a unit tangent (ours; settings of arXiv:2604.01978). Lambda < 0: nearby tokens meet.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ive, lambertw

from attnflow.errors import InvalidInput
from attnflow.special.bessel import bessel_ratios
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_dimension, checked_keys, checked_reals


def pair_exponent(a: ArrayLike, b_: ArrayLike, d: ArrayLike) -> Numbers:
    """Lambda = d/dtau E log(1-R) = [(d-3) b_ - (d-1) a]/d for nearby tokens; the angle has the exponent Lambda/2.

    a = E |m|^2 and b_ = E |dm|^2. A collapsed population has a = 1, b_ = 0, hence -(d-1)/d: it is stable at every
    temperature. Ours. All broadcast.
    """
    a, b_, d = checked_reals("a", a, 0.0), checked_reals("b_", b_, 0.0), checked_reals("d", d, 2.0)
    return ((d - 3) * b_ - (d - 1) * a) / d


def pair_exponent_spread(a: ArrayLike, b_: ArrayLike, d: ArrayLike) -> Numbers:
    """The variance of log(1-R) per unit of tau for nearby tokens: 4 (a + b_)/d, a and b_ as in `pair_exponent`."""
    a, b_, d = checked_reals("a", a, 0.0), checked_reals("b_", b_, 0.0), checked_reals("d", d, 2.0)
    return 4 * (a + b_) / d


def attention_moments(logit_scale: float, *, d: int, d_k: int | None) -> tuple[float, float]:
    """(A, B) = (E |m|^2, E |dm|^2) for infinitely many tokens, uniform on the sphere of R^d, at logit scale b.

    With kappa = b sqrt(U V/d_k) for independent U ~ chi^2_d and V ~ chi^2_{d_k}, r = I_{d/2}(kappa)/I_{d/2-1}(kappa):
    A = E r^2 and B = E[r'^2 (b^2/d_k) (U+d_k-1) + r^2 (d-1)(d_k-1)/(U V)]. d_k = None is a matrix Q^T K of independent
    Gaussian entries (d_k -> inf). b = inf is m = a/|a|: A = 1, B = ((d-1)/(d-2)) ((d_k-1)/(d_k-2)), inf where that
    mean does not exist. Trapezoidal rule in log U and log V, 1e-9 relative for d up to 4096. Infinitely many means many
    more than e^{b sqrt(d)} tokens. Ours.
    """
    d, keys = checked_dimension(d), checked_keys(d_k)
    b = _scale(logit_scale)
    if b == math.inf:
        return 1.0, _stretch(d) * (_stretch(keys) if keys else 1.0)
    if b == 0:
        return 0.0, 0.0
    gap = min(0.2, 0.35 * math.sqrt(2 / max(d, keys or 1)))
    log_u, mass_u = _log_chi2(d, gap, b)
    if keys is None:
        u = np.exp(log_u)
        r, slope = _ratio(d, b * np.sqrt(u))
        return float(mass_u @ (r * r)), float(mass_u @ ((slope * b) ** 2 + r * r * (d - 1) / u))
    log_v, mass_v = _log_chi2(keys, gap, b)
    # kappa depends on log U + log V alone, which runs over one grid
    line = math.log(b) - math.log(keys) / 2 + (log_u[0] + log_v[0] + gap * np.arange(len(log_u) + len(log_v) - 1)) / 2
    r, slope = _ratio(d, np.exp(line))
    place = np.arange(len(log_u))[:, None] + np.arange(len(log_v))
    first = mass_u @ (r * r)[place] @ mass_v
    radial = (mass_u * (np.exp(log_u) + keys - 1)) @ (slope * slope)[place] @ mass_v * b * b / keys
    turning = (mass_u * np.exp(-log_u)) @ (r * r)[place] @ (mass_v * np.exp(-log_v)) * (d - 1) * (keys - 1)
    return float(first), float(radial + turning)


def critical_logit_scale(d: int, d_k: int | None) -> float | None:
    """A logit scale b_c at which Lambda changes sign, or None where nearby tokens meet at b -> inf.

    A zero of Lambda with A and B of `attention_moments`, found to 1e-9. It exists for d >= 4 and d_k < d - 1, since
    Lambda is negative for small b and positive for b -> inf. That it is the only zero is not proved. For d <= 3 Lambda
    is negative at b -> inf, whatever d_k is. The collapsed state stays stable above b_c: clustering is mitigated, not
    impossible. Ours.
    """
    d, keys = checked_dimension(d), checked_keys(d_k)
    if keys is None or d < 4 or keys >= d - 1:
        return None

    def exponent(log_b: float) -> float:
        first, second = attention_moments(math.exp(log_b), d=d, d_k=keys)
        return float(pair_exponent(first, second, d)) / first

    low, high = 0.0, 1.0
    while exponent(low) > 0:
        low -= 1.0
    while exponent(high) <= 0:
        low, high = high, high + 1.0
    return math.exp(brentq(exponent, low, high, xtol=1e-10))


def antipodal_exponent(beta: ArrayLike, d: ArrayLike) -> Numbers:
    """Lambda = [(d-3) - (d-1) tanh^2 beta]/d of log(1+R) for two tokens alone, nearly antipodal, with Q^T K = I.

    Antipodal pairs attract iff cosh(2 beta) > d - 2 (arXiv:2601.21942): A = tanh^2 beta and B = 1. beta >= 0.
    """
    return pair_exponent(np.tanh(checked_reals("beta", beta, 0.0)) ** 2, 1.0, d)


def zero_temperature_exponent(d: int, d_k: int | None) -> float:
    """Lambda at b = inf for infinitely many uniform tokens; d >= 4: (d-1)(d-1-d_k)/(d (d-2)(d_k-2)), 0 at d_k = d-1.

    For d >= 4 it is positive iff d_k < d - 1 (+inf for d_k <= 2), and d_k = None (Q^T K with independent Gaussian
    entries) has -(d-1)/(d (d-2)). For d = 3 it is -2/3 and for d = 2 -inf, whatever d_k is. These are the limits
    b -> inf of Lambda with `attention_moments`. Ours.
    """
    d, keys = checked_dimension(d), checked_keys(d_k)
    if d == 2:
        return -math.inf
    if d == 3:
        return -2 / 3
    if keys is None:
        return -(d - 1) / (d * (d - 2))
    return math.inf if keys <= 2 else (d - 1) * (d - 1 - keys) / (d * (d - 2) * (keys - 2))


def _ratio(d: int, kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """r = I_{d/2}/I_{d/2-1} and its derivative 1 - r^2 - (d-1) r/kappa.

    The continued fraction for kappa < 1e4, quotients of scaled Bessel functions up to 1e8, the expansion for large
    arguments beyond. For small kappa the derivative is 1/d to relative accuracy d eps, which is enough for d <= 1e6.
    """
    small = kappa < max(1e4, d)
    r = np.empty_like(kappa)
    r[small] = bessel_ratios(d / 2 - 1, kappa[small], 1)[..., 0]
    large = np.minimum(kappa[~small], 1e8)
    r[~small] = ive(d / 2, large) / ive(d / 2 - 1, large)
    slope = 1 - r * r - (d - 1) * r / kappa
    far = kappa > 1e8
    inverse = 1 / kappa[far]
    r[far] = 1 - (d - 1) / 2 * inverse * (1 - (d - 3) / 4 * inverse)
    slope[far] = (d - 1) / 2 * inverse**2 * (1 - (d - 3) / 2 * inverse)
    return r, slope


def _log_chi2(k: int, gap: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Equidistant log U for U ~ chi^2_k and their masses: all that matters to E r^2/U at logit scale b.

    The density of x = log(U/k) falls like exp((k/2) (x - e^x + 1)), for E r^2/U with k - 2 instead of k; where
    k <= 2, r^2 ~ b^2 U cuts it off.
    """
    least = -2 * math.log1p(b) - 2 * math.log(k) - 60.0
    if k > 2:
        # exp((k/2-1) (x - e^x + 1)) = e^-44
        level = 1 + 88 / (k - 2)
        least = max(least, -level - float(lambertw(-math.exp(-level)).real))
    level = 1 + 88 / k
    most = -level - float(lambertw(-math.exp(-level), -1).real) if level < 700 else math.log(level + 10)
    x = least + gap * np.arange(math.ceil((most - least) / gap) + 1)
    mass = np.exp(k / 2 * (x - np.expm1(x)))
    return x + math.log(k), mass / mass.sum()


def _stretch(k: int) -> float:
    """E (k-1)/U for U ~ chi^2_k."""
    return (k - 1) / (k - 2) if k > 2 else math.inf


def _scale(logit_scale: float) -> float:
    if np.ndim(logit_scale) or not logit_scale >= 0:
        raise InvalidInput(f"logit_scale is {logit_scale!r}; it must be one number, at least 0, or inf.")
    return float(logit_scale)
