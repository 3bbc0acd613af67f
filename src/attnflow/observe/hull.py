"""Where tokens without layer norm go: polytopes, hyperplanes and leaders (arXiv:2305.05465)."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from attnflow.checks import reals, shown
from attnflow.errors import InvalidInput
from attnflow.special.formula import Other, Reals, formula
from attnflow.special.numbers import Numbers

POINTS = Other("points (point, dim)")
MATRIX = Other("an attention matrix (query, key)")
TOL = Reals(0.0, scalar=True)
FLAT = 1e-12
"""Points whose extent in some direction is below this, relative to their largest extent, are flat in it."""
APART = 1e-6
"""Eigenvalues nearer than this, relative to |V|, count as one: those of a Jordan block split by 1e-8."""


@dataclasses.dataclass(frozen=True)
class Hull:
    """The convex hull of a set of points."""

    volume: float
    """Length in d = 1, area in d = 2, volume in d = 3, ..."""
    vertices: Int[np.ndarray, " vertex"]
    """Indices of the vertices: from left to right in d = 1, counter-clockwise in d = 2, else ascending."""


@formula(points=POINTS, relative=1e-13, absolute="1e-14 * np.max(np.abs(points)) ** np.shape(points)[-1]")
def convex_hull(points: ArrayLike) -> Hull:
    """The convex hull of `points`, positions (point, dim) of one system.

    Points in a subspace of fewer dimensions (a plane, a line, a single point, up to 1e-12 of their extent) have the
    volume 0 and the vertices of their hull within that subspace. The hull of the rescaled tokens of attention with
    V = I and Q^T K > 0 never grows.
    """
    x = _array("points", points, 2)
    if len(x) == 0 or x.shape[1] == 0:
        raise InvalidInput(f"`points` has shape {x.shape}; give at least one point of at least one coordinate.")
    away = x - x.mean(axis=0)
    _, sizes, axes = np.linalg.svd(away, full_matrices=False)
    rank = int(np.sum(sizes > FLAT * max(sizes[0], np.abs(x).max())))
    if rank == 0:
        return Hull(0.0, np.zeros(1, int))
    if rank < x.shape[1]:
        return Hull(0.0, convex_hull(away @ axes[:rank].T).vertices)
    if rank == 1:
        ends = np.array([np.argmin(x), np.argmax(x)])
        return Hull(float(np.ptp(x)), ends)
    from scipy.spatial import ConvexHull

    hull = ConvexHull(x)
    return Hull(float(hull.volume), np.array(hull.vertices if rank == 2 else np.sort(hull.vertices), int))


@formula(matrix=MATRIX, tol=TOL)
def leaders(matrix: ArrayLike, tol: float = 1e-6) -> Int[np.ndarray, " leader"]:
    """The tokens j that some row of an attention matrix (query, key) gives a weight of at least 1 - tol."""
    a = _array("matrix", matrix, 2)
    return np.flatnonzero((1 - a <= tol).any(axis=0))


@formula(matrix=MATRIX, tol=TOL)
def boolean_rows(matrix: ArrayLike, tol: float = 1e-6) -> Bool[np.ndarray, " query"]:
    """Which rows of an attention matrix (query, key) are a unit vector e_j, every entry up to `tol`.

    In d = 1 with V > 0 and QK > 0 all rows but at most one tend to e_j, j the leftmost or the rightmost token.
    """
    a = _array("matrix", matrix, 2)
    nearest = np.eye(a.shape[1])[np.argmax(a, axis=1)]
    return np.abs(a - nearest).max(axis=1) <= tol


@formula(
    points=POINTS,
    value=Other("a matrix whose eigenvalue of largest real part is real and at least 0.1 |V| away from the others"),
    absolute="1e-11 * np.max(np.abs(points))",
)
def hyperplane_coordinates(points: ArrayLike, value: ArrayLike) -> Numbers:
    """<phi*, z> for every point z: the coordinate that takes at most three limits under `Rescaled` attention.

    `points` has shape (*batch, dim), the result (*batch), and `value` is a matrix (dim, dim).

    phi* is the left eigenvector of `value` for its eigenvalue of largest real part, with <phi*, phi> = 1, where the
    right eigenvector phi has norm 1 and a positive first component (the first that is not 0). The eigenvalue must be
    real, simple and larger than the real parts of all others.
    """
    v, x = _array("value", value, 2), _reals("points", points)
    if v.shape[0] != v.shape[1] or v.size == 0:
        raise InvalidInput(f"`value` has shape {v.shape}; give a square matrix.")
    if x.ndim < 1 or x.shape[-1] != len(v):
        raise InvalidInput(f"`points` has shape {x.shape}; give a last axis of length {len(v)}, that of `value`.")
    from scipy.linalg import eig

    eigenvalues, left, right = eig(v, left=True, right=True)
    first = int(np.argmax(eigenvalues.real))
    others = np.delete(eigenvalues.real, first)
    if (others > eigenvalues[first].real - APART * np.linalg.norm(v, 2)).any():
        raise InvalidInput(
            f"`value` has the eigenvalues {np.round(eigenvalues, 6)}; the one of largest real part must be real and "
            "simple, and larger than the real parts of the others."
        )
    phi, dual = right[:, first].real, left[:, first].real
    phi = phi / np.linalg.norm(phi)
    phi = phi * np.sign(phi[np.flatnonzero(np.abs(phi) > FLAT)[0]])
    return x @ (dual / (dual @ phi))


@formula(points=POINTS, tol=TOL, absolute="1e-15 * np.max(np.abs(points))")
def distinct(points: ArrayLike, tol: float) -> Float[np.ndarray, "limit *dim"]:
    """One representative, the mean, of every group of `points`: numbers on the line, or points (point, dim).

    Points at most `tol` apart are in one group, and so are chains of them. Groups come in ascending
    order, by the first coordinate, then the next.
    """
    x = _reals("points", points)
    rows = _array("points", x[:, None] if x.ndim == 1 else x, 2)
    if len(rows) == 0:
        return x
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    i, j = cKDTree(rows).query_pairs(tol, output_type="ndarray").T
    count, label = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(len(rows), len(rows))))
    sizes = np.bincount(label, minlength=count)
    means = np.stack([np.bincount(label, column, minlength=count) / sizes for column in rows.T], axis=1)
    means = means[np.lexsort(means.T[::-1])]
    return means[:, 0] if x.ndim == 1 else means


def _array(name: str, values: Any, ndim: int) -> np.ndarray:
    array = _reals(name, values)
    if array.ndim != ndim:
        raise InvalidInput(f"`{name}` has shape {array.shape}; give {ndim} axes, those of one system.")
    if not np.isfinite(array).all():
        raise InvalidInput(f"`{name}` has an entry that is not finite; give real numbers.")
    return array


def _reals(name: str, values: Any) -> np.ndarray:
    array = reals(values)
    if array is None:
        raise InvalidInput(f"`{name}` is {shown(values)}; give an array of real numbers.")
    return array
