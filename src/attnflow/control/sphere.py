"""Plans on S^2 and higher spheres: attention makes clouds of the measures, gates cut and carry them.

On demand attention also makes clouds of the targets. Then gates carry the atoms into these clouds, and what made them
is taken back.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from attnflow.control.distances import angles
from attnflow.control.division import first_of_equals
from attnflow.control.planner import caps_beside, carry, cut, divide, free_point, whole
from attnflow.control.stage import AbstractPlanner, Element, NoPlan, Plan, Stage, direction, unit
from attnflow.errors import InvalidInput
from attnflow.fields import Drift, MeanAttention, ReluUnit
from attnflow.tokens import Tokens

RATIOS = (0.35, 0.35, 0.15, 0.15, 0.05, 0.05, 0.02, 0.02)
"""Largest radius of a cloud over the least separation of clouds, in successive tries."""
NEAR, WIDE = 0.5, 0.9
"""All tokens are boosted within NEAR of one point; the separated clouds are spread over a cap of radius WIDE."""
STEP, LONGEST = 0.25, 40.0
"""Times of attention that are tried."""
FINEST = 1e-13
"""The least angle within which tokens are made to arrive."""
ERRORS, ERROR = 12, 1e-8
"""Random errors by which amplification is measured, and their size."""
ALLOWED = 12.0
"""What a mass at a wrong atom may add to W_2, over the angle within which tokens arrive (a sixteenth of `tol`)."""


class SpherePlanner(AbstractPlanner):
    """Boost, attention, boost; then every atom is cut off its cloud and carried to its place."""

    varied: ClassVar[str] = "ratio"

    def __init__(self, start: Stage, atoms: Sequence[Tokens], tol: float, expand: bool = False):
        self.start, self.atoms, self.tol, self.expand = start, atoms, tol, expand

    @property
    def values(self) -> Sequence[float]:
        return RATIOS

    def plan(self, number: int, rng: np.random.Generator) -> Plan:
        stage, attention, separation = clouds_apart(self.start, RATIOS[number], rng)
        if not self.expand:
            return Plan(_deliver(stage, self.atoms, self.tol, rng, number > 0), attention, separation)
        goals, elements, amplification = expansion(self.atoms, RATIOS[number], rng)
        tol = self.tol / amplification
        if not tol >= FINEST:  # nor where the amplification is no number
            raise NoPlan(
                f"the expansion multiplies errors by {amplification:.2g}", "give a larger `tol`, or leave `expand` out"
            )
        stage = _deliver(stage, goals, tol, rng, number > 0)
        for field, duration in elements:
            stage = stage.then(field, duration)
        return Plan(stage, attention, separation, amplification)


def clouds_apart(
    stage: Stage, ratio: float, rng: np.random.Generator, wide: float = WIDE
) -> tuple[Stage, float, float]:
    """Boost, attention, boost: (the stage, the time of attention, separation over radius of the clouds)."""
    hole, room = free_point(stage.points, rng)
    if room < 1e-3:
        raise InvalidInput(
            f"the tokens leave no free point on the sphere (largest hole {room:.1g} rad); give measures with a "
            "free cap."
        )
    if np.pi - room > NEAR:
        stage = stage.then(Drift(-hole), float(np.log(np.tan((np.pi - room) / 2) / np.tan(NEAR / 2))))
    if len(stage.clouds) == 1:
        return stage, 0.0, np.inf
    stage, attention, separation = disentangle(stage, ratio, rng)
    centre = direction(stage.points.mean(axis=0))
    widest = float(angles(stage.points, centre[None]).max())
    tau = np.log(np.tan(wide / 2) / np.tan(widest / 2))
    if tau > 0:
        stage = stage.then(Drift(-centre), float(tau))
    return stage, attention, separation


def expansion(
    atoms: Sequence[Tokens], ratio: float, rng: np.random.Generator
) -> tuple[list[Tokens], list[Element], float]:
    """(clouds of the targets, the elements that carry them to the targets, by how much these multiply errors)."""
    same = first_of_equals(list(atoms))
    different = sorted(set(same))
    start = Stage(
        *zip(*((np.asarray(atoms[i].positions), np.asarray(atoms[i].masses)) for i in different), strict=True)
    )
    # not as wide as the inputs, so that clouds of targets never lie on those of inputs, not even where both are equal
    stage = clouds_apart(start, ratio, rng, WIDE * rng.uniform(0.6, 0.8))[0]
    back = [(field.times(-1.0), duration) for field, duration in reversed(stage.elements)]
    clouds = dict(zip(different, stage.clouds, strict=True))
    goals = [Tokens(clouds[i], masses=one.masses, space=one.space) for i, one in zip(same, atoms, strict=True)]
    return goals, back, amplification(dataclasses.replace(stage, elements=()), back, rng)


def amplification(stage: Stage, elements: Sequence[Element], rng: np.random.Generator) -> float:
    """The largest ratio of what errors of tokens become, on their way through the elements, to what they were."""
    found = 1.0
    ends = _through(stage, elements)
    for _ in range(ERRORS):
        clouds = tuple(unit(c + ERROR * tangent(c, rng.standard_normal(c.shape))) for c in stage.clouds)
        moved = _through(dataclasses.replace(stage, clouds=clouds), elements)
        pairs = zip(ends, moved, clouds, stage.clouds, strict=True)
        found = float(np.max([found, *(_largest(a, b) / _largest(c, d) for a, b, c, d in pairs)]))
    return found


def _through(stage: Stage, elements: Sequence[Element]) -> tuple[np.ndarray, ...]:
    for field, duration in elements:
        stage = stage.then(field, duration)
    return stage.clouds


def _largest(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.linalg.norm(x - y, axis=1).max())


def tangent(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Directions along v that are tangent at the rows of x, of length 1."""
    return unit(v - np.sum(x * v, axis=1, keepdims=True) * x)


def disentangle(stage: Stage, ratio: float, rng: np.random.Generator) -> tuple[Stage, float, float]:
    """Mean attention until every cloud is small against the distance to the next; equal means need a gate first."""
    d = stage.dim
    if spread(stage)[1] < 1e-3:
        a, w = (direction(v) for v in rng.standard_normal((2, d)))
        a = direction(a + 2 * direction(stage.points.mean(axis=0)))
        level = float(np.median(stage.points @ a))
        stage = stage.then(ReluUnit(w / max(float((stage.points @ a).max()) - level, 1e-9), a, -level), 1.0)
    attention, trial, time = MeanAttention(np.eye(d)), stage, 0.0
    while True:
        radius, apart = spread(trial)
        if radius < ratio * apart:
            break
        if time >= LONGEST or radius < 1e-13:
            raise NoPlan("attention does not tell the measures apart", "give inputs with different means")
        trial = trial.then(attention, STEP)
        time += STEP
    if time > 0:  # one element for all steps
        stage = stage.then(attention, time)
    radius, apart = spread(stage)
    return stage, time, apart / max(radius, 1e-300)


def spread(stage: Stage) -> tuple[float, float]:
    """(largest radius of a cloud about its mean direction, least angle between mean directions)."""
    means = np.stack([direction(m @ c) for c, m in zip(stage.clouds, stage.masses, strict=True)])
    radius = max(float(angles(c, m[None]).max()) for c, m in zip(stage.clouds, means, strict=True))
    apart = angles(means, means) + np.pi * np.eye(len(means))
    return radius, float(apart.min()) if len(means) > 1 else np.pi


def _deliver(stage: Stage, atoms: Sequence[Tokens], tol: float, rng: np.random.Generator, shuffled: bool) -> Stage:
    """Cut and carry, measure by measure; one that finds no path waits for the others."""
    waiting, failed = list(rng.permutation(len(atoms))), 0
    done = np.zeros(stage.ends[-1], bool)
    left = {i: list(rng.permutation(atoms[i].n) if shuffled else range(atoms[i].n)) for i in waiting}
    while waiting:
        i = int(waiting.pop(0))
        try:
            while left[i]:
                stage, done = _atom(stage, i, atoms[i], left[i][0], len(left[i]) == 1, done, tol, rng)
                left[i].pop(0)
            failed = 0
        except NoPlan:
            waiting.append(i)
            failed += 1
            if failed >= len(waiting):
                raise
    return stage


def _atom(
    stage: Stage, i: int, atoms: Tokens, k: int, last: bool, done: np.ndarray, tol: float, rng: Any
) -> tuple[Stage, np.ndarray]:
    """Deliver the k-th atom of measure i, in pieces if need be; `done` says which tokens are at their place."""
    own = np.arange(stage.ends[i], stage.ends[i + 1])
    wanted, goal = own[~done[own]], np.asarray(atoms.positions)[k]
    caps = np.zeros((0, stage.dim))
    if not last:
        mine, caps = _chosen(stage, i, wanted, atoms, k, tol, rng)
        wanted = wanted[mine]
    every = np.arange(len(done))
    while len(wanted):
        others = stage.points[np.setdiff1d(every, wanted)]
        try:
            stage, piece, start = whole(stage, wanted, others, tol)
        except NoPlan:
            beside = caps_beside(stage.points[wanted], rng)
            stage, piece, start = cut(stage, wanted, np.concatenate([caps, beside]), tol)
        there = done & (angles(stage.points, goal[None])[:, 0] < 4 * tol)
        if angles(start[None], goal[None])[0, 0] > tol:
            stage = carry(stage, piece, start, goal, there, rng, tol)
        done, wanted = done | np.isin(every, piece), np.setdiff1d(wanted, piece)
    return stage, done


def _chosen(
    stage: Stage, i: int, cloud: np.ndarray, atoms: Tokens, k: int, tol: float, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens of what is left of measure i are meant for its k-th atom, and the centre (1, d) of a cap of them."""
    if len(cloud) < 2:
        raise NoPlan(f"measure {i} has fewer tokens at different points than its target has atoms")
    points, mass = stage.points, np.concatenate(stage.masses)
    others = np.delete(points, cloud, axis=0)
    x, quota = points[cloud], float(np.asarray(atoms.masses)[k])
    found, off, cap = divide(x, mass[cloud], quota, caps_beside(x, rng), others)
    if off * widest(atoms) ** 2 > (ALLOWED * tol) ** 2:
        raise NoPlan(
            f"no tokens of measure {i} were found whose masses add up to that of an atom, {quota:.3g}: the nearest "
            f"sum is off by {off:.2g}",
            "a token is never split, nor are tokens that coincide; give more tokens, or masses that fit",
        )
    return found, cap[None]


def widest(atoms: Tokens) -> float:
    """The largest angle between atoms: a mass m at a wrong one costs at most m times its square in W_2^2."""
    return float(angles(atoms.positions, atoms.positions).max())
