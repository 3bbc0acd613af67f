"""Compiled steps of Adam on prompts; works of one task and one field share the programs."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.learn.trainable import load_optax

TOGETHER = 10
"""Steps of one call."""


class Programs(NamedTuple):
    """What training calls; weights and memory have an axis of seeds in front."""

    begin: Callable[..., Any]
    """Weights -> memory of Adam."""
    several: Callable[..., Any]
    """(weights, memory, prompts (step, seed, ...), count) -> weights, memory, losses of the first `count` steps."""
    test_loss: Callable[..., Any]
    """(weights, prompts) -> the mean loss of each seed."""


def programs(task: Any, rest: Any, rate: float, decay: float | None) -> Programs:
    """The programs for a task and a field without its weights.

    Times and steps of `rest` are compiled in: loops of `advance` are then static, and have a reverse mode.
    """
    leaves, structure = jax.tree.flatten((task, rest, rate, decay))
    return _built(structure, tuple(map(_frozen, leaves)))


def _frozen(leaf: Any) -> Any:
    """A leaf as something that can be compared: an array as its bytes."""
    if isinstance(leaf, np.ndarray | np.generic | jax.Array):
        array = np.asarray(leaf)
        return array.shape, array.dtype.str, array.tobytes()
    return leaf


def _thawed(leaf: Any) -> Any:
    if isinstance(leaf, tuple):
        shape, kind, given = leaf
        return np.frombuffer(given, kind).reshape(shape)
    return leaf


@functools.lru_cache(maxsize=16)
def _built(structure: Any, leaves: tuple[Any, ...]) -> Programs:
    optax = load_optax("train")
    task, rest, rate, decay = jax.tree.unflatten(structure, map(_thawed, leaves))
    adam = optax.adam(rate if decay is None else lambda done: rate / (1 + done / decay))

    def mean(weights: Any, prompts: Any) -> Any:
        return jnp.mean(jax.vmap(lambda prompt: task.loss(eqx.combine(weights, rest), prompt))(prompts))

    def step(weights: Any, memory: Any, prompts: Any) -> Any:
        loss, slope = jax.value_and_grad(mean)(weights, prompts)
        with jax.numpy_dtype_promotion("standard"):  # Optax needs it; the user may have set "strict"
            change, memory = adam.update(slope, memory, weights)
            return optax.apply_updates(weights, change), memory, loss

    def several(weights: Any, memory: Any, prompts: Any, count: Any) -> Any:
        def body(k: Any, carry: Any) -> Any:
            weights, memory, losses = carry
            weights, memory, loss = jax.vmap(step)(weights, memory, jax.tree.map(lambda a: a[k], prompts))
            return weights, memory, losses.at[k].set(loss)

        losses = jnp.zeros(jax.tree.leaves(prompts)[0].shape[:2])
        return jax.lax.fori_loop(0, count, body, (weights, memory, losses))

    begin = jax.jit(jax.vmap(adam.init))
    return Programs(begin, jax.jit(several), jax.jit(jax.vmap(mean, in_axes=(0, None))))
