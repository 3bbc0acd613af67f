"""The forward pass of both families in JAX: one compiled `scan` over the layers of a block.

The passes are written from the definitions of the families and share no code with `attnflow.fields`, so that a layer of
a network and the field that stands for it (`Network.field`) are two routes to one number.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.probe.networks.families.base import Architecture

HALVES = ("attention", "perceptron")
"""The two halves of a layer, which nulls can take out."""


@functools.partial(jax.jit, static_argnames=("shape", "repeats"))
def run_layers(shape: Architecture, halves: Any, weights: Any, x: Any, count: Any, repeats: int | None) -> Any:
    """(x after every layer, x after every attention, attention weights) of stacked layers.

    Arguments:
        shape: the sizes of the network.
        halves: for each of `HALVES` whether it acts; not static, so that nulls share the program.
        weights: of the layers, stacked.
        x: the stream; rows from `count` on are no tokens, and nobody hears them.
        count: the number of tokens.
        repeats: `weights` are those of one layer, which is applied so many times.
    """

    def step(x: Any, own: Any) -> tuple[Any, Any]:
        middle, attention = _attend(shape, halves[0], own, x, count)
        after = _feed(shape, halves[1], own, middle)
        return after, (after, middle, attention)

    if repeats is None:
        return jax.lax.scan(step, x, weights)[1]
    return jax.lax.scan(lambda x, _: step(x, weights), x, None, length=repeats)[1]


def embedded(shape: Architecture, rows: dict[str, np.ndarray], dtype: Any) -> np.ndarray:
    """The stream before the first layer, from the `rows` of words (and places) of a text."""
    x = rows["words"].astype(dtype)
    if shape.family == "llama":
        return x
    x = x + rows["places"].astype(dtype) + rows["kind"].astype(dtype)
    centred = x - x.mean(axis=-1, keepdims=True)
    x = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + dtype(shape.eps))
    x = x * rows["start.gain"].astype(dtype) + rows["start.bias"].astype(dtype)
    if shape.embedding:
        x = x @ rows["start"].astype(dtype).T + rows["start-map.bias"].astype(dtype)
    return x


def _attend(shape: Architecture, acts: Any, own: Any, x: Any, count: Any) -> tuple[Any, Any]:
    """The stream after attention, and the weights of all heads."""
    pre = shape.family == "llama"
    seen = _root_mean_square(shape, x) * own["norm1.gain"][None, :] if pre else x
    split = (x.shape[0], -1, shape.key_width)
    query, key, value = (_affine(own, name, seen).reshape(split) for name in ("query", "key", "value"))
    if pre:
        query, key = _turned(shape, query), _turned(shape, key)
    shared = shape.heads // shape.groups
    key, value = jnp.repeat(key, shared, axis=1), jnp.repeat(value, shared, axis=1)
    logits = jnp.einsum("ihk,jhk->hij", query, key) / np.sqrt(shape.key_width).astype(x.dtype)
    places = jnp.arange(x.shape[0])
    visible = jnp.broadcast_to((places < count)[None, :], (x.shape[0], x.shape[0]))
    if shape.causal:
        visible = visible & (places[:, None] >= places[None, :])
    logits = jnp.where(visible[None], logits, -jnp.inf)
    weights = jax.nn.softmax(logits, axis=-1)
    heard = jnp.einsum("hij,jhk->ihk", weights, value).reshape(x.shape[0], -1)
    change = jnp.where(acts, _affine(own, "output", heard), jnp.zeros_like(x))
    return (x + change if pre else _normed(shape, own, "norm1", x + change)), weights


def _feed(shape: Architecture, acts: Any, own: Any, x: Any) -> Any:
    """The stream after the perceptron."""
    if shape.family == "llama":
        seen = _root_mean_square(shape, x) * own["norm2.gain"][None, :]
        change = (jax.nn.silu(seen @ own["gate"].T) * (seen @ own["up"].T)) @ own["outer"].T
        return x + jnp.where(acts, change, jnp.zeros_like(x))
    activate = functools.partial(jax.nn.gelu, approximate=shape.activation == "gelu-tanh")
    change = _affine(own, "outer", activate(_affine(own, "inner", x)))
    return _normed(shape, own, "norm2", x + jnp.where(acts, change, jnp.zeros_like(x)))


def _affine(own: Any, name: str, x: Any) -> Any:
    image = x @ own[name].T
    return image + own[f"{name}.bias"][None, :] if f"{name}.bias" in own else image


def _root_mean_square(shape: Architecture, x: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + np.asarray(shape.eps, x.dtype))


def _normed(shape: Architecture, own: Any, name: str, x: Any) -> Any:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return _root_mean_square(shape, centred) * own[f"{name}.gain"][None, :] + own[f"{name}.bias"][None, :]


def _turned(shape: Architecture, features: Any) -> Any:
    """Rotary encoding of features (token, head, key width): pairs as complex numbers, turned by their places."""
    pairs = shape.key_width // 2
    rates = shape.base ** (-np.arange(pairs) / pairs)
    turn = np.exp(1j * np.arange(features.shape[0])[:, None] * rates[None, :])[:, None, :]
    if shape.pairing == "halves":
        first, second = features[..., :pairs], features[..., pairs:]
    else:
        first, second = features[..., 0::2], features[..., 1::2]
    cos, sin = turn.real.astype(features.dtype), turn.imag.astype(features.dtype)
    turned = (first * cos - second * sin, first * sin + second * cos)
    if shape.pairing == "halves":
        return jnp.concatenate(turned, axis=-1)
    return jnp.stack(turned, axis=-1).reshape(features.shape)
