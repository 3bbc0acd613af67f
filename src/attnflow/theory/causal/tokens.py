"""Causal attention for N tokens: the matrix exp(cW) of correlations, its last row, and the noise of a prefix.

W is the strictly lower triangular matrix of the weights of ALiBi, w_ik = r^{i-k-1}/(1 + r + ... + r^{i-2}) with
r = e^{-slope/N}; `slope` is the slope per token times N. To first order in 1/N around iid uniform tokens,
E P_k(<x_i(t), x_j(0)>) = [exp(cW)]_ij with the scaled time c = a_k t (arXiv:2605.09213). `dilution` is the weight of a
token on itself in softmax, `softmax_dilution(beta, d)`, which makes w_ik = v_ik/(sum_{k<i} v_ik + dilution), v_ik =
r^{i-k} (ours); None leaves the token itself out. All sums have positive terms, so that entries above 1e-100 keep their
relative accuracy.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import exprel, i0e, i1e

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Optional, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike
from attnflow.theory.causal.continuum import LARGEST_SLOPE, SLOPE, TIME, in_range, log_unit_growth
from attnflow.wording import shown

DENSE = Integers(2, 2000, scalar=True)
"""Numbers of tokens for which an N by N matrix is made."""
MANY = Integers(2, 10_000_000, scalar=True)
SCALAR_SLOPE = Reals(0.0, LARGEST_SLOPE, scalar=True)
SCALAR_TIME = Reals(0.0, 700.0, scalar=True)
"""Scaled times for which e^c is a float."""
SELF_WEIGHT = Optional(Reals(0.0, 1e300, scalar=True))
ENTRIES = "5e-16 * (20 + 2 * c + 0.5 * min(slope, 700.0)) * (1 + 0.1 * n**0.5)"
"""Error of an entry of exp(cW): of powers of r, and of sums of n terms in each of some 2 c terms of the series."""


@formula(n=DENSE, slope=SCALAR_SLOPE, dilution=SELF_WEIGHT, relative="3e-16 * (20 + min(slope, 700.0))")
def weights(n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """The matrix W of causal weights for n tokens, strictly lower triangular, shape (n, n).

    w_ik = r^{i-k-1}/(1 + r + ... + r^{i-2}) with r = e^{-slope/n}. Rows 2, ..., n sum to 1, or with dilution to
    S/(S + dilution), S = sum_{k<i} r^{i-k} (arXiv:2605.09213).

    Arguments:
        n: number of tokens.
        slope: slope of ALiBi per token times n.
        dilution: weight of a token on itself in softmax, `softmax_dilution`; None or 0 leaves it out.
    """
    seen = _seen(n, slope, dilution)
    i = np.arange(n)
    gaps = np.maximum(i[:, None] - i - 1, 0)
    return np.where(i[:, None] > i, np.exp(-slope * gaps / n), 0.0) / seen[:, None]


@formula(c=SCALAR_TIME, n=DENSE, slope=SCALAR_SLOPE, dilution=SELF_WEIGHT, relative=ENTRIES, absolute=1e-99)
def correlation_matrix(c: float, n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """exp(cW) for n <= 2000 tokens: entry (i, j) is E P_k(<x_i(t), x_j(0)>) at c = a_k t, to first order in 1/n.

    The Taylor series, column by column through the recursion of `weights` (arXiv:2605.09213). Rows sum to e^c in
    the limit of long rows without dilution; the diagonal is 1, for the theory leaves 1 - O(1/n) out.

    Arguments:
        c: scaled time.
        n: number of tokens.
        slope: slope of ALiBi per token times n.
        dilution: weight of a token on itself in softmax, `softmax_dilution`; None or 0 leaves it out.
    """
    return _matrix(c, n, slope, dilution)


@formula(
    c=Reals(0.0, 300.0, scalar=True),
    n=DENSE,
    slope=SCALAR_SLOPE,
    dilution=SELF_WEIGHT,
    relative=ENTRIES,
    absolute=1e-80,
)
def equal_time_correlations(c: float, n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """exp(cW) exp(cW^T) for n <= 2000 tokens: entry (i, j), i != j, is E P_k(<x_i(t), x_j(t)>) at c = a_k t.

    Holds to first order in 1/n (ours, checked by simulation); on the diagonal the truth is 1, this is 1 + O(1/n).

    Arguments:
        c: scaled time.
        n: number of tokens.
        slope: slope of ALiBi per token times n.
        dilution: weight of a token on itself in softmax, `softmax_dilution`; None or 0 leaves it out.
    """
    matrix = _matrix(c, n, slope, dilution)
    return np.asarray(matrix @ matrix.T)


@formula(c=SCALAR_TIME, n=MANY, slope=SCALAR_SLOPE, dilution=SELF_WEIGHT, relative=ENTRIES, absolute=1e-99)
def last_row_correlations(c: float, n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """The last row of exp(cW): E P_k(<x_n(t), x_j(0)>) for j = 1, ..., n, the retrieval profile of the last token.

    The Taylor series of exp(cW^T) e_n, each term by one scan with decay from the end, until no entry above
    1e-100 changes (arXiv:2605.09213 for exp(cW)). About c + 6 sqrt(c) + 20 terms, more at large slope. n times it tends
    to `correlation` at place 1.

    Arguments:
        c: scaled time.
        n: number of tokens.
        slope: slope of ALiBi per token times n.
        dilution: weight of a token on itself in softmax, `softmax_dilution`; None or 0 leaves it out.
    """
    unit = np.zeros(n)
    unit[-1] = 1.0
    return _adjoint(c, unit, slope, dilution)


@formula(c=TIME, slope=SCALAR_SLOPE, relative="2e-12 if slope > 0 else 1e-15 * (10 + 4 * np.minimum(c, 200.0))")
def prefix_noise(c: ArrayLike, *, slope: float = 0.0) -> np.ndarray:
    """n E|F|^2 for the mean F = (1/n) sum_j e^{ik theta_j} of n iid uniform tokens at the scaled time c, many tokens.

    e^{2c} I_0(2c) at slope 0, near e^{4c}/sqrt(4 pi c): the mean of a prefix has norm 2 on L^2, so that noise grows at
    twice the rate of a signal; without a mask it is e^{2c} (ours). In general it is the integral over s of
    (1 + integral of g(p, s) dp)^2 with g of `correlation`; for large slope it tends to e^{2c}. Linear theory: n must be
    much larger. Beyond float range, near c = 178, and with slope > 0 beyond c = 50, it is refused.

    Arguments:
        c: scaled times.
        slope: slope of ALiBi per token times the number of tokens.
    """
    if slope > 0:
        return _noises(c, slope)
    with np.errstate(over="ignore"):
        half = np.exp(2 * np.minimum(c, 1e3))  # half of e^{4c}, which leaves float range before the noise does
        return in_range(half * i0e(2 * c) * half, "c", c, "log_prefix_noise")


@formula(c=TIME, slope=SCALAR_SLOPE, relative=2e-15, absolute="2e-12 if slope > 0 else 0.0")
def log_prefix_noise(c: ArrayLike, *, slope: float = 0.0) -> np.ndarray:
    """The logarithm of `prefix_noise`; at slope 0 it is 2c + log I_0(2c) for every c, near 4c.

    Arguments:
        c: scaled times, at most 50 with slope > 0.
        slope: slope of ALiBi per token times the number of tokens.
    """
    if slope > 0:
        return np.asarray(np.log(_noises(c, slope)))
    square = np.minimum(c, 0.1) ** 2
    near = np.log1p(square * (1 + square / 4 * (1 + square / 9 * (1 + square / 16 * (1 + square / 25)))))
    return np.where(c < 0.1, 2 * c + near, 4 * c + np.log(i0e(2 * c)))


@formula(c=Reals(0.0, 200.0), slope=SLOPE, relative="1e-15 * (10 + 4 * c)")
def attended_noise(c: ArrayLike, *, slope: ArrayLike = 0.0) -> np.ndarray:
    """n E|F|^2 for the mean F that the last token attends to, weighted by ALiBi, of n iid uniform tokens at c = a_k t.

    a e^{2c} I_0(2c) + (slope/2) e^c I_0(c) with a = slope/(e^slope - 1) (ours: the integral of (a + slope e^{-y})
    e^{-y} I_0(2 sqrt(c y))^2 over y > 0). Many tokens, linear theory: n must be much larger. Equal to `prefix_noise` at
    slope 0; refused beyond float range, at slope 0 near c = 178.

    Arguments:
        c: scaled times.
        slope: slopes of ALiBi per token times the number of tokens; both broadcast.
    """
    with np.errstate(over="ignore"):
        half = np.exp(2 * c)
        return in_range(
            half / exprel(slope) * i0e(2 * c) * half + slope / 2 * np.exp(2 * c) * i0e(c), "c", c, "a smaller time"
        )


@formula(c=Reals(0.0, 300.0, scalar=True), n=MANY, slope=SCALAR_SLOPE, dilution=SELF_WEIGHT, relative=ENTRIES)
def discrete_prefix_noise(c: float, n: int, *, slope: float = 0.0, dilution: float | None = None) -> float:
    """n E|F|^2 for the mean F of n iid uniform tokens at c = a_k t: |exp(cW^T) 1|^2/n (ours; first order in 1/n).

    The limit for many tokens is `prefix_noise`, approached slowly.

    Arguments:
        c: scaled time.
        n: number of tokens.
        slope: slope of ALiBi per token times n.
        dilution: weight of a token on itself in softmax, `softmax_dilution`; None or 0 leaves it out.
    """
    column_sums = _adjoint(c, np.ones(n), slope, dilution)
    return float(np.mean(column_sums**2))


def _matrix(c: float, n: int, slope: float, dilution: float | None) -> np.ndarray:
    """exp(cW), by columns of its transpose."""
    rate, seen = slope / n, _seen(n, slope, dilution)

    def hear(v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((n, 1)), _scan(v[:, :-1], rate)], axis=1) / seen

    return _exponential(c, np.eye(n), hear).T  # rows of the transpose are contiguous


def _adjoint(c: float, start: np.ndarray, slope: float, dilution: float | None) -> np.ndarray:
    """exp(cW^T) applied to a vector."""
    n = len(start)
    rate, seen = slope / n, _seen(n, slope, dilution)

    def spread(v: np.ndarray) -> np.ndarray:
        return np.append(_scan((v / seen)[:0:-1], rate)[::-1], 0.0)

    return _exponential(c, start, spread)


def _exponential(c: float, start: np.ndarray, apply: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """sum_k c^k apply^k(start)/k!, for terms that are not negative, until no entry above 1e-100 changes."""
    total, term = start.copy(), start
    for k in range(1, len(start)):
        term = c / k * apply(term)
        total += term
        if k > c and np.all(term <= 1e-17 * total + 1e-117):
            break
    return total


def _scan(v: np.ndarray, rate: float) -> np.ndarray:
    """y_i = e^{-rate} y_{i-1} + v_i along the last axis, in blocks over which weights fall by at most e^300."""
    block = v.shape[-1] if rate == 0 else max(1, int(min(300 / rate, v.shape[-1])))
    sums, last = np.empty_like(v), np.zeros((*v.shape[:-1], 1))
    for begin in range(0, v.shape[-1], block):
        part = slice(begin, min(begin + block, v.shape[-1]))
        fall = np.exp(-rate * np.arange(part.stop - begin))
        sums[..., part] = fall * (np.cumsum(v[..., part] / fall, axis=-1) + np.exp(-rate) * last)
        last = sums[..., part.stop - 1 : part.stop]
    return sums


def _seen(n: int, slope: float, dilution: float | None) -> np.ndarray:
    """1 + r + ... + r^{i-2} for i = 1, ..., n (1 for i = 1, which hears nobody), plus dilution/r."""
    i = np.maximum(np.arange(n), 1)
    others = i * exprel(-slope * i / n) / exprel(-slope / n)
    if not dilution:
        return np.asarray(others)
    with np.errstate(over="ignore"):
        half = np.exp(slope / n / 2)  # half of 1/r, which leaves float range before its product with a small dilution
        return np.asarray(others + half * dilution * half)


def _noises(c: np.ndarray, slope: float) -> np.ndarray:
    """`prefix_noise` at slope > 0 for every time."""
    if (c > 50).any():
        raise InvalidInput(f"`c` is {shown(c)}; with `slope` > 0 the noise needs c <= 50, slope 0 has a closed form.")
    return np.array([_noise(float(time), slope) for time in c.ravel()]).reshape(c.shape)


def _noise(c: float, slope: float) -> float:
    """The integral of `prefix_noise` in y = log(u(1)/u(s)), where ds = y' (1 - e^{-slope s})/slope."""
    log_last = float(log_unit_growth(np.asarray(slope)))  # log u(1)

    def path(x: np.ndarray, q: np.ndarray) -> np.ndarray:
        y, z, top = x * x, np.maximum(2 * np.sqrt(c) * x, 1e-100), np.maximum(q, 0)
        # psi_c(y) with the part (1 + u)/(1 + u e^y) of the weights, both divided by u where it is above 1
        part = (np.exp(-top) + np.exp(q - top)) / (np.exp(-top) + np.exp(q - top + y))
        return 2 * x * c * (2 * i1e(z) / z) * np.exp(z) * part

    def squares(y: np.ndarray) -> np.ndarray:
        q = log_last - y  # log u(s)
        # the sum over places after s ends at the last token; beyond e^{-64} is left
        end = np.minimum(np.sqrt(y), np.sqrt(np.maximum(-q, 0.0)) + np.sqrt(c) + 8)
        return np.asarray((1 + integral(path, 0.0, end, q)) ** 2 / (1 + np.exp(-q)) / slope)

    with np.errstate(over="ignore"):
        edge, last = (np.sqrt(c) + 8) ** 2, max(log_last, 0.0) + (2 * np.sqrt(c) + 8) ** 2
        # between its two ends, a few units wide, a steep slope leaves a plateau of e^{2c}
        points = [edge / 4, edge / 2, edge, log_last - 40, log_last - 9, log_last, log_last + 9, log_last + edge]
        return float(integral(squares, 0.0, last, points=points, rtol=1e-12))
