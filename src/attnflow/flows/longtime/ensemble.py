"""Merges of many systems at once: the distributions of exit times."""

import dataclasses
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow import sketches
from attnflow.axes import members
from attnflow.checks import end_time, instance, shown, whole
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Attention
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.longtime import integrator
from attnflow.flows.longtime.method import LongTime, log_clock, mass_unit
from attnflow.flows.longtime.rows import UNDETERMINED
from attnflow.flows.longtime.slots import choose_slots, within_span
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.result import AbstractResult
from attnflow.flows.sink import AbstractSink, Layout
from attnflow.flows.stepper import AbstractStepper, Rows, Slice
from attnflow.flows.work import AbstractWork, Driven
from attnflow.interrupts import raise_if_interrupted
from attnflow.precision import full_precision
from attnflow.sums.host import cores
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

    from attnflow.observe import Survival

MOST = 128
ROWS = 64
"""Steps and merges that a slice tries for each of its systems."""
PAIRS = {True: 1 << 14, False: 1 << 28}
"""Pairs of slots of one call: on the CPU (True) a fraction of a second, else what keeps a device busy."""
ONE_BY_ONE = 32
"""Systems with so many slots or more are worked through one by one on the CPU: side by side they are no faster."""
PAUSE = 0.02
"""Seconds between looks at Ctrl-C while programs are compiled."""


@dataclasses.dataclass(frozen=True, repr=False)
class Merges(AbstractResult):
    """What `merge_times` returns: the table of all merges as an xarray Dataset.

    Dimensions (batch..., merge), with the coordinate `left`, the number of clusters that a merge leaves.
    """

    dataset: "xr.Dataset"
    """log_time, rounding, undetermined, evaluations, and followed."""
    field: AbstractField
    outcome: Outcome
    steps: dict[str, int]
    checkpoint: Any = None
    work: Any = None

    def _sketches(self) -> list[str]:  # of a batch the first member
        return [sketches.curve(np.ravel(self.log_time)[: self.dataset["left"].size], self.dataset["left"], "clusters")]

    @property
    def log_time(self) -> "xr.DataArray":
        """When merges were made; infinite where a merge was not made until `until`."""
        return self.dataset["log_time"]

    @property
    def undetermined(self) -> "xr.DataArray":
        """Whether rounding could have changed a merge; not known for a method that is not `sensitive`."""
        return self.dataset["undetermined"]

    @property
    def followed(self) -> "xr.DataArray":
        """Log of the time until which each system was followed; infinite where it came to consensus, or for ever."""
        return self.dataset["followed"]

    def survival(self, left: int = 1, *, confidence: float = 0.95, **labels: Any) -> "Survival":
        """The distribution over systems of the log time of the merge that leaves `left` clusters; 1 is consensus.

        Systems that have not made it count as later than they were followed. `labels` choose among the batch, as in
        `merges.survival(beta=4.0)`; all that is left is taken as one sample.
        """
        from attnflow.observe import survival

        n = self.log_time.sizes["merge"] + 1
        left = whole("left", left, 1, n - 1)
        try:
            chosen = self.dataset[["log_time", "followed"]].sel(left=left, **labels)
        except (KeyError, ValueError) as error:
            dims = ", ".join(str(dim) for dim in self.followed.dims) or "no batch dimension"
            raise InvalidInput(f"{shown(labels)} is not among these systems; they have {dims}.") from error
        ends = chosen["followed"].broadcast_like(chosen["log_time"])
        return survival(np.ravel(chosen["log_time"].values), np.ravel(ends.values), confidence=confidence)

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
        if "followed" not in table:  # a folder of an earlier version
            ended = np.isinf(table["log_time"].isel(merge=-1, drop=True))
            table["followed"] = ended.where(ended, np.inf) * math.log(self.until)
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
    evaluations so far, and `followed`, the log time until which each member was followed. `merges.survival()` is the
    distribution of the time to consensus, with its censoring. `on_progress`, `cancel` and `sink` are those of `solve`.
    After Ctrl-C the merges made so far are returned, with the outcome `interrupted`; `merges.continued(until)` goes on.
    """
    work = MergeTimes(field, tokens, until, method)
    found: Merges = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _Systems(NamedTuple):
    """All members: their clusters, in as many slots as they had at first, and their rows of the table of merges."""

    clusters: integrator.ClusterState
    log_time: Any
    rounding: Any
    evaluations: Any
    made: Any


class _EnsembleState(NamedTuple):
    """Where members are, and from where longer work goes on."""

    now: _Systems
    path: _Systems
    """The same, but a member with a step that was shortened to end in time is where it was before that slice."""


class _Ensemble(AbstractStepper):
    """Many small systems, each followed as if it were alone.

    A slice takes some of them, those with the most clusters first, as many calls at a time as there are cores. A system
    that has become small enough moves to fewer slots, and one that has ended is not looked at again.
    """

    def __init__(self, field: Attention, tokens: Tokens, method: LongTime, until: float):
        self.tokens, self.method, self.until = tokens, method, until
        self.systems = members(field, tokens)
        self.count = int(np.prod(self.systems.shape)) if self.systems.dims else 1
        positions = np.asarray(self.systems.measure.positions).reshape(self.count, tokens.n, tokens.dim)
        self.positions = within_span(positions)[0]
        masses = np.asarray(self.systems.measure.masses).reshape(self.count, tokens.n)
        self.unit = mass_unit(masses)
        self.masses = np.rint(masses / self.unit) if self.unit != 1.0 else masses
        axes, log_until = self.systems.field_axes, np.asarray(math.log(until))
        found = _physics(self.systems.field, axes, method, log_until, self.unit, self.count)
        self.physics, self.shift = jax.tree.map(np.asarray, found)
        count, n, dim = self.positions.shape
        self.slots, self.is_compiled = choose_slots(n, count, dim=dim, sensitive=method.sensitive), False

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
        count, n, _ = self.positions.shape
        size = self.slots.sizes[0]
        places = np.resize(np.arange(n), size)
        mass = np.where(np.arange(size) < n, self.masses[:, places], 0.0)
        clusters = _begin(self.positions[:, places], mass, self.method.sensitive)
        table = (count, n - 1)
        empty = np.full(table, np.inf), np.full(table, np.nan), np.zeros(table, int), np.zeros(count, int)
        first = _Systems(jax.tree.map(np.asarray, clusters), *empty)
        return _EnsembleState(first, first)

    def work(self, state: _EnsembleState) -> Slice:
        if self._are_over(state.now).all():
            done = Outcome(Ending.FINISHED, f"followed {self.count} systems to {_named(self.until)}.")
            return Slice(state, None, done, self._resume(state))
        self._compile(state.now)
        calls = self._calls(state.now)
        found = wait([_work(*self._taken(state.now, *call)) for call in calls])
        now: _Systems = jax.tree.map(np.array, state.now)
        for (chosen, size, _), (clusters, records) in zip(calls, found, strict=True):
            self._put(now, chosen, size, jax.tree.map(np.asarray, clusters))
            self._read(now, chosen, jax.tree.map(np.asarray, records))
        ended = now.clusters.shortened
        path = jax.tree.map(
            lambda old, new: np.where(ended.reshape(-1, *[1] * (new.ndim - 1)), old, new), state.path, now
        )
        state = _EnsembleState(now, path)
        return Slice(state, Rows({}), None, self._resume(state))

    def _compile(self, now: _Systems) -> None:
        """Compile the programs of all numbers of slots on all cores, once, by calls without a system.

        How long the rest takes is known from then on. Work with a last time may need fewer, and waits for each.
        """
        sizes = self.slots.sizes
        if self.is_compiled or len(sizes) == 1 or not math.isinf(self.until):
            return

        def make(size: int) -> None:
            with full_precision():
                _work(*self._taken(now, np.zeros(0, int), size, self._lanes(size)))

        threads = [threading.Thread(target=make, args=(size,), daemon=True) for size in sizes]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            raise_if_interrupted()
            time.sleep(PAUSE)
        self.is_compiled = True

    def _lanes(self, size: int) -> int:
        """Systems of one call: at least two calls, which two cores can share, of as many pairs as are worth one."""
        return min(max(PAIRS[_on_cpu()] // size**2, 1), -(-self.count // 2))

    def _are_over(self, now: _Systems) -> np.ndarray:
        return np.asarray(integrator.is_over(self.physics, now.clusters))

    def _resume(self, state: _EnsembleState) -> _EnsembleState | None:
        return _EnsembleState(state.path, state.path) if state.now.clusters.shortened.any() else None

    def _calls(self, now: _Systems) -> list[tuple[np.ndarray, int, int]]:
        """(members, slots, lanes) of the calls of a slice, as many as there are cores or fewer."""
        calls: list[tuple[np.ndarray, int, int]] = []
        most = cores() if _on_cpu() else 1
        slots = np.where(self._are_over(now), 0, self.slots.of(np.sum(now.clusters.mass > 0, axis=1)))
        for size in sorted(set(slots[slots > 0].tolist()), reverse=True):
            lanes, rest = self._lanes(size), most - len(calls)
            waiting = np.flatnonzero(slots == size)
            parts = np.array_split(waiting[: rest * lanes], rest)
            calls += [(part, size, lanes) for part in parts if len(part)]
            if len(calls) == most:
                break
        return calls

    def _taken(self, now: _Systems, chosen: np.ndarray, size: int, lanes: int) -> tuple[Any, Any, int, bool]:
        """The arguments of a call; a lane without a system has no mass, and so it is over."""
        index = np.resize(chosen, lanes)
        clusters = jax.tree.map(lambda a: a[index], now.clusters)
        mass = np.where((np.arange(lanes) < len(chosen))[:, None], clusters.mass[:, :size], 0.0)
        clusters = clusters._replace(x=clusters.x[:, :size], mass=mass, shift=clusters.shift[:, :size])
        physics, one_by_one = jax.tree.map(lambda a: a[index], self.physics), size >= ONE_BY_ONE and _on_cpu()
        return physics, clusters, self.slots.next(size), one_by_one

    def _put(self, now: _Systems, chosen: np.ndarray, size: int, clusters: Any) -> None:
        """Enter the clusters after a call. A system that has just come to fewer slots has its clusters in the first."""
        mass = clusters.mass[: len(chosen)]
        alive = np.sum(mass > 0, axis=1)
        fits = (alive < size) & (alive == self.slots.of(alive))
        order = np.where(fits[:, None], np.argsort(mass <= 0, axis=1, kind="stable"), np.arange(size))
        for name, value in clusters._asdict().items():
            held, found = getattr(now.clusters, name), value[: len(chosen)]
            if name in ("x", "mass", "shift"):
                held[chosen, :size] = found[np.arange(len(chosen))[:, None], order]
            else:
                held[chosen] = found

    def _read(self, now: _Systems, chosen: np.ndarray, records: Any) -> None:
        """Enter the merges of a call into the table."""
        first, filled = records.first[: len(chosen)], records.filled[: len(chosen)]
        is_merge = (first >= 0) & (np.arange(first.shape[1]) < filled[:, None])
        lane, row = np.nonzero(is_merge)
        member = chosen[lane]
        place = (now.made[chosen][:, None] + np.cumsum(is_merge, axis=1) - 1)[lane, row]
        now.log_time[member, place] = records.log_t[lane, row] + self.shift[member]
        if self.method.sensitive:
            with np.errstate(over="ignore"):
                now.rounding[member, place] = np.finfo(float).eps * np.exp(records.log_growth[lane, row])
        now.evaluations[member, place] = records.evaluations[lane, row]
        now.made[chosen] += is_merge.sum(axis=1)

    def unfinished(self, state: _EnsembleState) -> None:
        return None

    def hold(self, state: _EnsembleState, members: np.ndarray, time: float, frame: Any) -> _EnsembleState:
        return state

    def are_still(self, times: np.ndarray, frames: dict[str, np.ndarray]) -> None:
        return None

    def reached(self, state: _EnsembleState, rows: dict[str, int]) -> Reached:
        made, of = int(np.sum(state.now.made)), self.goal[1]
        share = np.where(self._are_over(state.now), 1.0, self.slots.share_done(self.tokens.n, state.now.made))
        steps = int(np.sum(state.now.clusters.evaluations)) // integrator.EVALUATIONS
        return Reached(math.nan, made, steps, f"{made} of {of} merges", float(np.mean(share)))

    def steps(self, state: _EnsembleState) -> dict[str, int]:
        return {"rejected": int(np.sum(state.now.clusters.rejected))}

    def finish(self, state: _EnsembleState) -> dict[str, Any]:
        dims, shape = (*self.batch, "merge"), (*self.systems.shape, self.tokens.n - 1)
        found = {
            "log_time": state.now.log_time,
            "rounding": state.now.rounding,
            "undetermined": state.now.rounding > UNDETERMINED,
            "evaluations": state.now.evaluations,
        }
        made = {name: (dims, values.reshape(shape)) for name, values in found.items()}
        clusters = state.now.clusters
        for_ever = (np.sum(clusters.mass > 0, axis=1) <= 1) | clusters.frozen
        followed = np.where(for_ever, np.inf, clusters.log_t + self.shift)
        return made | {"followed": (self.batch, followed.reshape(self.systems.shape))}


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


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
def _work(physics: Any, clusters: Any, few: int, one_by_one: bool) -> Any:
    def one(system: Any) -> Any:
        return integrator.slice_of_work(system[0], system[1], ROWS, few, False)

    return jax.lax.map(one, (physics, clusters)) if one_by_one else jax.vmap(one)((physics, clusters))
