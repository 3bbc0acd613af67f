"""The things that flow: tokens in their own field, and points carried along by them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.fields.base import AbstractField, AbstractLayered, Total, tangent_drive
from attnflow.fields.queries import AbstractQuery, AtPoints, AtTokens
from attnflow.flows.methods.base import AbstractSystem, State
from attnflow.flows.noise import Brownian
from attnflow.tokens import Measure


class Particles(AbstractSystem):
    """Tokens moving in their own field, perhaps with noise; the state is their positions. Absent rows stay."""

    field: AbstractField
    tokens: Measure
    break_times: Any = eqx.field(default_factory=lambda: np.zeros(0))
    noise: Brownian | None = None

    @property
    def breaks(self) -> Any:
        return self.break_times

    def rate(self, t: Any, state: State) -> State:
        return tangent_drive(self.field, t, AtTokens(), self.tokens.moved(self.tokens.space.retract(state)))

    def retract(self, state: State) -> State:
        return self.tokens.space.retract(state)

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        t = layer_time(layer, step)
        return one_layer(self.field, t, step, AtTokens(), self.tokens.moved(state), update)

    def kick(self, label: Any, step: Any, state: State) -> State:
        if self.noise is None:
            return state
        return AtTokens().kept(self.tokens, self.noise.kick(self.tokens.space, state, step, label), state)

    @property
    def diffusion(self) -> tuple[Brownian, Callable[[Any, Any], Any]] | None:
        return None if self.noise is None else (self.noise, self._push)

    def _push(self, x: Any, w: Any) -> Any:
        assert self.noise is not None
        space = self.tokens.space
        return AtTokens().kept(self.tokens, self.noise.push(space, space.retract(x), w))

    def parts(self) -> tuple[AbstractSystem, ...]:
        fields = self.field.parts if isinstance(self.field, Total) else (self.field,)
        return tuple(Particles(field, self.tokens, self.break_times) for field in fields)


class Carried(AbstractSystem):
    """Tokens, points that feel them and exert nothing, and the log-determinant of the flow map at the points.

    State: (positions of the tokens, points, log-determinants). The points have the places `place`.
    """

    field: AbstractField
    tokens: Measure
    place: Any
    break_times: Any = eqx.field(default_factory=lambda: np.zeros(0))

    @property
    def breaks(self) -> Any:
        return self.break_times

    def rate(self, t: Any, state: State) -> State:
        space = self.tokens.space
        x, points, _ = state
        x, points = space.retract(x), space.retract(points)
        mu = self.tokens.moved(x)
        own = tangent_drive(self.field, t, AtTokens(), mu)

        def at(p: Any, place: Any) -> Any:
            p = space.retract(p[None, :])
            return tangent_drive(self.field, t, AtPoints(p, place[None]), mu)[0]

        def divergence(p: Any, place: Any) -> Any:
            # at() is constant along normals, so the ambient trace is the divergence on the space
            return jnp.trace(jax.jacfwd(at)(p, place))

        moved = tangent_drive(self.field, t, AtPoints(points, self.place), mu)
        return own, moved, jax.vmap(divergence)(points, self.place)

    def retract(self, state: State) -> State:
        x, points, logdet = state
        return self.tokens.space.retract(x), self.tokens.space.retract(points), logdet

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        space = self.tokens.space
        x, points, logdet = state
        t, mu = layer_time(layer, step), self.tokens.moved(x)

        def at(p: Any, place: Any) -> Any:
            return one_layer(self.field, t, step, AtPoints(space.retract(p[None, :]), place[None]), mu, update)[0]

        def stretching(p: Any, place: Any) -> Any:
            jacobian = jax.jacfwd(at)(p, place)
            end = at(p, place)
            # in R^d the normal space is empty; on the sphere x -> end completes the tangent map to an invertible one
            normal = p - space.tangent(p, p)
            return jnp.linalg.slogdet(jacobian + jnp.outer(end - space.tangent(end, end), normal))[1]

        own = one_layer(self.field, t, step, AtTokens(), mu, update)
        moved = one_layer(self.field, t, step, AtPoints(points, self.place), mu, update)
        return own, moved, logdet + jax.vmap(stretching)(points, self.place)

    def kick(self, label: Any, step: Any, state: State) -> State:
        return state  # a flow map is that of the field

    @property
    def diffusion(self) -> tuple[Brownian, Callable[[Any, Any], Any]] | None:
        return None

    def parts(self) -> tuple[AbstractSystem, ...]:
        fields = self.field.parts if isinstance(self.field, Total) else (self.field,)
        return tuple(Carried(field, self.tokens, self.place, self.break_times) for field in fields)


def layer_time(layer: Any, step: Any) -> Any:
    """fl(layer step), moved up by 4 ulp, so that a weight with another step is read on its new piece."""
    step = jnp.asarray(step, float)
    return jnp.asarray(layer, float) * step * (1 + 4 * jnp.finfo(step.dtype).eps)


def one_layer(field: AbstractField, t: Any, step: Any, query: AbstractQuery, mu: Measure, update: Any) -> Any:
    """The points of `query` after one layer in the measure `mu`; absent rows stay."""
    x = query.points(mu)
    step = jnp.asarray(step, x.dtype)
    if isinstance(field, AbstractLayered):
        return query.kept(mu, field.layer(t, step, query, mu), x)
    return query.kept(mu, update(mu.space, x, field.drive(t, query, mu), step), x)
