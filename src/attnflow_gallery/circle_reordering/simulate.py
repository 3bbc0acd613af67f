"""Poisson kernels under skew attention, and plans for inputs in the wrong order."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.control import match_measures, wasserstein
from attnflow.experiments import Salted, Study
from attnflow.fields import MeanAttention
from attnflow.flows import Exact, solve
from attnflow.tokens import Tokens

SKEW = np.array([[0.0, -1.0], [1.0, 0.0]])
FRAMES = 9


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    lengths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.85)
    """r, the length of the mean."""
    tokens: int = 400
    """Of a Poisson kernel."""
    until: float = 6.0
    measures: tuple[int, ...] = (3, 3, 4, 4, 4, 5)
    """Inputs of every plan."""
    each: int = 60
    """Tokens of an input."""
    spread: float = 0.7
    frames: int = 240


QUICK = Parameters(lengths=(0.3, 0.7), tokens=200, measures=(3, 4), each=40, frames=60)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Means of Poisson kernels over time; plans and their distances; the path of the first plan."""
    return study.parts({"speeds": (speeds, parameters), "plans": (plans, parameters, study)})


def at(angle: np.ndarray) -> Tokens:
    """Tokens on the circle."""
    return Tokens(np.stack([np.cos(angle), np.sin(angle)], axis=1))


def kernel(r: float, n: int) -> Tokens:
    """Quantiles of the Poisson kernel with mean (r, 0): uniform angles carried by a Moebius map."""
    z = np.exp(2j * np.pi * (np.arange(n) + 0.5) / n)
    return at(np.angle((z + r) / (1 + r * z)))


def speeds(parameters: Parameters) -> xr.Dataset:
    """(r, time) length and angle of the mean."""
    field, starts = MeanAttention(SKEW), [kernel(r, parameters.tokens) for r in parameters.lengths]
    flows = [solve(field, one, parameters.until, method=Exact(), save=FRAMES - 1) for one in starts]
    mean = np.array([flow.positions.values.mean(axis=1) for flow in flows])
    length, angle = np.linalg.norm(mean, axis=-1), np.unwrap(np.arctan2(mean[..., 1], mean[..., 0]))
    return xr.Dataset(
        {"length": (("r", "time"), length), "angle": (("r", "time"), angle)},
        {"r": list(parameters.lengths), "time": flows[0].time.values},
    )


def instance(parameters: Parameters, number: int, count: int) -> tuple[list[Tokens], list[Tokens]]:
    """Inputs and single targets in a cyclic order that the means of the inputs do not have."""
    rng = parameters.rng(1, number)
    while True:
        centres, goals = rng.uniform(0, 2 * np.pi, (2, count))
        inputs = [at(c + parameters.spread * rng.standard_normal(parameters.each)) for c in centres]
        means = [np.angle(np.mean(np.asarray(one.positions) @ np.array([1, 1j]))) for one in inputs]
        gaps = np.diff(np.sort(goals), append=np.sort(goals)[0] + 2 * np.pi)
        if not ordered(np.array(means), goals) and gaps.min() > 0.2:
            return inputs, [at(np.array([goal])) for goal in goals]


def ordered(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two families of angles have one cyclic order."""
    first, second = (np.argsort(np.mod(angles, 2 * np.pi)) for angles in (one, other))
    first, second = (np.roll(order, -int(np.argmin(order))) for order in (first, second))
    return bool(np.array_equal(first, second))


def plans(parameters: Parameters, study: Study) -> xr.Dataset:
    """Distances of every measure of every plan from its target, and the paths of the means of the first plan."""
    distance, elements = np.full((len(parameters.measures), max(parameters.measures)), np.nan), []
    for k, count in enumerate(parameters.measures):
        study.progress(f"plan {k + 1} of {len(parameters.measures)}", k / len(parameters.measures))
        inputs, targets = instance(parameters, k, count)
        match = match_measures(inputs, targets, seed=parameters.seed(k))
        elements.append(len(match.schedule))
        reached = [wasserstein(match.schedule(one), goal) for one, goal in zip(inputs, targets, strict=True)]
        distance[k, :count] = reached
        if k == 0:
            until, field = match.schedule.duration, match.schedule.field
            flows = [solve(field, one, until, method=Exact(), save=parameters.frames) for one in inputs]
            paths = np.stack([flow.positions.values for flow in flows])
            goals = np.stack([np.asarray(goal.positions)[0] for goal in targets])
            turns = np.concatenate([[0.0], np.cumsum(match.schedule.durations)])
    found = {"w2": (("plan", "measure"), distance), "elements": ("plan", elements)}
    drawn = {"path": (("input", "time", "token", "axis"), paths), "goal": (("input", "axis"), goals)}
    return xr.Dataset(found | drawn | {"turn": ("switch", turns)}, {"time": flows[0].time.values})
