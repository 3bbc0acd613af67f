"""Positional encodings: how the place of a token enters the logits of every layer.

(The place can also enter once, by adding `sinusoids` to the tokens at the start, or as the slope of a mask: ALiBi.)
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from attnflow import describe
from attnflow.axes import Batched, Number, positive, scalar
from attnflow.checks import shown, whole
from attnflow.errors import InvalidInput
from attnflow.lazy import listing
from attnflow.precision import in_float64

__all__ = ["AbstractEncoding", "NoEncoding", "Rotary", "Sinusoidal", "sinusoids"]
__dir__ = listing(__all__)

Features = Float[Array, "*head point feature"]
PAIRINGS = ("neighbours", "halves")


class AbstractEncoding(eqx.Module):
    """Changes what queries and keys are made of; values are left alone."""

    uses_place: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def before(self, x: Features, place: Real[Array, " point"]) -> Features:
        """What the matrices Q and K are applied to."""

    @abc.abstractmethod
    def after(self, features: Features, place: Real[Array, " point"]) -> Features:
        """What the logits are made of."""

    @abc.abstractmethod
    def check(self, features: int) -> None:
        """Refuse a number of features that the encoding cannot act on."""


class NoEncoding(AbstractEncoding, describe.LeftOut):
    """Places do not enter the logits."""

    uses_place = False

    def before(self, x: Features, place: Real[Array, " point"]) -> Features:
        return x

    def after(self, features: Features, place: Real[Array, " point"]) -> Features:
        return features

    def check(self, features: int) -> None:
        """Any number of features will do."""


class Sinusoidal(AbstractEncoding):
    """Additive: Q and K act on x + size p(place), p the `sinusoids` of arXiv:1706.03762 scaled to norm 1."""

    size: Batched = eqx.field(converter=scalar("size"), default=1.0)
    base: Number = eqx.field(converter=positive("base"), default=1e4)
    uses_place = True

    def before(self, x: Features, place: Real[Array, " point"]) -> Features:
        return x + jnp.asarray(self.size, x.dtype) * sinusoids(place, x.shape[-1], self.base).astype(x.dtype)

    def after(self, features: Features, place: Real[Array, " point"]) -> Features:
        return features

    def check(self, features: int) -> None:
        """Any number of features will do."""


class Rotary(AbstractEncoding):
    """RoPE (arXiv:2104.09864): pairs i of features turn by the angle place * base^(-2i/turned).

    The logit of two tokens then depends on their places through the difference alone.

    Arguments:
        base: 1e4 in most networks, larger ones for long contexts.
        pairing: which features make pair i: "neighbours", 2i and 2i + 1, as in the paper and in GPT-J, or "halves",
            i and i + turned/2, as in GPT-NeoX (arXiv:2204.06745) and in Llama (arXiv:2302.13971) as Transformers stores
            it (the original files have neighbours). They differ by a permutation of the rows of Q and K.
        turned: only the first `turned` features turn, the others stay (a quarter in GPT-NeoX); all unless given.
    """

    base: Number = eqx.field(converter=positive("base"), default=1e4)
    pairing: str = eqx.field(static=True, default="neighbours", converter=lambda pairing: _pairing(pairing))
    turned: int | None = eqx.field(static=True, default=None, converter=lambda turned: _even(turned))
    uses_place = True

    def before(self, x: Features, place: Real[Array, " point"]) -> Features:
        return x

    def after(self, features: Features, place: Real[Array, " point"]) -> Features:
        if self.turned is not None and self.turned < features.shape[-1]:
            turned = self._turned(features[..., : self.turned], place)
            return jnp.concatenate([turned, features[..., self.turned :]], axis=-1)
        return self._turned(features, place)

    def _turned(self, features: Features, place: Any) -> Features:
        pairs = features.shape[-1] // 2
        angle = _angles(place, pairs, self.base)
        cos, sin = jnp.cos(angle).astype(features.dtype), jnp.sin(angle).astype(features.dtype)
        shape = (*[1] * (features.ndim - 2), *cos.shape)
        cos, sin = cos.reshape(shape), sin.reshape(shape)
        if self.pairing == "halves":
            first, second = features[..., :pairs], features[..., pairs:]
            return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
        even, odd = features[..., 0::2], features[..., 1::2]
        return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(features.shape)

    def check(self, features: int) -> None:
        if self.turned is not None:
            if self.turned > features:
                raise InvalidInput(f"`turned` is {self.turned}, but there are {features} features; give at most that.")
            return
        if features % 2:
            raise InvalidInput(
                f"rotary encoding turns pairs of features, but there are {features}; use an even dimension, or "
                "matrices `query` and `key` with an even number of rows."
            )


def _pairing(value: Any) -> str:
    if not isinstance(value, str) or value not in PAIRINGS:
        raise InvalidInput(f"`pairing` is {shown(value)}; use one of {', '.join(map(repr, PAIRINGS))}.")
    return value


def _even(turned: Any) -> int | None:
    if turned is not None and whole("turned", turned, 0) % 2:
        raise InvalidInput(f"`turned` is {turned}, but features turn in pairs; give an even number.")
    return None if turned is None else int(turned)


@in_float64
def sinusoids(place: Any, dim: int, base: Any = 1e4) -> Any:
    """Vectors p(place) of norm 1 in R^dim: sqrt(2/dim) (sin, cos)(place * base^(-2i/dim)); arXiv:1706.03762.

    For an odd `dim` the last coordinate is 0.
    """
    place, dim = jnp.asarray(place), whole("dim", dim, 1)
    angle = _angles(place, dim // 2, base)
    pairs = jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1).reshape(place.shape[0], -1)
    return jnp.pad(pairs, ((0, 0), (0, dim % 2))) / jnp.sqrt(jnp.asarray(max(dim // 2, 1), pairs.dtype))


def _angles(place: Any, pairs: int, base: Any) -> Any:
    rate = jnp.asarray(base, float) ** (-jnp.arange(pairs, dtype=float) / max(pairs, 1))
    return place.astype(float)[:, None] * rate[None, :]
