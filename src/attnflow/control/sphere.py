"""Plans on S^2 and higher spheres: attention makes clouds of the measures, gates cut and carry them."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from attnflow.control.distances import angles
from attnflow.control.planner import carry, cut, free_point, gather
from attnflow.control.stage import AbstractPlanner, NoPlan, Plan, Stage, direction
from attnflow.errors import InvalidInput
from attnflow.fields import Drift, MeanAttention, ReluUnit
from attnflow.tokens import Tokens

RATIOS = (0.35, 0.35, 0.15, 0.15, 0.05, 0.05, 0.02, 0.02)
"""Largest radius of a cloud over the least separation of clouds, in successive tries."""
NEAR, WIDE = 0.5, 0.9
"""All tokens are boosted within NEAR of one point; the separated clouds are spread over a cap of radius WIDE."""
STEP, LONGEST = 0.25, 40.0
"""Times of attention that are tried."""


class SpherePlanner(AbstractPlanner):
    """Boost, attention, boost; then every atom is cut off its cloud and carried to its place."""

    varied: ClassVar[str] = "ratio"

    def __init__(self, start: Stage, atoms: Sequence[Tokens], tol: float):
        self.start, self.atoms, self.tol = start, atoms, tol

    @property
    def values(self) -> Sequence[float]:
        return RATIOS

    def plan(self, number: int, rng: np.random.Generator) -> Plan:
        stage, ratio = self.start, RATIOS[number]
        hole, room = free_point(stage.points, rng)
        if room < 1e-3:
            raise InvalidInput(
                f"the tokens leave no free point on the sphere (largest hole {room:.1g} rad); give inputs with a free "
                "cap."
            )
        tau = np.log(np.tan((np.pi - room) / 2) / np.tan(NEAR / 2))
        if tau > 0:
            stage = stage.then(Drift(-hole), float(tau))
        attention, separation = 0.0, np.inf
        if len(stage.clouds) > 1:
            stage, attention, separation = disentangle(stage, ratio, rng)
        centre = direction(stage.points.mean(axis=0))
        widest = float(angles(stage.points, centre[None]).max())
        tau = np.log(np.tan(WIDE / 2) / np.tan(widest / 2))
        if tau > 0 and len(stage.clouds) > 1:
            stage = stage.then(Drift(-centre), float(tau))
        return Plan(_deliver(stage, self.atoms, self.tol, rng), attention, separation)


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
            raise NoPlan("the measures have one mean")
        trial = trial.then(attention, STEP)
        time += STEP
    if time > 0:  # one element for all steps
        stage = stage.then(attention, time)
    radius, apart = spread(stage)
    return stage, time, apart / radius


def spread(stage: Stage) -> tuple[float, float]:
    """(largest radius of a cloud about its mean direction, least angle between mean directions)."""
    means = np.stack([direction(m @ c) for c, m in zip(stage.clouds, stage.masses, strict=True)])
    radius = max(float(angles(c, m[None]).max()) for c, m in zip(stage.clouds, means, strict=True))
    apart = angles(means, means) + np.pi * np.eye(len(means))
    return radius, float(apart.min()) if len(means) > 1 else np.pi


def _deliver(stage: Stage, atoms: Sequence[Tokens], tol: float, rng: np.random.Generator) -> Stage:
    """Cut and carry, measure by measure; one that finds no path waits for the others."""
    waiting, failed = list(rng.permutation(len(atoms))), 0
    done = np.zeros(stage.ends[-1], bool)
    left = {i: list(range(atoms[i].n)) for i in waiting}
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
    """Deliver the k-th atom of measure i; `done` says which tokens are at their place, before and after."""
    own = np.arange(stage.ends[i], stage.ends[i + 1])
    cloud = own[~done[own]]
    if not len(cloud):
        return stage, done
    goal, points = np.asarray(atoms.positions)[k], stage.points
    rest = np.setdiff1d(np.arange(len(points)), cloud)
    mass = np.concatenate(stage.masses)[cloud]
    if last or len(cloud) == 1:
        piece = cloud
        stage, start = gather(stage, cloud, points[rest], tol)
    else:
        stage, piece, start = cut(stage, cloud, mass, float(np.asarray(atoms.masses)[k]), points[rest], rng, tol)
    away = np.setdiff1d(np.arange(len(points)), piece)
    there = done[away] & (angles(stage.points[away], goal[None])[:, 0] < 4 * tol)
    if angles(start[None], goal[None])[0, 0] > tol:
        stage = carry(stage, piece, start, goal, stage.points[away[~there]], rng, tol)
    return stage, done | np.isin(np.arange(len(done)), piece)
