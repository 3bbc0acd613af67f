"""Systems side by side as a batch; those with fewer tokens are filled up by absent rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.axes import Label, as_labels
from attnflow.checks import instance, shown
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.tokens.ensemble import Tokens
from attnflow.tokens.labels import label_array


def stack(dim: str, values: Sequence[Label] | np.ndarray, systems: Sequence[Tokens]) -> Tokens:
    """Several systems as a batch along the new dimension `dim`, labelled by `values`.

    Systems with fewer tokens than the largest are filled up by absent rows (`present`); places and labels may differ.
    """
    instance("systems", systems, Sequence, "a list of tokens")
    instance("values", values, Sequence | np.ndarray, "a list of labels, one for each system")
    systems = list(systems)
    if not systems:
        raise InvalidInput("`systems` is empty; give at least one system.")
    if isinstance(values, np.ndarray) and not values.ndim:
        raise InvalidInput(f"`values` is {shown(values)}; give a list of labels, one for each system.")
    if len(systems) != len(values):
        raise InvalidInput(f"`systems` has {len(systems)} entries and `values` {len(values)}; give as many of each.")
    members = as_labels("`values`", values, len(systems))
    first = systems[0]
    for k, other in enumerate(systems):
        instance(f"systems[{k}]", other, Tokens, "tokens, as in stack('seed', [0, 1], [tokens, other])")
        if other.positions.shape[:-2] != first.positions.shape[:-2] or other.space != first.space:
            raise InvalidTokens(
                f"systems[{k}] has shape {other.positions.shape} on {other.space}, but systems[0] has "
                f"{first.positions.shape} on {first.space}; a batch needs one space and one shape, up to the "
                "number of tokens."
            )
        if other.dims != first.dims or other.coordinates != first.coordinates:
            raise InvalidTokens(f"systems[{k}] has batch dimensions {other.dims}, systems[0] has {first.dims}.")
    largest = max(s.n for s in systems)
    place: Any = first.place
    if np.ndim(place) > 1 or not all(np.array_equal(s.place, place) for s in systems):
        place = np.stack([filled(np.broadcast_to(s.place, s.masses.shape), largest, -1) for s in systems])
    labels: Any = first.labels
    if not all(s.labels == labels and s.n == largest for s in systems):
        labels = np.stack([_labelled(s, largest) for s in systems]) if any(s.labels for s in systems) else None
    every = all(s.present is None and s.n == largest for s in systems)
    there = [np.ones(s.masses.shape, bool) if s.present is None else np.asarray(s.present) for s in systems]
    return Tokens(
        np.stack([filled(s.positions, largest, -2) for s in systems]),
        np.stack([filled(s.masses, largest, -1) for s in systems]),
        space=first.space,
        place=place,
        present=None if every else np.stack([filled(one, largest, -1) for one in there]),
        dims=(dim, *first.dims),
        coordinates=(members, *first.coordinates),
        labels=labels,
        dtype=np.result_type(*(np.asarray(s.positions).dtype for s in systems)),
    )


def _labelled(tokens: Tokens, length: int) -> np.ndarray:
    """The labels of all members, the empty text for tokens without one and up to `length`."""
    own = label_array(tokens.labels)
    shape = np.shape(tokens.masses)
    return filled(np.full(shape, "", object) if own is None else np.broadcast_to(own, shape).astype(object), length, -1)


def filled(array: Any, length: int, axis: int) -> np.ndarray:
    """`array` with zeros, or empty texts, up to `length` along the axis of the tokens."""
    array = np.asarray(array)
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, length - array.shape[axis])
    return np.pad(array, widths, constant_values="" if array.dtype == object else 0)
