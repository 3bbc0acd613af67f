"""Clusters that merge pair after pair, each pair as if it were alone: two-body formulas applied to many clusters."""

import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attnflow.theory.checks import checked_model
from attnflow.theory.merging.pairs import log_merge_time, meeting_point, meeting_point_limit, merging_angle
from attnflow.theory.merging.staircase import checked_clusters, limit_staircase

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
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


def pair_cascade(
    positions: ArrayLike, masses: ArrayLike, beta: float, *, model: str = "SA", until: float | None = None
) -> PairCascade:
    """All merges of clusters at these points of S^{d-1}, as if every pair were alone, down to one cluster.

    The pair with the shortest time merges, at the time and at the point of the two-body formulas (`log_merge_time`,
    `meeting_point`), and the next pair starts from there; times add up. `until` is the angle at which two clusters
    count as one (`merging_angle(beta)` by default).

    Meanwhile every other pair, whose own time T' is longer than T, uses up the share T/T' of it: it closes by about
    (T/T')/(beta sin), as its rate is 1/(beta sin T'), and changes the log times of all pairs that its clusters are part
    of by up to (T/T')/sin. To first order that is all that the formulas miss (two-body reduction of arXiv:2410.06833).
    """
    checked_model(model)
    x, m = checked_clusters(positions, masses)
    until = float(merging_angle(beta)) if until is None else until
    angles = {pair: _angle(x[pair[0]], x[pair[1]]) for pair in itertools.combinations(range(len(m)), 2)}
    lives: dict[tuple[int, int], float] = {}
    log_time, arc, missed, rows = -math.inf, 0.0, 0.0, []
    while angles:
        reach = _reach(min(angles.values()), beta)
        near = [pair for pair, angle in angles.items() if angle <= reach]
        lives |= {pair: _life(angles[pair], m, pair, beta, model, until) for pair in near if pair not in lives}
        p, q = min(near, key=lambda pair: lives[pair])
        angle, life, both = angles.pop((p, q)), lives[p, q], (float(m[p]), float(m[q]))
        missed += pair_disturbance(life, [(angles[pair], lives[pair]) for pair in near if pair != (p, q)])
        log_time = float(np.logaddexp(log_time, life))
        arc += merge_arc_length(angle, beta, both, model=model)
        slope = math.exp(-life - _log_speed(angle, beta, both, model)) if math.isfinite(life) else 0.0
        x[p] = _meet(x[p], x[q], angle, float(meeting_point(angle, beta, masses=both, model=model)))
        m[p] += m[q]
        rows.append((log_time, p, q, x[p].copy(), arc, slope, missed))
        angles = {
            pair: _angle(x[pair[0]], x[pair[1]]) if p in pair else kept
            for pair, kept in angles.items()
            if q not in pair
        }
        lives = {pair: life for pair, life in lives.items() if not {p, q} & {*pair}}
    return PairCascade(*(np.array(column) for column in zip(*rows, strict=True)))


def log_first_merge_time(
    positions: ArrayLike, masses: ArrayLike, beta: float, *, model: str = "SA", until: float | None = None
) -> float:
    """Log time of the first merge of clusters at these points of S^{d-1}: of the fastest pair, as if it were alone.

    The first row of `pair_cascade`, under its conditions; minus infinity if two are nearer than `until` at the start.
    """
    checked_model(model)
    x, m = checked_clusters(positions, masses)
    until = float(merging_angle(beta)) if until is None else until
    first, second = np.triu_indices(len(m), 1)
    apart, together = (np.linalg.norm(x[first] + sign * x[second], axis=1) for sign in (-1, 1))
    angles = 2 * np.arctan2(apart, together)
    reach = _reach(float(angles.min()), beta) if np.ptp(m) else float(angles.min())  # of equal masses the nearest pair
    near = np.flatnonzero(angles <= reach)
    return min(_life(float(angles[k]), m, (int(first[k]), int(second[k])), beta, model, until) for k in near)


def pair_lives(positions: ArrayLike, masses: ArrayLike, beta: float, *, model: str, until: float) -> Pairs:
    """Angle and log merge time of every pair, each alone; minus infinity for a pair that is closer than `until`."""
    checked_model(model)
    x, m = checked_clusters(positions, masses)
    angles = {pair: _angle(x[pair[0]], x[pair[1]]) for pair in itertools.combinations(range(len(m)), 2)}
    return {pair: (angle, _life(angle, m, pair, beta, model, until)) for pair, angle in angles.items()}


def pair_disturbance(life: float, others: Iterable[tuple[float, float]]) -> float:
    """Twice sum (T/T')/sin: what other pairs (angle, log T') may change of log T = `life` (see `pair_cascade`)."""
    return 2 * sum(math.exp(min(life - other, 700.0)) / math.sin(angle) for angle, other in others)


def merge_arc_length(angle: float, beta: float, masses: tuple[float, float], *, model: str = "SA") -> float:
    """Length of the path of two clusters until they meet, in the metric sum m |dx|^2; `beta` may be infinite.

    int_0^angle sqrt(m1 f^2 + m2 (1 - f)^2) dtheta, f the share of the closing that cluster 1 does: m2/(m1 + m2) for
    USA0 and USA, m2 (m2 + m1 q)/(m1^2 + m2^2 + 2 m1 m2 q) with q = e^{-beta (1 - cos theta)} for SA.
    """
    m1, m2 = masses
    panels = math.ceil(angle * math.sqrt(1 + beta)) if np.isfinite(beta) else 1  # as wide as q is
    theta = (2 * np.arange(panels)[:, None] + 1 + NODES) * angle / panels / 2
    q = np.exp(-2 * beta * np.sin(theta / 2) ** 2)
    share = m2 * (m2 + m1 * q) / (m1**2 + m2**2 + 2 * m1 * m2 * q) if model == "SA" else m2 / (m1 + m2) + 0 * q
    return angle / panels / 2 * float(np.sum(WEIGHTS * np.sqrt(m1 * share**2 + m2 * (1 - share) ** 2)))


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
        found = self.s + self.root / math.sqrt(beta) - np.log(self.factor * beta) / beta
        return np.maximum.accumulate(found)

    def off(self, beta: float) -> np.ndarray:
        """Twice the next terms: of the meeting points, of the merge time, and of sin^2 where a pair has shifted.

        Of the meeting points that is second/beta, and root beta^{-3/2} times at most 1/2: with y = 2 sqrt(beta)
        sin(theta/2) their integrals have the weight 1 + y^2/(8 beta), and y^2 is of order 1.
        """
        slant = np.abs(np.cos(self.angle)) / np.sin(self.angle) ** 2
        shifted = (2 * slant + 0.5) * np.abs(self.root) / math.sqrt(beta)
        return 2 * (np.abs(self.second) + 2 * slant / beta + shifted) / beta


def staircase_expansion(positions: ArrayLike, masses: ArrayLike, *, model: str = "SA") -> StaircaseExpansion:
    """How merges approach `limit_staircase` as beta grows.

    A pair merges in the time e^{beta u}/(rate beta sin^2), rate = m1 + m2 (USA0) or m1/m2 + m2/m1 (SA): this is the
    factor. The SA meeting points approach their limit like beta^{-1/2}, which changes u of all later pairs: these
    coefficients are extrapolated from beta = 1e8 and 4e8.
    """
    limit, big = limit_staircase(positions, masses, model=model), 1e8
    pairs = list(zip(limit.first.tolist(), limit.second.tolist(), strict=True))
    angle = _angles_of(positions, masses, pairs, model, math.inf)

    def shift(beta: float) -> np.ndarray:
        """sqrt(beta) (u - u_limit)."""
        other = _angles_of(positions, masses, pairs, model, beta)
        return 2 * math.sqrt(beta) * np.sin((other + angle) / 2) * np.sin((other - angle) / 2)

    near, far = shift(big), shift(4 * big)
    root = 2 * far - near
    m1, m2 = limit.masses.T
    rate = m1 / m2 + m2 / m1 if model == "SA" else m1 + m2
    return StaircaseExpansion(limit.s, root, rate * np.sin(angle) ** 2, (near - root) * math.sqrt(big), angle)


def _angles_of(
    positions: ArrayLike, masses: ArrayLike, pairs: Iterable[tuple[int, int]], model: str, beta: float
) -> np.ndarray:
    """Angles at which these pairs start when each meets where two bodies do at beta, or in the limit."""
    (x, m), found = checked_clusters(positions, masses), []
    for p, q in pairs:
        angle, both = _angle(x[p], x[q]), (float(m[p]), float(m[q]))
        if model == "SA" and np.isinf(beta):
            way = float(meeting_point_limit(angle, masses=both))
        else:
            way = float(meeting_point(angle, min(beta, 1e300), masses=both, model=model))
        x[p] = _meet(x[p], x[q], angle, way)
        m[p] += m[q]
        found.append(angle)
    return np.array(found)


def _reach(nearest: float, beta: float) -> float:
    """The angle up to which pairs count: one is e^(beta u) slow, and beyond u + 40/beta it changes nothing."""
    return 2 * math.asin(min(math.sqrt(math.sin(nearest / 2) ** 2 + 20 / beta), 1.0))


def _life(angle: float, m: np.ndarray, pair: tuple[int, int], beta: float, model: str, until: float) -> float:
    if angle <= until:
        return -math.inf
    return float(log_merge_time(angle, beta, masses=(m[pair[0]], m[pair[1]]), until=until, model=model))


def _log_speed(angle: float, beta: float, masses: tuple[float, float], model: str) -> float:
    """Log of the closing speed of a pair."""
    (m1, m2), fall = masses, 2 * beta * math.sin(angle / 2) ** 2
    if model == "SA":
        q = math.exp(-fall)
        rate = m2 / (m1 + m2 * q) + m1 / (m2 + m1 * q)
    else:
        rate = m1 + m2
    return math.log(rate * math.sin(angle)) - fall + (beta if model == "USA" else 0.0)


def _angle(x: np.ndarray, y: np.ndarray) -> float:
    return 2 * math.atan2(float(np.linalg.norm(x - y)), float(np.linalg.norm(x + y)))


def _meet(x: np.ndarray, y: np.ndarray, angle: float, way: float) -> np.ndarray:
    met = math.sin(angle - way) * x + math.sin(way) * y
    return met / np.linalg.norm(met)
