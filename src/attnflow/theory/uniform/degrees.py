"""The Gaussian kernel on the sphere by degrees: how its weight is spread, and where it may be cut."""

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special import degrees
from attnflow.theory.checks import checked_beta, checked_dimension, checked_integers
from attnflow.theory.uniform.spectrum import whole_numbers


def degree_weights(beta: ArrayLike, d: int, count: int) -> np.ndarray:
    """The weights p_0, ..., p_{count-1} of e^{beta (<x,y> - 1)} = sum_k p_k P_k(<x,y>), P_k(1) = 1, on S^{d-1}.

    p_k = N(k, d) l_k e^{-beta}, with N the multiplicity and l_k the Funk-Hecke multiplier: a probability on degrees,
    below Poisson(beta) for every d and equal to the distribution of |Skellam(beta/2, beta/2)| on the circle. Computed
    from quotients of neighbours outwards from the largest weight, and normalised: no factor leaves float range, and
    weights below 1e-308 are 0. Any shape of beta >= 0, degrees on a new last axis (DLMF 10.35.2 on the circle,
    Funk-Hecke as in arXiv:2312.10794 beyond).
    """
    beta, d = checked_beta(beta), checked_dimension(d)
    size = checked_integers("count", count, 1)
    if size.ndim:
        raise InvalidInput(f"count is {count!r}; it must be one integer, at least 1.")
    rows = [degrees.degree_weights(float(b), d, int(size))[: int(size)] for b in beta.ravel()]
    return np.array(rows).reshape(*beta.shape, int(size))


def truncation_degree(tol: ArrayLike, beta: ArrayLike, d: int) -> np.ndarray:
    """The smallest K such that the kernel cut after degree K is within `tol` of itself, uniformly.

    The error of the cut, relative to the kernel's maximum 1, is exactly sum_{k>K} p_k (all p_k >= 0, |P_k| <= 1). For
    large beta K + (d-2)/2 is near sqrt(beta) times a quantile of chi with d-1 degrees of freedom. tol in
    [1e-290, 1) and beta >= 0 broadcast.
    """
    tolerances, beta, d = np.asarray(tol, dtype=np.float64), checked_beta(beta), checked_dimension(d)
    if not ((tolerances >= 1e-290) & (tolerances < 1)).all():
        raise InvalidInput(f"tol is {tol!r}; it must be in [1e-290, 1).")
    shape = np.broadcast_shapes(tolerances.shape, beta.shape)
    bounds, betas = np.broadcast_to(tolerances, shape), np.broadcast_to(beta, shape)
    found = np.zeros(shape, dtype=np.int64)
    for value in np.unique(beta) if found.size else ():
        here = betas == value
        found[here] = degrees.truncation_degrees(bounds[here], float(value), d)
    return found


def basis_size(degree: ArrayLike, d: int) -> np.ndarray:
    """The number of spherical harmonics up to a degree on S^{d-1}: C(K+d-1, d-1) + C(K+d-2, d-1).

    2K+1 on the circle, (K+1)^2 on S^2. Exact integers where all fit in int64, floats otherwise.
    """
    d, tops = checked_dimension(d), checked_integers("degree", degree, 0)
    counts = [degrees.basis_size(k, d) for k in tops.ravel().tolist()]
    return whole_numbers(counts, "degree", degree).reshape(tops.shape)
