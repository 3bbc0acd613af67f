"""Schedules for random inputs and targets, each input followed alone; shared mass; attention backwards."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.control import Schedule, match_measures, shared_mass_bound
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import atoms, cloud, followed, planned, ragged
from attnflow.fields import MeanAttention
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens
from attnflow.transport import distance

SPREAD = 0.8
"""Of inputs, which overlap."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    cases: tuple[tuple[int, int, int], ...] = (
        (3, 2, 1), (3, 5, 1), (3, 10, 1), (3, 20, 1), (3, 2, 4), (3, 5, 4), (4, 3, 1), (4, 5, 4), (8, 3, 1), (8, 5, 4),
    )  # fmt: skip
    """Dimension d, measures N, atoms M of every target."""
    tokens: int = 160
    shared: float = 0.5
    """Mass that the two inputs of the second part have in common."""
    times: tuple[float, ...] = (4.0, 6.0, 8.0, 10.0)
    """Of attention, which is run backwards; a rate is fitted to the last three."""
    noise: float = 1e-9
    instances: int = 64
    """Small random instances of which refusals are counted."""
    refusals: int = 1
    """How many of them may be refused; fixed before the first run."""


QUICK = Parameters(cases=((3, 3, 4),), tokens=24, times=(6.0, 8.0, 10.0), instances=6, refusals=0)
SMALL = (3, 24)
"""Measures and tokens of a small instance on S^2; targets have 1 or 4 atoms in turn."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Distances of all measures, refusals, the pair with shared mass, and amplified errors."""
    return study.parts(
        {
            "matched": (matched, parameters, study),
            "small": (small, parameters, study),
            "shared": (shared, parameters),
            "backwards": (backwards, parameters),
        }
    )


def instance(parameters: Parameters, number: int) -> tuple[list[Tokens], list[Tokens]]:
    """Random clouds and random atoms."""
    d, count, each = parameters.cases[number]
    rng = parameters.rng(1, number)
    inputs = [cloud(rng, d, parameters.tokens, SPREAD) for _ in range(count)]
    return inputs, [atoms(rng, d, each) for _ in range(count)]


def matched(parameters: Parameters, study: Study) -> xr.Dataset:
    """(case, measure) W_2 before and after; whether there is a schedule, its elements, its time of attention."""
    after: list[list[float]] = []
    before: list[list[float]] = []
    facts = []
    for k, (d, count, each) in enumerate(parameters.cases):
        study.progress(f"d = {d}, N = {count}, M = {each}", k / len(parameters.cases))
        inputs, targets = instance(parameters, k)
        schedule = planned(match_measures, inputs, targets, parameters.seed(k))
        ends = [] if schedule is None else [followed(schedule, one) for one in inputs]
        before.append([distance(one, goal, order=2) for one, goal in zip(inputs, targets, strict=True)])
        after.append([distance(one, goal, order=2) for one, goal in zip(ends, targets, strict=False)])
        facts.append((schedule is not None, 0 if schedule is None else len(schedule)))
    columns = dict(zip(("found", "elements"), np.array(facts, float).T, strict=True))
    found = xr.Dataset({name: ("case", column) for name, column in columns.items()})
    most, dims = max(count for _, count, _ in parameters.cases), ("case", "measure")
    return found.assign(ragged("before", dims, before, most) | ragged("after", dims, after, most))


def small(parameters: Parameters, study: Study) -> xr.Dataset:
    """Which of many small random instances are refused."""
    refused, (count, n) = [], SMALL
    for k in range(parameters.instances):
        study.progress(f"instance {k + 1}", k / parameters.instances)
        rng = parameters.rng(6, k)
        inputs = [cloud(rng, 3, n, SPREAD) for _ in range(count)]
        targets = [atoms(rng, 3, (1, 4)[k % 2]) for _ in range(count)]
        refused.append(planned(match_measures, inputs, targets, parameters.seed(1000 + k)) is None)
    return xr.Dataset({"refused": ("instance", np.array(refused, float))})


def blind(schedule: Schedule) -> Schedule:
    """The schedule without its attention."""
    return Schedule(schedule.space, [schedule[k] for k in np.flatnonzero(schedule.free).tolist()])


def shared(parameters: Parameters) -> xr.Dataset:
    """W_1 of two measures with common tokens and antipodal targets, with and without attention; frames of both."""
    rng, n = parameters.rng(2), parameters.tokens
    common = int(parameters.shared * n)
    same = cloud(rng, 3, common, SPREAD).positions
    inputs = [Tokens(np.concatenate([same, cloud(rng, 3, n - common, SPREAD).positions])) for _ in range(2)]
    pole = Sphere(3).sample(rng, 1)
    targets = [Tokens(pole), Tokens(-pole)]
    schedule = planned(match_measures, inputs, targets, parameters.seed(99))
    distances, frames = np.full((2, 2), np.nan), np.full((2, 5, n, 3), np.nan)
    if schedule is not None:
        both = list(zip(inputs, targets, strict=True))
        plans = schedule, blind(schedule)
        distances = np.array([[distance(followed(one, mu), goal) for mu, goal in both] for one in plans])
        frames = _stages(schedule, inputs)
    found = xr.Dataset({"w1": (("plan", "measure"), distances)}, {"plan": ["attention", "blind"]})
    frame = (("measure", "stage", "token", "axis"), frames)
    return found.assign(bound=shared_mass_bound(inputs, targets), frame=frame, pole=("axis", pole[0]))


def _stages(schedule: Schedule, inputs: list[Tokens]) -> np.ndarray:
    """Positions at the start, after the first boost, after attention, after the second boost and at the end."""
    elements = [schedule[k] for k in range(len(schedule))]
    after = int(np.argmin(schedule.free))
    parts = [Schedule(schedule.space, elements[:count]) for count in (1, after + 1, after + 2, len(elements))]
    return np.array([[one.positions, *(part(one).positions for part in parts)] for one in inputs])


def backwards(parameters: Parameters) -> xr.Dataset:
    """How much errors at the end of attention grow on the way back, for every time; the least rate from there on."""
    tokens = cloud(parameters.rng(3), 3, parameters.tokens, SPREAD)
    errors, rates = [], []
    for time in parameters.times:
        there = Schedule(tokens.space, [(MeanAttention(np.eye(3)), time)])
        end = np.asarray(there(tokens).positions)
        moved = end + parameters.noise * parameters.rng(4).standard_normal(end.shape)
        back = there.inverse()(Tokens(moved / np.linalg.norm(moved, axis=1, keepdims=True)))
        errors.append(np.sqrt(np.mean(np.sum((np.asarray(back.positions) - tokens.positions) ** 2, axis=1))))
        rates.append((end @ end.mean(axis=0)).min())  # |m| cos of the largest angle from the mean
    found = {"error": ("time", np.array(errors) / parameters.noise), "rate": ("time", np.array(rates))}
    return xr.Dataset(found, {"time": list(parameters.times)})
