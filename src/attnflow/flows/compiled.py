"""Compilation that leaves the caller free while the program runs."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from attnflow.interrupts import raise_if_interrupted

LARGE = 1 << 20
"""Bytes of arrays that are put on the device once, and not with every call."""
AT_ONCE = 1e-3
"""Seconds for which a result is asked for again and again; then with pauses."""
PAUSE, LONGEST = 0.05, 0.02
"""A pause as a part of the time waited so far, and at most in seconds: what it adds to a wait."""


class Staged:
    """A first argument of several calls, taken apart once: arrays are traced, everything else is compiled in."""

    def __init__(self, tree: Any):
        arrays, key = _apart(tree)
        self.key = _first_equal(key)
        large = sum(array.nbytes for array in arrays) > LARGE
        self.arrays: list[Any] = jax.device_put(arrays) if large else arrays


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`equinox.filter_jit` without its wait for the result: arrays are traced, everything else is compiled in.

    (filter_jit blocks until the program has run, in order to raise errors of its own; a blocked call does not hear
    Ctrl-C, and a slice of a large flow can take minutes.) The first argument may be `Staged`.
    """

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def traced(first: _Key | None, rest: _Key, fixed: list[Any], arrays: list[Any]) -> Any:
        args = rest.together(arrays)
        return function(*args) if first is None else function(first.together(fixed), *args)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if isinstance(args[0], Staged):
            arrays, rest = _apart(args[1:])
            return traced(args[0].key, rest, args[0].arrays, arrays)
        arrays, rest = _apart(args)
        return traced(None, rest, [], arrays)

    return call


def shapes(function: Callable[..., Any], *args: Any) -> Any:
    """The shapes of what `compiled(function)(*args)` gives; nothing is compiled."""
    arrays, key = _apart(args)
    return jax.eval_shape(lambda arrays: function(*key.together(arrays)), arrays)


class _Key:
    """A tree without its arrays."""

    __slots__ = ("hash", "leaves", "structure")

    def __init__(self, structure: Any, leaves: tuple[Any, ...]):
        self.structure, self.leaves = structure, leaves
        self.hash = hash((structure, leaves))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        same = isinstance(other, _Key) and self.hash == other.hash
        return same and self.structure == other.structure and self.leaves == other.leaves

    def together(self, arrays: list[Any]) -> Any:
        """The tree with these arrays."""
        given = iter(arrays)
        return jax.tree.unflatten(self.structure, [next(given) if leaf is None else leaf for leaf in self.leaves])


def _apart(tree: Any) -> tuple[list[Any], _Key]:
    """The arrays of a tree, and the rest of it."""
    leaves, structure = jax.tree.flatten(tree)
    is_array = [isinstance(leaf, np.ndarray | np.generic | jax.Array) for leaf in leaves]
    arrays = [leaf for leaf, array in zip(leaves, is_array, strict=True) if array]
    return arrays, _Key(structure, tuple(None if array else leaf for leaf, array in zip(leaves, is_array, strict=True)))


@functools.lru_cache(maxsize=256)
def _first_equal(key: _Key) -> _Key:
    """The first key that was equal to this one: later comparisons are then of one object with itself."""
    return key


def wait(tree: Any) -> Any:
    """Wait for a result while listening to Ctrl-C (a blocked call into compiled code would not)."""
    raise_if_interrupted()
    began = time.perf_counter()
    for array in jax.tree.leaves(tree):
        while not array.is_ready():
            raise_if_interrupted()
            waited = time.perf_counter() - began
            # without a pause it gives way to other threads, and comes back at once
            time.sleep(min(PAUSE * waited, LONGEST) if waited > AT_ONCE else 0.0)
    return tree
