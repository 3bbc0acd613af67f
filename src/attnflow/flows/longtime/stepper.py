"""One system on its way to consensus: clusters that move and merge, slice by slice."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import Attention, Softmax
from attnflow.fields.normalisers import Unnormalised
from attnflow.flows.advance import advance
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.longtime import integrator
from attnflow.flows.longtime.method import LongTime, log_clock, log_faster, mass_unit
from attnflow.flows.longtime.rows import BOOL, FLOAT, INT, MERGE, Collected, Long, Row, views
from attnflow.flows.longtime.slots import SLOTS, choose_slots, within_span
from attnflow.flows.methods import Adaptive
from attnflow.flows.observables import Views
from attnflow.flows.outcome import Ending, Outcome, Reached
from attnflow.flows.sink import Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.observe.clusters import clusters
from attnflow.observe.energy import renormalised_energy
from attnflow.tokens import Tokens
from attnflow.tokens.labels import labels_beside
from attnflow.wording import time_shown

ROWS = 64
"""Steps and merges of a slice."""
EXACT = 128
"""More clusters than this have exactly as many slots at first: the next number would be wasteful."""
USUAL_START, LONGEST_START = 32.0, 1e4
"""More than 512 tokens are first moved together (clock of SA or USA0) until 128 clusters are left; after the first of
these times 512 will do, and after the second it is too much."""
LATE = 64
"""Clusters from which on every merge is followed by a frame."""
STEPS = 1 << 14
"""Steps that a store makes room for at first."""


class ClusterStepper(AbstractSingle):
    """The stepper of `solve_long`."""

    def __init__(self, method: LongTime, field: Attention, tokens: Tokens, until: float):
        self.method, self.field, self.tokens, self.until = method, field, tokens, until
        self.masses = np.asarray(tokens.masses)
        self.unit = mass_unit(self.masses)
        self.physics = method.physics(field, math.log(until), self.unit)
        self.shift = float(log_clock(field, self.unit))
        softmax = isinstance(field.normaliser, Softmax)
        self.slow = Attention(field.beta, normaliser=Softmax() if softmax else Unnormalised())
        self.late = float(log_faster(field))  # the clock of the field runs e^late times faster than that of `slow`
        self.basis = within_span(np.asarray(tokens.positions))[1]
        n, dim = min(tokens.n, SLOTS[-1]), min(tokens.n, tokens.dim)
        self.slots = choose_slots(n, dim=dim, sensitive=method.sensitive)
        self.measure = tokens.measure.moved(None)
        self.resume: Long | None = None

    @property
    def goal(self) -> tuple[float, int]:
        return self.until, max(self.tokens.n - 1, 1)

    def layout(self) -> Layout:
        tokens = self.tokens
        frames: dict[str, Any] = dict.fromkeys(
            ("time", "log_time", "speed", "log_speed", "floor", "spread", "energy"), ((), FLOAT)
        )
        frames |= {"resolved": ((), BOOL), "positions": (("token", "dim"), FLOAT)}
        tables = {
            "time": {name: Variable(("time", *dims), dtype) for name, (dims, dtype) in frames.items()},
            "merge": {f"merge_{name}": Variable(("merge", *dims), dtype) for name, (dims, dtype) in MERGE.items()},
            "step": {f"stair_{name}": Variable(("step",), FLOAT) for name in ("log_time", "energy", "arc")},
        }
        return Layout(
            tables,
            {"token": tokens.n, "dim": tokens.dim, "side": 2},
            {"time": 3 * self.method.frames + tokens.n, "merge": max(tokens.n - 1, 1), "step": STEPS},
            {},
            {"masses": (("token",), self.masses), "place": (("token",), np.asarray(tokens.place))},
            {"time": 16, "merge": 512, "step": 512},
            {"space": str(tokens.space)},
            self.until,
            {},
            labels_beside(tokens, {}),
            exact=False,
        )

    def start(self) -> Views:
        return views(self.measure, np.asarray(self.tokens.positions)[None], np.zeros(1))

    def begin(self) -> Long:
        x = np.asarray(self.tokens.positions)
        n, d = x.shape
        slots = integrator.begin(np.zeros((0, min(n, d))), np.zeros(0), False, None)
        none = Row(np.asarray(-np.inf), np.zeros(()), np.zeros(()), np.full((n, d), np.nan))
        return Long(
            x, np.zeros(()), slots, np.zeros(0, INT), np.arange(n), np.zeros(()),
            np.zeros((), INT), np.zeros((), INT), none, none, none, np.asarray(-np.inf),
        )  # fmt: skip

    def work(self, state: Long) -> Slice:
        collect = self._collected()
        if int(state.rows) == 0:
            state = collect.row(state, self._row(-math.inf, state.x, state.label), 0.0, due=True)
            return Slice(state, collect.rows(), None)
        if state.clusters.mass.shape[0] == 0:
            state = self._gather(state, collect)
            return Slice(state, collect.rows(), None)
        if self._is_over(state.clusters):
            return self._over(state, collect)
        before = self._compacted(state)
        moved, records = wait(_work(self.physics, before.clusters, self.slots.next(len(before.names))))
        state = self._read(before, moved, jax.tree.map(np.asarray, records), collect)
        if self.resume is None and bool(moved.shortened):
            self.resume = before
        if self._is_over(moved):
            return self._over(state, collect)
        return Slice(state, collect.rows(), None, self.resume)

    def _is_over(self, clusters: integrator.ClusterState) -> bool:
        return bool(integrator.is_over(self.physics, jax.tree.map(np.asarray, clusters)))

    def _collected(self) -> Collected:
        return Collected(self.measure, self.method.frames, self.late)

    def _over(self, state: Long, collect: Collected) -> Slice:
        state = collect.last(state)
        outcome = self._ending(state)
        return Slice(state, collect.rows(), outcome, self.resume)

    def unfinished(self, state: Long) -> Rows | None:
        if int(state.rows) == 0:
            return None
        collect = self._collected()
        collect.last(state)
        return collect.rows()

    def reached(self, state: Long, rows: dict[str, int]) -> Reached:
        log_time, left = float(state.last.log_time), self.tokens.n - int(state.merged)
        time = math.exp(log_time) if log_time < 700 else math.inf
        share = int(state.merged) / max(self.tokens.n - 1, 1)
        if math.isinf(self.until) and self.tokens.n <= SLOTS[-1]:
            share = float(self.slots.share_done(self.tokens.n, int(state.merged)))
        return Reached(
            time, int(state.merged), int(state.rows), f"t = {time_shown(log_time, 6)} · {left} clusters", share
        )

    def steps(self, state: Long) -> dict[str, int]:
        accepted = max(int(state.rows) - 1 - int(state.merged), 0)
        return {"accepted": accepted, "rejected": int(state.clusters.rejected)}

    def finish(self, state: Long) -> dict[str, Any]:
        return {}

    def _ending(self, state: Long) -> Outcome:
        end, left = float(state.last.log_time), self.tokens.n - int(state.merged)
        if left == 1:
            return Outcome(Ending.STOPPED, f"consensus at t = {time_shown(end)}.")
        if bool(state.clusters.frozen):
            return Outcome(
                Ending.FROZEN,
                f"frozen at t = {time_shown(end)} with {left} clusters: the forces cancel to the last bit. They stand "
                "at a symmetric equilibrium.",
            )
        if not float(state.clusters.step) > integrator.SMALLEST:
            return Outcome(
                Ending.FAILED, f"integration failed at t = {time_shown(end)}: steps below rounding. Use a larger `tol`."
            )
        return Outcome(Ending.FINISHED, f"reached t = {self.until:g}.")

    def _gather(self, state: Long, collect: Collected) -> Long:
        """Move the tokens together until few groups are left, then follow these as clusters."""
        n, t = self.tokens.n, float(state.t)
        if n <= SLOTS[-1]:
            return self._followed(state, state.x, state.label, -math.inf)
        beta, tol = float(self.physics.beta), float(self.physics.tol)
        moved = self.tokens.moved(state.x)
        found = clusters(moved, scale=float(self.physics.angle))
        if found.count <= SLOTS[-2] or (found.count <= SLOTS[-1] and t >= USUAL_START):
            return self._grouped(state, found.labels, collect)
        if t >= LONGEST_START:
            raise InvalidInput(
                f"{found.count} of {n} tokens are still apart at t = {t:g}; LongTime follows at most "
                f"{SLOTS[-1]} clusters. Give fewer tokens, or a smaller beta."
            )
        step = max(1.0, t / 4)
        x = np.asarray(advance(self.slow, moved, 0.0, step, Adaptive(tol / (1 + beta), tol / (1 + beta))).positions)
        state = state._replace(x=x, t=np.asarray(t + step))
        return collect.row(state, self._row(math.log(t + step) - self.late, x, state.label), 0.0)

    def _grouped(self, state: Long, groups: np.ndarray, collect: Collected) -> Long:
        """Every group of tokens becomes a cluster at its centre of mass."""
        x, tol = np.asarray(state.x), float(self.physics.tol)
        mass = self._token_masses()
        first = np.array([np.flatnonzero(groups == k)[0] for k in range(int(groups.max()) + 1)])
        label = first[groups]
        names = np.unique(label)
        place = np.searchsorted(names, label)
        weight = np.bincount(place, mass)
        point = np.stack([np.bincount(place, mass * column) for column in x.T], axis=1)
        point = point / np.linalg.norm(point, axis=1, keepdims=True)
        spread = np.bincount(place, mass * np.sum((x - point[place]) ** 2, axis=1))
        bound = self._bound(float(np.max(spread / weight)))
        log_time = math.log(float(state.t)) - self.late
        grown = mass.copy()
        for token in np.flatnonzero(label != np.arange(self.tokens.n)):
            name = int(label[token])
            both = self.unit * np.array([grown[name], grown[token]])
            collect.merge(
                log_time=log_time, first=name, second=int(token), growth=0.0, bound=bound, error=bound + tol,
                evaluations=0, masses=both, point=point[np.searchsorted(names, name)],
            )  # fmt: skip
            grown[name] += grown[token]
        merged = np.asarray(self.tokens.n - len(names))
        state = state._replace(label=label, bound=np.asarray(bound), merged=merged)
        row = Row(np.asarray(log_time), state.last.energy, state.last.log_speed, point[place])
        return self._followed(collect.row(state, row, 0.0, due=True), point, names, log_time)

    def _followed(self, state: Long, x: Any, names: np.ndarray, log_time: float) -> Long:
        """Clusters at `x`, from now on in slots; the padding has no mass."""
        count = len(names)
        size = int(self.slots.of(count)) if count <= EXACT else count
        places = np.resize(np.arange(count), size)
        mass = np.bincount(np.searchsorted(names, state.label), self._token_masses())
        mass = np.where(np.arange(size) < count, mass[places], 0.0)
        key = jax.random.key(0) if self.method.sensitive else None
        made = integrator.begin(self._inside(x)[places], mass, self.method.sensitive, key)
        begun: Any = np.asarray(log_time - self.shift, float)
        made = made._replace(log_t=begun)
        return state._replace(clusters=made, names=names[places])

    def _compacted(self, state: Long) -> Long:
        size = int(self.slots.of(int(np.sum(np.asarray(state.clusters.mass) > 0))))
        if size >= len(state.names):
            return state
        made, order = integrator.compact(jax.tree.map(jnp.asarray, state.clusters), size)
        return state._replace(clusters=made, names=state.names[np.asarray(order)])

    def _read(self, state: Long, moved: integrator.ClusterState, records: Any, collect: Collected) -> Long:
        """Rows and merges out of the records of a slice."""
        mass, points = np.asarray(state.clusters.mass), self._outside(records.x[: int(records.filled)])
        for k in range(int(records.filled)):
            log_time = float(records.log_t[k]) + self.shift
            met = records.first[k] >= 0
            if met:
                p, q = int(records.first[k]), int(records.second[k])
                share = mass[p] * mass[q] / (mass[p] + mass[q]) ** 2
                bound = float(state.bound) + self._bound(share * float(self.physics.angle) ** 2)
                first, second = int(state.names[p]), int(state.names[q])
                collect.merge(
                    log_time=log_time, first=first, second=second, growth=float(records.log_growth[k]), bound=bound,
                    error=bound + float(records.error[k]), evaluations=int(records.evaluations[k]),
                    masses=self.unit * np.array([mass[p], mass[q]]), point=points[k, p],
                )  # fmt: skip
                label = np.where(state.label == second, first, state.label)
                state = state._replace(label=label, bound=np.asarray(bound), merged=state.merged + 1)
            mass = records.mass[k]
            alive = np.flatnonzero(mass > 0)
            place = alive[np.searchsorted(state.names[alive], state.label)]
            row = Row(
                np.asarray(log_time),
                np.asarray(float(records.energy[k]) * self.unit**2),
                np.asarray(float(records.log_speed[k]) - self.shift),
                points[k][place],
            )
            arc = float(records.arc[k]) * math.sqrt(self.unit)
            state = collect.row(
                state, row, arc, met=bool(met), due=bool(met) and self.tokens.n - int(state.merged) < LATE
            )
        return state._replace(clusters=moved)

    def _inside(self, x: Any) -> np.ndarray:
        """Unit vectors as they are moved: in a space of as many dimensions as there are tokens, or as they are."""
        if self.basis is None:
            return np.asarray(x)
        inside = x @ self.basis
        return np.asarray(inside / np.linalg.norm(inside, axis=-1, keepdims=True))

    def _outside(self, x: np.ndarray) -> np.ndarray:
        """Where the points of that space are among all dimensions."""
        if self.basis is None:
            return x
        outside = x @ self.basis.T
        return np.asarray(outside / np.linalg.norm(outside, axis=-1, keepdims=True))

    def _row(self, log_time: float, x: np.ndarray, label: np.ndarray) -> Row:
        """A row in which no tokens have met yet."""
        energy = float(renormalised_energy(jnp.asarray(x), jnp.asarray(self.masses), self.physics.beta))
        speed = np.linalg.norm(np.asarray(self.slow.velocity(self.tokens.moved(x))), axis=1).max()
        with np.errstate(divide="ignore"):
            return Row(np.asarray(log_time), np.asarray(energy), np.asarray(np.log(speed) + self.late), np.asarray(x))

    def _token_masses(self) -> np.ndarray:
        """In units of `unit`; equal masses are counted exactly."""
        return np.rint(self.masses / self.unit) if self.unit != 1.0 else self.masses.copy()

    def _bound(self, variance: float) -> float:
        beta = float(self.physics.beta)
        return 0.5 * (beta**2 + 3 * beta + 1) * variance


@compiled
def _work(physics: integrator.Physics, state: integrator.ClusterState, few: int) -> Any:
    return integrator.slice_of_work(physics, state, ROWS, few, True)
