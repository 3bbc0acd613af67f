"""One schedule for N measures: every input is carried to its own target."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import generator, instance, number
from attnflow.control import circle
from attnflow.control.distances import angles, wasserstein
from attnflow.control.planner import NoPlan, Stage, carry, cut, free_point, gather
from attnflow.control.schedule import Schedule
from attnflow.errors import InvalidInput
from attnflow.fields import Drift, MeanAttention, ReluUnit
from attnflow.flows import Layers, solve
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, all_present

RATIOS = (0.35, 0.35, 0.15, 0.15, 0.05, 0.05, 0.02, 0.02)
"""Largest radius of a cloud over the least separation of clouds, in successive tries."""
NEAR, WIDE = 0.5, 0.9
"""All tokens are boosted within NEAR of one point; the separated clouds are spread over a cap of radius WIDE."""
STEP, LONGEST = 0.25, 40.0
"""Times of attention that are tried."""


@dataclasses.dataclass(frozen=True)
class Matching:
    """A schedule that carries inputs[i] to targets[i] for all i, and how well."""

    schedule: Schedule
    """Run exactly, or, where `layer` is given, by `Layers(1.0)`."""
    layer: float | None
    w1: np.ndarray
    """(N,) distance of every measure, replayed alone, from its target."""
    w2: np.ndarray
    before: np.ndarray
    """(N,) W_2 of inputs and targets."""
    attention: float
    """The time for which mean attention acts."""
    separation: float
    """Least angle between clouds after attention, over the largest radius of a cloud."""
    tries: int

    def __call__(self, tokens: Tokens) -> Tokens:
        """Where the schedule, or the network, carries a measure."""
        if self.layer is None:
            return self.schedule(tokens)
        flow = solve(self.schedule.field, tokens, self.schedule.duration, method=Layers(1.0), save=2)
        return flow.tokens(-1)


def match_measures(
    inputs: Sequence[Tokens], targets: Sequence[Tokens], *, tol: float = 1e-3, seed: int = 0, layer: float | None = None
) -> Matching:
    """One schedule on the sphere S^(d-1) that carries N measures to N targets (arXiv:2411.04551), each seen alone.

    Targets are few atoms each; quantise others first. On S^2 and higher spheres: a boost away from a free point, mean
    attention until the measures are clouds of their own (each measure contracts towards its own mean), a boost that
    spreads the clouds; then, for every atom, a gate that cuts its mass off the cloud, and gates that carry it along a
    path on a great 2-sphere past all other tokens (paths and cuts are ours). On the circle perceptrons keep the cyclic
    order, so skew attention turns the measures by different angles first; one atom a target there.

    W_2 of the result is below `tol`, checked by replaying every measure alone, or the call is refused. A token is never
    split: masses of atoms have to be sums of masses of tokens.

    `layer`: None for exact flows, or the largest size of a layer of a network with normalisation, for which the plan
    is then made (0.25 is safe). `seed` sets random directions of the search.

    The schedule interpolates these inputs. It does not learn: other samples of the same measures are split at other
    tokens (see the experiment interpolation-is-not-learning).
    """
    clouds, atoms = _checked(inputs, targets)
    tol, rng = number("tol", tol, low=1e-10, high=0.1), generator(seed)
    layer = None if layer is None else number("layer", layer, low=1e-4, high=1.0)
    reason = ""
    ratios = RATIOS if clouds[0].dim > 2 else circle.TRIES * (0.0,)
    for attempt, ratio in enumerate(ratios):
        stage = Stage([np.asarray(c.positions) for c in clouds], [np.asarray(c.masses) for c in clouds], layer)
        try:
            if clouds[0].dim == 2:
                attention, separation = circle.plan(stage, atoms, tol / 16, attempt)
            else:
                attention, separation = _plan(stage, atoms, tol / 16, ratio, rng)
        except NoPlan as error:
            reason = str(error)
            continue
        found = _report(stage, clouds, atoms, attention, separation, attempt + 1)
        if found.w2.max() <= tol:
            return found
        reason = f"W_2 = {found.w2.max():.2g}"
        if attempt and _indivisible(clouds, atoms):
            raise InvalidInput(
                f"the masses of the atoms are no sums of masses of tokens (W_2 = {found.w2.max():.2g} at best here); "
                "give more tokens, or masses that fit."
            )
    raise InvalidInput(
        f"no schedule was found in {len(ratios)} tries (last: {reason}): the measures cannot be told apart by "
        "attention, or the geometry is too tight; give inputs with different means, or a larger `tol`."
    )


def _checked(inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> tuple[list[Tokens], list[Tokens]]:
    clouds, atoms = list(inputs), list(targets)
    if not clouds or len(clouds) != len(atoms):
        raise InvalidInput(f"{len(clouds)} `inputs` and {len(atoms)} `targets`; give as many of both, at least one.")
    for name, group in (("inputs", clouds), ("targets", atoms)):
        for one in group:
            instance(name, one, Tokens, "a list of Tokens on a sphere").single()
            all_present(one, "match_measures")
            if not isinstance(one.space, Sphere) or one.space != clouds[0].space:
                raise InvalidInput(f"`{name}` has tokens on {one.space}; give all on one Sphere(d).")
            if not (np.asarray(one.masses) > 0).all():
                raise InvalidInput(f"`{name}` has a token of mass 0; leave it out.")
    if clouds[0].dim < 2:
        raise InvalidInput("the sphere of R^1 is two points, between which nothing flows; give d of at least 2.")
    for i, one in enumerate(clouds):
        for k in range(i):
            if _same(one, clouds[k]) and not _same(atoms[i], atoms[k]):
                raise InvalidInput(
                    f"inputs {k} and {i} are the same measure and have different targets; no schedule separates them."
                )
    return clouds, atoms


def _same(one: Tokens, other: Tokens) -> bool:
    """Whether two measures are equal."""
    if one.n != other.n:
        return False
    first, second = (
        np.concatenate([np.asarray(t.positions), np.asarray(t.masses)[:, None]], axis=1) for t in (one, other)
    )
    first, second = (rows[np.lexsort(np.round(rows, 12).T)] for rows in (first, second))
    return bool(np.abs(first - second).max() < 1e-12)


def _plan(stage: Stage, atoms: list[Tokens], tol: float, ratio: float, rng: np.random.Generator) -> tuple[float, float]:
    hole, room = free_point(stage.points, rng)
    if room < 1e-3:
        raise InvalidInput(
            f"the tokens leave no free point on the sphere (largest hole {room:.1g} rad); give inputs with a free cap."
        )
    tau = np.log(np.tan((np.pi - room) / 2) / np.tan(NEAR / 2))
    if tau > 0:
        stage.apply(Drift(-hole), float(tau))
    attention, separation = 0.0, np.inf
    if len(stage.clouds) > 1:
        attention, separation = disentangle(stage, ratio, rng)
    centre = _direction(stage.points.mean(axis=0))
    widest = float(angles(stage.points, centre[None]).max())
    tau = np.log(np.tan(WIDE / 2) / np.tan(widest / 2))
    if tau > 0 and len(stage.clouds) > 1:
        stage.apply(Drift(-centre), float(tau))
    _deliver(stage, atoms, tol, rng)
    return attention, separation


def disentangle(stage: Stage, ratio: float, rng: np.random.Generator) -> tuple[float, float]:
    """Mean attention until every cloud is small against the distance to the next; equal means need a gate first."""
    d = stage.clouds[0].shape[1]
    if spread(stage)[1] < 1e-3:
        a, w = (_direction(v) for v in rng.standard_normal((2, d)))
        a = _direction(a + 2 * _direction(stage.points.mean(axis=0)))
        level = float(np.median(stage.points @ a))
        stage.apply(ReluUnit(w / max(float((stage.points @ a).max()) - level, 1e-9), a, -level), 1.0)
    begin, elements, time = stage.clouds, list(stage.elements), 0.0
    identity = np.eye(d)
    while True:
        radius, apart = spread(stage)
        if radius < ratio * apart:
            break
        if time >= LONGEST or radius < 1e-13:
            raise NoPlan("the measures have one mean")
        stage.apply(MeanAttention(identity), STEP)
        time += STEP
    if time > 0:  # one element for all steps
        stage.clouds, stage.elements = begin, elements
        stage.apply(MeanAttention(identity), time)
    radius, apart = spread(stage)
    return time, apart / radius


def spread(stage: Stage) -> tuple[float, float]:
    """(largest radius of a cloud about its mean direction, least angle between mean directions)."""
    means = np.stack([_direction(m @ c) for c, m in zip(stage.clouds, stage.masses, strict=True)])
    radius = max(float(angles(c, m[None]).max()) for c, m in zip(stage.clouds, means, strict=True))
    apart = angles(means, means) + np.pi * np.eye(len(means))
    return radius, float(apart.min()) if len(means) > 1 else np.pi


def _deliver(stage: Stage, atoms: list[Tokens], tol: float, rng: np.random.Generator) -> None:
    """Cut and carry, measure by measure; one that finds no path waits for the others."""
    waiting, failed = list(rng.permutation(len(atoms))), 0
    done = np.zeros(stage.ends[-1], bool)
    left = {i: list(range(atoms[i].n)) for i in waiting}
    while waiting:
        i = int(waiting.pop(0))
        kept = [c.copy() for c in stage.clouds], len(stage.elements), done.copy()
        try:
            while left[i]:
                _atom(stage, i, atoms[i], left[i][0], len(left[i]) == 1, done, tol, rng)
                left[i].pop(0)
                kept = [c.copy() for c in stage.clouds], len(stage.elements), done.copy()
            failed = 0
        except NoPlan:
            stage.clouds, done = kept[0], kept[2]
            del stage.elements[kept[1] :]
            waiting.append(i)
            failed += 1
            if failed >= len(waiting):
                raise


def _atom(stage: Stage, i: int, atoms: Tokens, k: int, last: bool, done: np.ndarray, tol: float,
          rng: Any) -> None:  # fmt: skip
    """Deliver the k-th atom of measure i; `done` says which tokens are at their place."""
    own = np.arange(stage.ends[i], stage.ends[i + 1])
    cloud = own[~done[own]]
    if not len(cloud):
        return
    goal, points = np.asarray(atoms.positions)[k], stage.points
    rest = np.setdiff1d(np.arange(len(points)), cloud)
    mass = np.concatenate(stage.masses)[cloud]
    if last or len(cloud) == 1:
        piece, start = cloud, gather(stage, cloud, points[rest], tol)
    else:
        piece, start = cut(stage, cloud, mass, float(np.asarray(atoms.masses)[k]), points[rest], rng, tol)
    away = np.setdiff1d(np.arange(len(points)), piece)
    there = done[away] & (angles(stage.points[away], goal[None])[:, 0] < 4 * tol)
    if angles(start[None], goal[None])[0, 0] > tol:
        carry(stage, piece, start, goal, stage.points[away[~there]], rng, tol)
    done[piece] = True


def _report(
    stage: Stage, clouds: list[Tokens], atoms: list[Tokens], attention: float, separation: float, tries: int
) -> Matching:
    schedule = Schedule(clouds[0].space, stage.elements)
    empty = np.zeros(len(clouds))
    made = Matching(schedule, stage.layer, empty, empty, empty, attention, float(separation), tries)
    ends = [made(one) for one in clouds]
    w1, w2 = (np.array([wasserstein(e, a, p) for e, a in zip(ends, atoms, strict=True)]) for p in (1, 2))
    before = np.array([wasserstein(c, a, 2) for c, a in zip(clouds, atoms, strict=True)])
    return dataclasses.replace(made, w1=w1, w2=w2, before=before)


def _indivisible(clouds: list[Tokens], atoms: list[Tokens]) -> bool:
    """Whether some atom's mass is no multiple of equal masses of tokens."""
    for cloud, target in zip(clouds, atoms, strict=True):
        mass = np.asarray(cloud.masses)
        if target.n > 1 and (
            np.ptp(mass) > 1e-12 or np.abs(np.asarray(target.masses) / mass[0] % 1 - 0.5).min() < 0.499999
        ):
            return True
    return False


def _direction(v: np.ndarray) -> np.ndarray:
    size = float(np.linalg.norm(v))
    if size < 1e-14:
        raise NoPlan("a mean vanishes")
    return np.asarray(v / size)
