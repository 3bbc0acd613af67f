"""Clusters that merge pair after pair, each pair as if it were alone: two-body formulas applied to many clusters."""

import itertools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import MODEL, Optional, Other, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.merging.pairs import (
    MASSES,
    checked_pair,
    closing_shares,
    integral_over_angles,
    log_pair_times,
    meeting_point,
    merging_angle,
)
from attnflow.theory.merging.staircase import (
    CLUSTER_MASSES,
    POSITIONS,
    UNIT_ERROR,
    checked_clusters,
    meeting_error,
    place_between,
)

BETA = Reals(0.0, 1e8, scalar=True)
LARGEST_LOG_ERROR = 1e-9
"""Log times that rounding of points changes by more than so many (1 + beta) are refused."""
END = Reals(1e-100, 3.0, scalar=True)
Pairs = dict[tuple[int, int], tuple[float, float]]
"""Angle and log merge time of pairs (p, q), p < q."""


class PairCascade(NamedTuple):
    """Merges in their order; arrays (merge, ...)."""

    log_time: np.ndarray
    first: np.ndarray
    """Smaller number of the two clusters; it names the merged cluster from then on."""
    second: np.ndarray
    point: np.ndarray
    """(merge, d) where they meet."""
    arc: np.ndarray
    """Length of the path so far, in the metric sum_q m_q |dx_q|^2."""
    slope: np.ndarray
    """Derivative of the log merge time of the pair with respect to its angle."""
    disturbance: np.ndarray
    """What other pairs may change of log_time, to first order, doubled."""


@formula(
    positions=POSITIONS,
    masses=CLUSTER_MASSES,
    beta=BETA,
    model=MODEL,
    until=Optional(END),
    relative="2e-9 * (1 + beta)",
    absolute="2e-9 * (1 + beta)",
)
def pair_cascade(
    positions: ArrayLike, masses: ArrayLike, beta: float, *, model: str = "SA", until: float | None = None
) -> PairCascade:
    """All merges of clusters at these points of S^{d-1}, as if every pair were alone, down to one cluster.

    The pair with the shortest time merges, at the time and at the point of the two-body formulas (`log_merge_time`,
    `meeting_point`), and the next pair starts from there; times add up.

    Meanwhile every other pair, whose own time T' is longer than T, uses up the share T/T' of it: it closes by about
    (T/T')/(beta sin), as its rate is 1/(beta sin T'), and changes the log times of all pairs that its clusters are part
    of by up to (T/T')/sin. To first order that is all that the formulas miss (two-body reduction of arXiv:2410.06833).

    Arguments:
        positions: points of the clusters.
        masses: their masses.
        beta: inverse temperature.
        model: the clock, "SA", "USA0" or "USA".
        until: angle at which two clusters count as one, `merging_angle(beta)` if left out.

    Raises:
        NotAccurate: if rounding decides when or where clusters merge, as they are nearly antipodal or nearly as close
            as `until`.
    """
    x, m = checked_clusters(positions, masses)
    end = float(merging_angle(beta)) if until is None else until
    angles = {pair: _angle(x[pair[0]], x[pair[1]]) for pair in itertools.combinations(range(len(m)), 2)}
    errors = np.full(len(m), UNIT_ERROR)
    lives: dict[tuple[int, int], float] = {}
    log_time, arc, missed, rows = -math.inf, 0.0, 0.0, []
    while angles:
        reach = _reach(min(angles.values()), m, beta)
        near = [pair for pair, angle in angles.items() if angle <= reach]
        new = [pair for pair in near if pair not in lives]
        lives |= dict(
            zip(new, _lives([angles[pair] for pair in new], new, x, m, errors, beta, model, end), strict=True)
        )
        p, q = min(near, key=lambda pair: lives[pair])
        angle, life, both = angles.pop((p, q)), lives[p, q], (float(m[p]), float(m[q]))
        missed += _disturbance(life, [(angles[pair], lives[pair]) for pair in near if pair != (p, q)])
        log_time = float(np.logaddexp(log_time, life))
        slope = math.exp(_log_slope(angle, life, beta, both, model)) if math.isfinite(life) else 0.0
        errors[p] = meeting_error(x, errors, p, q)
        if angle > 0:
            arc += merge_arc_length(angle, beta, both, model=model)
            x[p] = place_between(x[p], x[q], float(meeting_point(angle, beta, masses=both, model=model)))
        m[p] += m[q]
        rows.append((log_time, p, q, x[p].copy(), arc, slope, missed))
        angles = {
            pair: _angle(x[pair[0]], x[pair[1]]) if p in pair else kept
            for pair, kept in angles.items()
            if q not in pair
        }
        lives = {pair: life for pair, life in lives.items() if not {p, q} & {*pair}}
    if not rows:
        return PairCascade(*(np.empty((0, x.shape[1]) if name == "point" else 0) for name in PairCascade._fields))
    return PairCascade(*(np.array(column) for column in zip(*rows, strict=True)))


@formula(
    positions=POSITIONS,
    masses=CLUSTER_MASSES,
    beta=BETA,
    model=MODEL,
    until=Optional(END),
    relative=1e-14,
    absolute="2e-9 * (1 + beta)",
)
def log_first_merge_time(
    positions: ArrayLike, masses: ArrayLike, beta: float, *, model: str = "SA", until: float | None = None
) -> float:
    """Log time of the first merge of clusters at these points of S^{d-1}: of the fastest pair, as if it were alone.

    The first row of `pair_cascade`, under its conditions; minus infinity if two are nearer than `until` at the start.

    Arguments:
        positions: points of at least two clusters.
        masses: their masses.
        beta: inverse temperature.
        model: the clock, "SA", "USA0" or "USA".
        until: angle at which two clusters count as one, `merging_angle(beta)` if left out.

    Raises:
        NotAccurate: if rounding decides when, as clusters that could be the first are nearly antipodal or nearly as
            close as `until`.
    """
    x, m = checked_clusters(positions, masses)
    if len(m) < 2:
        raise InvalidInput(f"`positions` has shape {x.shape}; give two clusters at least.")
    end = float(merging_angle(beta)) if until is None else until
    first, second = np.triu_indices(len(m), 1)
    apart, together = (np.linalg.norm(x[first] + sign * x[second], axis=1) for sign in (-1, 1))
    angles = 2 * np.arctan2(apart, together)
    # of equal masses the nearest pair is the first
    reach = _reach(float(angles.min()), m, beta) if np.ptp(m) else float(angles.min())
    near = np.flatnonzero(angles <= reach)
    pairs = list(zip(first[near].tolist(), second[near].tolist(), strict=True))
    return min(_lives(angles[near].tolist(), pairs, x, m, np.full(len(m), UNIT_ERROR), beta, model, end))


@formula(
    positions=POSITIONS,
    masses=CLUSTER_MASSES,
    beta=BETA,
    model=MODEL,
    until=END,
    relative=1e-14,
    absolute="2e-9 * (1 + beta)",
)
def pair_lives(positions: ArrayLike, masses: ArrayLike, beta: float, *, model: str, until: float) -> Pairs:
    """Angle and log merge time of every pair of clusters, each alone; minus infinity for a pair closer than `until`.

    Arguments:
        positions: points of the clusters.
        masses: their masses.
        beta: inverse temperature.
        model: the clock, "SA", "USA0" or "USA".
        until: angle at which two clusters count as one.

    Raises:
        NotAccurate: if two clusters are nearly antipodal or nearly as close as `until`.
    """
    x, m = checked_clusters(positions, masses)
    pairs = list(itertools.combinations(range(len(m)), 2))
    angles = [_angle(x[p], x[q]) for p, q in pairs]
    lives = _lives(angles, pairs, x, m, np.full(len(m), UNIT_ERROR), beta, model, until)
    return dict(zip(pairs, zip(angles, lives, strict=True), strict=True))


@formula(
    life=Reals(-1e6, 1e6, scalar=True),
    others=Other("pairs of an angle in (0, pi) and a log time above `life` - 700"),
    relative="1e-14 + 4e-16 * abs(life)",
)
def pair_disturbance(life: float, others: Iterable[tuple[float, float]]) -> float:
    """Twice sum (T/T')/sin: what other pairs (angle, log T') may change of log T = `life` (see `pair_cascade`)."""
    pairs = np.array([*others], dtype=np.float64).reshape(-1, 2)
    if not np.all((pairs[:, 0] > 0) & (pairs[:, 0] < np.pi) & (pairs[:, 1] > life - 700)):
        raise InvalidInput(f"`others` is {others!r}; give angles in (0, pi) and log times above `life` - 700.")
    return _disturbance(life, pairs)


def _disturbance(life: float, others: Any) -> float:
    """`pair_disturbance`; 0 for a pair that merges at once."""
    if life == -math.inf:
        return 0.0
    return 2 * math.fsum(math.exp(life - log_time) / math.sin(angle) for angle, log_time in others)


@formula(
    angle=Reals(0.0, math.pi, ends="none", scalar=True),
    beta=Other("a number of at least 0, or infinity"),
    masses=MASSES,
    model=MODEL,
    relative=1e-13,
)
def merge_arc_length(angle: float, beta: float, masses: tuple[float, float], *, model: str = "SA") -> float:
    """Length of the path of two clusters until they meet, in the metric sum m |dx|^2; `beta` may be infinite.

    int_0^angle sqrt(m1 f^2 + m2 (1 - f)^2) dtheta, f the share of the closing that cluster 1 does: m2/(m1 + m2) for
    USA0 and USA, m2 (m2 + m1 q)/(m1^2 + m2^2 + 2 m1 m2 q) with q = e^{-beta (1 - cos theta)} for SA.

    Arguments:
        angle: angle at the start.
        beta: inverse temperature.
        masses: two masses.
        model: "SA", "USA0" or "USA".
    """
    m1, m2 = checked_pair(np.asarray(masses))
    if not beta >= 0:
        raise InvalidInput(f"`beta` is {beta!r}; give a number of at least 0, or infinity.")
    if model != "SA":
        return angle * math.sqrt(m1 / (m1 + m2) * m2)

    def slope(q: np.ndarray) -> np.ndarray:
        first, second = closing_shares(q, m1, m2)
        return np.hypot(math.sqrt(m1) * first, math.sqrt(m2) * second)

    if beta > 1e100:  # q is 0 beyond angles of 1e-49
        return angle * float(slope(np.asarray(0.0)))
    return float(integral_over_angles(slope, np.float64(angle), np.float64(beta)))


def _reach(nearest: float, m: np.ndarray, beta: float) -> float:
    """The angle up to which pairs count: one is e^(beta u) slow, and beyond u + 40/beta it changes nothing.

    Times of unequal masses differ by the square of their largest quotient at most.
    """
    spare = 20 + math.log(float(m.max()) / float(m.min()))
    return 2 * math.asin(min(math.sqrt(math.sin(nearest / 2) ** 2 + spare / beta), 1.0)) if beta > 0 else math.pi


def _lives(
    angles: list[float],
    pairs: list[tuple[int, int]],
    x: np.ndarray,
    m: np.ndarray,
    errors: np.ndarray,
    beta: float,
    model: str,
    until: float,
) -> list[float]:
    """Log merge times of pairs at these angles, of points that are off by `errors`."""
    indices, values = np.array(pairs, dtype=np.int64).reshape(-1, 2).T, np.asarray(angles)
    if np.any(values >= np.pi):
        raise NotAccurate("two clusters are antipodal, an equilibrium; rounding decides when they merge.")
    log_times, apart = np.full(len(pairs), -np.inf), values > until
    first, second = m[indices[0][apart]], m[indices[1][apart]]
    log_times[apart] = log_pair_times(values[apart], beta, first, second, until, model)
    for pair, angle, log_time in zip(pairs, angles, log_times.tolist(), strict=True):
        error = errors[pair[0]] + errors[pair[1]]
        if log_time > -math.inf and _log_slope(angle, log_time, beta, m[[*pair]], model) + math.log(error) > math.log(
            LARGEST_LOG_ERROR * (1 + beta)
        ):
            raise NotAccurate(
                f"clusters {pair[0]} and {pair[1]} are nearly antipodal, or nearly as close as `until`: rounding "
                "decides when they merge."
            )
    return log_times.tolist()


def _log_slope(angle: float, log_time: float, beta: float, masses: Any, model: str) -> float:
    """Log of the derivative of the log merge time in the angle, 1/(time speed)."""
    (m1, m2), fall = masses, 2 * beta * math.sin(angle / 2) ** 2
    if model == "SA":
        q = math.exp(-fall)
        rate = m2 / (m1 + m2 * q) + m1 / (m2 + m1 * q)
    else:
        rate = m1 + m2
    return -log_time - math.log(rate * math.sin(angle)) + fall - (beta if model == "USA" else 0.0)


def _angle(x: np.ndarray, y: np.ndarray) -> float:
    return 2 * math.atan2(float(np.linalg.norm(x - y)), float(np.linalg.norm(x + y)))
