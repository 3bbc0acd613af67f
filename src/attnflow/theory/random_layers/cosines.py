"""How random matrices move angles: the cosine of two images, and the drift it makes at zero temperature."""

import math

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_dimension, checked_keys, checked_reals


def mean_cosine(overlap: ArrayLike, d: int, *, d_k: int | None = None) -> np.ndarray:
    """E cos(A x, A y) for unit vectors with <x, y> = overlap and a random d x d matrix A.

    d_k = None: A has independent Gaussian entries, and the mean is (2/d) (Gamma((d+1)/2)/Gamma(d/2))^2 R
    2F1(1/2, 1/2; d/2+1; R^2) = R - (R-R^3)/(2d) + ..., computed as R J(d, 1-R^2)/J(d, 0) with
    J(m, a) = int sech^m(y)/sqrt(1 + a sinh^2 y) dy, which has positive terms only. Else A = Q^T K with d_k rows, where
    the mean is taken over Fisher's density of the cosine r of K x and K y, R - (R-R^3) (1/(2d) + 1/(2 d_k)) + ...:
    the constant 1/d for d_k = d (arXiv:2604.01978 is transcribed with 1/(2d), which is that of one matrix). Ours.
    """
    d, keys = checked_dimension(d), checked_keys(d_k)
    r = checked_reals("overlap", overlap, -1.0)
    if (r > 1).any():
        raise InvalidInput(f"overlap is {overlap!r}; unit vectors have overlaps between -1 and 1.")
    if keys is None:
        return _one_matrix(r, 1 - r * r, d)
    if keys == 1:  # a single row leaves the sign alone
        return np.asarray(2 / np.pi * np.arcsin(r))
    flat = [one if abs(one) == 1 else _product(one, d, keys) for one in r.ravel()]
    return np.reshape(np.array(flat, dtype=np.float64), r.shape)


def cosine_drift_constant(d: int, *, d_k: int | None = None, kind: str = "product") -> float:
    """c in dR = -c R (1-R^2) du + sqrt(2) (1-R^2) dB: two tokens at zero temperature, d -> inf, time u = tau/d.

    "product", A = Q^T K with d_k rows (None for d_k = d): 3/2 + d/(2 d_k). "iid", independent Gaussian entries: 3/2.
    "orthogonal", a random rotation: 1, where P(R -> 1) = 1/2 + arcsin(R_0)/pi. The pair exponent vanishes at c = 2:
    absorption at +-1 on this scale does not follow for d_k = d. arXiv:2604.01978 is transcribed with c = 1 for the
    product; the constants here are ours, checked by sampling.
    """
    d, keys = checked_dimension(d), checked_keys(d_k)
    if kind == "product":
        return 1.5 + d / (2 * (keys or d))
    if kind not in ("iid", "orthogonal"):
        raise InvalidInput(f"kind is {kind!r}; use 'product', 'iid' or 'orthogonal'.")
    return 1.5 if kind == "iid" else 1.0


def _one_matrix(r: np.ndarray, defect: np.ndarray, d: int) -> np.ndarray:
    """E cos for one Gaussian matrix; `defect` is 1 - r^2."""
    total, _ = _integral(d, np.append(np.ravel(defect), 0.0))
    return np.asarray(r * (total[:-1] / total[-1]).reshape(np.shape(r)))


def _integral(power: float, a: np.ndarray) -> tuple[Numbers, float]:
    """J(power, a), and its step. The integrand is analytic for |Im y| < pi/2 whatever a in [0, 1]."""
    reach = math.acosh(math.exp(44 / power)) if power < 44 else math.sqrt(88 / power) * 1.3
    step = min(0.2, 0.4 / math.sqrt(power))
    y = step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
    weights = step * np.exp(-power * np.log(np.cosh(y)))
    return np.sum(weights / np.sqrt(1 + a[:, None] * np.sinh(y) ** 2), axis=1), step


def _product(overlap: float, d: int, keys: int) -> float:
    """The mean of `_one_matrix` over the cosine r = tanh(x) of two Gaussian vectors of R^keys with correlation overlap.

    Fisher's density of x is proportional to sech^{k-1}(x) (1-R r)^{1/2-k} J(2k-1, (1-R r)/2), k = keys.
    """
    centre = math.atanh(overlap)
    reach = 48.0 / (keys - 1) + 9.0 / math.sqrt(keys)
    step = min(0.2, 0.35 / math.sqrt(keys))
    x = centre + step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
    r = np.tanh(x)
    left = 1 - overlap * r
    inner, _ = _integral(2 * keys - 1, left / 2)
    log_density = -(keys - 1) * np.logaddexp(x, -x) - (keys - 0.5) * np.log(left) + np.log(inner)
    density = np.exp(log_density - log_density.max())
    images = _one_matrix(r, 1 / np.cosh(x) ** 2, d)
    return float(density @ images / density.sum())
