"""The Gaussian kernel on the sphere by degrees: how its weight is spread, and where it may be cut."""

import math

import numpy as np

from attnflow.errors import NotAccurate
from attnflow.special import degrees
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.spectrum import DIMENSION, choose, whole_numbers

LISTED = Reals(0.0, 1e6)
"""Values of beta whose degrees are listed, up to some 10 sqrt(beta) on the circle and beta in high dimension."""


@formula(
    beta=LISTED,
    d=degrees.DIMENSION,
    count=Integers(1, 10**6, scalar=True),
    relative="1e-13 * (10 + np.sqrt(np.max(beta)))",
    absolute=1e-300,
)
def degree_weights(beta: ArrayLike, d: int, count: int) -> np.ndarray:
    """The weights p_0, ..., p_{count-1} of e^{beta (<x,y> - 1)} = sum_k p_k P_k(<x,y>), P_k(1) = 1, on S^{d-1}.

    p_k = N(k, d) l_k e^{-beta}, with N the multiplicity and l_k the Funk-Hecke multiplier: a probability on degrees,
    below Poisson(beta) for every d and equal to the distribution of |Skellam(beta/2, beta/2)| on the circle. Computed
    from quotients of neighbours outwards from the largest weight, and normalised: no factor leaves float range, and
    weights below 1e-308 are 0 (DLMF 10.35.2 on the circle, Funk-Hecke as in arXiv:2312.10794 beyond).

    Arguments:
        beta: inverse temperatures, any shape; the degrees are on a new last axis.
        d: dimension of the space around the sphere.
        count: number of weights.
    """
    rows = [degrees.degree_weights(float(b), d, count)[:count] for b in beta.ravel()]
    return np.array(rows).reshape(*beta.shape, count)


@formula(tol=Reals(1e-290, 1.0, ends="left"), beta=LISTED, d=degrees.DIMENSION)
def truncation_degree(tol: ArrayLike, beta: ArrayLike, d: int) -> np.ndarray:
    """The smallest K such that the kernel cut after degree K is within `tol` of itself, uniformly.

    The error of the cut, relative to the kernel's maximum 1, is exactly sum_{k>K} p_k (all p_k >= 0, |P_k| <= 1). For
    large beta K + (d-2)/2 is near sqrt(beta) times a quantile of chi with d-1 degrees of freedom.

    Arguments:
        tol: tolerances.
        beta: inverse temperatures, broadcast with tol.
        d: dimension of the space around the sphere.

    Raises:
        NotAccurate: if the error of a cut is `tol` to the last digits.
    """
    bounds, betas = np.broadcast_arrays(tol, beta)
    tops = np.zeros(bounds.shape, dtype=np.int64)
    for value in np.unique(betas):
        same = betas == value
        weights = degrees.degree_weights(float(value), d, 1, 60.0 - math.log(np.min(bounds[same])))
        tails = np.cumsum(weights[:0:-1])[::-1]  # what lies beyond 0, 1, 2, ...: summed from the smallest
        excess = tails / bounds[same][..., None] - 1
        if np.any(np.abs(excess) < 1e-13 * (10 + math.sqrt(value))):
            raise NotAccurate("the kernel cut after some degree is off by `tol` to the last digits.")
        tops[same] = np.sum(excess > 0, axis=-1)
    return tops


@formula(degree=Integers(0), d=DIMENSION, relative=2.3e-16)
def basis_size(degree: ArrayLike, d: int) -> np.ndarray:
    """The number of spherical harmonics up to a degree on S^{d-1}: C(K+d-1, d-1) + C(K+d-2, d-1).

    2K+1 on the circle, (K+1)^2 on S^2. Exact integers where all fit in int64, floats otherwise; refused beyond float
    range.
    """
    counts = [choose(k + d - 1, d - 1) + choose(k + d - 2, d - 1) for k in degree.ravel().tolist()]
    return whole_numbers(counts, "degree", degree).reshape(degree.shape)
