"""A piecewise-constant control: fields that act in turn, whose flow is a composition of exact maps."""

import concurrent.futures
import os
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow import sketches
from attnflow.checks import instance, whole
from attnflow.compilations import make_room
from attnflow.describe import html_table
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractExact, AbstractField, AtPoints, AtTokens, ReluUnit
from attnflow.fields.exact.in_turn import InTurn, choose_kind, lipschitz, multiple, stack_size
from attnflow.flows import Adaptive, flow_map
from attnflow.precision import full_precision
from attnflow.spaces import AbstractSpace, Euclidean
from attnflow.tokens import Measure, Tokens, all_present

ROWS = 2048
"""Points that are pushed together; their coordinates stay in the cache."""
Elements = Iterable[tuple[AbstractField, float]]


class Schedule:
    """Fields that act one after the other, each constant and for a time of its own, on one space.

        schedule = Schedule(af.Euclidean(2), [(ReluUnit([1, 0], [0, 1], 0.5), 1.0), (Drift([0, 1]), 0.3)])
        end, log_det = schedule.push(points)

    Elements that know their flow (`ReluUnit`, `Drift`, `Affine`, `MeanAttention`, other `AbstractExact` fields) are
    followed exactly, all others by `Adaptive()`. Durations are positive; an element that runs backwards is the negative
    field. `schedule.field` is the whole as one field of time, for `solve`, `flow_map` and run folders.

    A schedule with attention acts on a measure: `schedule(tokens)`, `schedule.push(points, mu=tokens)`. All is done in
    float64.
    """

    def __init__(self, space: AbstractSpace, elements: Elements):
        parts = list(elements)
        if not parts:
            raise InvalidInput("`elements` is empty; give at least one pair (field, duration).")
        try:
            fields, durations = [field for field, _ in parts], [float(duration) for _, duration in parts]
        except (TypeError, ValueError):
            raise InvalidInput("`elements` is no list of pairs (field, duration); give such pairs.") from None
        self._set(space, InTurn(fields, durations), np.array(durations))

    @classmethod
    def of(cls, space: AbstractSpace, field: InTurn, durations: np.ndarray) -> "Schedule":
        """From a field in stacks and the durations of its parts."""
        made = cls.__new__(cls)
        made._set(space, field, np.asarray(durations, float))
        return made

    def _set(self, space: AbstractSpace, field: InTurn, durations: np.ndarray) -> None:
        self.space = instance("space", space, AbstractSpace, "a space such as Euclidean(2)")
        self.field = field
        """The whole as one field: part k acts for durations[k]."""
        self.durations = durations
        probe = np.zeros((1, space.dim)) if isinstance(space, Euclidean) else np.eye(1, space.dim)
        field.check(Tokens(np.asarray(space.retract(probe)), space=space))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"Schedule({self.space}, {kinds}, total time {self.duration:.4g})"

    def _repr_html_(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        facts = {"space": str(self.space), "elements": f"{len(self)}: {kinds}", "total time": f"{self.duration:.4g}"}
        drawn = sketches.bars(self.durations, "durations")
        return html_table("Schedule", facts | {"budget": f"{self.budget:.4g}"}, drawn)

    def plot(self, *, figsize: tuple[float, float] | None = None, style: Any = None) -> Any:
        """The elements and gates in one Matplotlib Figure: `attnflow.plot(schedule)`."""
        import attnflow

        return attnflow.plot(self, figsize=figsize, style=style)

    def first(self, count: int) -> "Schedule":
        """The schedule of the first `count` elements."""
        count = whole("count", count, 1, len(self))
        which, row, durations = self.field.which[:count], self.field.row[:count], self.durations[:count]
        return Schedule.of(self.space, InTurn.of(self.field.kinds, which, row, durations), durations)

    def __len__(self) -> int:
        return len(self.durations)

    def __getitem__(self, k: int) -> tuple[AbstractField, float]:
        """The k-th element and its duration."""
        return self.field.part(k), float(self.durations[k])

    @property
    def duration(self) -> float:
        """The sum of all durations."""
        return float(self.durations.sum())

    @property
    def switches(self) -> int:
        """How often the control jumps: one less than elements."""
        return len(self) - 1

    @property
    def counts(self) -> dict[str, int]:
        """How many elements there are of every kind, by the name of their class."""
        found: dict[str, int] = {}
        for kind, number in zip(*np.unique(self.field.which, return_counts=True), strict=True):
            name = type(self.field.kinds[kind]).__name__
            found[name] = found.get(name, 0) + int(number)
        return found

    @property
    def free(self) -> np.ndarray:
        """Which elements are free: while they act no token feels another."""
        return np.array([isinstance(kind, AbstractExact) and kind.is_free for kind in self.field.kinds])[
            self.field.which
        ]

    @property
    def is_free(self) -> bool:
        """Whether no token feels another, so that the map does not depend on a measure."""
        return self.field.is_free

    @property
    def budget(self) -> float:
        """A bound of the logarithm of the Lipschitz constant of the map, and of that of its inverse.

        For ReLU units in R^d it is sum |w| |a| t. Rounding errors of a round trip are at most of the size
        e^(2 budget) times that of the numbers, and much smaller as a rule. nan where a bound is not known.
        """
        return float(np.sum(self.budgets))

    @property
    def budgets(self) -> np.ndarray:
        """(element,) the part of `budget` that every element has: its Lipschitz constant times its duration."""
        rates = [lipschitz(kind, self.space) for kind in self.field.kinds]
        places = zip(self.field.which, self.field.row, strict=True)
        return np.array([rates[kind][min(row, len(rates[kind]) - 1)] for kind, row in places]) * self.durations

    def __call__(self, tokens: Tokens) -> Tokens:
        """The tokens at the end, in the flow of their own measure."""
        tokens = self._measure(tokens)
        if self.is_free:
            return tokens.moved(self.push(tokens.positions)[0])
        return tokens.moved(self._push(np.zeros((0, self.space.dim)), tokens)[2])

    def push(self, points: Any, *, mu: Tokens | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(end points, log|det D Phi|) of points (point, dim).

        A density p becomes p(x) e^(-log_det) at Phi(x). A schedule with attention needs `mu`, the tokens at the start;
        the points feel them and exert nothing.
        """
        x = self._points(points)
        if mu is None and not self.is_free:
            raise InvalidInput("`mu` is left out, but the schedule has attention; give the tokens at the start.")
        if self.is_free:
            return self._push_free(x)
        return self._push(x, self._measure(mu))[:2]

    def inverse(self) -> "Schedule":
        """The schedule back: negative fields in reverse order.

        With attention it takes the measure at the end to that at the start, and amplifies errors by up to e^budget.
        """
        kinds = tuple(multiple(kind, -1.0) for kind in self.field.kinds)
        back = slice(None, None, -1)
        durations = self.durations[back].copy()
        field = InTurn.of(kinds, np.asarray(self.field.which)[back], np.asarray(self.field.row)[back], durations)
        return Schedule.of(self.space, field, durations)

    def then(self, other: "Schedule") -> "Schedule":
        """First this schedule, then the other."""
        if self.space != other.space:
            raise InvalidInput(f"the schedules act on {self.space} and {other.space}; give schedules on one space.")
        kinds, which, row = list(self.field.kinds), [np.asarray(self.field.which)], [np.asarray(self.field.row)]
        moved, shift = [], []
        for kind in other.field.kinds:
            same = [k for k, mine in enumerate(kinds) if _stackable(mine, kind)]
            if same:
                moved.append(same[0])
                shift.append(stack_size(kinds[same[0]]))
                kinds[same[0]] = _joined(kinds[same[0]], kind)
            else:
                moved.append(len(kinds))
                shift.append(0)
                kinds.append(kind)
        which.append(np.array(moved, np.int32)[other.field.which])
        row.append(np.asarray(other.field.row) + np.array(shift, np.int32)[other.field.which])
        durations = np.concatenate([self.durations, other.durations])
        field = InTurn.of(kinds, np.concatenate(which), np.concatenate(row), durations)
        return Schedule.of(self.space, field, durations)

    def __matmul__(self, other: "Schedule") -> "Schedule":
        """(self @ other)(x) = self(other(x))."""
        return instance("other", other, Schedule, "a Schedule").then(self)

    def log_density(self, points: Any, log_base: Callable[[np.ndarray], Any]) -> np.ndarray:
        """Log of the density at `points` that the schedule makes of the density e^log_base; without attention.

        log rho(y) = log_base(x) + log|det D Phi^(-1)(y)|, x = Phi^(-1)(y). Exact: there is no solver and no estimate
        of a trace.
        """
        start, log_det = self.inverse().push(points)
        return np.asarray(log_base(start), float) + log_det

    def _points(self, points: Any) -> np.ndarray:
        x = np.asarray(points, np.float64)
        if x.ndim != 2 or x.shape[1] != self.space.dim:
            raise InvalidInput(f"`points` has shape {x.shape}; give (points, {self.space.dim}).")
        return np.asarray(Tokens(x, space=self.space).positions) if len(x) else x

    def _measure(self, tokens: Any) -> Tokens:
        instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)").single()
        all_present(tokens, "a schedule")
        if tokens.space != self.space:
            raise InvalidInput(f"the tokens are on {tokens.space}, and the schedule acts on {self.space}.")
        return tokens.astype(np.float64)

    def _push_free(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In blocks of rows, one for every core at a time."""
        if not len(x):
            return x, np.zeros(0)
        make_room()
        rows = min(ROWS, len(x))
        blocks = [x[k : k + rows] for k in range(0, len(x), rows)]
        blocks[-1] = np.concatenate([blocks[-1], np.repeat(x[:1], rows - len(blocks[-1]), axis=0)])

        def one(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with full_precision():
                end, log_det = _free(kinds, which, row, durations, self.space, block)
                return np.asarray(end), np.asarray(log_det)

        with full_precision():
            arrays, rest = eqx.partition(self._padded(), eqx.is_array)  # plain numbers of an element stay as they are
            kinds, which, row, durations = eqx.combine(jax.tree.map(jnp.asarray, arrays), rest)
        first = one(blocks[0])  # compiles
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            found = [first, *threads.map(one, blocks[1:])]
        return tuple(np.concatenate(part)[: len(x)] for part in zip(*found, strict=True))  # type: ignore[return-value]

    def _padded(self, turn: Any = slice(None)) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Kinds, which, row and durations with lengths on a ladder, so that schedules share programs.

        Elements that are added act for no time.
        """
        field = self.field
        kinds = tuple(
            _longer(kind, padded_count(stack_size(kind))) if isinstance(kind, AbstractExact) else kind
            for kind in field.kinds
        )
        which, row, durations = np.asarray(field.which)[turn], np.asarray(field.row)[turn], self.durations[turn]
        more = padded_count(len(which)) - len(which)
        which, row = (np.pad(part, (0, more), mode="edge") for part in (which, row))
        return kinds, which, row, np.pad(durations, (0, more))

    def _push(self, x: np.ndarray, tokens: Tokens) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(points, log-determinants, tokens) at the end; stretches of exact elements in one program."""
        make_room()
        exact = np.array([isinstance(kind, AbstractExact) for kind in self.field.kinds])[self.field.which]
        cuts = np.flatnonzero(np.diff(exact)) + 1
        log_det, mu = np.zeros(len(x)), tokens
        for turn in np.split(np.arange(len(self)), cuts):
            if exact[turn[0]]:
                with full_precision():
                    found = _coupled(*self._padded(turn), mu.measure, x)
                x, change, positions = (np.asarray(one) for one in found)
                mu, log_det = mu.moved(positions), log_det + change
                continue
            for k in turn:
                flow = flow_map(self.field.part(k), mu, float(self.durations[k]), method=Adaptive(1e-11, 1e-12))
                mu = mu.moved(np.asarray(flow.legs[-1].nodes[-1]))
                if len(x):
                    x, change = flow.push(x)
                    log_det = log_det + change
        return x, log_det, np.asarray(mu.positions)


@eqx.filter_jit
def _free(kinds: Any, which: Any, row: Any, durations: Any, space: AbstractSpace, x: Any) -> Any:
    mu = Measure(x, space=space)

    def turn(state: Any, at: Any) -> Any:
        x, log_det = state
        kind, row, h = at
        zero = jnp.zeros((), x.dtype)
        x, change = choose_kind(kinds, kind, row, lambda part: part.flow(zero, h, AtPoints(x), mu))
        return (x, log_det + change), None

    begin = (jnp.asarray(x), jnp.zeros(x.shape[0], x.dtype))
    end, _ = jax.lax.scan(turn, begin, (which, row, durations))
    return end


@eqx.filter_jit
def _coupled(kinds: Any, which: Any, row: Any, durations: Any, mu: Measure, x: Any) -> Any:
    def turn(state: Any, at: Any) -> Any:
        x, log_det, tokens = state
        kind, row, h = at
        zero, now = jnp.zeros((), x.dtype), mu.moved(tokens)

        def ask(part: Any) -> Any:
            if not isinstance(part, AbstractExact):  # runs in another stretch
                return x, jnp.zeros_like(log_det), tokens
            return *part.flow(zero, h, AtPoints(x), now), part.carry(zero, h, AtTokens(), now)

        x, change, tokens = choose_kind(kinds, kind, row, ask)
        return (x, log_det + change, tokens), None

    begin = (jnp.asarray(x), jnp.zeros(x.shape[0], x.dtype), jnp.asarray(mu.positions))
    end, _ = jax.lax.scan(turn, begin, (which, row, durations))
    return end


def padded_count(count: int) -> int:
    """The next of 8, 16, 32, 64, 128, 256, 320, 384, 448, 512, 640, ...: a quarter more at most from 256 on."""
    bits = (count - 1).bit_length()
    step = 2 ** (bits - 3) if count > 256 else 2**bits
    return max(8, -(-count // step) * step)


def _longer(kind: AbstractField, rows: int) -> AbstractField:
    """A stack with its last row repeated."""

    def leaf(array: Any) -> Any:
        if not eqx.is_array(array) or len(array) >= rows:
            return array
        return np.concatenate([array, np.repeat(np.asarray(array)[-1:], rows - len(array), axis=0)])

    found: AbstractField = jax.tree.map(leaf, kind)
    return found


def _stackable(one: AbstractField, other: AbstractField) -> bool:
    if type(one) is not type(other) or not isinstance(one, AbstractExact):
        return False
    trees: list[Any] = [jax.tree.structure(kind) for kind in (one, other)]
    alike = [
        [leaf.shape[1:] if eqx.is_array(leaf) else leaf for leaf in jax.tree.leaves(kind)] for kind in (one, other)
    ]
    return bool(trees[0] == trees[1] and alike[0] == alike[1])


def _joined(one: AbstractField, other: AbstractField) -> AbstractField:
    found: AbstractField = jax.tree.map(lambda a, b: np.concatenate([a, b]) if eqx.is_array(a) else a, one, other)
    return found


def units(outer: Any, inner: Any, bias: Any, durations: Any = 1.0) -> Schedule:
    """The schedule of ReLU units w (<a, x> + b)_+ in R^d from arrays: w and a (K, d), b (K,), durations (K,) or one."""
    w, a = np.atleast_2d(np.asarray(outer, float)), np.atleast_2d(np.asarray(inner, float))
    b, t = (np.broadcast_to(np.asarray(value, float), len(w)).copy() for value in (bias, durations))
    if w.shape != a.shape:
        raise InvalidInput(f"`outer` has shape {w.shape} and `inner` {a.shape}; give both as (elements, d).")
    field = InTurn.of([ReluUnit(w, a, b)], np.zeros(len(w)), np.arange(len(w)), t)
    return Schedule.of(Euclidean(w.shape[1]), field, t)


def layers(outer: Any, inner: Any, bias: Any) -> Schedule:
    """The schedule whose time-1 maps are the residual layers x -> x + u (<a, x> + b)_+, with 1 + <a, u> > 0.

    w = u log(1 + <a, u>)/<a, u>: every invertible residual layer of one ReLU unit is the flow of one element.
    """
    u, a = np.atleast_2d(np.asarray(outer, float)), np.atleast_2d(np.asarray(inner, float))
    k = np.sum(u * a, axis=-1)
    if (k <= -1).any():
        raise InvalidInput(
            f"a layer x + u (<a, x> + b)_+ has 1 + <a, u> = {1 + k.min():.3g}, so that it folds space and is no flow; "
            "give layers with 1 + <a, u> above 0."
        )
    safe = np.where(k == 0, 1.0, k)
    return units(u * np.where(k == 0, 1.0, np.log1p(safe * (k != 0)) / safe)[:, None], a, bias)


def chain(schedules: Iterable[Schedule]) -> Schedule:
    """All schedules, one after the other."""
    first, *rest = schedules
    for other in rest:
        first = first.then(other)
    return first
