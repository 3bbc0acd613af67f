"""Equilibria of equal tokens: spectra that can be written down, and what topology says about a list of them."""

import itertools
import math
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Other, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.landscape.rings import _sine, ring_growth_rates

BETA = Reals(0.0, scalar=True)
COUNT, DIMENSION = Integers(1, 10**4, scalar=True), Integers(2, 10**3, scalar=True)
"""Sizes of a spectrum of n (d - 1) numbers."""
TOPOLOGY: dict[str, Any] = {
    "n": Integers(1, 40, scalar=True),
    "d": Integers(2, 3, scalar=True),
    "index": Integers(0, 119),
    "count": Integers(0, 2**40),
    "collinear": Other("True or False for each equilibrium"),
}


@formula(n=COUNT, d=DIMENSION, first=Integers(1, scalar=True), beta=BETA, relative=1e-15, absolute=4e-16)
def antipodal_spectrum(*, n: int, d: int, first: int, beta: float) -> np.ndarray:
    """Eigenvalues of USA0 at two antipodal groups of equal tokens, `first` of n in one of them; largest first.

    With masses a = first/n and b = 1 - a: 0 (rotation), e^{-2 beta} (the groups turn towards each other),
    -a + b e^{-2 beta} (first - 1 times) and -b + a e^{-2 beta} (n - first - 1 times), each d - 1 times. first = n is
    consensus: 0 and -1.

    Arguments:
        n: number of tokens.
        d: dimension of the space around the sphere.
        first: number of tokens in the first group.
        beta: inverse temperature.
    """
    if first > n:
        raise InvalidInput(f"`first` is {first!r}; it must be from 1 to n = {n!r}.")
    a, b, difference, change = first / n, (n - first) / n, (n - 2 * first) / n, math.expm1(-2 * beta)
    rates = [0.0, *[difference + b * change] * (first - 1)]
    if first < n:
        rates += [math.exp(-2 * beta), *[-difference + a * change] * (n - first - 1)]
    return np.asarray(np.sort(np.repeat(rates, d - 1))[::-1])


@formula(n=COUNT, d=DIMENSION, beta=BETA, relative=1e-12, absolute=1e-14)
def ring_spectrum(*, n: int, d: int, beta: float) -> np.ndarray:
    """Eigenvalues of USA0 at n equispaced tokens on a great circle of S^{d-1}; largest first.

    Within the circle they are `ring_growth_rates`; out of it, d - 2 times,
    (1/n) sum_j e^{-beta (1 - cos a_j)} (cos k a_j - cos a_j), a_j = 2 pi j/n, k = 0, ..., n - 1.

    Arguments:
        n: number of tokens.
        d: dimension of the space around the sphere.
        beta: inverse temperature.
    """
    modes = np.arange(n)
    within = ring_growth_rates(beta, n, k=modes, model="USA0")
    rises = 2 * _sine(modes, n) ** 2  # 1 - cos a_j
    weights = np.exp(-beta * rises) / n
    outside = [np.sum(weights * (rises - 2 * _sine(k * modes % n, n) ** 2)) for k in modes]
    return np.asarray(np.sort(np.concatenate([within, *[outside] * (d - 2)]))[::-1])


@formula(gram=Other("a symmetric matrix (n, n), n <= 8"), spans=Other("True or False"))
def labelled_configurations(gram: ArrayLike, spans: bool) -> int:
    """Number of configurations of labelled tokens, modulo rotations, with this Gram matrix up to the order of tokens.

    n! over the number of permutations that keep the Gram matrix to 1e-5; twice that if the tokens span the whole space,
    because the mirror image is then another configuration.

    Arguments:
        gram: products of the tokens.
        spans: True if the tokens span the whole space.
    """
    gram = np.asarray(gram, dtype=np.float64)
    if gram.ndim != 2 or not 1 <= len(gram) <= 8 or gram.shape[0] != gram.shape[1] or not np.isfinite(gram).all():
        raise InvalidInput(f"`gram` has shape {gram.shape}; give a finite matrix (n, n) of at most 8 tokens.")
    orders = np.array(list(itertools.permutations(range(len(gram)))))
    same = np.abs(gram[orders[:, :, None], orders[:, None, :]] - gram).max(axis=(1, 2)) < 1e-5
    return math.factorial(len(gram)) // int(same.sum()) * (2 if spans else 1)


@formula(**TOPOLOGY)
def euler_sums(*, n: int, d: int, index: ArrayLike, count: ArrayLike, collinear: ArrayLike) -> tuple[int, int]:
    """(predicted, found) Euler characteristics of the configurations of n labelled tokens modulo rotations, d = 2 or 3.

    Equilibrium k has the Morse index `index[k]`, occurs `count[k]` times, and is `collinear[k]` or not. Circle: the
    quotient is the torus T^{n-1}, and sum (-1)^index = 0. Sphere S^2: collinear equilibria keep a rotation, and
    sum over the others (-1)^index = (1/2) sum over collinear ones index - (n-1) 2^{n-2}; see `morse_quotient` at
    t = -1.

    Arguments:
        n: number of tokens.
        d: dimension of the space around the sphere.
        index: Morse index of each equilibrium.
        count: number of its labelled copies.
        collinear: True where the tokens lie on one line.
    """
    free, fixed = _series(n, d, index, count, collinear)
    signed = sum((-1) ** k * c for k, c in enumerate(free))
    if d == 2:
        return 0, signed
    return sum(k * c for k, c in enumerate(fixed)) // 2 - (n - 1) * 2**n // 4, signed


@formula(**TOPOLOGY)
def morse_quotient(
    *, n: int, d: int, index: ArrayLike, count: ArrayLike, collinear: ArrayLike
) -> tuple[int, np.ndarray]:
    """(rest, Q) of the series of all equilibria minus that of the space, divided by 1 + t, d = 2 or 3.

    A complete list of nondegenerate equilibria has rest = 0 and Q >= 0 (Morse's inequalities). Circle:
    sum t^index - (1+t)^{n-1} = (1+t) Q(t). Sphere S^2, in cohomology that is equivariant under rotations:
    sum over others t^index + (sum over collinear ones t^index - (1+t^2)^{n-1})/(1-t^2) = (1+t) Q(t).

    Arguments:
        n: number of tokens.
        d: dimension of the space around the sphere.
        index: Morse index of each equilibrium.
        count: number of its labelled copies.
        collinear: True where the tokens lie on one line.
    """
    free, fixed = _series(n, d, index, count, collinear)
    if d == 2:
        for k in range(n):
            free[k] -= math.comb(n - 1, k)
    else:
        for k in range(n):
            fixed[2 * k] -= math.comb(n - 1, k)
        for k in range(len(fixed) - 1, 1, -1):  # division by 1 - t^2
            free[k - 2] -= fixed[k]
            fixed[k - 2] += fixed[k]
        if any(fixed[:2]):
            return max(abs(fixed[0]), abs(fixed[1])), np.array([-1])
    for k in range(len(free) - 1, 0, -1):  # division by 1 + t
        free[k - 1] -= free[k]
    rest, quotient = free[0], free[1:]
    while len(quotient) > 1 and quotient[-1] == 0:
        quotient.pop()
    return rest, np.array(quotient or [0])


def _series(n: int, d: int, index: np.ndarray, count: np.ndarray, collinear: ArrayLike) -> tuple[list[int], list[int]]:
    """Numbers of equilibria by index: of all on the circle, or of those not collinear on S^2; then of the others."""
    line = np.asarray(collinear, bool)
    if not index.shape == count.shape == line.shape or index.ndim != 1 or (index >= n * d).any():
        raise InvalidInput(f"`index` is {index!r}; give one index below n d, count and side per equilibrium.")
    free, fixed = [0] * (n * d), [0] * (n * d)
    for k, copies, on_line in zip(index.tolist(), count.tolist(), line.tolist(), strict=True):
        (fixed if on_line and d == 3 else free)[k] += copies
    return free, fixed
