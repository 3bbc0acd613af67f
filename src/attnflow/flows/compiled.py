"""Compilation that leaves the caller free while the program runs."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from attnflow.interrupts import raise_if_interrupted


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
    pause = 1e-4
    for array in jax.tree.leaves(tree):
        raise_if_interrupted()
        while not array.is_ready():
            raise_if_interrupted()
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
    return tree
