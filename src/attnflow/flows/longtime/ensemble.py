"""Merges of many systems at once: the distributions of exit times."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import members, over_members
from attnflow.checks import end_time, instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Attention
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.longtime import integrator
from attnflow.flows.longtime.method import LongTime, log_clock, mass_unit
from attnflow.flows.longtime.rows import UNDETERMINED
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.result import AbstractResult
from attnflow.flows.sink import AbstractSink, Layout
from attnflow.flows.stepper import AbstractStepper, Rows, Slice
from attnflow.flows.work import AbstractWork, Driven
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

MOST = 128
ROWS = 64
SLOTS = (8, 32, MOST)


@dataclasses.dataclass(frozen=True, repr=False)
class Merges(AbstractResult):
    """What `merge_times` returns: the table of all merges as an xarray Dataset.

    Dimensions (batch..., merge), with the coordinate `left`, the number of clusters that a merge leaves.
    """

    dataset: "xr.Dataset"
    """log_time, rounding, undetermined and evaluations."""
    field: AbstractField
    outcome: Outcome
    steps: dict[str, int]
    checkpoint: Any = None
    work: Any = None

    @property
    def log_time(self) -> "xr.DataArray":
        """When merges were made; infinite where a merge was not made until `until`."""
        return self.dataset["log_time"]

    @property
    def undetermined(self) -> "xr.DataArray":
        """Whether rounding could have changed a merge; not known for a method that is not `sensitive`."""
        return self.dataset["undetermined"]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {size}" for name, size in self.log_time.sizes.items())
        return f"Merges({sizes}; {self.outcome.message})"


@dataclasses.dataclass(frozen=True)
class MergeTimes(AbstractWork):
    """All merges of many systems: the work of `merge_times`, whose arguments its fields are."""

    rows: ClassVar[str] = "merge"

    field: AbstractField
    tokens: Tokens
    until: float = math.inf
    method: LongTime | None = LongTime(sensitive=False)

    def checked(self) -> Self:
        chosen = LongTime(sensitive=False) if self.method is None else self.method
        method = instance("method", chosen, LongTime, "LongTime()")
        field = instance("field", self.field, AbstractField, "a field such as Attention(2.0)")
        tokens = instance("tokens", self.tokens, Tokens, "tokens, such as from_array(positions)")
        until = end_time(self.until, endless=True)
        field.check(tokens)
        method.check(field, tokens)
        if not 2 <= tokens.n <= MOST:
            raise InvalidInput(
                f"`tokens` are {tokens.n} in each member; merge_times follows 2 to {MOST}: use solve_long."
            )
        return dataclasses.replace(self, until=until, method=method)

    def stepper(self) -> "_Ensemble":
        return _Ensemble(self.field, self.tokens, self.method, self.until)  # type: ignore[arg-type]

    def result(self, driven: Driven) -> Merges:
        table = driven.dataset.load()
        left = np.arange(table.sizes["merge"], 0, -1)
        table = table.assign_coords(left=("merge", left)).set_xindex("left")
        return Merges(table, self.field, driven.outcome, driven.steps, driven.checkpoint, self)


def merge_times(
    field: Attention,
    tokens: Tokens,
    until: float = math.inf,
    *,
    method: LongTime | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Merges:
    """All merges of every member of a batch, by the method `LongTime`; at most 128 tokens each.

    `merges.log_time.sel(left=k)` is when k + 1 clusters became k, infinite where that has not happened until `until`.
    Two clusters are one when they are nearer than the angle of `method`, by default 10^(-3)/max(beta, 1), where
    `theory.merging.log_merge_time` ends too. The dataset has log_time, rounding and undetermined as in `flow.merges`,
    and evaluations so far. `on_progress`, `cancel` and `sink` are those of `solve`. After Ctrl-C the merges made so far
    are returned, with the outcome `interrupted`; `merges.continued(until)` goes on.
    """
    work = MergeTimes(field, tokens, until, method)
    found: Merges = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _EnsembleState(NamedTuple):
    """Clusters of all members, in no slots at first, and the table of merges."""

    clusters: integrator.ClusterState
    log_time: Any
    rounding: Any
    evaluations: Any
    made: Any
    together: Any
    path: Any = None
    """The state before the first step that was shortened to end in time, from which longer work goes on."""


class _Ensemble(AbstractStepper):
    """Many small systems, followed side by side."""

    def __init__(self, field: Attention, tokens: Tokens, method: LongTime, until: float):
        self.tokens, self.method, self.until = tokens, method, until
        self.systems = members(field, tokens)
        self.count = int(np.prod(self.systems.shape)) if self.systems.dims else 1
        self.positions = np.asarray(self.systems.measure.positions).reshape(self.count, tokens.n, tokens.dim)
        masses = np.asarray(self.systems.measure.masses).reshape(self.count, tokens.n)
        self.unit = mass_unit(masses)
        self.masses = np.rint(masses / self.unit) if self.unit != 1.0 else masses
        axes, log_until = self.systems.field_axes, np.asarray(math.log(until))
        self.physics, self.shift = _physics(self.systems.field, axes, method, log_until, self.unit, self.count)

    @property
    def batch(self) -> tuple[str, ...]:
        return tuple(self.systems.dims)

    @property
    def goal(self) -> tuple[float, int]:
        return self.until, self.count * (self.tokens.n - 1)

    def layout(self) -> Layout:
        sizes = {name: len(labels) for name, labels in self.systems.dims.items()} | {"merge": self.tokens.n - 1}
        merges = {"merge": np.arange(1, self.tokens.n)}
        labels, space = dict(self.systems.dims) | merges, {"space": str(self.tokens.space)}
        return Layout({}, sizes, {}, labels, {}, {}, space, self.until, {})

    def start(self) -> None:
        return None

    def begin(self) -> _EnsembleState:
        count, n, d = self.positions.shape
        none = _begin(np.zeros((count, 0, d)), np.zeros((count, 0)), False)
        table = (count, n - 1)
        return _EnsembleState(
            none,
            np.full(table, np.inf),
            np.full(table, np.nan),
            np.zeros(table, int),
            np.zeros(count, int),
            np.asarray(True),
        )

    def work(self, state: _EnsembleState) -> Slice:
        n = self.tokens.n
        clusters, size = state.clusters, state.clusters.mass.shape[1]
        if size == 0:
            size = next(s for s in SLOTS if s >= n)
            places = np.resize(np.arange(n), size)
            mass = np.where(np.arange(size) < n, self.masses[:, places], 0.0)
            clusters = _begin(self.positions[:, places], mass, self.method.sensitive)
        few = max([s for s in SLOTS if s < size and bool(state.together)], default=1)
        while few > 1 and np.sum(np.asarray(clusters.mass) > 0, axis=1).max() <= few:
            clusters, size = _compact(clusters, few), few
            few = max([s for s in SLOTS if s < size], default=1)
        if np.asarray(_over(self.physics, clusters)).all():
            done = Outcome(Ending.FINISHED, f"followed {self.count} systems to {_named(self.until)}.")
            return Slice(state._replace(clusters=clusters), None, done, state.path)
        before = state
        clusters, records = wait(_work(self.physics, clusters, few))
        if state.path is None and np.asarray(clusters.shortened).any():
            state = state._replace(path=before)
        return Slice(self._read(state._replace(clusters=clusters), records), Rows({}), None, state.path)

    def _read(self, state: _EnsembleState, records: Any) -> _EnsembleState:
        """The table with the merges of a slice."""
        first, rows = np.asarray(records.first), np.arange(ROWS)[None, :]
        is_merge = (first >= 0) & (rows < np.asarray(records.filled)[:, None])
        member, row = np.nonzero(is_merge)
        place = (state.made[:, None] + np.cumsum(is_merge, axis=1) - 1)[member, row]
        log_time, rounding, evaluations = (np.array(a) for a in (state.log_time, state.rounding, state.evaluations))
        log_time[member, place] = np.asarray(records.log_t)[member, row] + np.asarray(self.shift)[member]
        if self.method.sensitive:
            with np.errstate(over="ignore"):
                rounding[member, place] = np.finfo(float).eps * np.exp(np.asarray(records.log_growth)[member, row])
        evaluations[member, place] = np.asarray(records.evaluations)[member, row]
        together = np.asarray(bool(state.together) and bool(np.any(np.asarray(records.filled))))
        # (a member that stands still keeps its slots)
        made = state.made + is_merge.sum(axis=1)
        return state._replace(
            log_time=log_time, rounding=rounding, evaluations=evaluations, made=made, together=together
        )

    def unfinished(self, state: _EnsembleState) -> None:
        return None

    def hold(self, state: _EnsembleState, members: np.ndarray, time: float, frame: Any) -> _EnsembleState:
        return state

    def are_still(self, times: np.ndarray, frames: dict[str, np.ndarray]) -> None:
        return None

    def reached(self, state: _EnsembleState, rows: dict[str, int]) -> Reached:
        made, of = int(np.sum(state.made)), self.goal[1]
        steps = int(np.max(np.asarray(state.clusters.evaluations), initial=0))
        return Reached(math.nan, made, steps, f"{made} of {of} merges", by_rows=True)

    def steps(self, state: _EnsembleState) -> dict[str, int]:
        return {"rejected": int(np.sum(np.asarray(state.clusters.rejected)))}

    def finish(self, state: _EnsembleState) -> dict[str, Any]:
        dims, shape = (*self.batch, "merge"), (*self.systems.shape, self.tokens.n - 1)
        found = {
            "log_time": state.log_time,
            "rounding": state.rounding,
            "undetermined": state.rounding > UNDETERMINED,
            "evaluations": state.evaluations,
        }
        return {name: (dims, values.reshape(shape)) for name, values in found.items()}


def _named(until: float) -> str:
    return "consensus" if math.isinf(until) else f"t = {until:g}"


@compiled
def _physics(field: Any, axes: Any, method: LongTime, log_until: Any, unit: float, count: int) -> Any:
    def one(field: Any) -> Any:
        return method.physics(field, log_until, unit), log_clock(field, unit)

    if axes is None or not jax.tree.leaves(axes):
        return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], count, axis=0), one(field))
    return eqx.filter_vmap(one, in_axes=(axes,))(field)


@compiled
def _begin(positions: Any, mass: Any, sensitive: bool) -> Any:
    keys = jax.random.split(jax.random.key(0), positions.shape[0])
    return jax.vmap(lambda x, m, key: integrator.begin(x, m, sensitive, key))(positions, mass, keys)


@compiled
def _compact(state: Any, size: int) -> Any:
    return jax.vmap(lambda one: integrator.compact(one, size)[0])(state)


@compiled
def _over(physics: Any, state: Any) -> Any:
    return jax.vmap(integrator.is_over)(physics, state)


@compiled
def _work(physics: Any, state: Any, few: int) -> Any:
    def one(physics: Any, state: Any) -> Any:
        return integrator.slice_of_work(physics, state, ROWS, few, False)

    return over_members(one, (0, 0), (physics, state), state.mass.shape[1] ** 2)
