"""Nearby tokens in many random layers: whether they meet or separate, and what the key dimension decides.

For two tokens at overlap R near 1, log(1-R) has the drift Lambda = [(d-3) B - (d-1) A]/d and the variance rate
4 (A+B)/d per unit of tau = step^2 L/H, where A = E |m|^2 and B = E |dm|^2 for the softmax mean m at the tokens and its
derivative along a unit tangent (ours; settings of arXiv:2604.01978). Lambda < 0: nearby tokens meet.
"""

import math

import numpy as np
from scipy.special import lambertw

from attnflow.special.bessel import bessel_gap, bessel_ratios
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.random_layers._domains import ROWS, OrInfinite, rows_of

SIZE = Reals(0.0, 1e300)
DIMENSION = Reals(2.0)
WHOLE_DIMENSION = Integers(2, 10**6, scalar=True)
LOGIT_SCALE = OrInfinite("hardmax", Reals(0.0, 1e100, scalar=True))
SMALLEST_SCALE = 1e-100
"""Below, the moments are proportional to b^2."""


@formula(a=SIZE, b_=SIZE, d=DIMENSION, absolute="1e-15 * (a + b_)")
def pair_exponent(a: ArrayLike, b_: ArrayLike, d: ArrayLike) -> Numbers:
    """Lambda = d/dtau E log(1-R) = [(d-3) b_ - (d-1) a]/d for nearby tokens; the angle has the exponent Lambda/2.

    A collapsed population has a = 1, b_ = 0, hence -(d-1)/d: it is stable at every temperature. Ours.

    Arguments:
        a: A = E |m|^2.
        b_: B = E |dm|^2.
        d: dimension.
    """
    return (d - 3) / d * b_ - (d - 1) / d * a


@formula(a=SIZE, b_=SIZE, d=DIMENSION, relative=1e-15)
def pair_exponent_spread(a: ArrayLike, b_: ArrayLike, d: ArrayLike) -> Numbers:
    """The variance of log(1-R) per unit of tau for nearby tokens: 4 (a + b_)/d, a and b_ as in `pair_exponent`.

    Arguments:
        a: A = E |m|^2.
        b_: B = E |dm|^2.
        d: dimension.
    """
    return 4 / d * (a + b_)


@formula(logit_scale=LOGIT_SCALE, d=WHOLE_DIMENSION, d_k=ROWS, relative="1e-15 * (1000 + d)")
def attention_moments(logit_scale: float, *, d: int, d_k: int | None) -> tuple[float, float]:
    """(A, B) = (E |m|^2, E |dm|^2) for infinitely many tokens, uniform on the sphere of R^d, at logit scale b.

    With kappa = b sqrt(U V/d_k) for independent U ~ chi^2_d and V ~ chi^2_{d_k}, r = I_{d/2}(kappa)/I_{d/2-1}(kappa):
    A = E r^2 and B = E[r'^2 (b^2/d_k) (U+d_k-1) + r^2 (d-1)(d_k-1)/(U V)]. d_k = None is a matrix Q^T K of independent
    Gaussian entries (d_k -> inf). b = inf is m = a/|a|: A = 1, B = ((d-1)/(d-2)) ((d_k-1)/(d_k-2)), inf where that
    mean does not exist. Infinitely many means many more than e^{b sqrt(d)} tokens. Ours.

    The trapezoidal rule in log U and log V, whose integrands are analytic for |Im log U| < pi/2: with steps of 0.2 at
    most its error is e^(-pi^2/0.2).

    Arguments:
        logit_scale: b.
        d: dimension.
        d_k: number of rows of Q and K.
    """
    keys = rows_of(d_k)
    if logit_scale == math.inf:
        return 1.0, _stretch(d) * (_stretch(keys) if keys else 1.0)
    b = max(logit_scale, SMALLEST_SCALE)
    log_u, mass_u, step_u = _log_chi2(d, b, _step(d, keys))
    if keys is None:
        u = np.exp(log_u)
        r, slope = _ratio(d, b * np.sqrt(u))
        first, second = mass_u @ (r * r), mass_u @ ((slope * b) ** 2 + r * r * (d - 1) / u)
    else:
        log_v, mass_v, step_v = _log_chi2(keys, b, _step(keys, d))
        # kappa depends on log U + log V alone, which runs over the finer of both grids
        fine = min(step_u, step_v)
        place = round(step_u / fine) * np.arange(len(log_u))[:, None] + round(step_v / fine) * np.arange(len(log_v))
        needed = np.zeros(place.max() + 1, bool)
        needed[place] = True
        line = math.log(b) - math.log(keys) / 2 + (log_u[0] + log_v[0] + fine * np.flatnonzero(needed)) / 2
        r, slope = _ratio(d, np.exp(line))
        place = np.cumsum(needed)[place] - 1
        first = mass_u @ (r * r)[place] @ mass_v
        radial = (mass_u * (np.exp(log_u) / keys + (1 - 1 / keys))) @ ((slope * b) ** 2)[place] @ mass_v
        turning = (mass_u * np.exp(-log_u) * (d - 1)) @ (r * r)[place] @ (mass_v * np.exp(-log_v) * (keys - 1))
        second = radial + turning
    share = (logit_scale / b) ** 2
    return float(first) * share, float(second) * share


@formula(d=Integers(2, 10**4, scalar=True), d_k=ROWS, relative="1e-13 * (10 + d * d)")
def critical_logit_scale(d: int, d_k: int | None) -> float | None:
    """A logit scale b_c at which Lambda changes sign, or None where nearby tokens meet at b -> inf.

    A zero of Lambda with A and B of `attention_moments`. It exists for d >= 4 and d_k < d - 1, since Lambda is negative
    for small b and positive for b -> inf. That it is the only zero is not proved. For d <= 3 Lambda is negative at
    b -> inf, whatever d_k is. The collapsed state stays stable above b_c: clustering is mitigated only. Ours.
    """
    keys = rows_of(d_k)
    if keys is None or d < 4 or keys >= d - 1:
        return None

    def exponent(log_b: float) -> float:
        first, second = attention_moments(math.exp(log_b), d=d, d_k=keys)
        return float(pair_exponent(first, second, d)) / first

    return math.exp(float(root(exponent, 0.0, 1.0, smallest=-10.0, largest=200.0)))


@formula(beta=Reals(0.0), d=DIMENSION, absolute="1e-15 * (4 * np.exp(-2 * np.minimum(beta, 350)) + 2 / d)")
def antipodal_exponent(beta: ArrayLike, d: ArrayLike) -> Numbers:
    """Lambda = [(d-3) - (d-1) tanh^2 beta]/d of log(1+R) for two tokens alone, nearly antipodal, with Q^T K = I.

    Antipodal pairs attract iff cosh(2 beta) > d - 2 (arXiv:2601.21942): A = tanh^2 beta and B = 1. Computed as
    [(d-1) sech^2 beta - 2]/d.
    """
    return (d - 1) / d / np.cosh(np.minimum(beta, 350.0)) ** 2 - 2 / d


@formula(d=Integers(2, scalar=True), d_k=ROWS, relative=4e-16)
def zero_temperature_exponent(d: int, d_k: int | None) -> float:
    """Lambda at b = inf for infinitely many uniform tokens; d >= 4: (d-1)(d-1-d_k)/(d (d-2)(d_k-2)), 0 at d_k = d-1.

    For d >= 4 it is positive iff d_k < d - 1 (+inf for d_k <= 2), and d_k = None (Q^T K with independent Gaussian
    entries) has -(d-1)/(d (d-2)). For d = 3 it is -2/3 and for d = 2 -inf, whatever d_k is. These are the limits
    b -> inf of Lambda with `attention_moments`. Ours.
    """
    keys = rows_of(d_k)
    if d == 2:
        return -math.inf
    if d == 3:
        return -2 / 3
    if keys is None:
        return -(d - 1) / (d * (d - 2))
    return math.inf if keys <= 2 else (d - 1) * (d - 1 - keys) / (d * (d - 2) * (keys - 2))


def _ratio(d: int, kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """r = I_{d/2}/I_{d/2-1} and its derivative, r (1/kappa - r + I_{d/2+1}/I_{d/2}) = 1 - r^2 - (d-1) r/kappa."""
    order = d / 2 - 1
    r, following = np.moveaxis(bessel_ratios(order, kappa, 2), -1, 0)
    gap = bessel_gap(order, kappa)
    return r, np.where(kappa < d, r * (1 / kappa - (r - following)), gap * (2 - gap) - (d - 1) * r / kappa)


def _step(k: int, other: int | None) -> float:
    """The step in log U for U ~ chi^2_k: a multiple of the one for the other variable, if that is finer."""
    coarse, fine = (min(0.2, 0.35 * math.sqrt(2 / size)) for size in (k, max(k, other or 1)))
    return fine * math.floor(coarse / fine)


def _log_chi2(k: int, b: float, step: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Equidistant log U for U ~ chi^2_k, their masses and step: all that matters to E r^2/U at logit scale b.

    The density of x = log(U/k) falls like exp((k/2) (x - e^x + 1)), for E r^2/U with k - 2 instead of k; where
    k <= 2, r^2 ~ b^2 U cuts it off.
    """
    lowest = -2 * math.log1p(b) - 2 * math.log(k) - 80.0
    if k > 2:
        # exp((k/2-1) (x - e^x + 1)) = e^-44
        level = 1 + 88 / (k - 2)
        lowest = max(lowest, -level - float(lambertw(-math.exp(-level)).real))
    level = 1 + 88 / k
    highest = -level - float(lambertw(-math.exp(-level), -1).real) if level < 700 else math.log(level + 10)
    x = lowest + step * np.arange(math.ceil((highest - lowest) / step) + 1)
    mass = np.exp(k / 2 * (x - np.expm1(x)))
    return x + math.log(k), mass / mass.sum(), step


def _stretch(k: int) -> float:
    """E (k-1)/U for U ~ chi^2_k."""
    return (k - 1) / (k - 2) if k > 2 else math.inf
