"""The staircase of merging clusters as beta -> infinity, and how long a plateau lasts at least."""

import dataclasses

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import MODEL, Integers, Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.merging.pairs import meeting_point_limit

ROUNDING = 1e-11
"""Distances that differ by less are equal to rounding: points carry `LARGEST_ERROR` at most."""
UNIT_ERROR = 2e-16
"""Rounding of a point that is divided by its norm."""
LARGEST_ERROR = 4e-12
"""Points that may be off by more are refused: those where clusters meet that were nearly antipodal before."""
POSITIONS = Other("points, shape (clusters, d), of norm 1 to 1e-6")
CLUSTER_MASSES = Other("positive numbers, one a cluster")
WIDEST = float(np.arccos(1 - 2 / 16))
"""Opening angle of the caps of twice the size 1/16, where the theorem of arXiv:2410.06833 ends."""


@dataclasses.dataclass(frozen=True)
class LimitStaircase:
    """The merges of clusters in the clock s = (log t)/beta, in their order, as beta -> infinity."""

    s: np.ndarray
    """(merge,) when, never decreasing: merges that follow at once have the same s."""
    first: np.ndarray
    """(merge,) smaller number of the two clusters; it names the merged cluster from then on."""
    second: np.ndarray
    """(merge,) larger number of the two clusters."""
    masses: np.ndarray
    """(merge, 2) masses of `first` and `second` before they merge."""
    points: np.ndarray
    """(merge, d) where they meet."""
    levels: np.ndarray
    """(merge + 1,) 2 beta E0 = sum M^2 between the merges."""

    def level_at(self, s: ArrayLike) -> Numbers:
        """2 beta E0 at the clock s; at the s of a merge, the level after it."""
        clock = np.asarray(s, dtype=np.float64)
        if np.isnan(clock).any():
            raise InvalidInput(f"`s` is {s!r}; it must be a number, (log t)/beta.")
        return self.levels[np.searchsorted(self.s, clock, side="right")]


@formula(positions=POSITIONS, masses=CLUSTER_MASSES, model=MODEL, relative=1e-13, absolute=1e-11)
def limit_staircase(positions: ArrayLike, masses: ArrayLike, *, model: str = "SA") -> LimitStaircase:
    """The limit beta -> infinity of clusters of these masses at these points of S^{d-1}, down to one cluster.

    A pair at u = 1 - cos(angle) merges in time e^{beta u}, up to powers of beta, and all others stand still meanwhile;
    by the triangle inequality it remains the closest pair on its way. So the closest pair merges, again and again, at
    s = (log t)/beta = the largest of the u so far (a later pair that is closer follows at once), less 1 for USA. It
    meets on its great circle: at the mass mean of the angles (USA0, USA), or where the weights are m^2 (SA). There
    2 beta E0 = sum M^2 jumps by 2 M_p M_q. Masses need not sum to 1; the last level is the square of their sum.

    At a finite beta s is off by O(log beta/beta), for SA clusters of unequal masses by O(beta^{-1/2}) from the second
    merge on, as their `meeting_point` is (two-body reduction of arXiv:2410.06833).

    Arguments:
        positions: points of the clusters.
        masses: their masses.
        model: the clock, "SA", "USA0" or "USA".

    Raises:
        InvalidInput: if two pairs are equally close, as the limit then depends on more than positions, or if clusters
            coincide or are antipodal, which is an equilibrium.
        NotAccurate: if clusters that merge are so nearly antipodal that rounding decides on which great circle.
    """
    x, m = checked_clusters(positions, masses)
    k, errors = len(m), np.full(len(m), UNIT_ERROR)
    apart = np.full((k, k), np.inf)  # |x_p - x_q| for p < q, infinite where there is no pair
    for p in range(k - 1):
        apart[p, p + 1 :] = np.linalg.norm(x[p + 1 :] - x[p], axis=1)
    level, top = float(np.sum(m**2)), 0.0
    s, pairs, weights, points, levels = [], [], [], [], [level]
    for _ in range(k - 1):
        p, q, near = _closest(apart, x)
        top = max(top, near**2 / 2)
        errors[p] = meeting_error(x, errors, p, q)
        angle = 2 * np.arctan2(near, np.linalg.norm(x[p] + x[q]))
        share = meeting_point_limit(1.0, masses=(m[p], m[q])) if model == "SA" else m[q] / (m[p] + m[q])
        x[p] = place_between(x[p], x[q], angle * float(share))
        level += 2 * m[p] * m[q]
        s.append(top - (model == "USA"))
        pairs.append((p, q))
        weights.append((m[p], m[q]))
        points.append(x[p].copy())
        levels.append(level)
        m[p] += m[q]
        apart[q, :] = apart[:, q] = np.inf
        new = np.linalg.norm(x - x[p], axis=1)
        apart[p, p + 1 :] = np.where(np.isinf(apart[p, p + 1 :]), np.inf, new[p + 1 :])
        apart[:p, p] = np.where(np.isinf(apart[:p, p]), np.inf, new[:p])
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return LimitStaircase(
        np.array(s, dtype=np.float64),
        first.copy(),
        second.copy(),
        np.array(weights, dtype=np.float64).reshape(-1, 2),
        np.array(points, dtype=np.float64).reshape(-1, x.shape[1]),
        np.array(levels, dtype=np.float64),
    )


@formula(
    beta=Reals(0.0, 1e12),
    angle=Reals(1e-100, np.pi),
    n=Integers(2),
    relative=1e-14,
    absolute=1e-12,
)
def log_plateau_bound(beta: ArrayLike, angle: ArrayLike, n: ArrayLike) -> np.ndarray:
    """Log of a time T_2 for which n tokens, gathered exactly in clusters at angles of `angle` or more, stay put.

    The best of `log_slow_motion_time` over the size of the caps: the supremum of
    log(size/n) + beta (1 - overlap), overlap = cos(angle - 2 arccos(1 - 2 size)), over the sizes in (0, 1/16) with
    1 - overlap - 8 size - log(2 n^2/size)/beta > 0; until T_2 no token leaves the cap of twice the best size about its
    cluster. NaN where no size meets the conditions, or beta <= 1: no statement. Tokens have equal masses; clock of SA
    or USA0 (theorem of arXiv:2410.06833).

    Arguments:
        beta: inverse temperatures; all arguments are broadcast.
        angle: smallest angles between two clusters.
        n: numbers of tokens.
    """
    return np.vectorize(_best_bound, otypes=[np.float64])(beta, angle, n)


def _best_bound(beta: float, angle: float, n: int) -> float:
    """The supremum in the opening angle a of the caps, size = sin^2(a/2).

    f(a) = 2 log sin(a/2) - log n + 2 beta sin^2(angle/2 - a) has a convex derivative: it rises, falls and may rise
    again; so has gamma = (f - log 2n)/beta - 8 size, which turns earlier. Where gamma > 0 neither rises for the second
    time, so the best a is the first maximum of f, or, if gamma < 0 there, the zero of gamma before it.
    """
    if beta <= 1:
        return np.nan
    end = min(WIDEST, angle / 2)

    def value(a: float) -> float:
        return float(2 * np.log(np.sin(a / 2)) - np.log(n) + 2 * beta * np.sin(angle / 2 - a) ** 2)

    def gamma(a: float) -> float:
        return (value(a) - float(np.log(2 * n))) / beta - 8 * float(np.sin(a / 2)) ** 2

    def first_maximum(penalty: float) -> float:
        """First zero of f' - penalty sin(a): Newton's method from the left climbs to the zero of a convex function."""
        a = 2 * float(np.arctan(1 / (2 * beta + penalty)))  # left of it, as no sine exceeds 1
        while a < end:
            slope = 1 / np.tan(a / 2) - 2 * beta * np.sin(angle - 2 * a) - penalty * np.sin(a)
            bend = 4 * beta * np.cos(angle - 2 * a) - 0.5 / np.sin(a / 2) ** 2 - penalty * np.cos(a)
            if bend >= 0 and slope > 0:
                return end  # past the minimum of f' without a zero
            following = float(a - slope / bend)
            if not following > a * (1 + 1e-15):
                return a
            a = following
        return end

    low, high = first_maximum(4 * beta), first_maximum(0.0)
    if not gamma(low) > 0:
        return np.nan
    if gamma(high) > 0:
        return value(high)
    return value(float(root(gamma, low, high)))


def _closest(apart: np.ndarray, x: np.ndarray) -> tuple[int, int, float]:
    """The closest pair and its distance, if there is one such pair and it can move."""
    p, q = divmod(int(np.argmin(apart)), len(apart))
    near = float(apart[p, q])
    if near <= ROUNDING:
        raise InvalidInput(f"positions {p} and {q} coincide; give their cluster once, with the sum of the masses.")
    apart[p, q] = np.inf
    other = divmod(int(np.argmin(apart)), len(apart))
    if apart[other] - near <= ROUNDING:
        raise InvalidInput(
            f"clusters {p}, {q} and clusters {other[0]}, {other[1]} are equally close at some stage, at |x - y| = "
            f"{near:.6g}; which merges first is undetermined in the limit, so perturb the positions."
        )
    if np.linalg.norm(x[p] + x[q]) <= ROUNDING:
        raise InvalidInput(
            f"clusters {p} and {q} are the closest pair at some stage and antipodal, an equilibrium: when and where "
            "they merge is undetermined, so perturb the positions."
        )
    apart[p, q] = near
    return p, q, near


def place_between(x: np.ndarray, y: np.ndarray, way: float) -> np.ndarray:
    """The point at the angle `way` from x on the great circle towards y."""
    across = y - (x @ y) * x
    across /= np.linalg.norm(across)
    across -= (x @ across) * x  # the first difference has lost digits if x and y are nearly antipodal
    met = np.cos(way) * x + np.sin(way) * across / np.linalg.norm(across)
    return np.asarray(met / np.linalg.norm(met))


def meeting_error(x: np.ndarray, errors: np.ndarray, p: int, q: int) -> float:
    """The error of the point where p and q meet, from theirs; on the circle there is one great circle only."""
    gain = 2 / float(np.linalg.norm(x[p] + x[q])) if x.shape[1] > 2 else 1.0
    error = 2 * UNIT_ERROR + (errors[p] + errors[q]) * gain
    if error > LARGEST_ERROR:
        raise NotAccurate(f"clusters {p} and {q} are so nearly antipodal that rounding decides where they meet.")
    return float(error)


def checked_clusters(positions: ArrayLike, masses: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors and masses, as copies."""
    x, m = np.array(positions, dtype=np.float64), np.array(masses, dtype=np.float64)
    if x.ndim != 2 or len(x) == 0 or x.shape[1] < 2 or not np.isfinite(x).all():
        raise InvalidInput(f"`positions` has shape {x.shape}; it must be finite, (clusters, d) with d >= 2.")
    norms = np.linalg.norm(x, axis=1)
    if np.abs(norms - 1).max() > 1e-6:
        worst = int(np.argmax(np.abs(norms - 1)))
        raise InvalidInput(f"`positions[{worst}]` has norm {norms[worst]:.6g}; divide it by its norm.")
    if m.shape != (len(x),) or not np.all((m > 0) & np.isfinite(m)):
        raise InvalidInput(f"`masses` is {masses!r}; it must be {len(x)} positive finite numbers.")
    return x / norms[:, None], m
