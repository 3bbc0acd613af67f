"""Small fields for tests: what `solve` does must not depend on attention."""

import equinox as eqx
import jax.numpy as jnp

import attnflow as af
from attnflow.fields import Laws
from attnflow.fields.structure import Inner
from attnflow.flows.observables import fingerprint
from attnflow.runs.registry import REGISTRY

__all__ = ["TRACES", "WORDS", "Breaking", "Counting", "Slow", "fingerprint"]
TRACES = {"count": 0}
WORDS = {kind: dict(words) for kind, words in REGISTRY.items()}
"""part of a specification -> its words and what makes them, without those of files."""


class Counting(af.AbstractField):
    """Attention that counts how often it is traced."""

    inner: af.Attention

    def formula(self, t, query, mu):
        TRACES["count"] += 1
        return self.inner.formula(t, query, mu)

    def children(self, space):
        return (Inner(lambda field: field.inner, space),)

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return Laws(False, True, True, True)


class Breaking(af.AbstractField):
    """A drift that stops being finite at time 1."""

    axis: tuple = eqx.field(static=True, default=(0.0, 0.0, 1.0))

    def formula(self, t, query, mu):
        x = query.points(mu)
        pull = jnp.broadcast_to(jnp.asarray(self.axis, x.dtype), x.shape)
        return jnp.where(jnp.asarray(t < 1.0), pull, jnp.nan)

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return Laws(False, True, True, True)


class Slow(af.AbstractField):
    """A unit drift that is called very often with Layers(1e-6)."""

    def formula(self, t, query, mu):
        return jnp.roll(jnp.asarray(query.points(mu)), 1, axis=0)

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return Laws(False, True, True, True)
