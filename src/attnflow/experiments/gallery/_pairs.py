"""Clusters that merge pair after pair, each pair as if it were alone: what two-body formulas say of many clusters.

A pair merges in the time, and at the point, of `theory.log_merge_time` and `theory.meeting_point`; the next pair starts
from there. Meanwhile every other pair, whose own time T' is longer than T, uses up the share T/T' of it: it closes by
about (T/T')/(beta sin), as its rate is 1/(beta sin T'), and changes the log times of all pairs that its clusters are
part of by up to (T/T')/sin. To first order that is all that the formulas miss, so that it is summed and doubled
(two-body reduction of arXiv:2410.06833).
"""

import itertools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from attnflow import theory

WIDTH = 1e-3
"""Clusters are one at the angle WIDTH/beta."""


class Cascade(NamedTuple):
    """Merges in their order; arrays (merge, ...)."""

    log_time: np.ndarray
    first: np.ndarray
    second: np.ndarray
    point: np.ndarray
    arc: np.ndarray
    """Length of the path so far, in the metric weighted by masses."""
    loose: np.ndarray
    """What other pairs may change of log_time."""


def cascade(positions: Any, masses: Any, beta: float, model: str) -> Cascade:
    """All merges down to one cluster; the smaller number names the merged cluster."""
    x, m = np.array(positions), np.array(masses)
    pairs = lives(x, m, beta, model)
    log_time, arc, loose, rows = -math.inf, 0.0, 0.0, []
    while pairs:
        p, q = min(pairs, key=lambda pair: pairs[pair][1])
        angle, life = pairs.pop((p, q))
        loose += disturbance(life, pairs.values())
        log_time = float(np.logaddexp(log_time, life))
        arc += length(angle, beta, (m[p], m[q]), model)
        x[p] = _meet(x[p], x[q], angle, float(theory.meeting_point(angle, beta, (m[p], m[q]), model)))
        m[p] += m[q]
        rows.append((log_time, p, q, x[p].copy(), arc, loose))
        pairs = {
            pair: _life(x, m, pair, beta, model) if p in pair else found
            for pair, found in pairs.items()
            if q not in pair
        }
    return Cascade(*(np.array(column) for column in zip(*rows, strict=True)))


def lives(x: np.ndarray, m: np.ndarray, beta: float, model: str) -> dict[tuple[int, int], tuple[float, float]]:
    """Angle and log merge time of every pair, each alone."""
    return {pair: _life(x, m, pair, beta, model) for pair in itertools.combinations(range(len(m)), 2)}


def disturbance(life: float, others: Iterable[tuple[float, float]]) -> float:
    """What the other pairs (angle, log merge time) may change of the log time of one with log merge time `life`."""
    return 2 * sum(math.exp(min(life - other, 700.0)) / math.sin(angle) for angle, other in others)


def length(angle: float, beta: float, masses: tuple[float, float], model: str) -> float:
    """Arc length of a merge: int sqrt(m1 f^2 + m2 (1-f)^2), f the share of the closing that cluster 1 does."""
    m1, m2 = masses
    panels = math.ceil(angle * math.sqrt(1 + beta)) if np.isfinite(beta) else 1  # as wide as q = e^(-beta u) is
    nodes, weights = np.polynomial.legendre.leggauss(16)
    theta = (2 * np.arange(panels)[:, None] + 1 + nodes) * angle / panels / 2
    q = np.exp(-2 * beta * np.sin(theta / 2) ** 2)
    share = m2 * (m2 + m1 * q) / (m1**2 + m2**2 + 2 * m1 * m2 * q) if model == "SA" else m2 / (m1 + m2) + 0 * q
    return angle / panels / 2 * float(np.sum(weights * np.sqrt(m1 * share**2 + m2 * (1 - share) ** 2)))


class Expansion(NamedTuple):
    """(log t)/beta = s + root beta^(-1/2) - log(factor beta)/beta + rest, |rest| <= off(beta); arrays (merge,)."""

    s: np.ndarray
    root: np.ndarray
    factor: np.ndarray
    second: np.ndarray
    """Coefficient of beta^(-1) in the angles."""
    angle: np.ndarray

    def at(self, beta: float) -> np.ndarray:
        """The first terms."""
        found = self.s + self.root / math.sqrt(beta) - np.log(self.factor * beta) / beta
        return np.maximum.accumulate(found)

    def off(self, beta: float) -> np.ndarray:
        """Twice the next terms: of the meeting points, of the merge time, and of sin^2 where a pair has shifted."""
        slant = np.abs(np.cos(self.angle)) / np.sin(self.angle) ** 2
        shifted = 2 * slant * np.abs(self.root) / math.sqrt(beta)
        return 2 * (np.abs(self.second) + 2 * slant / beta + shifted) / beta


def expansion(positions: Any, masses: Any, model: str) -> Expansion:
    """How the limit staircase is approached; what SA's meeting points add is read off them at huge beta."""
    limit, big = theory.limit_staircase(positions, masses, model), 1e8
    pairs = list(zip(limit.first.tolist(), limit.second.tolist(), strict=True))
    angle = limit_angles(positions, masses, pairs, model)

    def shift(beta: float) -> np.ndarray:
        """sqrt(beta) (u - u_limit)."""
        other = limit_angles(positions, masses, pairs, model, beta)
        return 2 * math.sqrt(beta) * np.sin((other + angle) / 2) * np.sin((other - angle) / 2)

    near, far = shift(big), shift(4 * big)
    root = 2 * far - near
    m1, m2 = limit.masses.T
    rate = m1 / m2 + m2 / m1 if model == "SA" else m1 + m2
    return Expansion(limit.s, root, rate * np.sin(angle) ** 2, (near - root) * math.sqrt(big), angle)


def limit_angles(
    positions: Any, masses: Any, pairs: Iterable[tuple[int, int]], model: str, beta: float = math.inf
) -> np.ndarray:
    """Angles at which these pairs start when each meets where two bodies do at beta, or in the limit."""
    x, m, found = np.array(positions), np.array(masses), []
    for p, q in pairs:
        angle, both = _angle(x[p], x[q]), (float(m[p]), float(m[q]))
        if model == "SA" and np.isinf(beta):
            way = float(theory.meeting_point_limit(angle, both))
        else:
            way = float(theory.meeting_point(angle, min(beta, 1e300), both, model))
        x[p] = _meet(x[p], x[q], angle, way)
        m[p] += m[q]
        found.append(angle)
    return np.array(found)


def _life(x: np.ndarray, m: np.ndarray, pair: tuple[int, int], beta: float, model: str) -> tuple[float, float]:
    p, q = pair
    angle = _angle(x[p], x[q])
    return angle, float(theory.log_merge_time(angle, beta, (m[p], m[q]), WIDTH / beta, model))


def _angle(x: np.ndarray, y: np.ndarray) -> float:
    return 2 * math.atan2(float(np.linalg.norm(x - y)), float(np.linalg.norm(x + y)))


def _meet(x: np.ndarray, y: np.ndarray, angle: float, way: float) -> np.ndarray:
    met = math.sin(angle - way) * x + math.sin(way) * y
    return met / np.linalg.norm(met)
