"""Schedules for samples, replayed with fresh samples of the same distributions."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.control import Schedule, match_measures
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import atoms, cloud, followed, planned
from attnflow.fields import MeanAttention
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens
from attnflow.transport import distance

SPREAD = 0.8


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    tokens: tuple[int, ...] = (100, 400, 1600)
    atoms: tuple[int, ...] = (1, 4)
    measures: int = 3
    repeats: int = 10
    """Independent pairs of inputs and targets."""
    refusals: int = 1
    """How many schedules may be refused; fixed before the first run."""

    sizes: tuple[int, ...] = (100, 400, 1600, 6400)
    """Tokens of the samples whose clouds are compared."""
    pairs: int = 128
    """Of such samples."""
    attention: float = 4.0
    """For how long attention acts on them."""
    expected_misses: float = 9.5
    """Standard errors by which samples are expected to miss four atoms more often than one."""
    expected_mass: float = 36.0
    """The same for the mass at wrong atoms, over a quarter."""


QUICK = Parameters(
    tokens=(24, 96),
    measures=2,
    repeats=12,
    refusals=0,
    sizes=(24, 384),
    pairs=32,
    expected_misses=8.0,
    expected_mass=13.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Distances of given and of fresh tokens; shifts of clouds."""
    return study.parts({"samples": (samples, parameters, study), "shifts": (shifts, parameters)})


def drawn(parameters: Parameters, repeat: int, n: int, fresh: bool) -> list[Tokens]:
    """A sample of every input distribution of a repeat; the distributions do not depend on n and `fresh`."""
    centres = Sphere(3).sample(parameters.rng(1, repeat), parameters.measures)
    rng = parameters.rng(2, repeat, n, int(fresh))
    return [cloud(rng, 3, n, SPREAD, centre) for centre in centres]


def samples(parameters: Parameters, study: Study) -> xr.Dataset:
    """(atoms, n, repeat, measure): W_2 of given and fresh tokens, masses at wrong atoms, shifts of clouds over radii.

    Infinite where there is no schedule, which `found` says. Given tokens are followed for the fewest tokens only.
    """
    shape = (len(parameters.atoms), len(parameters.tokens), parameters.repeats, parameters.measures)
    found, given = np.zeros(shape[:3]), np.full((shape[0], *shape[2:]), np.inf)
    fresh, wrong, shift = np.full((3, *shape), np.inf)
    for index in np.ndindex(*shape[:3]):
        each, n, repeat = parameters.atoms[index[0]], parameters.tokens[index[1]], index[2]
        study.progress(f"{each} atoms, n = {n}", np.ravel_multi_index(index, shape[:3]) / np.prod(shape[:3]))
        rng = parameters.rng(3, repeat, each)
        goals = [atoms(rng, 3, each) for _ in range(parameters.measures)]
        first, other = (drawn(parameters, repeat, n, again) for again in (False, True))
        schedule = planned(match_measures, first, goals, parameters.seed(repeat))
        if schedule is None:
            continue
        found[index] = 1.0
        for i, (one, two, goal) in enumerate(zip(first, other, goals, strict=True)):
            end = schedule(two)
            fresh[(*index, i)], wrong[(*index, i)] = distance(end, goal, order=2), misplaced(end, goal)
            shift[(*index, i)] = shifted(schedule, one, two)
            if index[1] == 0:
                given[index[0], repeat, i] = distance(followed(schedule, one), goal, order=2)
    dims, labels = ("atoms", "n", "repeat", "measure"), {"atoms": list(parameters.atoms), "n": list(parameters.tokens)}
    every = {"fresh": (dims, fresh), "wrong": (dims, wrong), "shift": (dims, shift)}
    return xr.Dataset(every | {"given": (("atoms", "repeat", "measure"), given), "found": (dims[:3], found)}, labels)


def misplaced(tokens: Tokens, goal: Tokens) -> float:
    """The mass that has to leave its nearest atom for all atoms to have theirs."""
    nearest = np.argmax(np.asarray(tokens.positions) @ np.asarray(goal.positions).T, axis=1)
    mass = np.bincount(nearest, weights=np.asarray(tokens.masses), minlength=goal.n)
    return float(np.abs(mass - np.asarray(goal.masses)).sum() / 2)


def shifted(schedule: Schedule, given: Tokens, fresh: Tokens) -> float:
    """How far the cloud that attention makes of fresh tokens is from that of given ones, over its rms radius."""
    until = int(np.argmin(schedule.free)) + 1
    part = Schedule(schedule.space, [schedule[k] for k in range(until)])
    one, two = (np.asarray(part(tokens).positions) for tokens in (given, fresh))
    centre = one.mean(axis=0)
    return float(np.linalg.norm(two.mean(axis=0) - centre) / np.sqrt(np.mean(np.sum((one - centre) ** 2, axis=1))))


def shifts(parameters: Parameters) -> xr.Dataset:
    """(n, pair): the angle between the clouds that attention makes of two samples, and the radius of a cloud."""
    schedule = Schedule(Sphere(3), [(MeanAttention(np.eye(3)), parameters.attention)])
    shape = (len(parameters.sizes), parameters.pairs)
    shift, radius = np.zeros((2, *shape))
    for k, pair in np.ndindex(*shape):
        rng = parameters.rng(4, pair, parameters.sizes[k])
        clouds = [schedule(cloud(rng, 3, parameters.sizes[k], SPREAD, np.eye(3)[0])).positions for _ in range(2)]
        middles = [np.asarray(x).mean(axis=0) for x in clouds]
        middles = [x / np.linalg.norm(x) for x in middles]
        shift[k, pair] = np.linalg.norm(middles[0] - middles[1])
        radius[k, pair] = np.sqrt(np.mean(np.sum((clouds[0] - middles[0]) ** 2, axis=1)))
    dims = ("n", "pair")
    return xr.Dataset({"shift": (dims, shift), "radius": (dims, radius)}, {"n": list(parameters.sizes)})
