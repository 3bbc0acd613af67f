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
from numpy.typing import ArrayLike
from scipy.special import exprel, ive

from attnflow.errors import InvalidInput
from attnflow.theory.causal.continuum import (
    LARGEST_LOG,
    checked_amount,
    checked_slope,
    checked_time,
    gauss_panels,
    hop_sum,
    log_unit_growth,
)
from attnflow.theory.checks import checked_integers

DENSE = 2000
"""The largest number of tokens for which an N by N matrix is made."""
LONGEST = 10_000_000


def weights(n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """The matrix W of causal weights for n tokens, strictly lower triangular, shape (n, n), n <= 2000.

    Rows 2, ..., n sum to 1, or with dilution to S/(S + dilution), S = sum_{k<i} r^{i-k} (arXiv:2605.09213).
    """
    n, slope = _size(n, DENSE), float(_one("slope", slope))
    seen = _seen(n, slope, dilution)
    i = np.arange(n)
    gaps = np.maximum(i[:, None] - i - 1, 0)
    return np.where(i[:, None] > i, np.exp(-slope / n * gaps), 0.0) / seen[:, None]


def correlation_matrix(c: float, n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """exp(cW) for n <= 2000 tokens: entry (i, j) is E P_k(<x_i(t), x_j(0)>) at c = a_k t, to first order in 1/n.

    The Taylor series, column by column through the recursion of `weights` (arXiv:2605.09213). Rows sum to e^c in
    the limit of long rows without dilution; the diagonal is 1, for the theory leaves 1 - O(1/n) out. c <= 700.
    """
    n = _size(n, DENSE)
    rate, seen = float(_one("slope", slope)) / n, _seen(n, slope, dilution)

    def hear(v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((n, 1)), _scan(v[:, :-1], rate)], axis=1) / seen

    return _exponential(_finite_time(c), np.eye(n), hear).T  # rows of the transpose are contiguous


def equal_time_correlations(c: float, n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """exp(cW) exp(cW^T) for n <= 2000 tokens: entry (i, j), i != j, is E P_k(<x_i(t), x_j(t)>) at c = a_k t.

    Holds to first order in 1/n (ours, checked by simulation); on the diagonal the truth is 1, this is 1 + O(1/n).
    """
    found = correlation_matrix(c, n, slope, dilution=dilution)
    return np.asarray(found @ found.T)


def last_row_correlations(c: float, n: int, slope: float, *, dilution: float | None = None) -> np.ndarray:
    """The last row of exp(cW): E P_k(<x_n(t), x_j(0)>) for j = 1, ..., n, the retrieval profile of the last token.

    The Taylor series of exp(cW^T) e_n, each term by one scan with decay from the end, until no entry above
    1e-100 changes (arXiv:2605.09213 for exp(cW)). About c + 6 sqrt(c) + 20 terms, more at large slope; n <= 10^7 and
    c <= 700. n times it tends to `correlation` at place 1.
    """
    n = _size(n, LONGEST)
    unit = np.zeros(n)
    unit[-1] = 1.0
    return _adjoint(_finite_time(c), unit, float(_one("slope", slope)), dilution)


def prefix_noise(c: ArrayLike, *, slope: float = 0.0) -> np.ndarray:
    """n E|F|^2 for the mean F = (1/n) sum_j e^{ik theta_j} of n iid uniform tokens at the scaled time c, many tokens.

    e^{2c} I_0(2c) at slope 0, near e^{4c}/sqrt(4 pi c): the mean of a prefix has norm 2 on L^2, so that noise grows at
    twice the rate of a signal; without a mask it is e^{2c} (ours). In general it is the integral over s of
    (1 + integral of g(p, s) dp)^2 with g of `correlation`, by quadrature to about 1e-11; for large slope
    it tends to e^{2c}. Linear theory: n must be much larger. Up to c near 178, with slope > 0 to 50.
    """
    logs = log_prefix_noise(c, slope=slope)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"c is {c!r}; the noise leaves float range there, use log_prefix_noise.")
    return np.asarray(np.exp(logs))


def log_prefix_noise(c: ArrayLike, *, slope: float = 0.0) -> np.ndarray:
    """The logarithm of `prefix_noise`; at slope 0 for every c, near 4c."""
    times, slope = checked_time(c), float(_one("slope", slope))
    if slope == 0:
        return np.asarray(4 * times + np.log(ive(0, 2 * times)))
    if (times > 50).any():
        raise InvalidInput(f"c is {c!r}; the quadrature at slope > 0 needs c <= 50, slope 0 has a closed form.")
    return np.log([_noise(float(one), slope) for one in times.ravel()]).reshape(times.shape)


def attended_noise(c: ArrayLike, *, slope: ArrayLike = 0.0) -> np.ndarray:
    """n E|F|^2 for the mean F that the last token attends to, weighted by ALiBi, of n iid uniform tokens at c = a_k t.

    a e^{2c} I_0(2c) + (slope/2) e^c I_0(c) with a = slope/(e^slope - 1) (ours: the integral of (a + slope e^{-y})
    e^{-y} I_0(2 sqrt(c y))^2 over y > 0). Many tokens, linear theory: n must be much larger. Equal to `prefix_noise` at
    slope 0; refused beyond float range, c near 175.
    """
    times, slopes = np.broadcast_arrays(checked_time(c), checked_slope(slope))
    if (times > 175).any():
        raise InvalidInput(f"c is {c!r}; the noise leaves float range beyond 175, give a smaller c.")
    share = 1 / exprel(np.minimum(slopes, 700.0))
    return np.asarray(share * np.exp(4 * times) * ive(0, 2 * times) + slopes / 2 * np.exp(2 * times) * ive(0, times))


def discrete_prefix_noise(c: float, n: int, *, slope: float = 0.0, dilution: float | None = None) -> float:
    """n E|F|^2 for the mean F of n iid uniform tokens at c = a_k t: |exp(cW^T) 1|^2/n (ours; first order in 1/n).

    The limit for many tokens is `prefix_noise`, approached slowly. n <= 10^7, c <= 700.
    """
    n = _size(n, LONGEST)
    column_sums = _adjoint(_finite_time(c), np.ones(n), float(_one("slope", slope)), dilution)
    return float(np.mean(column_sums**2))


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
    found, last = np.empty_like(v), np.zeros((*v.shape[:-1], 1))
    for begin in range(0, v.shape[-1], block):
        part = slice(begin, min(begin + block, v.shape[-1]))
        fall = np.exp(-rate * np.arange(part.stop - begin))
        found[..., part] = fall * (np.cumsum(v[..., part] / fall, axis=-1) + np.exp(-rate) * last)
        last = found[..., part.stop - 1 : part.stop]
    return found


def _seen(n: int, slope: float, dilution: float | None) -> np.ndarray:
    """1 + r + ... + r^{i-2} for i = 1, ..., n (1 for i = 1, which hears nobody), plus dilution/r."""
    i = np.maximum(np.arange(n), 1)
    found = i * exprel(-slope * i / n) / exprel(-slope / n)
    if dilution is None or not _one("dilution", dilution):
        return np.asarray(found)
    with np.errstate(over="ignore"):
        return np.asarray(found + dilution * np.exp(slope / n))


def _noise(c: float, slope: float) -> float:
    """The integral of `prefix_noise` in y = log(u(1)/u(s)), where ds = y' (1 - e^{-slope s})/slope."""
    v = float(log_unit_growth(np.asarray(slope)))
    edge, last = (np.sqrt(c) + 8) ** 2, max(v, 0.0) + (2 * np.sqrt(c) + 8) ** 2
    # between its two ends, a few units wide, a steep slope leaves a plateau of e^{2c}: one panel
    flat = v - 40 > edge
    edges = np.arange(0.0, edge if flat else last, 3.0)
    edges = np.concatenate([edges, [v - 40.0], np.arange(v - 37.0, last, 3.0)] if flat else [edges, [last]])
    y, weights = gauss_panels(edges, 24)
    q = (v - y)[:, None]  # log u(s)
    end = np.minimum(np.sqrt(y), np.sqrt(np.maximum(-q[:, 0], 0.0)) + np.sqrt(c) + 8)[:, None]
    nodes, inner = gauss_panels(np.linspace(0.0, 1.0, 2 + int(np.max(end))), 24)
    stops = (end * nodes) ** 2
    paths = hop_sum(c, stops) * np.exp(np.logaddexp(0, q) - np.logaddexp(0, q + stops))
    heard = 1 + np.sum(2 * end**2 * nodes * inner * paths, axis=1)
    return float(np.sum(weights * heard**2 / (1 + np.exp(-q[:, 0]))) / slope)


def _one(name: str, value: float) -> np.ndarray:
    found = checked_slope(value) if name == "slope" else checked_amount(name, value)
    if found.ndim:
        raise InvalidInput(f"{name} is {value!r}; give one number.")
    return found


def _finite_time(c: float) -> float:
    found = float(_one("c", c))
    if found > 700:
        raise InvalidInput(f"c is {c!r}; exp(c) leaves float range beyond 700, give a smaller c.")
    return found


def _size(n: int, most: int) -> int:
    found = checked_integers("n", n, 2)
    if found.ndim or found > most:
        raise InvalidInput(f"n is {n!r}; give one number of tokens, at most {most}.")
    return int(found)
