"""Compilation that leaves the caller free while the program runs."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from attnflow.interrupts import raise_if_interrupted

AT_ONCE = 1e-3
"""Seconds for which a result is asked for again and again; then with pauses, which would take longer than that."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`equinox.filter_jit` without its wait for the result: arrays are traced, everything else is compiled in.

    (filter_jit blocks until the program has run, in order to raise errors of its own; a blocked call does not hear
    Ctrl-C, and a slice of a large flow can take minutes.)
    """

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def traced(structure: Any, rest: tuple[Any, ...], arrays: list[Any]) -> Any:
        given = iter(arrays)
        args = jax.tree.unflatten(structure, [next(given) if leaf is None else leaf for leaf in rest])
        return function(*args)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        leaves, structure = jax.tree.flatten(args)
        is_array = [isinstance(leaf, jax.Array | np.ndarray | np.generic) for leaf in leaves]
        rest = tuple(None if array else leaf for leaf, array in zip(leaves, is_array, strict=True))
        return traced(structure, rest, [leaf for leaf, array in zip(leaves, is_array, strict=True) if array])

    return call


def wait(tree: Any) -> Any:
    """Wait for a result while listening to Ctrl-C (a blocked call into compiled code would not)."""
    raise_if_interrupted()
    pause, began = 0.0, time.perf_counter()
    for array in jax.tree.leaves(tree):
        while not array.is_ready():
            raise_if_interrupted()
            time.sleep(pause)  # without a pause it gives way to other threads, and comes back at once
            if pause or time.perf_counter() - began > AT_ONCE:
                pause = min(max(2 * pause, 1e-4), 0.02)
    return tree
