"""Places sigma in [0, 1] of a prompt as a coordinate: Gauss nodes on smooth pieces, and what a place sees before it.

A function of the place is a polynomial on every piece, given by its values at the Gauss-Legendre nodes, so that jumps
at the breaks are kept and everything is exact for polynomials of degree < `nodes` on every piece.
"""

import functools
from typing import Any

import equinox as eqx
import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.checks import number, reals, shown, whole
from attnflow.errors import InvalidInput
from attnflow.meanfield.harmonics.orthogonal import gauss, orthonormal
from attnflow.special.numbers import Numbers

LARGEST_ARGUMENT = 1e9
"""Beyond it SciPy has no Bessel functions; they are at their limit 1/(2 mu) to nine digits there."""


class Places(eqx.Module):
    """`nodes` Gauss-Legendre nodes in each of the pieces between `breaks`, which go from 0 to 1.

    A piece holds its right end: a topic switch at s has the break s, and a token at s belongs to the earlier topic.
    Nodes stand in sigma itself, whatever the ALiBi slope lambda. In u = e^{lambda sigma} - 1, in which lambda
    disappears from the equation (`prefix`), 16 nodes would leave all places below 1 - 5/lambda without one. For a start
    that is smooth in sigma the solution has singularities next to sigma = 2 pi i/lambda: from lambda = 30 on give more
    nodes, or breaks a few 1/lambda after 0 and after every jump.
    """

    breaks: tuple[float, ...] = eqx.field(static=True)
    nodes: int = eqx.field(static=True)

    def __init__(self, breaks: ArrayLike = (0.0, 1.0), nodes: int = 16):
        ends = reals(breaks)
        if ends is None or ends.ndim != 1 or len(ends) < 2 or ends[0] != 0 or ends[-1] != 1:
            raise InvalidInput(f"`breaks` is {shown(breaks)}; give increasing numbers from 0 to 1, as in (0, 0.25, 1).")
        if not (np.diff(ends) >= 1e-9).all():
            raise InvalidInput(f"`breaks` is {shown(breaks)}; give increasing numbers at least 1e-9 apart.")
        self.breaks = tuple(ends.tolist())
        self.nodes = whole("nodes", nodes, 2, 256)
        whole("nodes", self.nodes * self.pieces, 2, 4096)

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return len(self.breaks) - 1

    @property
    def size(self) -> int:
        """Number of nodes of all pieces."""
        return self.pieces * self.nodes

    @property
    def points(self) -> np.ndarray:
        """The places of all nodes, increasing; none of them is a break."""
        return np.concatenate([_between(low, high, _gauss(self.nodes)[0]) for low, high in self._ends])

    @property
    def weights(self) -> np.ndarray:
        """Weights of the nodes for integrals d sigma over [0, 1], of sum 1: exact to degree 2 nodes - 1 on pieces."""
        return np.concatenate([(high - low) * _gauss(self.nodes)[1] for low, high in self._ends])

    def prefix(self, slope: float = 0.0) -> np.ndarray:
        """The matrix that takes values f to F(sigma) = int_0^sigma k(sigma, sigma') f(sigma') d sigma' at every node.

        k = lambda e^{-lambda (sigma - sigma')}/(1 - e^{-lambda sigma}), lambda = `slope`; 1/sigma for lambda = 0
        (graphon of causal attention with ALiBi, arXiv:2605.09213). With u = e^{lambda sigma} - 1 it is the mean
        (1/u) int_0^u f du'. The interpolant is integrated exactly, by its Legendre coefficients and the moments
        e^{-mu} i_k(mu) of spherical Bessel functions, with exponents that are never positive: any slope >= 0 will do.
        """
        slope = number("slope", slope, low=0.0)
        ends, size = self._ends, self.nodes
        whole_pieces = [_integrals(size, low, high, np.array([high]), slope)[0] for low, high in ends]
        matrix = np.zeros((self.size, self.size))
        for m, (low, high) in enumerate(ends):
            rows = slice(m * size, (m + 1) * size)
            own = self.points[rows]
            matrix[rows, rows] = _integrals(size, low, high, own, slope)
            for p in range(m):
                fade = np.exp(-slope * (own - ends[p][1]))
                matrix[rows, p * size : (p + 1) * size] = np.outer(fade, whole_pieces[p])
        return matrix / np.sum(matrix, axis=1, keepdims=True)  # constants are kept to the last bit

    def interpolation(self, place: ArrayLike) -> np.ndarray:
        """The matrix (*place, size) that takes values at the nodes to values at `place`, within the pieces."""
        at = self._checked(place)
        flat = at.reshape(-1)
        piece = np.clip(np.searchsorted(self.breaks, flat, side="left") - 1, 0, self.pieces - 1)
        matrix = np.zeros((flat.size, self.size))
        for m, (low, high) in enumerate(self._ends):
            here = np.flatnonzero(piece == m)
            local = 2 * (flat[here] - low) / (high - low) - 1
            matrix[here, m * self.nodes : (m + 1) * self.nodes] = _lagrange(self.nodes, np.clip(local, -1.0, 1.0))
        return matrix.reshape(*at.shape, self.size)

    def at(self, values: Any, place: ArrayLike) -> Numbers:
        """Values at `place`, one place or an array of them, from `values` (size, ...) at the nodes."""
        found = np.asarray(values)
        if found.ndim == 0 or len(found) != self.size:
            raise InvalidInput(f"`values` has shape {found.shape}; give one entry for each of the {self.size} nodes.")
        return np.tensordot(self.interpolation(place), found, 1)

    def average(self, first: float = 0.0, last: float = 1.0) -> np.ndarray:
        """Weights of the nodes, of sum 1, for the mean over the places from `first` to `last`."""
        low, high = number("first", first, low=0.0, high=1.0), number("last", last, low=0.0, high=1.0)
        if not low < high:
            raise InvalidInput(f"`first` is {first} and `last` is {last}; give the ends of a range, as in 0.96 and 1.")
        t, w = _gauss(self.nodes)
        weights = np.zeros(self.size)
        for m, (start, end) in enumerate(self._ends):
            a, b = max(start, low), min(end, high)
            if a < b:
                local = 2 * (_between(a, b, t) - start) / (end - start) - 1
                weights[m * self.nodes : (m + 1) * self.nodes] = (b - a) * w @ _lagrange(self.nodes, local)
        return weights / (high - low)

    def legendre(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrix that takes values to orthonormal Legendre coefficients on the pieces, and the degrees of these."""
        return np.kron(np.eye(self.pieces), _transform(self.nodes)), np.tile(np.arange(self.nodes), self.pieces)

    @property
    def _ends(self) -> list[tuple[float, float]]:
        return list(zip(self.breaks[:-1], self.breaks[1:], strict=True))

    def _checked(self, place: ArrayLike) -> np.ndarray:
        at = reals(place)
        if at is None or not ((at >= 0) & (at <= 1)).all():
            raise InvalidInput(f"`place` is {shown(place)}; give numbers from 0 to 1.")
        return at


def _between(low: float, high: float, t: np.ndarray) -> np.ndarray:
    """t in [-1, 1], taken to [low, high]."""
    return low + (high - low) * (1 + t) / 2


@functools.lru_cache(maxsize=64)
def _gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    return gauss(3, count)


@functools.lru_cache(maxsize=64)
def _transform(count: int) -> np.ndarray:
    t, w = _gauss(count)
    return orthonormal(3, count - 1, t) * w


def _lagrange(count: int, t: np.ndarray) -> np.ndarray:
    """(len(t), count): the Lagrange polynomials of the Gauss nodes at t."""
    return orthonormal(3, count - 1, t).T @ _transform(count)


def _integrals(count: int, low: float, high: float, upto: np.ndarray, slope: float) -> np.ndarray:
    """(len(upto), count): int_low^x l_j(s) e^{-slope (x - s)} ds, l_j the Lagrange polynomials of the piece."""
    t = _gauss(count)[0]
    rows = np.empty((len(upto), count))
    for i, x in enumerate(upto):
        inner = 2 * (_between(low, x, t) - low) / (high - low) - 1
        coefficients = _transform(count) @ _lagrange(count, inner)  # of the polynomials, on [low, x]
        rows[i] = (x - low) * _moments(count, slope * (x - low) / 2) @ coefficients
    return rows


def _moments(count: int, mu: float) -> np.ndarray:
    """The means over t in [-1, 1] of phi_k(t) e^{-mu (1 - t)}, sqrt(2k+1) e^{-mu} i_k(mu), for k < count."""
    k = np.arange(count)
    if mu == 0:
        return np.where(k == 0, 1.0, 0.0)
    known = min(mu, LARGEST_ARGUMENT)
    return np.sqrt(2 * k + 1) * np.sqrt(np.pi / (2 * known)) * sp.ive(k + 0.5, known) * (known / mu)
