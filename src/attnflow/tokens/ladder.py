"""Sizes that many systems share, so that they share compiled programs."""

import equinox as eqx
import numpy as np

from attnflow.checks import instance, whole
from attnflow.errors import InvalidTokens
from attnflow.precision import is_traced
from attnflow.tokens.ensemble import Tokens
from attnflow.tokens.labels import label_array
from attnflow.tokens.stacking import filled

LEAST = 8


def padded(tokens: Tokens, size: int | None = None) -> Tokens:
    """The same tokens, filled up by absent rows to `size`: default the next of 8, 12, 16, 24, 32, 48, 64, 96, ...

    Absent rows have no mass, are seen by nobody and stay out of every result; a flow is the same except for rounding,
    since sums of other lengths round differently. JAX compiles for every shape of arrays anew; a study over n that
    fills its systems up compiles once for each step of the ladder, at the price of at most 1.5 times the rows (2.3
    times the pairs).
    """
    instance("tokens", tokens, Tokens, "tokens such as uniform(Sphere(3), n=100)")
    if is_traced(tokens):
        raise InvalidTokens("`tokens` are being traced by a JAX transformation; fill them up outside of it.")
    goal = next_size(tokens.n) if size is None else whole("size", size, tokens.n)
    there = np.ones(np.shape(tokens.masses), bool) if tokens.present is None else np.asarray(tokens.present)
    masses, labels = filled(tokens.masses, goal, -1), label_array(tokens.labels)
    made = Tokens(
        filled(tokens.positions, goal, -2),
        masses,
        space=tokens.space,
        place=filled(tokens.place, goal, -1),
        present=filled(there, goal, -1),
        dims=tokens.dims,
        coordinates=tokens.coordinates,
        labels=None if labels is None else filled(labels.astype(object), goal, -1),
        dtype=np.asarray(tokens.positions).dtype,
    )
    return eqx.tree_at(lambda one: one.masses, made, masses)  # rescaled already, and so to the last bit


def next_size(n: int) -> int:
    """The least of 8, 12, 16, 24, 32, 48, ... that is at least n."""
    power = LEAST
    while power < n:
        if 3 * power // 2 >= n:
            return 3 * power // 2
        power *= 2
    return power
