"""One system on its way to consensus: what is recorded, step by step and merge by merge."""

import dataclasses
import math
from collections.abc import Iterator
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
from attnflow.flows.methods import Adaptive
from attnflow.observe.clusters import clusters
from attnflow.observe.energy import renormalised_energy
from attnflow.tokens import Tokens

ROWS = 64
"""Steps and merges between two looks at the progress."""
SLOTS = (8, 32, 128, 512)
"""Clusters are kept in so many slots: each number is compiled once, and merges compile nothing."""
USUAL_START, LONGEST_START = 32.0, 1e4
"""More than 512 tokens are first moved together (clock of SA or USA0) until 128 clusters are left; after the first of
these times 512 will do, and after the second it is too much."""


@dataclasses.dataclass
class Row:
    """The clusters after one step or merge."""

    log_time: float
    names: np.ndarray
    """Cluster names, ascending: a cluster is called by the number of its first token."""
    x: np.ndarray
    label: np.ndarray
    """The name of the cluster of every token."""
    energy: float
    arc: float
    log_speed: float

    def positions(self) -> np.ndarray:
        """Positions of all tokens."""
        return self.x[np.searchsorted(self.names, self.label)]


@dataclasses.dataclass
class Merge:
    """Two clusters become one."""

    log_time: float
    first: int
    second: int
    masses: tuple[float, float]
    point: np.ndarray
    growth: float
    """The largest size that a perturbation of size 1 at the start has had, as a natural logarithm."""
    bound: float
    """Relative error of forces by all merges so far, at most."""
    error: float
    """Estimate of the error of log_time by the steps."""
    evaluations: int


class Follower:
    """Iterate to do the work; then look at `rows` and `merges`."""

    def __init__(self, method: LongTime, field: Attention, tokens: Tokens, log_until: float):
        masses = np.asarray(tokens.masses)
        self.method, self.field, self.tokens = method, field, tokens
        self.unit = mass_unit(masses)
        self.physics = method.physics(field, log_until, self.unit)
        self.shift = float(log_clock(field, self.unit))
        softmax = isinstance(field.normaliser, Softmax)
        self.slow = Attention(field.beta, normaliser=Softmax() if softmax else Unnormalised())
        self.late = float(log_faster(field))  # the clock of the field runs e^late times faster than that of `slow`
        self.label = np.arange(tokens.n)
        self.names = np.arange(tokens.n)
        self.mass = np.rint(masses / self.unit) if self.unit != 1.0 else masses.copy()
        self.merges: list[Merge] = []
        self.bound = 0.0
        self.state: integrator.Clusters | None = None
        self.rows = [self._first(-math.inf, np.asarray(tokens.positions))]

    def __iter__(self) -> Iterator[float]:
        """Do the work; yields log t now and then."""
        x, start = np.asarray(self.tokens.positions), -math.inf
        if self.tokens.n > SLOTS[-1]:
            for start in self._condense():
                yield start
            x = self.rows[-1].x
        size = _slots(len(self.names))
        places = np.resize(np.arange(len(self.names)), size)  # the padding has no mass
        mass = np.where(np.arange(size) < len(self.names), self.mass[places], 0.0)
        self.names = self.names[places]
        state = integrator.begin(jnp.asarray(x[places]), jnp.asarray(mass), self.method.sensitive, jax.random.key(0))
        self.state = state._replace(log_t=jnp.asarray(start - self.shift, float))
        while not bool(integrator.is_over(self.physics, self.state)):
            self._compact()
            before = np.asarray(self.state.mass)
            few = max([slots for slots in SLOTS if slots < len(before)], default=1)
            self.state, records = wait(_work(self.physics, self.state, few))
            self._read(before, jax.tree.map(np.asarray, records))
            yield self.rows[-1].log_time

    def _compact(self) -> None:
        assert self.state is not None
        alive = int(jnp.sum(self.state.mass > 0))
        size = _slots(alive)
        if size < len(self.names) and size in SLOTS:
            self.state, order = integrator.compact(self.state, size)
            self.names = self.names[np.asarray(order)]

    def _condense(self) -> Iterator[float]:
        """Adaptive steps until few groups are left; a group tighter than the merging angle is a cluster."""
        beta, tol = float(self.physics.beta), float(self.physics.tol)
        method = Adaptive(tol / (1 + beta), tol / (1 + beta))
        moved, t = self.tokens, 0.0
        while True:
            found = clusters(moved, scale=float(self.physics.angle))
            if found.count <= SLOTS[-2] or (found.count <= SLOTS[-1] and t >= USUAL_START):
                break
            if t >= LONGEST_START:
                raise InvalidInput(
                    f"{found.count} of {self.tokens.n} tokens are still apart at t = {t:g}; LongTime follows at most "
                    f"{SLOTS[-1]} clusters. Give fewer tokens, or a smaller beta."
                )
            step = max(1.0, t / 4)
            moved, t = advance(self.slow, moved, 0.0, step, method), t + step
            self.rows.append(self._first(math.log(t) - self.late, np.asarray(moved.positions)))
            yield math.log(t) - self.late
        x = np.asarray(moved.positions)
        first = np.array([np.flatnonzero(found.labels == k)[0] for k in range(found.count)])
        order = np.argsort(first)
        names, rank = first[order], np.argsort(order)
        mass, point = np.zeros(len(names)), np.zeros((len(names), self.tokens.dim))
        np.add.at(mass, rank[found.labels], self.mass)
        np.add.at(point, rank[found.labels], self.mass[:, None] * x)
        point /= np.linalg.norm(point, axis=1, keepdims=True)
        spread = np.zeros(len(names))
        np.add.at(spread, rank[found.labels], self.mass * np.sum((x - point[rank[found.labels]]) ** 2, axis=1))
        self.bound = self._bound(float(np.max(spread / mass)))
        self.label = names[rank[found.labels]]
        grown = self.mass.copy()
        for token in np.flatnonzero(self.label != np.arange(self.tokens.n)):
            name = int(self.label[token])
            both = self.unit * grown[name], self.unit * grown[token]
            meeting = point[np.searchsorted(names, name)]
            self.merges.append(Merge(math.log(t) - self.late, name, int(token), both, meeting, 0.0, self.bound, tol, 0))
            grown[name] += grown[token]
        self.names, self.mass = names, mass
        self.rows.append(dataclasses.replace(self.rows[-1], names=names, x=point, label=self.label))

    def _first(self, log_time: float, x: np.ndarray) -> Row:
        """A row in which no tokens have met yet."""
        masses = np.asarray(self.tokens.masses)
        energy = float(renormalised_energy(jnp.asarray(x), jnp.asarray(masses), self.physics.beta))
        speed = np.linalg.norm(np.asarray(self.slow.velocity(0.0, None, self.tokens.moved(x))), axis=1).max()
        with np.errstate(divide="ignore"):
            log_speed = float(np.log(speed)) + self.late
        return Row(log_time, np.arange(len(x)), x, self.label, energy, 0.0, log_speed)

    def _bound(self, variance: float) -> float:
        beta = float(self.physics.beta)
        return 0.5 * (beta**2 + 3 * beta + 1) * variance

    def _read(self, mass: np.ndarray, records: Any) -> None:
        """Rows and merges out of the records of a slice."""
        for k in range(int(records.filled)):
            log_time = float(records.log_t[k]) + self.shift
            if records.first[k] >= 0:
                p, q = int(records.first[k]), int(records.second[k])
                share = mass[p] * mass[q] / (mass[p] + mass[q]) ** 2
                self.bound += self._bound(share * float(self.physics.angle) ** 2)
                first, second = int(self.names[p]), int(self.names[q])
                self.label = np.where(self.label == second, first, self.label)
                both = self.unit * float(mass[p]), self.unit * float(mass[q])
                self.merges.append(
                    Merge(
                        log_time,
                        first,
                        second,
                        both,
                        records.x[k, p],
                        float(records.log_growth[k]),
                        self.bound,
                        float(records.error[k]),
                        int(records.evaluations[k]),
                    )
                )
            mass = records.mass[k]
            alive = mass > 0
            self.rows.append(
                Row(
                    log_time,
                    self.names[alive],
                    records.x[k][alive],
                    self.label,
                    float(records.energy[k]) * self.unit**2,
                    float(records.arc[k]) * math.sqrt(self.unit),
                    float(records.log_speed[k]) - self.shift,
                )
            )


def _slots(count: int) -> int:
    """The slots for so many clusters: the next size, or exactly as many where that would be wasteful."""
    size = next(size for size in SLOTS if size >= count)
    return size if size <= 128 else count


@compiled
def _work(physics: integrator.Physics, state: integrator.Clusters, few: int) -> Any:
    return integrator.slice_of_work(physics, state, ROWS, few, True)
