"""Next-token distributions, their entropy H, and the information I that the tokens carry about the next word.

H(p) = sum_j w_j H(p_j) + I holds exactly; I is the mutual information of token and word, which is the Jensen-Shannon
divergence of the distributions p_j. exp(I) is the number of alternatives: n tokens with disjoint distributions and
equal weights have n, and tokens at consensus have 1. Clustering lowers I. It need not lower H.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import finite_array, members
from attnflow.checks import instance, number, shown
from attnflow.errors import InvalidInput
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe.observable import observable
from attnflow.precision import in_float64, is_traced
from attnflow.text.readouts import AbstractReadOut, Mixture
from attnflow.tokens import Measure, Tokens

BLOCK = 32
"""Tokens whose logits are in memory at once."""
NOTHING = -1e4
"""Logits this far below the largest have the probability 0 in float64."""


@dataclasses.dataclass(frozen=True)
class NextTokenDistribution:
    """The distribution of the next word; batch dimensions of the tokens come first in every array."""

    probabilities: np.ndarray
    """(..., V) p(w)."""
    entropy: np.ndarray
    """H(p), in nats."""
    conditional_entropy: np.ndarray
    """sum_j w_j H(p_j): what is left of H when the token is known."""
    weights: np.ndarray
    """(..., n) w_j, which sum to 1."""

    @property
    def information(self) -> np.ndarray:
        """I = H(p) - sum_j w_j H(p_j), at least 0."""
        return np.maximum(self.entropy - self.conditional_entropy, 0.0)

    @property
    def alternatives(self) -> np.ndarray:
        """exp(I), from 1 to the number of tokens."""
        return np.exp(self.information)


@checked_arguments
def next_token_distribution(
    tokens: Tokens | Measure, words: Any, *, beta: float = 1.0, readout: AbstractReadOut | None = None
) -> NextTokenDistribution:
    """The distribution of the next word: token j alone says p_j(w) proportional to e^(beta <x_j, e_w>).

    A distribution over V words is peaked only for beta well above log V. Tokens of float32 and words of float32 are
    multiplied in float32; sums over words are in float64.

    Arguments:
        tokens: one system or a batch.
        words: (V, d) rows e_w.
        beta: the inverse temperature of the read-out.
        readout: `Mixture()` (if left out), `KernelSum()` or `LastToken()`.
    """
    return NextTokenDistribution(*in_float64(_law)(tokens, words, beta, readout))


@observable
@checked_arguments
@in_float64
def alternatives(
    tokens: Tokens | Measure, words: Any, *, beta: float = 1.0, readout: AbstractReadOut | None = None
) -> Any:
    """exp(I) of `next_token_distribution`: how many different next words the measure carries. Batches give arrays."""
    _, entropy, conditional, _ = _law(tokens, words, beta, readout)
    return jnp.exp(jnp.maximum(jnp.asarray(entropy) - conditional, 0.0))


def distribution_of_logits(
    logits: Any, masses: Any = None, *, readout: AbstractReadOut | None = None
) -> NextTokenDistribution:
    """The distribution of the next word from logits (n, V) of the tokens in order; masses are equal if left out."""
    table = np.asarray(logits)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise InvalidInput(f"`logits` is {shown(logits)}; give finite numbers of shape (tokens, words).")
    mass = np.ones(len(table)) if masses is None else np.asarray(finite_array("`masses`", masses))
    if mass.shape != (len(table),) or (mass < 0).any() or not mass.sum() > 0:
        raise InvalidInput(f"`masses` has shape {mass.shape}; give one number of at least 0 for each of {len(table)}.")
    read = _readout(readout)
    last = np.arange(len(table)) == len(table) - 1

    def distribution() -> Any:
        none = jnp.eye(1, dtype=table.dtype)  # of the same type, so that logits in float32 are not copied as a whole
        return _mixture(table, none, jnp.asarray(mass / mass.sum()), last, read, jnp.asarray(1.0), True)

    return NextTokenDistribution(*in_float64(distribution)())


def _readout(readout: Any) -> AbstractReadOut:
    return Mixture() if readout is None else instance("readout", readout, AbstractReadOut, "one such as LastToken()")


def _law(tokens: Tokens | Measure, words: Any, beta: Any, readout: AbstractReadOut | None) -> Any:
    """Probabilities, H, conditional entropy and weights; batch dimensions first."""
    read = _readout(readout)
    if not is_traced((words, beta)):
        vocabulary = np.asarray(words)
        shape = vocabulary.shape
        if len(shape) != 2 or not shape[0] or shape[1] != tokens.dim or vocabulary.dtype.kind not in "iuf":
            raise InvalidInput(f"`words` has shape {shape}; give one row of {tokens.dim} numbers for each word.")
        if not np.isfinite(vocabulary).all():
            raise InvalidInput("`words` has an entry that is not finite; correct or remove it.")
        number("beta", beta)
        words = vocabulary
    systems = members(None, tokens)
    mu = systems.measure
    there = jnp.ones(mu.masses.shape, bool) if mu.present is None else jnp.asarray(mu.present)
    place = jnp.broadcast_to(jnp.asarray(mu.place), mu.masses.shape)
    latest = jnp.where(there, jnp.asarray(place, float), -jnp.inf)
    last = jax.nn.one_hot(jnp.argmax(latest, axis=-1), place.shape[-1], dtype=bool)
    given = jnp.asarray(mu.positions), jnp.asarray(mu.masses), last
    beta = jnp.asarray(beta, float)
    if not systems.dims:
        return _mixture(given[0], words, given[1], given[2], read, beta, False)
    found = _each(given, words, read, beta)
    return tuple(systems.unflatten(one) for one in found)


@eqx.filter_jit
def _each(given: Any, words: Any, read: AbstractReadOut, beta: Any) -> Any:
    return jax.lax.map(lambda one: _mixture(one[0], words, one[1], one[2], read, beta, False), given)


@eqx.filter_jit
def _mixture(x: Any, words: Any, masses: Any, last: Any, read: AbstractReadOut, beta: Any, are_logits: bool) -> Any:
    """One pass over blocks of tokens. `x` has positions, or logits if `are_logits`."""
    x, words = jnp.asarray(x), jnp.asarray(words)
    if x.dtype != words.dtype:
        x, words = jnp.asarray(x, float), jnp.asarray(words, float)
    n = x.shape[0]
    block = min(BLOCK, n)
    missing = -n % block
    blocks = [
        jnp.pad(a, [(0, missing)] + [(0, 0)] * (a.ndim - 1)).reshape(-1, block, *a.shape[1:])
        for a in (x, jnp.asarray(masses, float), last)
    ]

    def some(carry: Any, given: Any) -> Any:
        (sums, unit), (rows, mass, is_last) = carry, given
        overlaps = jnp.asarray(rows if are_logits else rows @ words.T, float)
        nearest = jnp.where(beta >= 0, jnp.max(overlaps, axis=1), jnp.min(overlaps, axis=1))
        nearest = jax.lax.stop_gradient(nearest)[:, None]
        below = jnp.maximum(beta * (overlaps - nearest), NOTHING)  # at most 0 whatever the rounding of beta * overlaps
        peak = beta * nearest
        weights = jnp.exp(below)
        partition = jnp.sum(weights, axis=1)
        entropies = jnp.log(partition) - jnp.sum(weights * below, axis=1) / partition
        log_mass = jnp.where(mass > 0, jnp.log(jnp.where(mass > 0, mass, 1.0)), -jnp.inf)
        own = read.log_weights(log_mass, jnp.log(partition) + peak[:, 0], is_last)
        larger = jax.lax.stop_gradient(jnp.maximum(unit, jnp.max(own)))  # sums are in units of e^larger
        safe = jnp.where(larger > -jnp.inf, larger, 0.0)  # -inf while no token has a weight
        sums = jnp.exp(unit - safe) * sums + (jnp.exp(own - safe) / partition) @ weights
        return (sums, larger), (own, entropies)

    start = jnp.zeros(x.shape[1] if are_logits else words.shape[0]), jnp.asarray(-jnp.inf)
    (sums, unit), (own, entropies) = jax.lax.scan(some, start, tuple(blocks))
    own, entropies = own.reshape(-1)[:n], entropies.reshape(-1)[:n]
    shares = jnp.exp(own - unit)
    distribution, shares = sums / jnp.sum(shares), shares / jnp.sum(shares)
    entropy = -jnp.sum(distribution * jnp.log(jnp.where(distribution > 0, distribution, 1.0)))
    return distribution, entropy, jnp.sum(shares * entropies), shares
