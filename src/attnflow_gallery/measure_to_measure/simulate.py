"""Schedules for random inputs and targets, each input followed alone; shared mass; attention backwards."""

import dataclasses

import numpy as np
import xarray as xr

from attnflow.control import Schedule, match_measures, shared_mass_bound, wasserstein
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import atoms, cloud
from attnflow.fields import MeanAttention
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

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
    """Of attention, which is run backwards."""
    noise: float = 1e-9


QUICK = Parameters(cases=((3, 3, 1), (3, 2, 4), (4, 2, 1)), tokens=60, times=(6.0, 8.0, 10.0))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Distances of all measures, the pair with shared mass, and amplified errors."""
    return study.parts(
        {
            "matched": (matched, parameters, study),
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
    """(case, measure) W_2 before and after; elements, time of attention; frames of the first case."""
    shape = (len(parameters.cases), max(count for _, count, _ in parameters.cases))
    after, before, facts = np.full(shape, np.nan), np.full(shape, np.nan), []
    for k, (d, count, each) in enumerate(parameters.cases):
        study.progress(f"d = {d}, N = {count}, M = {each}", k / shape[0])
        inputs, targets = instance(parameters, k)
        match = match_measures(inputs, targets, seed=parameters.seed(k))
        for i, (one, goal) in enumerate(zip(inputs, targets, strict=True)):
            before[k, i], after[k, i] = wasserstein(one, goal), wasserstein(replayed(match.schedule, one), goal)
        facts.append((len(match.schedule), match.attention))
    columns = dict(zip(("elements", "attention"), np.array(facts, float).T, strict=True))
    found = xr.Dataset({name: ("case", column) for name, column in columns.items()})
    return found.assign(before=(("case", "measure"), before), after=(("case", "measure"), after))


def replayed(schedule: Schedule, tokens: Tokens) -> Tokens:
    """One measure, alone under the schedule."""
    return schedule(tokens)


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
    match = match_measures(inputs, targets, seed=parameters.seed(99))
    plans, both = (match.schedule, blind(match.schedule)), list(zip(inputs, targets, strict=True))
    found = [[wasserstein(plan(one), goal, 1) for one, goal in both] for plan in plans]
    distances = xr.Dataset({"w1": (("plan", "measure"), np.array(found))}, {"plan": ["attention", "blind"]})
    frames = (("measure", "stage", "token", "axis"), _stages(match.schedule, inputs))
    return distances.assign(bound=shared_mass_bound(inputs, targets), frame=frames, pole=("axis", pole[0]))


def _stages(schedule: Schedule, inputs: list[Tokens]) -> np.ndarray:
    """Positions at the start, after the first boost, after attention, after the second boost and at the end."""
    elements = [schedule[k] for k in range(len(schedule))]
    after = int(np.argmin(schedule.free))
    parts = [Schedule(schedule.space, elements[:count]) for count in (1, after + 1, after + 2, len(elements))]
    return np.array([[one.positions, *(part(one).positions for part in parts)] for one in inputs])


def backwards(parameters: Parameters) -> xr.Dataset:
    """How much errors at the end of attention grow on the way back, for every time."""
    tokens = cloud(parameters.rng(3), 3, parameters.tokens, SPREAD)
    rows = []
    for time in parameters.times:
        there = Schedule(tokens.space, [(MeanAttention(np.eye(3)), time)])
        end = np.asarray(there(tokens).positions)
        moved = end + parameters.noise * parameters.rng(4).standard_normal(end.shape)
        back = there.inverse()(Tokens(moved / np.linalg.norm(moved, axis=1, keepdims=True)))
        rows.append(np.sqrt(np.mean(np.sum((np.asarray(back.positions) - tokens.positions) ** 2, axis=1))))
    return xr.Dataset({"error": ("time", np.array(rows) / parameters.noise)}, {"time": list(parameters.times)})
