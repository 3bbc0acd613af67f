"""One schedule for N measures: every input is carried to its own target."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from attnflow.checks import generator, instance, number
from attnflow.control.circle import CirclePlanner
from attnflow.control.distances import wasserstein
from attnflow.control.schedule import Schedule
from attnflow.control.sphere import SpherePlanner
from attnflow.control.stage import AbstractPlanner, NoPlan, Plan, Stage
from attnflow.errors import InvalidInput
from attnflow.flows import Layers, solve
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, all_present


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
    start = Stage(tuple(np.asarray(c.positions) for c in clouds), tuple(np.asarray(c.masses) for c in clouds), layer)
    planner: AbstractPlanner = (
        CirclePlanner(start, atoms, tol / 16) if start.dim == 2 else SpherePlanner(start, atoms, tol / 16, rng)
    )
    reason, attempts = "", planner.attempts()
    for tries, attempt in enumerate(attempts, 1):
        try:
            plan = attempt()
        except NoPlan as error:
            reason = str(error)
            continue
        found = _report(plan, clouds, atoms, tries)
        if found.w2.max() <= tol:
            return found
        reason = f"W_2 = {found.w2.max():.2g}"
        if tries > 1 and _indivisible(clouds, atoms):
            raise InvalidInput(
                f"the masses of the atoms are no sums of masses of tokens (W_2 = {found.w2.max():.2g} at best here); "
                "give more tokens, or masses that fit."
            )
    raise InvalidInput(
        f"no schedule was found in {len(attempts)} tries (last: {reason}): the measures cannot be told apart by "
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


def _report(plan: Plan, clouds: list[Tokens], atoms: list[Tokens], tries: int) -> Matching:
    schedule = Schedule(clouds[0].space, plan.stage.elements)
    empty = np.zeros(len(clouds))
    made = Matching(schedule, plan.stage.layer, empty, empty, empty, plan.attention, float(plan.separation), tries)
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
