"""How random matrices move angles: the cosine of two images, and the drift it makes at zero temperature."""

import math

import numpy as np

from attnflow.special.formula import Integers, Word, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.random_layers._domains import OVERLAP, ROWS, rows_of

DIMENSION = Integers(2, scalar=True)


@formula(overlap=OVERLAP, d=DIMENSION, d_k=ROWS, relative=4e-14)
def mean_cosine(overlap: ArrayLike, d: int, *, d_k: int | None = None) -> Numbers:
    """E cos(A x, A y) for unit vectors with <x, y> = overlap and a random d x d matrix A.

    d_k = None: A has independent Gaussian entries, and the mean is (2/d) (Gamma((d+1)/2)/Gamma(d/2))^2 R
    2F1(1/2, 1/2; d/2+1; R^2) = R - (R-R^3)/(2d) + ..., computed as R J(d, 1-R^2)/J(d, 0) with
    J(m, a) = int sech^m(y)/sqrt(1 + a sinh^2 y) dy, which has positive terms only. Else A = Q^T K with d_k rows, where
    the mean is taken over Fisher's density of the cosine r of K x and K y, R - (R-R^3) (1/(2d) + 1/(2 d_k)) + ...:
    the constant 1/d for d_k = d (arXiv:2604.01978 is transcribed with 1/(2d), which is that of one matrix). Ours.

    Arguments:
        overlap: R.
        d: dimension.
        d_k: number of rows of Q and K.
    """
    keys = rows_of(d_k)
    if keys is None:
        return _one_matrix(overlap, 1 - overlap * overlap, d)
    if keys == 1:  # a single row leaves the sign alone
        return 2 / np.pi * np.arcsin(overlap)
    means = [r if abs(r) == 1 else _product(r, d, keys) for r in overlap.ravel()]
    return np.reshape(np.array(means), overlap.shape)[()]


@formula(d=DIMENSION, d_k=ROWS, kind=Word(("product", "iid", "orthogonal")), relative=4e-16)
def cosine_drift_constant(d: int, *, d_k: int | None = None, kind: str = "product") -> float:
    """c in dR = -c R (1-R^2) du + sqrt(2) (1-R^2) dB: two tokens at zero temperature, d -> inf, time u = tau/d.

    "product", A = Q^T K with d_k rows (None for d_k = d): 3/2 + d/(2 d_k). "iid", independent Gaussian entries: 3/2.
    "orthogonal", a random rotation: 1, where P(R -> 1) = 1/2 + arcsin(R_0)/pi. The pair exponent vanishes at c = 2:
    absorption at +-1 on this scale does not follow for d_k = d. arXiv:2604.01978 is transcribed with c = 1 for the
    product; the constants here are ours, checked by sampling.

    Arguments:
        d: dimension.
        d_k: number of rows of Q and K.
        kind: the random matrix.
    """
    if kind == "product":
        return 1.5 + d / (2 * (rows_of(d_k) or d))
    return 1.5 if kind == "iid" else 1.0


def _one_matrix(r: np.ndarray, defect: np.ndarray, d: int) -> Numbers:
    """E cos for one Gaussian matrix; `defect` is 1 - r^2."""
    totals = _integrals(d, np.append(np.ravel(defect), 0.0))
    return r * (totals[:-1] / totals[-1]).reshape(np.shape(r))


def _log_cosh(x: np.ndarray) -> np.ndarray:
    """log cosh x, with all its digits for small x too."""
    return np.where(np.abs(x) < 1, np.log1p(np.sinh(np.clip(x, -1, 1)) ** 2) / 2, np.logaddexp(x, -x) - math.log(2))


def _grid(power: float) -> np.ndarray:
    """Equidistant y around 0 that serve sech^power(y) times a function without poles at |Im y| < pi/2.

    The trapezoidal rule is then accurate to e^(-pi^2/step), and to e^(-2 pi^2/0.16) for the peak of width power^(-1/2).
    """
    reach = math.acosh(math.exp(44 / power)) if power < 44 else math.sqrt(88 / power) * 1.3
    step = min(0.2, 0.4 / math.sqrt(power))
    count = math.ceil(reach / step)
    return step * np.arange(-count, count + 1)


def _integrals(power: float, a: np.ndarray) -> Numbers:
    """J(power, a) for a in [0, 1], up to a common factor."""
    y = _grid(power)
    return np.sum(np.exp(-power * _log_cosh(y)) / np.sqrt(1 + a[:, None] * np.sinh(y) ** 2), axis=1)


def _product(overlap: float, d: int, keys: int) -> float:
    """The mean of `_one_matrix` over the cosine r = tanh(x) of two Gaussian vectors of R^keys with correlation overlap.

    Fisher's density of y = x - artanh R is proportional to sech^{k-1/2}(y) sqrt(cosh x) J(2k-1, (1-R r)/2), k = keys,
    with 1 - R r = cosh y/(cosh x cosh artanh R), which has no difference of near-equal numbers.
    """
    centre = math.atanh(overlap)
    y = _grid(keys - 1)
    x = centre + y
    log_left = _log_cosh(y) - _log_cosh(x) - _log_cosh(np.asarray(centre))
    inner = _integrals(2 * keys - 1, np.minimum(np.exp(log_left) / 2, 1.0))
    log_density = _log_cosh(x) / 2 - (keys - 0.5) * _log_cosh(y) + np.log(inner)
    density = np.exp(log_density - log_density.max())
    images = _one_matrix(np.tanh(x), np.exp(-2 * _log_cosh(x)), d)
    return float(density @ images / density.sum())
