"""One attention layer over a long context: when beta = c log n keeps tokens apart."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from attnflow.errors import InvalidInput
from attnflow.special.bessel import log_scaled_bessel
from attnflow.special.numbers import Numbers


def long_context_overlap(c: ArrayLike, n: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """Cosine between two outputs of one softmax attention layer with beta = c log n on n equiangular unit inputs.

    Output i is parallel to (1-e) x_i + e sum_k x_k with e = n^{-c (1-overlap)}; with r = e/(1-e), s = 1+(n-1)overlap
    and X = 2 r s + r^2 n s the cosine is (overlap + X)/(1 + X): exact for every n, in logarithms, so that n may be
    any float up to 1e300. No residual connection, identity values (arXiv:2510.05554). c >= 0, n >= 2 and
    -1/(n-1) <= overlap <= 1 broadcast.
    """
    c, n, overlap = np.broadcast_arrays(_numbers("c", c), _numbers("n", n), _numbers("overlap", overlap))
    if (c < 0).any():
        raise InvalidInput(f"c is {c!r}; it must be at least 0.")
    if (n < 2).any():
        raise InvalidInput(f"n is {n!r}; it must be at least 2.")
    if ((overlap > 1) | (overlap < -1 / (n - 1))).any():
        raise InvalidInput(f"overlap is {overlap!r}; n tokens need -1/(n-1) <= overlap <= 1.")
    exponent = c * (1 - overlap) * np.log(n)
    with np.errstate(divide="ignore", over="ignore"):
        # an exponent of 0 weighs all tokens alike: r and X are infinite, and the outputs coincide
        log_r = -exponent - np.log(-np.expm1(-exponent))
        log_s = np.log(np.maximum(1 + (n - 1) * overlap, 0.0))  # the simplex may round to just below 0
        log_x = log_s + np.logaddexp(np.log(2) + log_r, 2 * log_r + np.log(n))
    spread = np.exp(-np.abs(log_x))
    return np.where(log_x > 0, (1 + overlap * spread) / (1 + spread), (overlap + spread) / (1 + spread))


def long_context_limit(c: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """The limit of `long_context_overlap` as n grows: 1 below the threshold in c, `overlap` above it.

    At c = 1/(1-overlap) itself (to a few units in the last place) it is 4 overlap/(1 + 3 overlap). The approach is
    only as fast as n^{-|c (1-overlap) - 1|} (arXiv:2510.05554). c >= 0 and 0 < overlap < 1; orthogonal inputs are
    another case, with threshold 1/2, because there the mean of the inputs vanishes.
    """
    c, overlap = np.broadcast_arrays(_numbers("c", c), _between(overlap))
    if (c < 0).any():
        raise InvalidInput(f"c is {c!r}; it must be at least 0.")
    place = c * (1 - overlap)
    above = np.where(np.abs(place - 1) <= 1e-15, 4 * overlap / (1 + 3 * overlap), overlap)
    return np.where(place < 1 - 1e-15, 1.0, above)


def long_context_threshold(overlap: ArrayLike) -> Numbers:
    """The c at which beta = c log n stops collapsing a long context: 1/(1 - overlap), 0 < overlap < 1.

    There a token weighs itself as much as all others together (arXiv:2510.05554).
    """
    return 1 / (1 - _between(overlap))


def exponential_moments(b: ArrayLike, d: float) -> tuple[np.ndarray, np.ndarray]:
    """log M(b) and M'(b)/M(b), M(b) = E e^{b <u, v>}, for u uniform on the sphere of R^d and a fixed unit vector v.

    M(b) = Gamma(d/2) (2/b)^nu I_nu(b) and M'/M = I_{nu+1}(b)/I_nu(b) with nu = d/2 - 1: the integral representation of
    Bessel's functions. b > 0, d >= 2; for d = inf the overlap <u, v> is 0, so that log M = M'/M = 0.
    """
    b = _numbers("b", b)
    if (b <= 0).any():
        raise InvalidInput(f"b is {b!r}; it must be positive.")
    if not d >= 2:
        raise InvalidInput(f"d is {d!r}; it must be at least 2.")
    if np.isinf(d):
        return np.zeros_like(b), np.zeros_like(b)
    nu = d / 2 - 1
    first, second = log_scaled_bessel(nu, b), log_scaled_bessel(nu + 1, b)
    return np.asarray(gammaln(nu + 1) + nu * np.log(2 / b) + first + b), np.exp(second - first)


def long_context_iid_overlap(c: ArrayLike, *, n: float, d: float, overlap: float) -> np.ndarray:
    """Cosine of the outputs at the opposite queries u_1 = -u_2 of one layer with beta = c log n on iid tokens.

    Tokens are x_j = sqrt(rho) e + sqrt(1-rho) u_j, rho = `overlap`, u_j uniform on the unit sphere orthogonal to e in
    R^d. With b = beta (1-rho) and M of `exponential_moments` in dimension d - 1, the other tokens weigh
    W = (n-2) e^{-b} M(b) in the mean and point to sqrt(rho) e + sqrt(1-rho) (M'/M) u_1; a token itself weighs 1, its
    opposite e^{-2b}. Fluctuations of the sums over the others are left out: n large. In the limit d -> inf the overlaps
    are all rho, up to that of the two queries.
    """
    c, rho = _numbers("c", c), float(_between(overlap))
    b = c * np.log(n) * (1 - rho)
    log_mean, slope = exponential_moments(b, d - 1)
    others = (n - 2) * np.exp(log_mean - b)
    across = (1 - np.exp(-2 * b) + others * slope) / (1 + others + np.exp(-2 * b))
    ratio = (1 - rho) / rho * across**2
    return np.asarray((1 - ratio) / (1 + ratio))


def _numbers(name: str, value: ArrayLike) -> np.ndarray:
    found = np.asarray(value, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InvalidInput(f"{name} is {value!r}; it must be finite.")
    return found


def _between(overlap: ArrayLike) -> np.ndarray:
    found = _numbers("overlap", overlap)
    if not ((found > 0) & (found < 1)).all():
        raise InvalidInput(f"overlap is {overlap!r}; a long context needs 0 < overlap < 1.")
    return found
