"""How the merges of clusters approach the staircase of infinite beta: an expansion in beta^(-1/2)."""

import math
from typing import Any, NamedTuple

import numpy as np

from attnflow.errors import NotAccurate
from attnflow.special.formula import MODEL, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike
from attnflow.theory.merging.staircase import CLUSTER_MASSES, POSITIONS, checked_clusters, limit_staircase


class StaircaseExpansion(NamedTuple):
    """(log t)/beta = s + root beta^{-1/2} - log(factor beta)/beta + rest, |rest| <= off(beta); arrays (merge,)."""

    s: np.ndarray
    root: np.ndarray
    factor: np.ndarray
    second: np.ndarray
    """Coefficient of 1/beta in u = 1 - cos of the angles."""
    angle: np.ndarray
    """Angles of the merging pairs in the limit."""

    def at(self, beta: float) -> np.ndarray:
        """The first terms."""
        clock = self.s + self.root / math.sqrt(beta) - np.log(self.factor * beta) / beta
        return np.maximum.accumulate(clock)

    def off(self, beta: float) -> np.ndarray:
        """Twice the next terms: of the meeting points, of the merge time, and of sin^2 where a pair has shifted.

        Of the meeting points that is second/beta, and root beta^{-3/2} times at most 1/2: with y = 2 sqrt(beta)
        sin(theta/2) their integrals have the weight 1 + y^2/(8 beta), and y^2 is of order 1.
        """
        slant = np.abs(np.cos(self.angle)) / np.sin(self.angle) ** 2
        shifted = (2 * slant + 0.5) * np.abs(self.root) / math.sqrt(beta)
        return 2 * (np.abs(self.second) + 2 * slant / beta + shifted) / beta


@formula(positions=POSITIONS, masses=CLUSTER_MASSES, model=MODEL, relative=1e-9, absolute=1e-9)
def staircase_expansion(positions: ArrayLike, masses: ArrayLike, *, model: str = "SA") -> StaircaseExpansion:
    """Expand the times of merges in beta^(-1/2), as they approach `limit_staircase` for large beta.

    A pair merges in the time e^{beta u}/(rate beta sin^2), rate = m1 + m2 (USA0) or m1/m2 + m2/m1 (SA): this is the
    factor. The SA meeting points approach their limit like beta^{-1/2}, which changes u of all later pairs. Positions
    and angles are followed as polynomials of degree 2 in eps = beta^{-1/2}: a pair that starts at the angle a(eps)
    meets at a(eps) m2^2/(m1^2 + m2^2) + eps I + O(eps^3), I the integral over y > 0 of the change of the share of
    cluster 1 by q = e^{-y^2/2}.

    Arguments:
        positions: points of the clusters.
        masses: their masses.
        model: the clock, "SA", "USA0" or "USA".
    """
    limit = limit_staircase(positions, masses, model=model)
    x = [Jet(point, 0 * point, 0 * point) for point in checked_clusters(positions, masses)[0]]
    rows = []
    for p, q, (m1, m2) in zip(limit.first.tolist(), limit.second.tolist(), limit.masses.tolist(), strict=True):
        apart, together = (x[q].plus(x[p], sign) for sign in (-1.0, 1.0))
        u, angle = apart.dot(apart), 2 * math.atan2(np.linalg.norm(apart.c0), np.linalg.norm(together.c0))
        u = Jet(*(term / 2 for term in u))
        if math.sin(angle) < 2e-4:
            raise NotAccurate(
                f"clusters {p} and {q} are so near or so nearly antipodal that the expansion loses digits."
            )
        first = u.c1 / math.sin(angle)
        theta = Jet(angle, first, (u.c2 - math.cos(angle) * first**2 / 2) / math.sin(angle))
        share, shift = m2 / (m1 + m2), 0.0
        if model == "SA":
            share, shift = _share_and_shift(m1, m2)
        way = Jet(share * angle, share * first + shift, share * theta.c2)
        sine = theta.sine()
        x[p] = x[p].times(theta.plus(way, -1.0).sine().over(sine)).plus(x[q].times(way.sine().over(sine)), 1.0)
        rate = m1 / m2 + m2 / m1 if model == "SA" else m1 + m2
        rows.append((u.c1, rate * math.sin(angle) ** 2, u.c2, angle))
    roots, factor, second, angles = np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy()
    return StaircaseExpansion(limit.s, roots, factor, second, angles)


class Jet(NamedTuple):
    """c0 + c1 eps + c2 eps^2, of numbers or of vectors."""

    c0: Any
    c1: Any
    c2: Any

    def plus(self, other: "Jet", factor: float) -> "Jet":
        """Add `factor` times another."""
        return Jet(*(a + factor * b for a, b in zip(self, other, strict=True)))

    def times(self, other: "Jet") -> "Jet":
        """The product with one of numbers."""
        return Jet(
            self.c0 * other.c0,
            self.c0 * other.c1 + self.c1 * other.c0,
            self.c0 * other.c2 + self.c1 * other.c1 + self.c2 * other.c0,
        )

    def dot(self, other: "Jet") -> "Jet":
        """The scalar product of two vectors."""
        return Jet(
            self.c0 @ other.c0,
            self.c0 @ other.c1 + self.c1 @ other.c0,
            self.c0 @ other.c2 + self.c1 @ other.c1 + self.c2 @ other.c0,
        )

    def over(self, other: "Jet") -> "Jet":
        """The quotient of two numbers."""
        c0 = self.c0 / other.c0
        c1 = (self.c1 - c0 * other.c1) / other.c0
        return Jet(c0, c1, (self.c2 - c0 * other.c2 - c1 * other.c1) / other.c0)

    def sine(self) -> "Jet":
        """The sine of a number."""
        sin, cos = math.sin(self.c0), math.cos(self.c0)
        return Jet(sin, cos * self.c1, cos * self.c2 - sin * self.c1**2 / 2)


def _share_and_shift(m1: float, m2: float) -> tuple[float, float]:
    """The share of the way that cluster 1 of SA travels for q = 0, and the integral of its change by q over y."""
    ratio, inverse = m2 / m1, m1 / m2
    total = ratio + inverse

    def change(y: np.ndarray) -> np.ndarray:
        q = np.exp(-(y**2) / 2)
        return np.asarray(q / (total + 2 * q))

    # beyond y = 13 it is below e^(-84)
    return ratio / total, (inverse - ratio) / total * float(integral(change, 0.0, 13.0))
