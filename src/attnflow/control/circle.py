"""Plans on the circle, where gates keep the cyclic order and skew attention changes it."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from attnflow.control.planner import contract, gate, gather
from attnflow.control.stage import AbstractPlanner, NoPlan, Plan, Stage
from attnflow.fields import Drift, MeanAttention
from attnflow.tokens import Tokens

SKEW = np.array([[0.0, -1.0], [1.0, 0.0]])
"""V of skew attention: every measure turns at a speed that its own mean sets."""
LAST, STEP = 60.0, 0.5
"""Times of skew attention that are tried."""
CONTRACTIONS = (6.0, 12.0, 24.0)
"""Times of attention with V = I that are tried."""
TIGHT, APART = 0.05, 0.05
"""Largest radius of a cloud, and least distance of clouds, in rad."""
HOP, SHORTEST = 1.0, 0.02
"""Longest and shortest hops, rad; the last one may be shorter."""
PASSES = 60
TRIES, TURN = 40, 2.4
"""Boosts before skew attention that are tried, each so much further round: each leads through other cyclic orders."""


class CirclePlanner(AbstractPlanner):
    """Skew attention brings the measures into the order of their targets, one atom each; then gates carry them."""

    varied: ClassVar[str] = "boost"

    def __init__(self, start: Stage, atoms: Sequence[Tokens], tol: float):
        self.start, self.atoms, self.tol = start, atoms, tol

    @property
    def values(self) -> Sequence[float]:
        """Angles of the boosts; the first try has none."""
        return [TURN * attempt if attempt else np.nan for attempt in range(TRIES)]

    def plan(self, number: int, rng: np.random.Generator) -> Plan:
        goals = np.array([_angle(np.asarray(one.positions)[0]) for one in self.atoms])
        stage, time = _turn(self.start, goals, number)
        radius, apart = _apart(stage)
        return Plan(_carry(stage, goals, self.tol), time, apart / max(radius, 1e-300))


def _turn(stage: Stage, goals: np.ndarray, attempt: int) -> tuple[Stage, float]:
    """Skew attention until the clouds, once contracted, stand in the order of their goals.

    P_x J m turns a measure and also shears it along m. Contraction by V = I then makes points of the clouds.
    """
    if attempt:
        # another boost in every try: it changes the lengths of the means, hence the speeds
        stage = stage.then(Drift(np.array([np.cos(TURN * attempt), np.sin(TURN * attempt)])), 1.2)
    skew, turned, step = MeanAttention(SKEW), stage, STEP * (1 + 0.013 * attempt)
    for count in range(int(LAST / STEP)):
        if count:
            turned = turned.then(skew, step)
        centres = _contracted(turned) if len(goals) < 2 or _ordered(_centres(turned), goals) else None
        if centres is None:
            continue
        far = np.diff(np.sort(centres), append=np.sort(centres)[0] + 2 * np.pi).min() > APART
        if len(goals) < 2 or (far and _ordered(centres, goals)):
            found = stage.then(skew, count * step) if count else stage
            found = found.then(MeanAttention(np.eye(2)), _contraction(found))
            if len(goals) < 2 or _ordered(_centres(found), goals):  # layers of one long element differ a little
                return found, count * step
    raise NoPlan("no time of skew attention gives the cyclic order of the targets")


def _contraction(stage: Stage) -> float:
    """A time in which V = I makes small clouds of all measures; 0 if none does."""
    for length in CONTRACTIONS:
        trial = stage.then(MeanAttention(np.eye(2)), length)
        if max(_radius(c, m) for c, m in zip(trial.clouds, stage.masses, strict=True)) < TIGHT:
            return length
    return 0.0


def _contracted(stage: Stage) -> np.ndarray | None:
    """Where the clouds stand once they are contracted; None if they are not."""
    length = _contraction(stage)
    if length == 0:
        return None
    return _centres(stage.then(MeanAttention(np.eye(2)), length))


def _angle(x: np.ndarray) -> float:
    return float(np.arctan2(x[1], x[0]))


def _centres(stage: Stage) -> np.ndarray:
    return np.array([_angle(m @ c) for c, m in zip(stage.clouds, stage.masses, strict=True)])


def _radius(cloud: np.ndarray, masses: np.ndarray) -> float:
    mean = masses @ cloud
    if np.linalg.norm(mean) < 1e-12:
        return np.pi
    turned = np.arctan2(cloud[:, 1], cloud[:, 0]) - _angle(mean)
    return float(np.abs((turned + np.pi) % (2 * np.pi) - np.pi).max())


def _apart(stage: Stage) -> tuple[float, float]:
    radius = max(_radius(c, m) for c, m in zip(stage.clouds, stage.masses, strict=True))
    centres = np.sort(_centres(stage))
    gaps = np.diff(np.append(centres, centres[0] + 2 * np.pi))
    return radius, float(gaps.min())


def _ordered(centres: np.ndarray, goals: np.ndarray) -> bool:
    """Whether two families of angles have one cyclic order."""
    first, second = np.argsort(centres % (2 * np.pi)), np.argsort(goals % (2 * np.pi))
    return bool(np.array_equal(np.roll(first, -int(np.argmin(first))), np.roll(second, -int(np.argmin(second)))))


def _carry(stage: Stage, goals: np.ndarray, tol: float) -> Stage:
    """All clouds to their goals."""
    n = len(goals)
    for i in range(n):
        piece = np.arange(stage.ends[i], stage.ends[i + 1])
        stage, _ = gather(stage, piece, np.delete(stage.points, piece, axis=0), tol)
    here = _centres(stage)
    order = np.argsort(here)
    start, end = here[order], _rising(goals[order])
    end = end + 2 * np.pi * np.round(np.mean(start - end) / (2 * np.pi))
    # as far as the others allow, again and again: with one cyclic order somebody can always go on
    for _ in range(PASSES):
        for k in range(n):
            piece = np.arange(stage.ends[order[k]], stage.ends[order[k] + 1])
            stage, start[k] = _along(stage, piece, float(start[k]), float(end[k]), tol)
        if np.abs(end - start).max() <= tol:
            return stage
    raise NoPlan("no path")


def _rising(goals: np.ndarray) -> np.ndarray:
    """The angles with multiples of a turn added, so that they increase."""
    found = goals.copy()
    for k in range(1, len(found)):
        found[k] += 2 * np.pi * np.ceil((found[k - 1] - found[k]) / (2 * np.pi))
    return found


def _along(stage: Stage, piece: np.ndarray, here: float, end: float, tol: float) -> tuple[Stage, float]:
    """Hops along an arc towards `end`, as far as the others allow; the stage there, and where they lead.

    A hop is short enough for its cap, 1.25 times as wide, to leave out the other clouds.
    """
    others = np.delete(stage.points, piece, axis=0)
    sides = np.arctan2(others[:, 1], others[:, 0]) if len(others) else np.zeros(0)
    while abs(end - here) > tol:
        left, sign = abs(end - here), np.sign(end - here)
        ahead, behind = (
            float((side % (2 * np.pi)).min(initial=9.0)) for side in ((sides - here) * sign, (here - sides) * sign)
        )
        length = min(HOP, left, 0.85 * ahead, 7.0 * behind)
        if length < min(SHORTEST, left):
            return stage, here
        then = here + sign * length
        q, middle = (np.array([np.cos(v), np.sin(v)]) for v in (then, (here + then) / 2))
        radius = 1.25 * length / 2
        height = np.cos(length / 2) - np.cos(radius)
        stage = contract(stage, piece, gate(middle, radius, q, 1.0 / height), q, tol)
        here = then
    return stage, here
