"""Equilibria of equal tokens: spectra that can be written down, and what topology says about a list of them."""

import itertools
import math

import numpy as np
from numpy.polynomial import polynomial as poly
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_dimension, checked_integers
from attnflow.theory.landscape.rings import ring_growth_rates


def antipodal_spectrum(*, n: int, d: int, first: int, beta: float) -> np.ndarray:
    """Eigenvalues of USA0 at two antipodal groups of equal tokens, `first` of n in one of them; largest first.

    With masses a = first/n and b = 1 - a: 0 (rotation), e^{-2 beta} (the groups turn towards each other),
    -a + b e^{-2 beta} (first - 1 times) and -b + a e^{-2 beta} (n - first - 1 times), each d - 1 times. first = n is
    consensus: 0 and -1.
    """
    d, beta = checked_dimension(d), float(checked_beta(beta))
    if not 1 <= first <= n:
        raise InvalidInput(f"first is {first!r}; it must be from 1 to n = {n!r}.")
    a, b, far = first / n, 1 - first / n, math.exp(-2 * beta)
    rates = [0.0, *[-a + b * far] * (first - 1)]
    if first < n:
        rates += [far, *[-b + a * far] * (n - first - 1)]
    return np.asarray(np.sort(np.repeat(rates, d - 1))[::-1])


def ring_spectrum(*, n: int, d: int, beta: float) -> np.ndarray:
    """Eigenvalues of USA0 at n equispaced tokens on a great circle of S^{d-1}; largest first.

    Within the circle they are `ring_growth_rates`; out of it, d - 2 times,
    (1/n) sum_j e^{-beta (1 - cos a_j)} (cos k a_j - cos a_j), a_j = 2 pi j/n, k = 0, ..., n - 1.
    """
    d, modes, angles = checked_dimension(d), np.arange(n), 2 * np.pi * np.arange(n) / n
    within = ring_growth_rates(beta, n, k=modes, model="USA0")
    weights = np.exp(-beta * (1 - np.cos(angles))) / n
    out = [np.sum(weights * (np.cos(k * angles) - np.cos(angles))) for k in modes]
    return np.asarray(np.sort(np.concatenate([within, *[out] * (d - 2)]))[::-1])


def labelled_configurations(gram: ArrayLike, spans: bool) -> int:
    """Number of configurations of labelled tokens, modulo rotations, with this Gram matrix up to the order of tokens.

    n! over the number of permutations that keep the Gram matrix; twice that if the tokens span the whole space
    (`spans`), because the mirror image is then another configuration. For n <= 8.
    """
    gram = np.asarray(gram, dtype=np.float64)
    orders = np.array(list(itertools.permutations(range(len(gram)))))
    same = np.abs(gram[orders[:, :, None], orders[:, None, :]] - gram).max(axis=(1, 2)) < 1e-5
    return math.factorial(len(gram)) // int(same.sum()) * (2 if spans else 1)


def euler_sums(*, n: int, d: int, index: ArrayLike, count: ArrayLike, collinear: ArrayLike) -> tuple[int, int]:
    """(predicted, found) Euler characteristics of the configurations of n labelled tokens modulo rotations, d = 2 or 3.

    Equilibrium k has the Morse index `index[k]`, occurs `count[k]` times, and is `collinear[k]` or not. Circle: the
    quotient is the torus T^{n-1}, and sum (-1)^index = 0. Sphere S^2: collinear equilibria keep a rotation, and
    sum over the others (-1)^index = (1/2) sum over collinear ones index - (n-1) 2^{n-2}; see `morse_quotient` at
    t = -1.
    """
    index, count, line = _checked_list(n, d, index, count, collinear)
    signed = count * (-1) ** index
    if d == 2:
        return 0, int(signed.sum())
    return int(np.sum(count[line] * index[line]) // 2 - (n - 1) * 2 ** (n - 2)), int(signed[~line].sum())


def morse_quotient(
    *, n: int, d: int, index: ArrayLike, count: ArrayLike, collinear: ArrayLike
) -> tuple[int, np.ndarray]:
    """(rest, Q) of the series of all equilibria minus that of the space, divided by 1 + t, d = 2 or 3.

    A complete list of nondegenerate equilibria has rest = 0 and Q >= 0 (Morse's inequalities). Circle:
    sum t^index - (1+t)^{n-1} = (1+t) Q(t). Sphere S^2, in cohomology that is equivariant under rotations:
    sum over others t^index + (sum over collinear ones t^index - (1+t^2)^{n-1})/(1-t^2) = (1+t) Q(t).
    Arguments as in `euler_sums`.
    """
    index, count, line = _checked_list(n, d, index, count, collinear)
    free: np.ndarray = np.zeros(n * d)
    fixed: np.ndarray = np.zeros(n * d)
    on_circle = np.full(line.shape, d == 2)
    np.add.at(free, index[~line | on_circle], count[~line | on_circle])
    if d == 2:
        free = poly.polysub(free, poly.polypow([1, 1], n - 1))
    else:
        np.add.at(fixed, index[line], count[line])
        whole, rest = poly.polydiv(poly.polysub(fixed, poly.polypow([1, 0, 1], n - 1)), [1, 0, -1])
        free = poly.polyadd(free, whole)
        if np.abs(rest).max() > 0:
            return int(np.abs(rest).max()), np.array([-1])
    quotient, rest = poly.polydiv(free, [1, 1])
    return round(float(np.atleast_1d(rest)[0])), np.rint(quotient).astype(int)


def _checked_list(
    n: int, d: int, index: ArrayLike, count: ArrayLike, collinear: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if d not in (2, 3):
        raise InvalidInput(f"d is {d!r}; the topology is written out for 2 and 3.")
    found = checked_integers("index", index, 0), checked_integers("count", count, 0), np.asarray(collinear, bool)
    if not found[0].shape == found[1].shape == found[2].shape or found[0].ndim != 1 or (found[0] >= n * d).any():
        raise InvalidInput(f"index is {index!r}; give one index below n d, count and side per equilibrium.")
    return found
