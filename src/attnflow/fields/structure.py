"""What a field is made of, and what follows from that.

Every field names its parts by the abstract method `children`: fields inside it (`Inner`) and sums over pairs that it
needs (`Summed`). Whether a sum gives right numbers, which sum to choose, and how large the error of the drive is depend
on the context (the space on which an inner field is evaluated, the matrix V that multiplies a sum, a norm that divides
by it), so they are found by going through the parts, here and nowhere else. A wrapper cannot forget them: without
`children` it cannot be built.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from attnflow.fields.queries import AbstractQuery
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.sums import AbstractSum, Choice, Use, choose
from attnflow.sums.choose import cheapest
from attnflow.tokens import Measure, Tokens


def _unchanged(t: Any, query: AbstractQuery, mu: Measure) -> tuple[AbstractQuery, Measure]:
    return query, mu


def _as_it_is(t: Any, drive: Callable[[], Any], error: Any) -> Any:
    return error


class Inner(NamedTuple):
    """A field inside another one: where it is, and how it is used."""

    where: Callable[[Any], Any]
    """From the outer field to the inner one, as for `equinox.tree_at`."""
    space: AbstractSpace
    """The space on which the inner field is evaluated."""
    view: Callable[[Any, AbstractQuery, Measure], tuple[AbstractQuery, Measure]] = _unchanged
    """(t, query, mu) -> the query and the measure that the inner field sees."""
    amplify: Callable[[Any, Callable[[], Any], Any], Any] = _as_it_is
    """(t, inner drive, error of it) -> the error of the outer drive that it causes, for each query.

    The inner drive comes as a function without arguments, since most do not need it.
    """


class Summed(NamedTuple):
    """A sum over pairs of tokens that a field needs."""

    where: Callable[[Any], AbstractSum | None]
    """From the field to the sum, None if none was given."""
    use: Use
    error: Callable[[Any, AbstractQuery, Measure], Any]
    """(t, query, mu) -> a bound of the error of the drive that the sum causes, for each query."""
    size: Callable[[], float | None]
    """A bound of the matrices that multiply the sum, at all times; None if it is not known."""


Part = Inner | Summed


def check(field: Any, tokens: Tokens | Measure, on: AbstractSpace) -> None:
    """Refuse parameters that do not fit these tokens, and sums that would give wrong numbers on the space `on`."""
    field.check_parameters(tokens)
    for part in field.children(on):
        if isinstance(part, Inner):
            check(part.where(field), *_seen(tokens, on, part.space))
        elif (given := part.where(field)) is not None:
            part.use.require(given, tokens)


def prepare(field: Any, tokens: Tokens, tol: float | None, flowing: bool, on: AbstractSpace) -> Any:
    """The field with a sum chosen wherever none was given."""
    for part in field.children(on):
        if isinstance(part, Inner):
            inner = part.where(field)
            seen, there = _seen(tokens, on, part.space)
            new = prepare(inner, seen, tol, flowing, there)
            if new is not inner:
                field = eqx.tree_at(part.where, field, new)
        elif part.where(field) is None:
            chosen = cheapest(tokens, part.use, _inside(part, tol), flowing)
            field = eqx.tree_at(part.where, field, chosen, is_leaf=lambda node: node is None)
    return field


def choice(part: Summed, tokens: Tokens, tol: float | None, flowing: bool) -> Choice:
    """What `sums.choose` says; `tol` is the error of what the field makes of the sum."""
    use, tol = part.use, _inside(part, tol)
    return choose(
        tokens, use.kernel, tol=tol, mask=use.mask, plain=use.plain, ratios=use.ratios, space=use.space, flowing=flowing
    )


def _inside(part: Summed, tol: float | None) -> float | None:
    """The tolerance of a sum for the tolerance `tol` of what the field makes of it."""
    if tol is not None and isinstance(tol, int | float | np.number) and tol > 0:
        size = part.size()
        return min(float(tol) / max(size, 1e-300), 0.5) if size is not None and size > 1.0 else tol
    return tol


def stated_error(field: Any, t: Any, query: AbstractQuery, mu: Measure) -> Any:
    """A bound, for each query, of the error of the drive that cut sums leave; the number 0 where all are exact."""
    found = _stated_error(field, t, query, mu)
    return found if is_exact(found) else query.kept(mu, found)


def _stated_error(field: Any, t: Any, query: AbstractQuery, mu: Measure) -> Any:
    total: Any = 0.0
    for part in field.children(mu.space):
        if isinstance(part, Summed):
            found = part.error(t, query, mu)
        else:
            inner = part.where(field)
            there, seen = part.view(t, query, mu)
            found = _stated_error(inner, t, there, seen)
            if not is_exact(found):
                drive = _drive(inner, t, there, seen)
                found = part.amplify(t, drive, found)
        total = found if is_exact(total) else total + found if not is_exact(found) else total
    return total


def is_exact(error: Any) -> bool:
    """Whether a stated error is the number 0, known without computing."""
    return isinstance(error, float) and error == 0.0


def matrix_bound(matrix: Any) -> Any:
    """sqrt(|M|_1 |M|_inf) >= |M|_2, with equality for multiples of permutations; the last two axes."""
    size = abs(matrix)
    return (size.sum(axis=-1).max(axis=-1) * size.sum(axis=-2).max(axis=-1)) ** 0.5


def _drive(field: Any, t: Any, query: AbstractQuery, mu: Measure) -> Callable[[], Any]:
    return lambda: field.formula(t, query, mu)


def _seen(tokens: Any, on: AbstractSpace, space: AbstractSpace) -> tuple[Any, AbstractSpace]:
    """The tokens as an inner field sees them at the start, and where it is evaluated."""
    if space == on:
        return tokens, on
    if not isinstance(space, Sphere):
        return tokens.on(space, tokens.positions), space
    norms = np.linalg.norm(np.asarray(tokens.positions), axis=-1, keepdims=True)
    if (norms == 0).any():  # the origin has no direction and stays where it is
        flat = Euclidean(space.dim)
        return tokens.on(flat, tokens.positions), flat
    return tokens.on(space, np.asarray(tokens.positions) / norms), space
