"""Poisson kernels under skew attention, and plans for inputs in the wrong order."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.control import Schedule, match_measures
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import followed, planned, ragged
from attnflow.fields import MeanAttention
from attnflow.flows import Exact, solve
from attnflow.tokens import Tokens
from attnflow.transport import distance

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
    measures: tuple[int, ...] = (3, 3, 4, 4, 4, 5) * 5
    """Inputs of every plan."""
    refusals: int = 2
    """How many plans may be refused; fixed before the first run."""
    each: int = 40
    """Tokens of an input."""
    spread: float = 0.7
    frames: int = 16
    """Of every element of the plan that is drawn."""


QUICK = Parameters(lengths=(0.3, 0.7), tokens=200, measures=(3, 4), refusals=0, each=40, frames=4)


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
    """Distances of every measure of every plan from its target; the paths of all tokens of the first plan."""
    off: list[list[float]] = [[] for _ in parameters.measures]
    elements, drawn = np.zeros(len(parameters.measures)), xr.Dataset()
    for k, count in enumerate(parameters.measures):
        study.progress(f"plan {k + 1} of {len(parameters.measures)}", k / len(parameters.measures))
        inputs, targets = instance(parameters, k, count)
        schedule = planned(match_measures, inputs, targets, parameters.seed(k))
        if schedule is None:
            continue
        elements[k] = len(schedule)
        ends = [followed(schedule, one) for one in inputs]
        off[k] = [distance(one, goal, order=2) for one, goal in zip(ends, targets, strict=True)]
        drawn = drawn if "path" in drawn else _paths(parameters, schedule, inputs, targets)
    found = ragged("w2", ("plan", "measure"), off, max(parameters.measures))
    return drawn.assign(found | {"elements": ("plan", elements)})


def _paths(parameters: Parameters, schedule: Schedule, inputs: list[Tokens], targets: list[Tokens]) -> xr.Dataset:
    """Positions at `frames` times of every element, at the same distance from each other within it."""
    switches = np.concatenate([[0.0], np.cumsum(schedule.durations)])
    at = np.linspace(0, len(schedule), len(schedule) * parameters.frames + 1)
    times = np.interp(at, np.arange(len(switches)), switches)
    flows = [solve(schedule.field, one, times[-1], method=Exact(), save=list(times)) for one in inputs]
    skew = [_is_skew(schedule[k][0]) for k in range(len(schedule))]
    kinds = [type(schedule[k][0]).__name__ if not turned else "Skew" for k, turned in enumerate(skew)]
    path = np.stack([flow.positions.values for flow in flows])
    goal = np.stack([np.asarray(one.positions)[0] for one in targets])
    found = {"path": (("input", "frame", "token", "axis"), path), "goal": (("input", "axis"), goal)}
    return xr.Dataset(found | {"kind": ("element", np.array(kinds))}, {"frame": at})


def _is_skew(field: Any) -> bool:
    return type(field).__name__ == "MeanAttention" and bool(abs(np.asarray(field.value.value)[0, 1]) > 0.5)
