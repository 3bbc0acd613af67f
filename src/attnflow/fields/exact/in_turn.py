"""Fields that act one after the other, each for a time of its own."""

import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnflow.axes import batches
from attnflow.checks import instance, shown
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField, Laws
from attnflow.fields.exact.base import AbstractExact, as_exact
from attnflow.fields.queries import AbstractQuery, Points
from attnflow.fields.structure import Inner, Part
from attnflow.fields.timed import AbstractTimed, times_before
from attnflow.spaces import AbstractSpace
from attnflow.tokens import Measure, Tokens


class Turns(AbstractTimed):
    """The times at which the next field begins."""

    times: Float[Array | np.ndarray, " turn"]

    def breaks(self, until: Any) -> np.ndarray:
        return times_before(self.times[1:], until, "durations")


class InTurn(AbstractExact):
    """X_t = the first of the fields `parts` for the first of the `durations`, then the second, and so on.

    The last field acts for ever after. A transformer with layers of different kinds and lengths: piecewise constant
    in time, so that the method `Exact` follows it where every part knows its own flow (arXiv:2411.04551 steers
    measures by such fields). Parts are constant in time; those that know their flow are stored in stacks, one for each
    kind, and thousands of them cost no more to compile than one.
    """

    kinds: tuple[AbstractField, ...]
    """Fields that know their flow are stacked: their weights have a row for every part of that kind."""
    which: Int[Array | np.ndarray, " turn"]
    """The kind of every part."""
    row: Int[Array | np.ndarray, " turn"]
    """Its row in the stack."""
    turns: Turns

    def __init__(self, parts: Sequence[AbstractField], durations: Any):
        parts = [instance("parts", part, AbstractField, "a list of fields") for part in parts]
        lengths = checked_durations(durations, len(parts))
        found: dict[Any, list[AbstractField]] = {}
        place = []
        for part in parts:
            if not part.laws.steady:
                raise InvalidInput(f"`parts` has {part!r}, whose weights jump; give fields that are constant in time.")
            if isinstance(part, AbstractExact) and (batch := batches(part)):
                raise InvalidInput(
                    f"`parts` has {part!r}, a batch along {batch[0].dim!r}; give plain weights, and the batch to the "
                    "tokens, or solve one system after the other."
                )
            same = found.setdefault(_kind(part), [])
            place.append((_kind(part), len(same)))
            same.append(part)
        order = sorted(found, key=lambda kind: type(found[kind][0]).__name__)  # so that schedules share programs
        self.kinds = tuple(stacked(found[k]) if isinstance(found[k][0], AbstractExact) else found[k][0] for k in order)
        self.which = np.array([order.index(kind) for kind, _ in place], np.int32)
        self.row = np.array([row for _, row in place], np.int32)
        self.turns = Turns(_begins(lengths))

    @classmethod
    def of(cls, kinds: Sequence[AbstractField], which: Any, row: Any, durations: Any) -> "InTurn":
        """From stacks: fields whose weights have one row more in front for every part."""
        which, row = np.asarray(which, np.int32), np.asarray(row, np.int32)
        made = cls.__new__(cls)
        lengths = checked_durations(durations, len(which))
        for name, value in (
            ("kinds", tuple(kinds)),
            ("which", which),
            ("row", row),
            ("turns", Turns(_begins(lengths))),
        ):
            object.__setattr__(made, name, value)
        return made

    def part(self, k: int) -> AbstractField:
        """The k-th of the fields."""
        k = range(len(self.which))[k]
        return self._pick(int(self.which[k]), int(self.row[k]))

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return self._now(t, lambda part: part.formula(t, query, mu))

    def carry(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Points:
        return self._now((t0 + t1) / 2, lambda part: as_exact(part).carry(t0, t1, query, mu))

    def stretching(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> Float[Array, " query"]:
        return self.flow(t0, t1, query, mu)[1]

    def flow(self, t0: Any, t1: Any, query: AbstractQuery, mu: Measure) -> tuple[Points, Float[Array, " query"]]:
        found: tuple[Points, Any] = self._now((t0 + t1) / 2, lambda part: as_exact(part).flow(t0, t1, query, mu))
        return found

    @property
    def is_free(self) -> bool:
        return all(isinstance(kind, AbstractExact) and kind.is_free for kind in self.kinds)

    def lipschitz(self, space: AbstractSpace) -> Any:
        return np.max([np.max(lipschitz(kind, space)) for kind in self.kinds])

    def times(self, factor: float) -> "InTurn":
        return eqx.tree_at(lambda field: field.kinds, self, tuple(multiple(kind, factor) for kind in self.kinds))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        others = [kind for kind, part in enumerate(self.kinds) if not isinstance(part, AbstractExact)]
        return tuple(Inner(functools.partial(_kind_number, kind), space) for kind in others)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        for kind, part in enumerate(self.kinds):
            if isinstance(part, AbstractExact):
                self._pick(kind, 0).check_parameters(tokens)

    @property
    def laws(self) -> Laws:
        found = Laws(True, True, True, len(self.which) == 1)
        for part in self.kinds:
            found = found.and_(part.laws)
        return found

    def _now(self, t: Any, ask: Any) -> Any:
        times = jnp.asarray(self.turns.times, float)
        turn = jnp.maximum(jnp.sum(times <= jnp.asarray(t, times.dtype)) - 1, 0)
        return choose_kind(self.kinds, jnp.asarray(self.which)[turn], jnp.asarray(self.row)[turn], ask)

    def _pick(self, kind: int, row: Any) -> AbstractField:
        return picked(self.kinds[kind], row)


def choose_kind(kinds: tuple[AbstractField, ...], which: Any, row: Any, ask: Any) -> Any:
    """ask(part) for the part in this row of that kind; both may be traced."""
    branches = [lambda row, kind=kind: ask(picked(kind, row)) for kind in kinds]
    return branches[0](row) if len(branches) == 1 else jax.lax.switch(which, branches, row)


def picked(kind: AbstractField, row: Any) -> AbstractField:
    """One field of a stack; a field that is not stacked as it is."""
    if not isinstance(kind, AbstractExact):
        return kind

    def leaf(array: Any) -> Any:
        if not eqx.is_array(array):
            return array
        return (array if isinstance(row, int) else jnp.asarray(array))[row]

    found: AbstractField = jax.tree.map(leaf, kind)
    return found


def stack_size(kind: AbstractField) -> int:
    """Rows of a stack; a stack without weights is one element over and over, whose rows do not matter."""
    leaves = [leaf for leaf in jax.tree.leaves(kind) if eqx.is_array(leaf)]
    return len(leaves[0]) if leaves and isinstance(kind, AbstractExact) else 1


def lipschitz(kind: AbstractField, space: AbstractSpace) -> np.ndarray:
    """Bounds of the Lipschitz constants of the elements of a stack; nan for a field that does not know its flow."""
    found = kind.lipschitz(space) if isinstance(kind, AbstractExact) else np.nan
    return np.broadcast_to(np.asarray(found, float), stack_size(kind))


def multiple(kind: AbstractField, factor: float) -> AbstractField:
    """`factor` times a field, or times every element of a stack."""
    return kind.times(factor) if isinstance(kind, AbstractExact) else factor * kind


def stacked(parts: Sequence[AbstractField]) -> AbstractField:
    """Fields of one kind, with their weights stacked."""
    found: AbstractField = jax.tree.map(
        lambda *leaves: np.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *parts
    )
    return found


def checked_durations(durations: Any, count: int) -> np.ndarray:
    """Positive lengths of time, one for every part."""
    found = np.asarray(durations, float)
    if count == 0:
        raise InvalidInput("`parts` is empty; give at least one field.")
    if found.shape != (count,):
        raise InvalidInput(f"`durations` has shape {found.shape} for {count} parts; give one for each.")
    if not (np.isfinite(found) & (found > 0)).all():
        raise InvalidInput(f"`durations` is {shown(durations)}; give finite numbers above 0.")
    return found


def _begins(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(lengths[:-1])])


def _kind_number(kind: int, field: Any) -> Any:
    return field.kinds[kind]


def _kind(part: AbstractField) -> Any:
    """What fields of one stack share; a field that does not know its flow is a kind of its own."""
    if not isinstance(part, AbstractExact):
        return id(part)
    leaves, tree = jax.tree.flatten(part)
    return type(part), tree, tuple(leaf.shape if eqx.is_array(leaf) else leaf for leaf in leaves)
