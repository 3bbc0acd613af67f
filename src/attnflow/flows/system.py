"""The things that flow: tokens in their own field, and points carried along by them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.fields.base import AbstractField, AbstractLayered, Total, tangent_drive
from attnflow.fields.exact.base import as_exact, stretching
from attnflow.fields.queries import AbstractQuery, AtPoints, AtTokens
from attnflow.fields.timed import layer_time
from attnflow.flows.methods.base import AbstractSystem, State
from attnflow.flows.noises import AbstractNoise
from attnflow.tokens import Measure


class Particles(AbstractSystem):
    """Tokens moving in their own field, perhaps with noise; the state is their positions. Absent rows stay."""

    field: AbstractField
    tokens: Measure
    break_times: Any = eqx.field(default_factory=lambda: np.zeros(0))
    noise: AbstractNoise | None = None

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

    def exact(self, t0: Any, t1: Any, state: State) -> State:
        mu = self.tokens.moved(state)
        return AtTokens().kept(mu, as_exact(self.field).carry(t0, t1, AtTokens(), mu), state)

    @property
    def diffusion(self) -> tuple[AbstractNoise, Measure] | None:
        return None if self.noise is None else (self.noise, self.tokens)

    def parts(self) -> tuple[AbstractSystem, ...]:
        fields = self.field.parts if isinstance(self.field, Total) else (self.field,)
        return tuple(Particles(field, self.tokens, self.break_times) for field in fields)


class Carried(AbstractSystem):
    """Tokens, points that feel them and exert nothing, and the log-determinant of the flow map at the points.

    State: (positions of the tokens, points, log-determinants, or None where they are not wanted). The points have the
    places `place`.
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
        x, points, logdet = state
        x, points = space.retract(x), space.retract(points)
        mu = self.tokens.moved(x)
        own = tangent_drive(self.field, t, AtTokens(), mu)

        def at(p: Any, place: Any) -> Any:
            p = space.retract(p[None, :])
            return tangent_drive(self.field, t, AtPoints(p, place[None]), mu)[0]

        def divergence(p: Any, place: Any) -> Any:
            # at() is constant along normals, so the ambient trace is the divergence on the space (`space.normals`)
            return jnp.trace(jax.jacfwd(at)(p, place))

        moved = tangent_drive(self.field, t, AtPoints(points, self.place), mu)
        return own, moved, None if logdet is None else jax.vmap(divergence)(points, self.place)

    def retract(self, state: State) -> State:
        x, points, logdet = state
        return self.tokens.space.retract(x), self.tokens.space.retract(points), logdet

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        x, points, logdet = state
        t, mu = layer_time(layer, step), self.tokens.moved(x)

        def stretched(p: Any, place: Any) -> Any:
            def move(x: Any) -> Any:
                return one_layer(self.field, t, step, AtPoints(x[None], place[None]), mu, update)[0]

            return stretching(self.tokens.space, move, p)

        own = one_layer(self.field, t, step, AtTokens(), mu, update)
        moved = one_layer(self.field, t, step, AtPoints(points, self.place), mu, update)
        return own, moved, None if logdet is None else logdet + jax.vmap(stretched)(points, self.place)

    def exact(self, t0: Any, t1: Any, state: State) -> State:
        x, points, logdet = state
        field, mu, query = as_exact(self.field), self.tokens.moved(x), AtPoints(points, self.place)
        own = field.carry(t0, t1, AtTokens(), mu)
        if logdet is None:
            return own, field.carry(t0, t1, query, mu), None
        moved, change = field.flow(t0, t1, query, mu)
        return own, moved, logdet + change

    @property
    def diffusion(self) -> tuple[AbstractNoise, Measure] | None:
        return None  # a flow map is that of the field

    def parts(self) -> tuple[AbstractSystem, ...]:
        fields = self.field.parts if isinstance(self.field, Total) else (self.field,)
        return tuple(Carried(field, self.tokens, self.place, self.break_times) for field in fields)


def one_layer(field: AbstractField, t: Any, step: Any, query: AbstractQuery, mu: Measure, update: Any) -> Any:
    """The points of `query` after one layer in the measure `mu`; absent rows stay."""
    x = query.points(mu)
    step = jnp.asarray(step, x.dtype)
    if isinstance(field, AbstractLayered):
        return query.kept(mu, field.layer(t, step, query, mu), x)
    return query.kept(mu, update(mu.space, x, field.drive(mu, t, at=query), step), x)
