"""The search of `match_measures`, try by try, as the driver moves it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from attnflow.checks import generator
from attnflow.control.circle import CirclePlanner
from attnflow.control.convert import ELEMENTS, stack_arrays, stack_of
from attnflow.control.division import first_of_equals, merged
from attnflow.control.schedule import Schedule
from attnflow.control.sphere import SpherePlanner
from attnflow.control.stage import AbstractPlanner, NoPlan, Plan, Stage
from attnflow.fields.exact.in_turn import InTurn
from attnflow.flows import Layers, solve
from attnflow.flows.outcome import Ending, Outcome, Reached
from attnflow.flows.sink import Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.interrupts import raise_if_interrupted
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens
from attnflow.transport import distance

if TYPE_CHECKING:
    from attnflow.control.matching import MatchMeasures

PLANNED = ("drift", "mean-attention", "relu")
"""The kinds of elements that planners use, in the order in which a schedule stacks them."""
WORD = (1 << 64) - 1


class _SearchState(NamedTuple):
    """What the next try depends on, and what was found."""

    tries: np.ndarray
    """Tries made."""
    random: np.ndarray
    """The state of the random numbers, which go on from try to try."""
    found: dict[str, np.ndarray]
    """The elements of the schedule, and `before`; empty arrays until it is found."""


class Search(AbstractSingle):
    """One try a slice: plan, replay every measure alone, compare with the targets."""

    def __init__(self, work: "MatchMeasures"):
        self.given, self.said, self.advice = work, "", "give another `seed`"
        self.space = work.inputs[0].space
        # equal inputs, whose targets are equal, share a plan
        different = sorted(set(first_of_equals(list(work.inputs))))
        clouds, atoms = ([merged(group[i]) for i in different] for group in (work.inputs, work.targets))
        start = Stage(
            tuple(np.asarray(c.positions) for c in clouds), tuple(np.asarray(c.masses) for c in clouds), work.layer
        )
        self.planner: AbstractPlanner = (
            CirclePlanner(start, atoms, work.tol / 16)
            if start.dim == 2
            else SpherePlanner(start, atoms, work.tol / 16, work.expand)
        )
        self.most = len(self.planner.values)

    @property
    def _facts(self) -> tuple[str, ...]:
        """What is told of every plan."""
        return ("attention", "separation", *(["amplification"] if self.given.expand else []))

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.most), self.most

    def layout(self) -> Layout:
        number, count = np.dtype(np.float64), np.dtype(np.int64)
        each = Variable(("try", "measure"), number)
        rows = {"try": Variable(("try",), count), self.planner.varied: Variable(("try",), number)}
        rows |= {"elements": Variable(("try",), count), "w1": each, "w2": each}
        rows |= {name: Variable(("try",), number) for name in self._facts}
        about = {"space": str(self.space), "dim": self.space.dim, "kinds": list(PLANNED)}
        sizes = {"measure": len(self.given.inputs)}
        return Layout(
            {"try": rows}, sizes, {"try": self.most}, {}, {}, {"try": self.most}, about, float(self.most), {},
            exact=False,
        )  # fmt: skip

    def start(self) -> None:
        return None

    def begin(self) -> _SearchState:
        found = {name: np.zeros((0, *shape)) for name, shape in _shapes(self.space.dim).items()}
        found |= {"kind": np.zeros(0, np.int32), "row": np.zeros(0, np.int32)}
        return _SearchState(np.zeros((), np.int64), _words(generator(self.given.seed)), found)

    def work(self, state: _SearchState) -> Slice:
        """One try and its row."""
        number, rng = int(state.tries), _generator(state.random)
        clouds, atoms = self.given.inputs, self.given.targets
        nothing = np.full(len(clouds), np.nan)
        plan: Plan | None = None
        w1, w2 = nothing, nothing
        try:
            plan = self.planner.plan(number, rng)
        except NoPlan as error:
            self.said, self.advice = str(error), error.advice
        else:
            schedule = Schedule(self.space, plan.stage.elements)
            ends = [replay(schedule, self.given.layer, one) for one in clouds]
            w1, w2 = (_distances(ends, atoms, p) for p in (1, 2))
            self.said = f"W_2 = {w2.max():.2g}"
        row = {
            "try": number + 1, self.planner.varied: self.planner.values[number],
            "elements": 0 if plan is None else len(plan.stage.elements), "w1": w1, "w2": w2,
        }  # fmt: skip
        row |= {name: np.nan if plan is None else float(getattr(plan, name)) for name in self._facts}
        rows = Rows({"try": {name: np.asarray(value)[None] for name, value in row.items()}})
        made = state._replace(tries=np.asarray(number + 1), random=_words(rng))
        if plan is not None and w2.max() <= self.given.tol:
            found = state.found | _arrays(schedule) | {"before": _distances(clouds, atoms, 2)}
            message = f"found a schedule of {len(schedule)} elements in try {number + 1}, {self.said}."
            return Slice(made._replace(found=found), rows, Outcome(Ending.FINISHED, message))
        if number + 1 < self.most:
            return Slice(made, rows)
        message = f"no schedule was found in {self.most} tries (last: {self.said}); {self.advice}."
        return Slice(made, rows, Outcome(Ending.FAILED, message))

    def reached(self, state: _SearchState, rows: dict[str, int]) -> Reached:
        tries = int(state.tries)
        note = f"try {tries} of at most {self.most}" + (f" · {self.said}" if self.said else "")
        return Reached(float(tries), rows["try"], tries, note)

    def steps(self, state: _SearchState) -> dict[str, int]:
        return {"tries": int(state.tries)}

    def finish(self, state: _SearchState) -> dict[str, Any]:
        if not len(state.found["kind"]):
            return {}
        return {name: (_dims(name), array) for name, array in state.found.items() if len(array)}


def replay(schedule: Schedule, layer: float | None, tokens: Tokens) -> Tokens:
    """Where the schedule, or the network of layers, carries a measure."""
    raise_if_interrupted()
    if layer is None:
        return schedule(tokens)
    flow = solve(schedule.field, tokens, schedule.duration, method=Layers(1.0), save=2)
    if flow.outcome.ending is Ending.INTERRUPTED:  # it is part of a try, which is made again
        raise KeyboardInterrupt
    return flow.tokens(-1)


def schedule_of(found: Mapping[str, Any], names: Sequence[str], dim: int) -> Schedule:
    """The schedule on the sphere of R^dim whose elements `finish` gave; `names` are those of the kinds."""
    kind, row, durations = (np.asarray(found[name]) for name in ("kind", "row", "duration"))
    present = np.unique(kind)
    stacks = []
    for number in present:
        name = str(names[number])
        weights = {role: np.asarray(found[_key(name, role)]) for role in ELEMENTS[name][1] if _key(name, role) in found}
        stacks.append(stack_of(name, weights))
    return Schedule.of(Sphere(dim), InTurn.of(stacks, np.searchsorted(present, kind), row, durations), durations)


def _arrays(schedule: Schedule) -> dict[str, np.ndarray]:
    """The elements of a schedule of planners, as arrays."""
    stacks = [stack_arrays(kind) for kind in schedule.field.kinds]
    number = np.array([PLANNED.index(name) for name, _ in stacks], np.int32)
    found = {_key(name, role): array for name, weights in stacks for role, array in weights.items()}
    which, row = np.asarray(schedule.field.which), np.asarray(schedule.field.row, np.int32)
    return found | {"kind": number[which], "row": row, "duration": schedule.durations}


def _key(name: str, role: str) -> str:
    return f"{name.replace('-', '_')}_{role}"


def _shapes(dim: int) -> dict[str, tuple[int, ...]]:
    """Shapes of what is known of every element of a kind; `duration` is known of all, and `before` of measures."""
    return {
        "drift_vector": (dim,), "mean_attention_value": (dim, dim), "relu_outer": (dim,), "relu_inner": (dim,),
        "relu_bias": (), "duration": (), "before": (),
    }  # fmt: skip


def _dims(name: str) -> tuple[str, ...]:
    if name in ("kind", "row", "duration", "before"):
        return ("measure",) if name == "before" else ("element",)
    kind, role = name.rsplit("_", 1)
    return (kind, "axis", "column")[: {"bias": 1, "value": 3}.get(role, 2)]


def _distances(tokens: Sequence[Tokens], others: Sequence[Tokens], p: Literal[1, 2]) -> np.ndarray:
    return np.array([distance(one, other, order=p) for one, other in zip(tokens, others, strict=True)])


def _words(rng: np.random.Generator) -> np.ndarray:
    """The state of random numbers in six whole numbers."""
    now: Any = rng.bit_generator.state
    state, step = now["state"]["state"], now["state"]["inc"]
    parts = [state & WORD, state >> 64, step & WORD, step >> 64, now["has_uint32"], now["uinteger"]]
    return np.array(parts, np.uint64)


def _generator(words: np.ndarray) -> np.random.Generator:
    """Random numbers that go on from there."""
    low, high, step, far, has, rest = (int(word) for word in words)
    rng = generator(0)
    rng.bit_generator.state = {
        "bit_generator": "PCG64", "state": {"state": low | high << 64, "inc": step | far << 64}, "has_uint32": has,
        "uinteger": rest,
    }  # fmt: skip
    return rng
